//! One session with its window and its operations: bytes in, bytes out, and what came of it.
//!
//! The engine only moves values between the session, the window and the machines. The run loop's
//! contract stands in the crate's documentation.

mod inbound;
mod outbound;

use core::time::Duration;

use crate::download::{Download, DownloadConfig};
use crate::error::{OpError, ProtocolError, SubmitError};
use crate::sftp::Submit;
use crate::sftp::{Attrs, Extensions, HandleKey, Limits, RequestKind, Session, To};
use crate::time::Instant;
use crate::window::{Window, WindowConfig};

/// How a session behaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The window.
    pub window: WindowConfig,
    /// Longest time without any byte for an operation that waits for some; then it fails. Default 60 s. Too small: slow servers and long pauses (rekeying) fail transfers. Too large: a dead link
    /// is noticed late.
    pub no_progress_max: Duration,
    /// Longest time from INIT to VERSION. Default 60 s. Too small: a login fails while its password is still being
    /// typed. Too large: a server that never answers is noticed late.
    pub handshake_max: Duration,
    /// Time without any byte at all after which outstanding READs are sent anew, few at once. Default 10 s. Too
    /// small: a pause of the link makes bytes come twice. Too large: servers that drop requests are slow.
    pub stall_after: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: WindowConfig::default(),
            no_progress_max: Duration::from_secs(60),
            handshake_max: Duration::from_secs(60),
            stall_after: Duration::from_secs(10),
        }
    }
}

impl Config {
    /// Sets [`Self::window`].
    #[must_use]
    pub const fn with_window(mut self, window: WindowConfig) -> Self {
        self.window = window;
        self
    }

    /// Sets [`Self::no_progress_max`].
    #[must_use]
    pub const fn with_no_progress_max(mut self, duration: Duration) -> Self {
        self.no_progress_max = duration;
        self
    }

    /// Sets [`Self::handshake_max`].
    #[must_use]
    pub const fn with_handshake_max(mut self, duration: Duration) -> Self {
        self.handshake_max = duration;
        self
    }

    /// Sets [`Self::stall_after`].
    #[must_use]
    pub const fn with_stall_after(mut self, duration: Duration) -> Self {
        self.stall_after = duration;
        self
    }
}

/// Names an operation of one engine. An id is never used twice.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct OpId {
    index: u16,
    generation: u32,
}

impl OpId {
    /// The operation's slot, below the engine's `OPS`; used again once the operation was taken.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.index)
    }
}

/// One request with one answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Command<'a> {
    /// Attributes of an open file.
    Fstat(HandleKey),
    /// Attributes of a path, symbolic links not followed.
    Lstat(&'a [u8]),
    /// Opens a file for reading.
    Open(&'a [u8]),
    /// Attributes of a path, symbolic links followed.
    Stat(&'a [u8]),
}

/// What an operation brought.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// Attributes, of `Fstat`, `Lstat` and `Stat`.
    Attrs(Attrs),
    /// End of what a download fetched: every byte of the range below it was handed on.
    Fetched(u64),
    /// An open file; it counts until it is released.
    Handle(HandleKey),
}

/// What a turn of `handle_input` brought.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event<'s> {
    /// The engine took care of it itself; call again.
    Internal,
    /// Content of a file that is downloaded. Tell [`Engine::consume`] once it needs no memory any more.
    Data {
        /// The download.
        op: OpId,
        /// Place of the first byte in the file.
        offset: u64,
        /// The bytes, never empty; each byte of the file comes once.
        bytes: &'s [u8],
    },
}

/// News for the application.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum OpEvent {
    /// The operation has ended: `take` has what came of it.
    Finished(OpId),
    /// VERSION has come: requests leave.
    Ready,
}

/// How far a download is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// Bytes handed on.
    pub arrived: u64,
    /// End of the gap-free prefix: every byte of the range below it was handed on.
    pub contiguous: u64,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Ended {
    /// The stream ended between packets.
    Eof,
    /// VERSION did not come in time.
    HandshakeTimeout,
    /// The peer broke the protocol.
    Protocol(ProtocolError),
}

impl From<Ended> for OpError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Eof => Self::Closed,
            Ended::HandshakeTimeout => Self::NoProgress,
            Ended::Protocol(error) => Self::Protocol(error),
        }
    }
}

#[derive(Debug)]
enum Work<const GAPS: usize> {
    Free,
    Request,
    Download {
        handle: HandleKey,
        machine: Download<GAPS>,
    },
    Done {
        outcome: Result<Outcome, OpError>,
        is_told: bool,
    },
}

#[derive(Debug)]
struct Op<const GAPS: usize> {
    generation: u32,
    work: Work<GAPS>,
    /// When the operation was submitted, sent its first request after none, or got its last byte.
    progress_at: Instant,
    /// The same, and when it sent its first request after all were given up.
    asked_at: Instant,
    /// Its requests were given up, and nothing has come since.
    is_given_up: bool,
    arrived: u64,
    /// Counts what is asked, from where the others were when it began: the turn of those with as much in flight.
    asked: u64,
    in_flight: u64,
    unconsumed: u64,
    /// Kept from the machine when it ended.
    contiguous: u64,
}

/// A session with at most `OPS` operations, `REQUESTS` outstanding requests (up to 4,096) and `HANDLES` handles
/// (up to 255).
///
/// Seven eighths of `REQUESTS` bound what can be in flight: 896 of 255 KiB are 233 MB, of 32 KiB 29 MB. The rest is for
/// asking anew after a stall. The memory is about
/// `REQUESTS x (88 + 16 x OPS)` bytes, all of it in this value.
#[derive(Debug)]
pub struct Engine<const OPS: usize = 8, const REQUESTS: usize = 1024, const HANDLES: usize = 16> {
    config: Config,
    session: Session<REQUESTS, HANDLES>,
    window: Window,
    ops: [Op<REQUESTS>; OPS],
    now: Instant,
    /// When INIT left.
    started_at: Option<Instant>,
    /// When the last byte came, or requests began to be outstanding.
    input_at: Instant,
    stalls: u32,
    is_ready_told: bool,
    is_closing: bool,
    ended: Option<Ended>,
}

impl<const OPS: usize, const REQUESTS: usize, const HANDLES: usize> Engine<OPS, REQUESTS, HANDLES> {
    /// Makes an engine that has yet to say INIT.
    #[must_use]
    pub fn new(config: Config) -> Self {
        const {
            assert!(
                OPS < 0xffff,
                "an operation's index is 16 bits, the last for the session"
            )
        };
        let session = Session::new();
        Self {
            window: Window::new(config.window, session.limits().read_len_max),
            config,
            session,
            ops: core::array::from_fn(|_| Op {
                generation: 0,
                work: Work::Free,
                progress_at: Instant::ZERO,
                asked_at: Instant::ZERO,
                is_given_up: false,
                arrived: 0,
                asked: 0,
                in_flight: 0,
                unconsumed: 0,
                contiguous: 0,
            }),
            now: Instant::ZERO,
            started_at: None,
            input_at: Instant::ZERO,
            stalls: 0,
            is_ready_told: false,
            is_closing: false,
            ended: None,
        }
    }

    /// What the server announced; empty before VERSION.
    #[must_use]
    pub fn extensions(&self) -> Extensions {
        self.session.extensions()
    }

    /// What the server accepts; the defaults until it has said.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.session.limits()
    }

    /// The window, to look at.
    #[must_use]
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Text that came where VERSION was due: it explains a failed handshake.
    #[must_use]
    pub fn banner(&self) -> &[u8] {
        self.session.banner()
    }

    /// Requests whose reply is owed, including those that nobody waits for any more.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.session.outstanding()
    }

    /// Handles that are open, or on their way to or from being so.
    #[must_use]
    pub fn handles_open(&self) -> usize {
        self.session.handles_open()
    }

    /// True between VERSION and the end.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.session.is_ready()
    }

    /// Why the session ended; `None` while it lives.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// True once nothing is left to send, to wait for or to report.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let is_quiet = self.ended.is_some()
            || (self.is_closing && self.session.outstanding() == 0 && !self.session.has_output());
        let told =
            |op: &Op<REQUESTS>| matches!(op.work, Work::Free | Work::Done { is_told: true, .. });
        is_quiet && self.ops.iter().all(told)
    }

    /// Begins an operation of one request.
    ///
    /// # Errors
    /// [`SubmitError::Full`] if the operations, requests, handles or the space for requests are used up:
    /// transmit, or take a finished operation, and try again. [`SubmitError::Closed`] after the session's end.
    pub fn submit(&mut self, now: Instant, command: Command<'_>) -> Result<OpId, SubmitError> {
        self.set_now(now);
        let request = match command {
            Command::Fstat(handle) => Submit::Fstat(handle),
            Command::Lstat(path) => Submit::Path(RequestKind::Lstat, path),
            Command::Open(path) => Submit::Path(RequestKind::Open, path),
            Command::Stat(path) => Submit::Path(RequestKind::Stat, path),
        };
        let index = self.free_op()?;
        let to = To {
            op: index,
            tag: 0,
            asked: 0,
        };
        if self.session.live() == 0 {
            self.input_at = now;
        }
        self.session.submit(now, to, request)?;
        Ok(self.begin(index, Work::Request))
    }

    /// Begins to fetch a range of an open file.
    ///
    /// # Errors
    /// [`SubmitError::Full`] if all operations are in use, [`SubmitError::HandleUnknown`] if the handle is not
    /// open, [`SubmitError::Closed`] after the session's end.
    pub fn download(
        &mut self,
        now: Instant,
        handle: HandleKey,
        config: DownloadConfig,
    ) -> Result<OpId, SubmitError> {
        self.set_now(now);
        let index = self.free_op()?;
        if !self.session.has_handle(handle) {
            return Err(SubmitError::HandleUnknown);
        }
        let id = self.begin(
            index,
            Work::Download {
                handle,
                machine: Download::new(config),
            },
        );
        // A range without bytes has ended before it asks anything.
        self.settle(index);
        Ok(id)
    }

    /// Ends an operation: nothing more is handed on for it, and it finishes with [`OpError::Cancelled`].
    ///
    /// What it had asked stays outstanding as tombstones. A handle that its OPEN still brings is closed.
    pub fn cancel(&mut self, now: Instant, op: OpId) {
        self.set_now(now);
        if self
            .op(op)
            .is_some_and(|op| !matches!(op.work, Work::Done { .. }))
        {
            self.finish(op.index, Err(OpError::Cancelled));
        }
    }

    /// Closes a file once nothing is outstanding on it. Downloads from it are cancelled.
    pub fn release(&mut self, now: Instant, handle: HandleKey) {
        self.set_now(now);
        for index in 0..OPS {
            let reads = matches!(self.ops.get(index).map(|op| &op.work),
                Some(Work::Download { handle: of, .. }) if *of == handle);
            if reads && let Ok(index) = u16::try_from(index) {
                self.finish(index, Err(OpError::Cancelled));
            }
        }
        self.session.release(handle);
    }

    /// `bytes` that were handed on for `op` need no memory any more: as many may be asked again.
    pub fn consume(&mut self, now: Instant, op: OpId, bytes: u64) {
        self.set_now(now);
        if let Some(slot) = self.op(op) {
            let bytes = bytes.min(slot.unconsumed);
            slot.unconsumed -= bytes;
            self.window.handle_consumed(bytes);
        }
    }

    /// Takes what came of a finished operation; its slot is free again. `None` if it has not finished.
    pub fn take(&mut self, op: OpId) -> Option<Result<Outcome, OpError>> {
        let slot = self.op(op)?;
        if !matches!(slot.work, Work::Done { .. }) {
            return None;
        }
        let unconsumed = core::mem::take(&mut slot.unconsumed);
        let work = core::mem::replace(&mut slot.work, Work::Free);
        self.window.handle_consumed(unconsumed);
        match work {
            Work::Done { outcome, .. } => Some(outcome),
            Work::Free | Work::Request | Work::Download { .. } => None,
        }
    }

    /// How far a download is, or was when it ended. `None` for an operation that was taken.
    #[must_use]
    pub fn progress(&self, op: OpId) -> Option<Progress> {
        let slot = self
            .ops
            .get(op.index())
            .filter(|slot| slot.generation == op.generation)?;
        let contiguous = match &slot.work {
            Work::Download { machine, .. } => {
                machine.contiguous(self.session.lowest_missing(op.index))
            }
            Work::Free => return None,
            Work::Request | Work::Done { .. } => slot.contiguous,
        };
        Some(Progress {
            arrived: slot.arrived,
            contiguous,
        })
    }

    /// Ends the session well: operations are cancelled and handles closed; [`Self::is_drained`] tells when.
    pub fn close(&mut self, now: Instant) {
        self.set_now(now);
        if !self.is_closing {
            self.is_closing = true;
            self.input_at = now;
        }
        for index in 0..OPS {
            if let Ok(index) = u16::try_from(index) {
                self.finish(index, Err(OpError::Cancelled));
            }
        }
        self.session.release_all();
    }

    /// News, in no particular order; `None` when there is none. Each operation finishes once.
    pub fn poll_event(&mut self) -> Option<OpEvent> {
        if self.session.is_ready() && !self.is_ready_told {
            self.is_ready_told = true;
            return Some(OpEvent::Ready);
        }
        for (index, op) in self.ops.iter_mut().enumerate() {
            if let Work::Done { is_told, .. } = &mut op.work
                && !*is_told
            {
                *is_told = true;
                let (index, generation) = (u16::try_from(index).ok()?, op.generation);
                return Some(OpEvent::Finished(OpId { index, generation }));
            }
        }
        None
    }

    fn set_now(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time never goes back");
        self.now = self.now.max(now);
    }

    fn op(&mut self, op: OpId) -> Option<&mut Op<REQUESTS>> {
        let slot = self.ops.get_mut(op.index())?;
        (slot.generation == op.generation && !matches!(slot.work, Work::Free)).then_some(slot)
    }

    fn free_op(&self) -> Result<u16, SubmitError> {
        if self.ended.is_some() || self.is_closing {
            return Err(SubmitError::Closed);
        }
        let index = self.ops.iter().position(|op| matches!(op.work, Work::Free));
        index
            .and_then(|index| u16::try_from(index).ok())
            .ok_or(SubmitError::Full)
    }

    fn begin(&mut self, index: u16, work: Work<REQUESTS>) -> OpId {
        let now = self.now;
        let downloads = self
            .ops
            .iter()
            .filter(|op| matches!(op.work, Work::Download { .. }));
        let asked = downloads.map(|op| op.asked).max().unwrap_or_default();
        let Some(op) = self.ops.get_mut(usize::from(index)) else {
            return OpId {
                index,
                generation: 0,
            };
        };
        let contiguous = match &work {
            Work::Download { machine, .. } => machine.config().start,
            Work::Free | Work::Request | Work::Done { .. } => 0,
        };
        *op = Op {
            generation: op.generation.wrapping_add(1),
            work,
            progress_at: now,
            asked_at: now,
            is_given_up: false,
            arrived: 0,
            asked,
            in_flight: 0,
            unconsumed: 0,
            contiguous,
        };
        OpId {
            index,
            generation: op.generation,
        }
    }

    /// Ends the operation in slot `index`, unless it has ended.
    fn finish(&mut self, index: u16, outcome: Result<Outcome, OpError>) {
        let lowest_missing = self.session.lowest_missing(index);
        let Some(op) = self.ops.get_mut(usize::from(index)) else {
            return;
        };
        match &op.work {
            Work::Free | Work::Done { .. } => return,
            Work::Download { machine, .. } => op.contiguous = machine.contiguous(lowest_missing),
            Work::Request => {}
        }
        op.work = Work::Done {
            outcome,
            is_told: false,
        };
        op.in_flight = 0;
        self.session.cancel(index);
    }

    /// Ends a download whose machine has come to its end.
    fn settle(&mut self, index: u16) {
        let Some(op) = self.ops.get_mut(usize::from(index)) else {
            return;
        };
        let Work::Download { machine, .. } = &mut op.work else {
            return;
        };
        if let Some(end) = machine.poll_end() {
            self.finish(index, end.map(Outcome::Fetched));
        }
    }

    /// Ends the session and with it every operation.
    fn end(&mut self, ended: Ended) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(ended);
        let error = OpError::from(ended);
        for index in 0..OPS {
            if let Ok(index) = u16::try_from(index) {
                self.finish(index, Err(error.clone()));
            }
        }
        self.session.end();
    }
}
