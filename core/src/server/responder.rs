//! The responder: one request in, one reply out.

use super::handles::{Handle, Handles};
use super::inbox::Inbox;
use super::reply::{self, DATA_START, Declined, NAME_LEN_MAX};
use super::request::{Body, Request};
use super::storage::Storage;
use crate::error::ProtocolError;
use crate::sftp::wire::{SSH_FXF_READ, SSH_FXP_INIT};
use crate::sftp::{Attrs, Full, PATH_LEN_MAX, READ_LEN_MAX, StatusCode};

#[cfg(test)]
mod tests;

const HANDLE_UNKNOWN: Declined = Declined {
    code: StatusCode::FAILURE,
    message: "invalid handle",
};

const HANDLES_FULL: Declined = Declined {
    code: StatusCode::FAILURE,
    message: "too many open files",
};

const READ_ONLY: Declined = Declined {
    code: StatusCode::PERMISSION_DENIED,
    message: "this server is read-only",
};

/// Answers the requests of one session, in their order, one at a time.
///
/// It holds one request (4 KiB) and up to `HANDLES` open files. A request takes effect when its reply is written, so a peer
/// that doesn't read its replies is not read from either. What it writes doesn't depend on how its input was split, nor on
/// the size of the buffers that replies go to.
#[derive(Debug)]
pub struct Responder<S: Storage, const HANDLES: usize = 64> {
    storage: S,
    handles: Handles<S::File, HANDLES>,
    inbox: Inbox,
    /// The request that is complete; its path is in the inbox.
    due: Option<Request>,
    is_initialised: bool,
    failed: Option<ProtocolError>,
    read_len_max: u32,
}

impl<S: Storage, const HANDLES: usize> Responder<S, HANDLES> {
    /// Serves `storage` to a peer that has sent nothing so far.
    pub const fn new(storage: S) -> Self {
        Self {
            storage,
            handles: Handles::new(),
            inbox: Inbox::new(),
            due: None,
            is_initialised: false,
            failed: None,
            read_len_max: READ_LEN_MAX,
        }
    }

    /// Sets the most that one READ gets, in bytes. The default, and the most possible, is [`READ_LEN_MAX`]; the least is 1.
    /// A READ for more is answered short. `limits@openssh.com` tells it to peers that ask.
    #[must_use]
    pub fn with_read_len_max(mut self, read_len_max: u32) -> Self {
        self.read_len_max = read_len_max.clamp(1, READ_LEN_MAX);
        self
    }

    /// The storage.
    pub const fn storage(&self) -> &S {
        &self.storage
    }

    /// The storage, to change what is served.
    pub const fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Files that the peer has open.
    pub fn handle_count(&self) -> usize {
        self.handles.open_count()
    }

    /// Room that [`Self::poll_transmit`] needs for the reply that is due, in bytes; 0 if none is. At most
    /// [`REPLY_LEN_MAX`](super::REPLY_LEN_MAX).
    pub fn transmit_len(&self) -> usize {
        self.due.map_or(0, |request| reply::len_max(request.body))
    }

    /// Accepts bytes from the peer, split anywhere. Takes them from the front of `input` up to the end of a request, and
    /// none while a reply is due: call [`Self::poll_transmit`] in turns with it, until neither makes progress.
    ///
    /// # Errors
    ///
    /// The peer broke the protocol: a length that no packet has, a field outside of its packet, a path longer than
    /// [`PATH_LEN_MAX`] bytes, no INIT or a second one. Nothing more is accepted; each further call gives the same error.
    pub fn handle_input(&mut self, input: &mut &[u8]) -> Result<(), ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.due.is_some() {
            return Ok(());
        }
        let accepted = self.accept(input);
        self.failed = accepted.err();
        accepted
    }

    fn accept(&mut self, input: &mut &[u8]) -> Result<(), ProtocolError> {
        if !self.inbox.accept(input)? {
            return Ok(());
        }
        let packet = self.inbox.packet();
        let packet_type = packet.first().copied().unwrap_or(0);
        if (packet_type == SSH_FXP_INIT) == self.is_initialised {
            return Err(ProtocolError::PacketTypeUnexpected(packet_type));
        }
        let mut request = Request::decode(packet)?;
        if let Body::Read { len, .. } = &mut request.body {
            *len = self.read_len_max.min(*len);
        }
        self.is_initialised = true;
        self.due = Some(request);
        Ok(())
    }

    /// Takes note that the peer sends no more, and closes what it left open. Call it after the last reply was written.
    ///
    /// # Errors
    ///
    /// The peer's fault: the input ended inside a request.
    pub fn handle_eof(&mut self) -> Result<(), ProtocolError> {
        while let Some(file) = self.handles.pop() {
            // The peer did not ask, so nobody is told if this fails.
            let _ = self.storage.close(file);
        }
        match self.failed {
            Some(error) => Err(error),
            None if self.due.is_none() && !self.inbox.is_empty() => {
                Err(ProtocolError::EofInsidePacket)
            }
            None => Ok(()),
        }
    }

    /// Writes the reply that is due to the front of `out`, whole, and returns its length.
    ///
    /// It is 0 if none is due, or if `out` is shorter than [`Self::transmit_len`]; then nothing has happened. `out` gets
    /// overwritten beyond the reply, too: payload is read from the storage straight into it.
    pub fn poll_transmit(&mut self, out: &mut [u8]) -> usize {
        let Some(request) = self.due else { return 0 };
        if out.len() < reply::len_max(request.body) {
            return 0;
        }
        let written = self.reply(request, out);
        debug_assert!(written.is_ok(), "transmit_len is too small");
        self.due = None;
        self.inbox.clear();
        written.unwrap_or(0)
    }

    fn reply(&mut self, Request { id, body }: Request, out: &mut [u8]) -> Result<usize, Full> {
        let written = match body {
            Body::Init => Ok(reply::version(out)),
            Body::Open { path_len, pflags } => self
                .open(path_len, pflags)
                .map(|handle| reply::handle(out, id, handle)),
            Body::Close { handle } => self
                .close(handle)
                .map(|()| reply::status(out, id, StatusCode::OK, "")),
            Body::Read {
                handle,
                offset,
                len,
            } => self
                .read(handle, offset, len, out)
                .map(|len| reply::data(out, id, len)),
            Body::Stat { path_len, follow } => self
                .stat(path_len, follow)
                .map(|attrs| reply::attrs(out, id, &attrs)),
            Body::Fstat { handle } => self
                .fstat(handle)
                .map(|attrs| reply::attrs(out, id, &attrs)),
            Body::Realpath { path_len } => self.realpath(path_len, id, out),
            Body::Limits => {
                let handles_max = u64::try_from(HANDLES).unwrap_or(u64::MAX);
                Ok(reply::limits(out, id, self.read_len_max, handles_max))
            }
            Body::Unsupported => Err(StatusCode::OP_UNSUPPORTED.into()),
        };
        match written {
            Ok(written) => written,
            Err(declined) => reply::status(out, id, declined.code, declined.message),
        }
    }

    fn open(&mut self, path_len: usize, pflags: u32) -> Result<Handle, Declined> {
        if pflags & !SSH_FXF_READ != 0 {
            return Err(READ_ONLY);
        }
        if self.handles.open_count() >= HANDLES {
            return Err(HANDLES_FULL);
        }
        let file = self.storage.open(self.inbox.path(path_len))?;
        self.handles.insert(file).map_err(|Full| HANDLES_FULL)
    }

    fn close(&mut self, handle: Option<Handle>) -> Result<(), Declined> {
        let file = handle.and_then(|handle| self.handles.remove(handle));
        let file = file.ok_or(HANDLE_UNKNOWN)?;
        self.storage.close(file).map_err(Declined::from)
    }

    /// Reads the payload of a DATA reply into its place in `out`.
    fn read(
        &mut self,
        handle: Option<Handle>,
        offset: u64,
        len: u32,
        out: &mut [u8],
    ) -> Result<usize, Declined> {
        let file = handle.and_then(|handle| self.handles.get_mut(handle));
        let file = file.ok_or(HANDLE_UNKNOWN)?;
        if len == 0 {
            // Odd, but allowed: a DATA without bytes, as from OpenSSH, and not the end of the file.
            return Ok(0);
        }
        let payload = out.get_mut(DATA_START..).unwrap_or_default();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let payload = payload.get_mut(..len).unwrap_or_default();
        let read_len = self.storage.read(file, offset, payload)?;
        match read_len {
            0 => Err(StatusCode::EOF.into()),
            read_len => Ok(read_len.min(len)),
        }
    }

    fn stat(&mut self, path_len: usize, follow: bool) -> Result<Attrs, Declined> {
        let path = self.inbox.path(path_len);
        self.storage.stat(path, follow).map_err(Declined::from)
    }

    fn fstat(&mut self, handle: Option<Handle>) -> Result<Attrs, Declined> {
        let file = handle.and_then(|handle| self.handles.get_mut(handle));
        let file = file.ok_or(HANDLE_UNKNOWN)?;
        self.storage.fstat(file).map_err(Declined::from)
    }

    fn realpath(
        &mut self,
        path_len: usize,
        id: u32,
        out: &mut [u8],
    ) -> Result<Result<usize, Full>, Declined> {
        let Some((out, scratch)) = out.split_at_mut_checked(NAME_LEN_MAX) else {
            return Ok(Err(Full));
        };
        let scratch = scratch.get_mut(..PATH_LEN_MAX).unwrap_or_default();
        let path = self.inbox.path(path_len);
        let len = self.storage.realpath(path, scratch)?;
        let path = scratch.get(..len).ok_or(StatusCode::FAILURE)?;
        Ok(reply::name(out, id, path))
    }
}
