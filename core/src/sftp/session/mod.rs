//! One SFTP conversation: the handshake, request ids, and what is outstanding.
//!
//! The session turns requests into bytes and bytes into replies. It owns the ids, the handles and the
//! count of both; what to ask and when is the machines' and the window's business.

mod extensions;
mod handles;
mod table;

use crate::error::{ProtocolError, SubmitError};
use crate::time::Instant;
use crate::window::Sample;

use super::attrs::Attrs;
use super::decode::{Decoder, Item};
use super::status::StatusCode;
use super::wire::{
    self, HANDLE_LEN_MAX, PATH_LEN_MAX, Request, RequestKind, SSH_FXP_ATTRS, SSH_FXP_DATA,
    SSH_FXP_EXTENDED_REPLY, SSH_FXP_HANDLE, SSH_FXP_NAME, SSH_FXP_STATUS, VERSION,
};
pub use extensions::{Extensions, Limits};
pub use handles::HandleKey;
use handles::Handles;
use table::State;
pub use table::To;
use table::{Slot, Table};

/// Bytes of requests that wait to leave: a STAT and an OPEN of the longest paths fit.
const STAGE_LEN: usize = 2 * (PATH_LEN_MAX + 64);

/// The session's own requests go to no operation.
const OP_SESSION: u16 = u16::MAX;

/// What a turn of [`Session::handle_input`] brought.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Reply<'s> {
    /// The session took care of it itself; call again.
    Internal,
    /// VERSION is complete: requests may leave.
    Ready,
    /// STATUS in answer to a request.
    Status {
        /// Whom it is for.
        to: To,
        /// What was asked.
        kind: RequestKind,
        /// The code.
        code: StatusCode,
        /// The server's words.
        message: &'s [u8],
    },
    /// OPEN succeeded.
    Opened {
        /// Whom it is for.
        to: To,
        /// The handle.
        handle: HandleKey,
    },
    /// The head of a DATA reply.
    DataStart {
        /// Whom it is for.
        to: To,
        /// What was noted when READ was sent.
        sample: Sample,
    },
    /// A piece of file content.
    Data {
        /// Whom it is for.
        to: To,
        /// Place of the first byte in the file.
        offset: u64,
        /// The bytes, never empty.
        bytes: &'s [u8],
    },
    /// A DATA reply is complete.
    DataEnd {
        /// Whom it is for.
        to: To,
        /// Bytes that the reply held; at most `to.asked`.
        got: u32,
        /// Bytes asked for that did not come: they are in flight no longer.
        missing: u32,
        /// What was noted when READ was sent.
        sample: Sample,
    },
    /// ATTRS.
    Attrs {
        /// Whom it is for.
        to: To,
        /// The attributes.
        attrs: Attrs,
    },
    /// A reply that nobody waited for is complete.
    Discarded {
        /// Bytes that are in flight no longer.
        bytes: u32,
        /// The request had been given up as lost: it was not, only late.
        late: bool,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// INIT has not left.
    Init,
    /// INIT has left, VERSION is due.
    Version,
    Ready,
    /// Over: the stream ended, or the peer broke the protocol.
    Ended,
}

/// One SFTP conversation, with at most `REQUESTS` outstanding requests and `HANDLES` handles.
#[derive(Debug)]
pub struct Session<const REQUESTS: usize, const HANDLES: usize> {
    decoder: Decoder,
    book: Book<REQUESTS, HANDLES>,
    stage: heapless::Vec<u8, STAGE_LEN>,
}

/// All of a session but the decoder, whose items are borrowed while the book is written.
#[derive(Debug)]
struct Book<const REQUESTS: usize, const HANDLES: usize> {
    phase: Phase,
    table: Table<REQUESTS>,
    handles: Handles<HANDLES>,
    extensions: Extensions,
    limits: Limits,
    limits_due: bool,
}

impl<const REQUESTS: usize, const HANDLES: usize> Default for Session<REQUESTS, HANDLES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const REQUESTS: usize, const HANDLES: usize> Session<REQUESTS, HANDLES> {
    /// Makes a session that has yet to say INIT.
    #[must_use]
    pub fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            book: Book {
                phase: Phase::Init,
                table: Table::new(),
                handles: Handles::new(),
                extensions: Extensions::default(),
                limits: Limits::default(),
                limits_due: false,
            },
            stage: heapless::Vec::new(),
        }
    }

    /// What the server announced; empty before VERSION.
    #[must_use]
    pub fn extensions(&self) -> Extensions {
        self.book.extensions
    }

    /// What the server accepts; the defaults until it has said.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.book.limits
    }

    /// Text that came where VERSION was due.
    #[must_use]
    pub fn banner(&self) -> &[u8] {
        self.decoder.banner()
    }

    /// Requests whose reply is owed, including those that nobody waits for any more.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.book.table.outstanding()
    }

    /// Handles that are open, or on their way to or from being so.
    #[must_use]
    pub fn handles_open(&self) -> usize {
        self.book.handles.count()
    }

    /// True between VERSION and the end.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.book.phase == Phase::Ready
    }

    /// True once the stream has ended or the peer has broken the protocol.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.book.phase == Phase::Ended
    }

    pub(crate) fn live(&self) -> usize {
        self.book.table.live()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.book.table.is_full()
    }

    /// The first byte that outstanding READs of `op` have not brought.
    pub(crate) fn lowest_missing(&self, op: u16) -> Option<u64> {
        let reads = self
            .book
            .table
            .live_of(op)
            .filter(|slot| slot.kind == RequestKind::Read);
        reads
            .map(|slot| slot.to.tag.saturating_add(u64::from(slot.received)))
            .min()
    }

    /// Takes a prefix of `input` and returns what it brought; `None` once all of it is taken.
    ///
    /// # Errors
    /// The rule that the server broke; the session has ended.
    pub fn handle_input<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Reply<'s>>, ProtocolError> {
        let book = &mut self.book;
        let item = match self.decoder.handle_input(input) {
            Ok(Some(item)) => item,
            Ok(None) => return Ok(None),
            Err(error) => {
                book.end();
                return Err(error);
            }
        };
        match book.apply(item) {
            Ok(reply) => Ok(Some(reply)),
            Err(error) => {
                book.end();
                Err(error)
            }
        }
    }

    /// The stream has ended: no reply will come.
    ///
    /// # Errors
    /// [`ProtocolError::EofInsidePacket`] or [`ProtocolError::BannerText`].
    pub fn handle_eof(&mut self) -> Result<(), ProtocolError> {
        self.book.end();
        self.decoder.handle_eof()
    }

    /// The session is over, for a reason that the stream did not give: no handle is open any more.
    pub(crate) fn end(&mut self) {
        self.book.end();
    }

    /// Turns every request of `op` into a tombstone. Their replies are dropped when they come; a handle that
    /// OPEN still brings is closed.
    pub(crate) fn cancel(&mut self, op: u16) {
        self.book.table.bury(op, |_| {});
    }

    /// Gives every READ of `op` up as lost, calling `lost` with (offset, bytes) of what did not come.
    /// Returns the bytes that are in flight no longer.
    pub(crate) fn give_up(&mut self, op: u16, mut lost: impl FnMut(u64, u64)) -> u64 {
        let Book { table, handles, .. } = &mut self.book;
        let mut bytes = 0;
        table.bury(op, |slot| {
            bytes += u64::from(core::mem::take(&mut slot.in_flight));
            let received = u64::from(slot.received);
            lost(
                slot.to.tag.saturating_add(received),
                u64::from(slot.to.asked) - received,
            );
            // CLOSE must not wait for replies that may never come.
            if let Some(handle) = slot.handle.take() {
                handles.request_ended(handle);
            }
        });
        bytes
    }

    /// Gives up what was cancelled: its replies may never come, and neither window nor CLOSE must wait for them.
    /// Returns the bytes that are in flight no longer.
    pub(crate) fn give_up_cancelled(&mut self) -> u64 {
        let Book { table, handles, .. } = &mut self.book;
        let mut bytes = 0;
        for slot in table.tombstones() {
            if slot.kind == RequestKind::Read {
                bytes += u64::from(core::mem::take(&mut slot.in_flight));
                if let Some(handle) = slot.handle.take() {
                    handles.request_ended(handle);
                }
            }
        }
        bytes
    }

    /// Asks for the handle to be closed as soon as nothing is outstanding on it.
    pub(crate) fn release(&mut self, handle: HandleKey) {
        self.book.handles.release(handle);
    }

    pub(crate) fn release_all(&mut self) {
        self.book.handles.release_all();
    }

    pub(crate) fn has_handle(&self, handle: HandleKey) -> bool {
        self.book.handles.bytes(handle).is_some()
    }

    /// Accepts a request for the next transmit.
    pub(crate) fn submit(
        &mut self,
        now: Instant,
        to: To,
        request: Submit<'_>,
    ) -> Result<(), SubmitError> {
        let book = &mut self.book;
        if book.phase == Phase::Ended {
            return Err(SubmitError::Closed);
        }
        if book.table.is_full() {
            return Err(SubmitError::Full);
        }
        let room = STAGE_LEN - self.stage.len();
        // An FSTAT's handle is copied out, so that the book can be written while the request is encoded.
        let mut handle_bytes = [0; HANDLE_LEN_MAX];
        let (request, handle) = match request {
            Submit::Fstat(key) => {
                let bytes = book.handles.bytes(key).ok_or(SubmitError::HandleUnknown)?;
                let copy = handle_bytes.get_mut(..bytes.len()).unwrap_or_default();
                copy.copy_from_slice(bytes);
                (Request::Fstat { handle: copy }, Some(key))
            }
            Submit::Path(_, path) if path.len() > PATH_LEN_MAX => {
                return Err(SubmitError::PathTooLong);
            }
            Submit::Path(RequestKind::Open, path) => (Request::Open { path }, None),
            Submit::Path(RequestKind::Lstat, path) => (Request::Lstat { path }, None),
            Submit::Path(_, path) => (Request::Stat { path }, None),
        };
        let len = request.encoded_len();
        if len > room {
            return Err(SubmitError::Full);
        }
        let kind = request.kind();
        let handle = if kind == RequestKind::Open {
            Some(
                book.handles
                    .reserve(book.limits.handles_max)
                    .ok_or(SubmitError::Full)?,
            )
        } else {
            handle
        };
        let id = book
            .table
            .claim(kind, to, handle, Sample::at(now))
            .ok_or(SubmitError::Full)?;
        let start = self.stage.len();
        // Within the room that was just checked.
        let _ = self.stage.resize(start + len, 0);
        let _ = request.encode(id, self.stage.get_mut(start..).unwrap_or_default());
        if let Some(handle) = handle {
            book.handles.request_sent(handle);
        }
        Ok(())
    }

    /// True if [`Self::poll_transmit`] has something to write.
    pub(crate) fn has_output(&self) -> bool {
        match self.book.phase {
            Phase::Init => true,
            Phase::Version | Phase::Ended => false,
            Phase::Ready => {
                self.book.limits_due
                    || !self.stage.is_empty()
                    || (self.book.handles.close_due().is_some() && !self.is_full())
            }
        }
    }

    /// Writes the handshake, CLOSEs that are due, and what was submitted; as many whole requests as fit.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut [u8]) -> usize {
        match self.book.phase {
            Phase::Init => {
                let Ok(len) = wire::encode_init(out) else {
                    return 0;
                };
                self.book.phase = Phase::Version;
                len
            }
            Phase::Version | Phase::Ended => 0,
            Phase::Ready => {
                let limits = self.book.transmit_limits(now, out);
                let staged = self.transmit_stage(out.get_mut(limits..).unwrap_or_default());
                let len = limits + staged;
                len + self
                    .book
                    .transmit_closes(now, out.get_mut(len..).unwrap_or_default())
            }
        }
    }

    /// Copies out of the stage what fits; a request may be cut, and goes on in the next call.
    fn transmit_stage(&mut self, out: &mut [u8]) -> usize {
        let len = self.stage.len().min(out.len());
        for (to, from) in out.iter_mut().zip(&self.stage) {
            *to = *from;
        }
        self.stage.copy_within(len.., 0);
        self.stage.truncate(self.stage.len() - len);
        len
    }

    /// Writes one READ; `None` if it does not fit, or no slot is free, or the handle is not open.
    pub(crate) fn transmit_read(
        &mut self,
        out: &mut [u8],
        key: HandleKey,
        to: To,
        sample: Sample,
    ) -> Option<usize> {
        let book = &mut self.book;
        let handle = book.handles.bytes(key)?;
        let request = Request::Read {
            handle,
            offset: to.tag,
            len: to.asked,
        };
        if book.phase != Phase::Ready || request.encoded_len() > out.len() {
            return None;
        }
        let id = book.table.claim(RequestKind::Read, to, Some(key), sample)?;
        let len = request.encode(id, out).unwrap_or_default();
        book.handles.request_sent(key);
        Some(len)
    }
}

/// A request that waits in the stage until the next transmit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Submit<'a> {
    Fstat(HandleKey),
    /// OPEN, LSTAT or STAT.
    Path(RequestKind, &'a [u8]),
}

impl<const REQUESTS: usize, const HANDLES: usize> Book<REQUESTS, HANDLES> {
    fn end(&mut self) {
        self.phase = Phase::Ended;
        self.handles.clear();
    }

    fn transmit_limits(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let request = Request::Limits;
        if !self.limits_due || request.encoded_len() > out.len() {
            return 0;
        }
        let to = To {
            op: OP_SESSION,
            tag: 0,
            asked: 0,
        };
        let Some(id) = self
            .table
            .claim(RequestKind::Limits, to, None, Sample::at(now))
        else {
            return 0;
        };
        self.limits_due = false;
        request.encode(id, out).unwrap_or_default()
    }

    fn transmit_closes(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let mut written = 0;
        while let Some((key, handle)) = self.handles.close_due() {
            let request = Request::Close { handle };
            let out = out.get_mut(written..).unwrap_or_default();
            if request.encoded_len() > out.len() {
                break;
            }
            let to = To {
                op: OP_SESSION,
                tag: 0,
                asked: 0,
            };
            let sample = Sample::at(now);
            let Some(id) = self.table.claim(RequestKind::Close, to, Some(key), sample) else {
                break;
            };
            written += request.encode(id, out).unwrap_or_default();
            self.handles.close_sent(key);
        }
        written
    }

    fn apply<'s>(&mut self, item: Item<'s>) -> Result<Reply<'s>, ProtocolError> {
        match item {
            Item::Version { version } => {
                if version != VERSION {
                    return Err(ProtocolError::VersionUnsupported(version));
                }
                if self.phase != Phase::Version {
                    return Err(ProtocolError::PacketTypeUnexpected(wire::SSH_FXP_VERSION));
                }
                Ok(Reply::Internal)
            }
            Item::Extension { name, data } => {
                self.extensions.add(name, data);
                Ok(Reply::Internal)
            }
            Item::VersionEnd => {
                self.phase = Phase::Ready;
                self.limits_due = self.extensions.limits;
                Ok(Reply::Ready)
            }
            Item::Status { id, code, message } => self.status(id, code, message),
            Item::Handle { id, handle } => self.opened(id, handle),
            Item::DataStart { id, len } => self.data_start(id, len),
            Item::Data { id, bytes } => self.data(id, bytes),
            Item::DataEnd { id } => {
                let slot = self.end_request(id, SSH_FXP_DATA, RequestKind::Read)?;
                let (to, sample) = (slot.to, slot.sample);
                let end = Reply::DataEnd {
                    to,
                    got: slot.announced,
                    missing: slot.in_flight,
                    sample,
                };
                Ok(live_or_discarded(&slot, end))
            }
            // No request that is sent so far is answered by NAME.
            Item::NameStart { id, .. } | Item::Name { id, .. } | Item::NameEnd { id } => {
                self.slot(id)?;
                Err(ProtocolError::ReplyMismatch {
                    packet_type: SSH_FXP_NAME,
                })
            }
            Item::Attrs { id, attrs } => {
                let kind = self.slot(id)?.kind;
                let asked = matches!(
                    kind,
                    RequestKind::Stat | RequestKind::Lstat | RequestKind::Fstat
                );
                if !asked {
                    return Err(ProtocolError::ReplyMismatch {
                        packet_type: SSH_FXP_ATTRS,
                    });
                }
                let slot = self.end_request(id, SSH_FXP_ATTRS, kind)?;
                Ok(live_or_discarded(
                    &slot,
                    Reply::Attrs { to: slot.to, attrs },
                ))
            }
            Item::ExtendedReply { id, data } => {
                self.end_request(id, SSH_FXP_EXTENDED_REPLY, RequestKind::Limits)?;
                // A server that announces the extension and answers with less has no limits to tell.
                self.limits = Limits::parse(data).unwrap_or_default();
                Ok(Reply::Internal)
            }
        }
    }

    fn slot(&mut self, id: u32) -> Result<&mut Slot, ProtocolError> {
        self.table.get(id).ok_or(ProtocolError::IdUnknown(id))
    }

    fn expect(
        &mut self,
        id: u32,
        packet_type: u8,
        kind: RequestKind,
    ) -> Result<&mut Slot, ProtocolError> {
        let slot = self.slot(id)?;
        if slot.kind != kind {
            return Err(ProtocolError::ReplyMismatch { packet_type });
        }
        Ok(slot)
    }

    /// Frees the slot of a request whose reply is complete.
    fn end_request(
        &mut self,
        id: u32,
        packet_type: u8,
        kind: RequestKind,
    ) -> Result<Slot, ProtocolError> {
        self.expect(id, packet_type, kind)?;
        let slot = self.table.free(id).ok_or(ProtocolError::IdUnknown(id))?;
        if let Some(handle) = slot.handle
            && slot.kind != RequestKind::Close
        {
            self.handles.request_ended(handle);
        }
        Ok(slot)
    }

    fn status<'s>(
        &mut self,
        id: u32,
        code: StatusCode,
        message: &'s [u8],
    ) -> Result<Reply<'s>, ProtocolError> {
        let kind = self.slot(id)?.kind;
        if code == StatusCode::OK && kind != RequestKind::Close {
            // "Success" without what was asked for: there is nothing that it could mean.
            return Err(ProtocolError::ReplyMismatch {
                packet_type: SSH_FXP_STATUS,
            });
        }
        let slot = self.end_request(id, SSH_FXP_STATUS, kind)?;
        if let Some(handle) = slot.handle
            && matches!(kind, RequestKind::Open | RequestKind::Close)
        {
            self.handles.freed(handle);
        }
        if slot.to.op == OP_SESSION {
            return Ok(Reply::Internal);
        }
        let status = Reply::Status {
            to: slot.to,
            kind,
            code,
            message,
        };
        Ok(live_or_discarded(&slot, status))
    }

    fn opened(&mut self, id: u32, bytes: &[u8]) -> Result<Reply<'static>, ProtocolError> {
        let slot = self.end_request(id, SSH_FXP_HANDLE, RequestKind::Open)?;
        let Some(handle) = slot.handle else {
            return Ok(Reply::Internal);
        };
        self.handles
            .opened(handle, bytes, slot.state == State::Live);
        Ok(live_or_discarded(
            &slot,
            Reply::Opened {
                to: slot.to,
                handle,
            },
        ))
    }

    fn data_start(&mut self, id: u32, len: u32) -> Result<Reply<'static>, ProtocolError> {
        let slot = self.expect(id, SSH_FXP_DATA, RequestKind::Read)?;
        if len > slot.to.asked {
            return Err(ProtocolError::DataTooLong {
                asked: slot.to.asked,
                got: len,
            });
        }
        slot.announced = len;
        let (to, sample) = (slot.to, slot.sample);
        let live = slot.state == State::Live;
        Ok(if live {
            Reply::DataStart { to, sample }
        } else {
            Reply::Internal
        })
    }

    fn data<'s>(&mut self, id: u32, bytes: &'s [u8]) -> Result<Reply<'s>, ProtocolError> {
        let slot = self.expect(id, SSH_FXP_DATA, RequestKind::Read)?;
        if slot.state != State::Live {
            return Ok(Reply::Internal);
        }
        let offset = slot.to.tag.saturating_add(u64::from(slot.received));
        // The decoder passes on at most what it announced, and that is at most what was asked.
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        slot.received = slot.received.saturating_add(len);
        slot.in_flight = slot.in_flight.saturating_sub(len);
        Ok(Reply::Data {
            to: slot.to,
            offset,
            bytes,
        })
    }
}

/// The reply, or only word that it is gone if nobody waits for it.
fn live_or_discarded<'s>(slot: &Slot, reply: Reply<'s>) -> Reply<'s> {
    if slot.state == State::Live {
        return reply;
    }
    let late = slot.kind == RequestKind::Read && slot.handle.is_none();
    Reply::Discarded {
        bytes: slot.in_flight,
        late,
    }
}
