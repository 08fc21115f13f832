//! Packet types, sizes, and the one encoder of requests.
//!
//! Source: draft-ietf-secsh-filexfer-02 §3 and §4; extensions from OpenSSH's `PROTOCOL`.

use super::attrs::Attrs;

/// The protocol version spoken: 3, as every server does.
pub const VERSION: u32 = 3;

pub(crate) const SSH_FXP_INIT: u8 = 1;
pub(crate) const SSH_FXP_VERSION: u8 = 2;
pub(crate) const SSH_FXP_OPEN: u8 = 3;
pub(crate) const SSH_FXP_CLOSE: u8 = 4;
pub(crate) const SSH_FXP_READ: u8 = 5;
pub(crate) const SSH_FXP_LSTAT: u8 = 7;
pub(crate) const SSH_FXP_FSTAT: u8 = 8;
#[cfg(feature = "server")]
pub(crate) const SSH_FXP_REALPATH: u8 = 16;
pub(crate) const SSH_FXP_STAT: u8 = 17;
pub(crate) const SSH_FXP_STATUS: u8 = 101;
pub(crate) const SSH_FXP_HANDLE: u8 = 102;
pub(crate) const SSH_FXP_DATA: u8 = 103;
pub(crate) const SSH_FXP_NAME: u8 = 104;
pub(crate) const SSH_FXP_ATTRS: u8 = 105;
pub(crate) const SSH_FXP_EXTENDED: u8 = 200;
pub(crate) const SSH_FXP_EXTENDED_REPLY: u8 = 201;

pub(crate) const SSH_FXF_READ: u32 = 0x0000_0001;

/// Bytes of a DATA reply that are not data: length, type, id, and the data's own length.
pub const DATA_HEADER_LEN: u32 = 13;

/// Longest packet accepted, NAME apart, in bytes after the length field. OpenSSH treats more as fatal
/// (`SFTP_MAX_MSG_LENGTH` in its sftp-common.h); §3 of the draft asks for at least 34,000.
pub const PACKET_LEN_MAX: u32 = 262_144;

/// Longest NAME reply accepted, in bytes. One server sends a whole directory of 7 MB in one reply, and
/// entries leave one by one, so this costs no memory: it only bounds what a hostile length can claim.
pub const NAME_PACKET_LEN_MAX: u32 = 256 * 1024 * 1024;

/// Longest READ ever asked, in bytes: [`PACKET_LEN_MAX`] less 1,024, as OpenSSH's client and server have it.
pub const READ_LEN_MAX: u32 = 261_120;

/// READ length that every server serves whole, in bytes. Source: draft-ietf-secsh-filexfer-02 §3.
pub const READ_LEN_PORTABLE: u32 = 32_768;

/// Longest handle, in bytes. Source: draft-ietf-secsh-filexfer-02 §6.2.
pub const HANDLE_LEN_MAX: usize = 256;

/// Longest path sent or taken, in bytes: Linux's `PATH_MAX`.
pub const PATH_LEN_MAX: usize = 4096;

/// The buffer has no room; nothing was written that counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Full;

/// Writes wire fields into a caller's buffer.
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.len.checked_add(bytes.len()).ok_or(Full)?;
        self.out
            .get_mut(self.len..end)
            .ok_or(Full)?
            .copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    pub(crate) fn u8(&mut self, value: u8) -> Result<(), Full> {
        self.bytes(&[value])
    }

    pub(crate) fn u32(&mut self, value: u32) -> Result<(), Full> {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> Result<(), Full> {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn string(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.u32(u32::try_from(bytes.len()).map_err(|_| Full)?)?;
        self.bytes(bytes)
    }

    /// Writes one packet: `body` fills it in, then the length goes in front.
    pub(crate) fn packet(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let start = self.len;
        let written = self.u32(0).and_then(|()| body(self));
        let body_len = self.len - start;
        if written.is_err() {
            self.len = start;
            return written;
        }
        let body_len = u32::try_from(body_len - 4).map_err(|_| Full)?;
        if let Some(head) = self.out.get_mut(start..start + 4) {
            head.copy_from_slice(&body_len.to_be_bytes());
        }
        Ok(())
    }
}

/// What a request is, without its contents.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RequestKind {
    /// OPEN for reading.
    Open,
    /// CLOSE.
    Close,
    /// READ.
    Read,
    /// LSTAT.
    Lstat,
    /// FSTAT.
    Fstat,
    /// STAT.
    Stat,
    /// EXTENDED `limits@openssh.com`.
    Limits,
}

/// One request, its strings borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    Open {
        path: &'a [u8],
    },
    Close {
        handle: &'a [u8],
    },
    Read {
        handle: &'a [u8],
        offset: u64,
        len: u32,
    },
    Lstat {
        path: &'a [u8],
    },
    Fstat {
        handle: &'a [u8],
    },
    Stat {
        path: &'a [u8],
    },
    Limits,
}

impl Request<'_> {
    pub(crate) fn kind(&self) -> RequestKind {
        match self {
            Self::Open { .. } => RequestKind::Open,
            Self::Close { .. } => RequestKind::Close,
            Self::Read { .. } => RequestKind::Read,
            Self::Lstat { .. } => RequestKind::Lstat,
            Self::Fstat { .. } => RequestKind::Fstat,
            Self::Stat { .. } => RequestKind::Stat,
            Self::Limits => RequestKind::Limits,
        }
    }

    /// Bytes that [`Self::encode`] writes.
    pub(crate) fn encoded_len(&self) -> usize {
        let string = |bytes: &[u8]| 4 + bytes.len();
        // Length, type, id.
        9 + match self {
            Self::Open { path } => string(path) + 8,
            Self::Read { handle, .. } => string(handle) + 12,
            Self::Close { handle } | Self::Fstat { handle } => string(handle),
            Self::Lstat { path } | Self::Stat { path } => string(path),
            Self::Limits => string(LIMITS_NAME),
        }
    }

    pub(crate) fn encode(&self, id: u32, out: &mut [u8]) -> Result<usize, Full> {
        let mut writer = Writer::new(out);
        writer.packet(|w| {
            let mut head = |packet_type: u8| w.u8(packet_type).and_then(|()| w.u32(id));
            match *self {
                Self::Open { path } => {
                    head(SSH_FXP_OPEN)?;
                    w.string(path)?;
                    w.u32(SSH_FXF_READ)?;
                    Attrs::default().encode(w)
                }
                Self::Close { handle } => {
                    head(SSH_FXP_CLOSE)?;
                    w.string(handle)
                }
                Self::Read {
                    handle,
                    offset,
                    len,
                } => {
                    head(SSH_FXP_READ)?;
                    w.string(handle)?;
                    w.u64(offset)?;
                    w.u32(len)
                }
                Self::Lstat { path } => {
                    head(SSH_FXP_LSTAT)?;
                    w.string(path)
                }
                Self::Fstat { handle } => {
                    head(SSH_FXP_FSTAT)?;
                    w.string(handle)
                }
                Self::Stat { path } => {
                    head(SSH_FXP_STAT)?;
                    w.string(path)
                }
                Self::Limits => {
                    head(SSH_FXP_EXTENDED)?;
                    w.string(LIMITS_NAME)
                }
            }
        })?;
        Ok(writer.len())
    }
}

pub(crate) const LIMITS_NAME: &[u8] = b"limits@openssh.com";

/// Writes INIT, which carries no id.
pub(crate) fn encode_init(out: &mut [u8]) -> Result<usize, Full> {
    let mut writer = Writer::new(out);
    writer.packet(|w| {
        w.u8(SSH_FXP_INIT)?;
        w.u32(VERSION)
    })?;
    Ok(writer.len())
}
