//! Requests as a server reads them.

use super::handles::Handle;
use super::inbox::STRING_START;
use crate::error::ProtocolError;
use crate::sftp::wire::{
    LIMITS_NAME, SSH_FXP_CLOSE, SSH_FXP_EXTENDED, SSH_FXP_FSTAT, SSH_FXP_INIT, SSH_FXP_LSTAT,
    SSH_FXP_OPEN, SSH_FXP_READ, SSH_FXP_REALPATH, SSH_FXP_STAT,
};
use crate::sftp::{HANDLE_LEN_MAX, PATH_LEN_MAX};

/// A request with its id. Its path stays in the inbox; only the length is here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Request {
    /// Of INIT, which has no id, the version.
    pub(super) id: u32,
    pub(super) body: Body,
}

/// What is asked. A handle is `None` if it is none that this responder makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Body {
    Init,
    Open {
        path_len: usize,
        pflags: u32,
    },
    Close {
        handle: Option<Handle>,
    },
    Read {
        handle: Option<Handle>,
        offset: u64,
        len: u32,
    },
    Stat {
        path_len: usize,
        follow: bool,
    },
    Fstat {
        handle: Option<Handle>,
    },
    Realpath {
        path_len: usize,
    },
    Limits,
    Unsupported,
}

impl Request {
    /// Reads a packet from its type on. Bytes behind the last field are ignored, as OpenSSH does.
    ///
    /// # Errors
    ///
    /// The peer's fault: a field that is not all there, a handle or a path of impossible length.
    pub(super) fn decode(packet: &[u8]) -> Result<Self, ProtocolError> {
        let mut fields = Fields::new(packet)?;
        let id = fields.u32()?;
        let body = match fields.packet_type {
            SSH_FXP_INIT => Body::Init,
            SSH_FXP_OPEN => Body::Open {
                path_len: fields.path()?.len(),
                pflags: fields.u32()?,
            },
            SSH_FXP_CLOSE => Body::Close {
                handle: fields.handle()?,
            },
            SSH_FXP_READ => Body::Read {
                handle: fields.handle()?,
                offset: fields.u64()?,
                len: fields.u32()?,
            },
            packet_type @ (SSH_FXP_LSTAT | SSH_FXP_STAT) => Body::Stat {
                path_len: fields.path()?.len(),
                follow: packet_type == SSH_FXP_STAT,
            },
            SSH_FXP_FSTAT => Body::Fstat {
                handle: fields.handle()?,
            },
            SSH_FXP_REALPATH => Body::Realpath {
                path_len: fields.path()?.len(),
            },
            SSH_FXP_EXTENDED => match fields.path()? {
                LIMITS_NAME => Body::Limits,
                _ => Body::Unsupported,
            },
            _ => Body::Unsupported,
        };
        Ok(Self { id, body })
    }
}

/// Reads fields one after the other.
///
/// The packet may have been cut at the inbox's limit. That lies behind every field read here, since paths and handles are
/// measured first: what is missing is missing from the packet.
struct Fields<'p> {
    packet_type: u8,
    rest: &'p [u8],
}

impl<'p> Fields<'p> {
    fn new(packet: &'p [u8]) -> Result<Self, ProtocolError> {
        let (&packet_type, rest) = packet
            .split_first()
            .ok_or(ProtocolError::PacketTooShort(0))?;
        Ok(Self { packet_type, rest })
    }

    fn take(&mut self, len: usize) -> Result<&'p [u8], ProtocolError> {
        let (taken, rest) =
            self.rest
                .split_at_checked(len)
                .ok_or(ProtocolError::FieldBeyondPacket {
                    packet_type: self.packet_type,
                })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], ProtocolError> {
        let mut array = [0; LEN];
        array.copy_from_slice(self.take(LEN)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, ProtocolError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, ProtocolError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a path, or the name of an extension.
    fn path(&mut self) -> Result<&'p [u8], ProtocolError> {
        let len = self.u32()?;
        match usize::try_from(len) {
            Ok(len) if len <= PATH_LEN_MAX => self.take(len),
            _ => Err(ProtocolError::NameTooLong(len)),
        }
    }

    fn handle(&mut self) -> Result<Option<Handle>, ProtocolError> {
        let len = self.u32()?;
        match usize::try_from(len) {
            Ok(len) if (1..=HANDLE_LEN_MAX).contains(&len) => self.take(len).map(Handle::decode),
            _ => Err(ProtocolError::HandleLen(len)),
        }
    }
}

// A path is found again at this place: type, id and length come before it, in every request that has one.
const _: () = assert!(STRING_START == size_of::<u8>() + 2 * size_of::<u32>());
