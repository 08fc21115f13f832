//! Fields of fixed size, whole or in parts, within what their packet has left.

use super::Decoder;
use crate::error::ProtocolError;

impl Decoder {
    pub(super) fn check_field(&self, len: u32) -> Result<(), ProtocolError> {
        if len > self.left {
            return Err(ProtocolError::FieldBeyondPacket {
                packet_type: self.packet_type,
            });
        }
        Ok(())
    }

    /// Takes up to `len` bytes of the packet from `input`.
    pub(super) fn take<'i>(&mut self, input: &mut &'i [u8], len: u32) -> &'i [u8] {
        let len = usize::try_from(len.min(self.left))
            .unwrap_or(usize::MAX)
            .min(input.len());
        let (taken, rest) = input.split_at(len);
        *input = rest;
        self.left -= len_u32(len);
        taken
    }

    /// Collects bytes until `field` holds `len`; true once it does.
    pub(super) fn collect(&mut self, input: &mut &[u8], len: usize) -> bool {
        let count = (len - self.field_len).min(input.len());
        let (taken, rest) = input.split_at(count);
        self.field[self.field_len..self.field_len + count].copy_from_slice(taken);
        self.field_len += count;
        *input = rest;
        self.field_len == len
    }

    /// Reads a field of `LEN` bytes within the packet.
    pub(super) fn fixed<const LEN: usize>(
        &mut self,
        input: &mut &[u8],
    ) -> Result<Option<[u8; LEN]>, ProtocolError> {
        if self.field_len == 0 {
            self.check_field(len_u32(LEN))?;
        }
        if !self.collect(input, LEN) {
            return Ok(None);
        }
        self.field_len = 0;
        self.left -= len_u32(LEN);
        let mut value = [0; LEN];
        value.copy_from_slice(&self.field[..LEN]);
        Ok(Some(value))
    }

    pub(super) fn u32(&mut self, input: &mut &[u8]) -> Result<Option<u32>, ProtocolError> {
        Ok(self.fixed(input)?.map(u32::from_be_bytes))
    }

    pub(super) fn u64(&mut self, input: &mut &[u8]) -> Result<Option<u64>, ProtocolError> {
        Ok(self.fixed(input)?.map(u64::from_be_bytes))
    }
}

/// Lengths here are at most a packet's.
pub(super) fn len_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
