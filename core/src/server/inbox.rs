//! Collects one request at a time, in bounded memory.

use crate::error::ProtocolError;
use crate::sftp::{PACKET_LEN_MAX, PATH_LEN_MAX};

/// Where the path, handle or name of a request starts in its packet: behind the type, the id and its own length.
pub(super) const STRING_START: usize = 9;

/// Bytes of a packet that are kept: as far as the pflags of an OPEN with the longest path. ATTRS and the payload of
/// requests that are not served come after that, and nobody reads them.
const KEPT_LEN_MAX: usize = STRING_START + PATH_LEN_MAX + 4;

/// Every packet has a type, and an id or, in INIT, a version.
const PACKET_LEN_MIN: u32 = 5;

/// A packet as it comes in.
#[derive(Debug)]
pub(super) struct Inbox {
    len_field: heapless::Vec<u8, 4, u8>,
    kept: heapless::Vec<u8, KEPT_LEN_MAX, u16>,
    /// Bytes of the packet that have not come.
    left: u32,
}

impl Inbox {
    pub(super) const fn new() -> Self {
        Self {
            len_field: heapless::Vec::new(),
            kept: heapless::Vec::new(),
            left: 0,
        }
    }

    /// Takes bytes up to the end of the packet, and tells whether it was reached.
    pub(super) fn accept(&mut self, input: &mut &[u8]) -> Result<bool, ProtocolError> {
        if !self.len_field.is_full() {
            let room = self.len_field.capacity() - self.len_field.len();
            let taken = take(input, room);
            let fits = self.len_field.extend_from_slice(taken);
            debug_assert!(fits.is_ok(), "no more than the room was taken");
            let Ok(field) = <[u8; 4]>::try_from(self.len_field.as_slice()) else {
                return Ok(false);
            };
            self.left = check_len(u32::from_be_bytes(field))?;
        }
        let taken = take(input, usize::try_from(self.left).unwrap_or(usize::MAX));
        let taken_len = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        self.left = self.left.saturating_sub(taken_len);
        let room = self.kept.capacity() - self.kept.len();
        let fits = self
            .kept
            .extend_from_slice(taken.get(..room).unwrap_or(taken));
        debug_assert!(fits.is_ok(), "no more than the room was kept");
        Ok(self.left == 0)
    }

    /// The packet from its type on, cut where nothing of interest follows.
    pub(super) fn packet(&self) -> &[u8] {
        &self.kept
    }

    /// The path of a request, whose length was checked when the request was decoded.
    pub(super) fn path(&self, len: usize) -> &[u8] {
        let rest = self.kept.get(STRING_START..).unwrap_or_default();
        rest.get(..len).unwrap_or_default()
    }

    /// Whether no byte of a packet has come.
    pub(super) fn is_empty(&self) -> bool {
        self.len_field.is_empty()
    }

    /// Makes room for the next packet.
    pub(super) fn clear(&mut self) {
        debug_assert!(self.left == 0, "the packet was complete");
        self.len_field.clear();
        self.kept.clear();
    }
}

fn check_len(len: u32) -> Result<u32, ProtocolError> {
    if len < PACKET_LEN_MIN {
        return Err(ProtocolError::PacketTooShort(len));
    }
    if len > PACKET_LEN_MAX {
        return Err(ProtocolError::PacketTooLong(len));
    }
    Ok(len)
}

fn take<'i>(input: &mut &'i [u8], len_max: usize) -> &'i [u8] {
    let (taken, rest) = input.split_at_checked(len_max).unwrap_or((input, &[]));
    *input = rest;
    taken
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use super::*;

    #[test]
    fn packets_longer_than_the_scratch_are_taken_to_their_end() {
        let mut inbox = Inbox::new();
        let len = PACKET_LEN_MAX.to_be_bytes();
        assert_eq!(inbox.accept(&mut len.as_slice()), Ok(false));
        let body = [7; 50_000];
        let mut left = usize::try_from(PACKET_LEN_MAX).unwrap();
        while left > body.len() {
            assert_eq!(inbox.accept(&mut body.as_slice()), Ok(false));
            left -= body.len();
        }
        let mut rest = body.as_slice();
        assert_eq!(inbox.accept(&mut rest), Ok(true));
        assert_eq!(rest.len(), body.len() - left);
        assert_eq!(inbox.packet().len(), KEPT_LEN_MAX);
        assert_eq!(inbox.path(PATH_LEN_MAX).len(), PATH_LEN_MAX);
        inbox.clear();
        assert!(inbox.is_empty());
    }

    #[test]
    fn lengths_that_no_request_has_are_refused_before_a_byte_is_taken() {
        for len in 0..PACKET_LEN_MIN {
            let mut input = len.to_be_bytes().to_vec();
            input.extend_from_slice(&[1; 9]);
            let error = Inbox::new().accept(&mut input.as_slice());
            assert_eq!(error, Err(ProtocolError::PacketTooShort(len)));
        }
        for len in [PACKET_LEN_MAX + 1, u32::MAX] {
            let error = Inbox::new().accept(&mut len.to_be_bytes().as_slice());
            assert_eq!(error, Err(ProtocolError::PacketTooLong(len)));
        }
    }
}
