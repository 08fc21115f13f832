//! The model's own reading of requests and writing of replies.
//!
//! It shares nothing with the core on purpose: a misread field there has no twin here.
//! Source: draft-ietf-secsh-filexfer-02, and OpenSSH's PROTOCOL for extensions.

use crate::link::Piece;

/// Packet types.
pub mod kind {
    #![expect(missing_docs, reason = "the names of the draft")]
    pub const INIT: u8 = 1;
    pub const VERSION: u8 = 2;
    pub const OPEN: u8 = 3;
    pub const CLOSE: u8 = 4;
    pub const READ: u8 = 5;
    pub const LSTAT: u8 = 7;
    pub const FSTAT: u8 = 8;
    pub const REALPATH: u8 = 16;
    pub const STAT: u8 = 17;
    pub const STATUS: u8 = 101;
    pub const HANDLE: u8 = 102;
    pub const DATA: u8 = 103;
    pub const NAME: u8 = 104;
    pub const ATTRS: u8 = 105;
    pub const EXTENDED: u8 = 200;
    pub const EXTENDED_REPLY: u8 = 201;
}

/// Status codes.
pub mod status {
    #![expect(missing_docs, reason = "the names of the draft")]
    pub const OK: u32 = 0;
    pub const EOF: u32 = 1;
    pub const NO_SUCH_FILE: u32 = 2;
    pub const PERMISSION_DENIED: u32 = 3;
    pub const FAILURE: u32 = 4;
    pub const BAD_MESSAGE: u32 = 5;
    pub const OP_UNSUPPORTED: u32 = 8;
}

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// INIT with its version.
    Init(u32),
    /// OPEN with its path and flags.
    Open(Vec<u8>, u32),
    /// CLOSE of a handle.
    Close(Vec<u8>),
    /// READ from a handle.
    Read {
        /// The handle.
        handle: Vec<u8>,
        /// Bytes from the start of the file.
        offset: u64,
        /// Bytes asked for.
        len: u32,
    },
    /// STAT of a path.
    Stat(Vec<u8>),
    /// LSTAT of a path.
    Lstat(Vec<u8>),
    /// FSTAT of a handle.
    Fstat(Vec<u8>),
    /// REALPATH of a path.
    Realpath(Vec<u8>),
    /// EXTENDED with its name.
    Extended(Vec<u8>),
    /// Any other type.
    Other(u8),
}

/// A field that isn't there, or a rest that shouldn't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads fields one after another.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (first, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(first)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(
            self.take(4)?.try_into().map_err(|_| Malformed)?,
        ))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(
            self.take(8)?.try_into().map_err(|_| Malformed)?,
        ))
    }

    fn string(&mut self) -> Result<Vec<u8>, Malformed> {
        let len = self.u32()?;
        Ok(self.take(len as usize)?.to_vec())
    }

    /// Skips attributes, without extended ones: no client has reason to send those.
    fn attrs(&mut self) -> Result<(), Malformed> {
        let flags = self.u32()?;
        for (flag, len) in [(1, 8), (2, 8), (4, 4), (8, 8)] {
            if flags & flag != 0 {
                self.take(len)?;
            }
        }
        if flags & !15 == 0 {
            Ok(())
        } else {
            Err(Malformed)
        }
    }
}

/// Reads one packet without its length field: its type, its id (0 for INIT), and what it asks.
///
/// # Errors
/// If a field is missing or bytes are left over.
pub fn parse(packet: &[u8]) -> Result<(u8, u32, Request), Malformed> {
    let mut fields = Fields(packet);
    let kind = fields.take(1)?[0];
    if kind == kind::INIT {
        return Ok((kind, 0, Request::Init(fields.u32()?)));
    }
    let id = fields.u32()?;
    let request = match kind {
        kind::OPEN => {
            let open = Request::Open(fields.string()?, fields.u32()?);
            fields.attrs()?;
            open
        }
        kind::CLOSE => Request::Close(fields.string()?),
        kind::READ => {
            let handle = fields.string()?;
            Request::Read {
                handle,
                offset: fields.u64()?,
                len: fields.u32()?,
            }
        }
        kind::LSTAT => Request::Lstat(fields.string()?),
        kind::FSTAT => Request::Fstat(fields.string()?),
        kind::REALPATH => Request::Realpath(fields.string()?),
        kind::STAT => Request::Stat(fields.string()?),
        kind::EXTENDED => {
            let name = fields.string()?;
            fields.0 = &[];
            Request::Extended(name)
        }
        other => {
            fields.0 = &[];
            Request::Other(other)
        }
    };
    if fields.0.is_empty() {
        Ok((kind, id, request))
    } else {
        Err(Malformed)
    }
}

/// A reply in the making: made bytes, payload from the content table, made bytes.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The packet's type.
    pub kind: u8,
    /// The id and what follows it, up to the payload.
    pub head: Vec<u8>,
    /// The payload.
    pub payload: Vec<&'static [u8]>,
    /// What stands behind the payload.
    pub tail: Vec<u8>,
}

impl Reply {
    /// Starts a reply of a type to the request `id`.
    #[must_use]
    pub fn new(kind: u8, id: u32) -> Self {
        Self {
            kind,
            head: id.to_be_bytes().into(),
            payload: Vec::new(),
            tail: Vec::new(),
        }
    }

    /// Adds a number.
    #[must_use]
    pub fn u32(mut self, value: u32) -> Self {
        self.head.extend(value.to_be_bytes());
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn u64(mut self, value: u64) -> Self {
        self.head.extend(value.to_be_bytes());
        self
    }

    /// Adds a string.
    #[must_use]
    pub fn string(self, bytes: &[u8]) -> Self {
        let mut reply = self.u32(wire_len(bytes.len()));
        reply.head.extend(bytes);
        reply
    }

    /// Returns the packet with its length field, as few pieces as it takes.
    #[must_use]
    pub fn into_pieces(self) -> Vec<Piece> {
        let payload_len: usize = self.payload.iter().map(|slice| slice.len()).sum();
        let len = wire_len(1 + self.head.len() + payload_len + self.tail.len());
        let mut packet = Vec::with_capacity(5 + self.head.len());
        packet.extend(len.to_be_bytes());
        packet.push(self.kind);
        packet.extend(self.head);
        let mut pieces = vec![Piece::from(packet)];
        pieces.extend(self.payload.into_iter().map(Piece::Static));
        if !self.tail.is_empty() {
            pieces.push(self.tail.into());
        }
        pieces
    }
}

/// Returns a length as it stands on the wire.
///
/// # Panics
/// If it doesn't fit, which no reply of a test comes near.
#[must_use]
pub fn wire_len(len: usize) -> u32 {
    u32::try_from(len).expect("a length for the wire")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::flatten;

    #[test]
    fn requests_of_the_draft_are_read() {
        let read = b"\x05\0\0\0\x07\0\0\0\x02hh\0\0\0\0\0\0\x01\0\0\0\x80\0";
        let request = Request::Read {
            handle: b"hh".into(),
            offset: 256,
            len: 32_768,
        };
        assert_eq!(parse(read), Ok((kind::READ, 7, request)));
        let open = b"\x03\0\0\0\x01\0\0\0\x01f\0\0\0\x01\0\0\0\0";
        assert_eq!(
            parse(open),
            Ok((kind::OPEN, 1, Request::Open(b"f".into(), 1)))
        );
        assert_eq!(
            parse(b"\x01\0\0\0\x03"),
            Ok((kind::INIT, 0, Request::Init(3)))
        );
        assert_eq!(
            parse(b"\x0d\0\0\0\x09rest"),
            Ok((13, 9, Request::Other(13)))
        );
    }

    #[test]
    fn missing_and_surplus_bytes_are_malformed() {
        let read = b"\x05\0\0\0\x07\0\0\0\x02hh\0\0\0\0\0\0\x01\0\0\0\x80\0";
        for len in 0..read.len() {
            assert_eq!(parse(&read[..len]), Err(Malformed));
        }
        assert_eq!(parse(&[read.as_slice(), &[0]].concat()), Err(Malformed));
    }

    #[test]
    fn replies_are_framed() {
        let reply = Reply::new(kind::HANDLE, 258).string(b"abc");
        let bytes = flatten(&reply.into_pieces());
        assert_eq!(bytes, b"\0\0\0\x0c\x66\0\0\x01\x02\0\0\0\x03abc");
        let mut data = Reply::new(kind::DATA, 1).u32(2);
        data.payload.push(b"xy");
        data.tail.push(1);
        assert_eq!(
            flatten(&data.into_pieces()),
            b"\0\0\0\x0c\x67\0\0\0\x01\0\0\0\x02xy\x01"
        );
    }
}
