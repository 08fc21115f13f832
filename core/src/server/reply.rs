//! Replies as a server writes them.

use super::handles::Handle;
use super::request::Body;
use crate::sftp::wire::{
    LIMITS_NAME, SSH_FXP_ATTRS, SSH_FXP_DATA, SSH_FXP_EXTENDED_REPLY, SSH_FXP_HANDLE, SSH_FXP_NAME,
    SSH_FXP_STATUS, SSH_FXP_VERSION, Writer,
};
use crate::sftp::{
    Attrs, DATA_HEADER_LEN, Full, PACKET_LEN_MAX, PATH_LEN_MAX, READ_LEN_MAX, StatusCode, VERSION,
};

/// Longest reply, in bytes, with its length field: DATA with [`READ_LEN_MAX`] bytes.
pub const REPLY_LEN_MAX: usize = DATA_START + READ_LEN_MAX as usize;

/// Where the payload of a DATA reply starts.
pub(super) const DATA_START: usize = DATA_HEADER_LEN as usize;

/// Bytes of a NAME reply with one path of the longest kind, an empty long name and no attributes.
pub(super) const NAME_LEN_MAX: usize = 17 + PATH_LEN_MAX + 8;

/// Room for each of the other replies. ATTRS and the limits take 41 bytes; a STATUS takes 21 besides its message, which is
/// one of ours and at most 43 bytes.
const SMALL_LEN_MAX: usize = 64;

/// The bytes that a reply to `body` needs at most. READ is taken at its length, already capped.
pub(super) fn len_max(body: Body) -> usize {
    match body {
        // The path is resolved behind the reply, then copied into place.
        Body::Realpath { .. } => NAME_LEN_MAX + PATH_LEN_MAX,
        Body::Read { len, .. } => {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            len.saturating_add(DATA_START).max(SMALL_LEN_MAX)
        }
        Body::Init
        | Body::Open { .. }
        | Body::Close { .. }
        | Body::Stat { .. }
        | Body::Fstat { .. }
        | Body::Limits
        | Body::Unsupported => SMALL_LEN_MAX,
    }
}

/// Why a request is declined.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Declined {
    pub(super) code: StatusCode,
    pub(super) message: &'static str,
}

impl From<StatusCode> for Declined {
    fn from(code: StatusCode) -> Self {
        // Success in place of what was asked for would break the protocol.
        let code = if code == StatusCode::OK {
            StatusCode::FAILURE
        } else {
            code
        };
        Self {
            code,
            message: code.name(),
        }
    }
}

/// Writes one reply: its type, its id, and what `body` adds.
fn reply(
    out: &mut [u8],
    packet_type: u8,
    id: u32,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>,
) -> Result<usize, Full> {
    let mut writer = Writer::new(out);
    writer.packet(|w| {
        w.u8(packet_type)?;
        w.u32(id)?;
        body(w)
    })?;
    Ok(writer.len())
}

/// Announces the version spoken and the extensions served.
pub(super) fn version(out: &mut [u8]) -> Result<usize, Full> {
    // The version stands where other replies have their id.
    reply(out, SSH_FXP_VERSION, VERSION, |w| {
        w.string(LIMITS_NAME)?;
        w.string(b"1")
    })
}

pub(super) fn status(
    out: &mut [u8],
    id: u32,
    code: StatusCode,
    message: &str,
) -> Result<usize, Full> {
    reply(out, SSH_FXP_STATUS, id, |w| {
        w.u32(code.0)?;
        w.string(message.as_bytes())?;
        // No language tag, as OpenSSH has it.
        w.string(b"")
    })
}

pub(super) fn handle(out: &mut [u8], id: u32, handle: Handle) -> Result<usize, Full> {
    reply(out, SSH_FXP_HANDLE, id, |w| w.string(&handle.encode()))
}

pub(super) fn attrs(out: &mut [u8], id: u32, attrs: &Attrs) -> Result<usize, Full> {
    reply(out, SSH_FXP_ATTRS, id, |w| attrs.encode(w))
}

/// Writes a NAME reply with one path; its attributes are empty, as clients expect of REALPATH.
pub(super) fn name(out: &mut [u8], id: u32, path: &[u8]) -> Result<usize, Full> {
    reply(out, SSH_FXP_NAME, id, |w| {
        w.u32(1)?;
        w.string(path)?;
        w.string(b"")?;
        Attrs::default().encode(w)
    })
}

/// Writes the header of a DATA reply, whose `len` bytes of payload are in place behind it already.
pub(super) fn data(out: &mut [u8], id: u32, len: usize) -> Result<usize, Full> {
    let payload_len = u32::try_from(len).map_err(|_| Full)?;
    let packet_len = (DATA_HEADER_LEN - 4).checked_add(payload_len).ok_or(Full)?;
    let mut writer = Writer::new(out);
    writer.u32(packet_len)?;
    writer.u8(SSH_FXP_DATA)?;
    writer.u32(id)?;
    writer.u32(payload_len)?;
    Ok(writer.len() + len)
}

/// Answers `limits@openssh.com`. A zero says that nothing is enforced: there is no WRITE to limit.
pub(super) fn limits(
    out: &mut [u8],
    id: u32,
    read_len_max: u32,
    handles_max: u64,
) -> Result<usize, Full> {
    reply(out, SSH_FXP_EXTENDED_REPLY, id, |w| {
        w.u64(u64::from(PACKET_LEN_MAX))?;
        w.u64(u64::from(read_len_max))?;
        w.u64(0)?;
        w.u64(handles_max)
    })
}

// A buffer for the longest DATA reply has room for every other one too.
const _: () = assert!(NAME_LEN_MAX + PATH_LEN_MAX < REPLY_LEN_MAX);
