//! Strings: names that are kept whole, words that are cut, and text where none belongs.

use super::fields::len_u32;
use super::{ASIDE_LEN_MAX, AttrsField, BANNER_LEN_MAX, Decoder, Found, Purpose, State, Then};
use crate::error::ProtocolError;
use crate::sftp::wire::{HANDLE_LEN_MAX, PACKET_LEN_MAX, PATH_LEN_MAX};

impl Decoder {
    /// Before VERSION, a length that no VERSION can have is text: "This" is 1,416,128,883 bytes.
    pub(super) fn check_banner(&mut self) -> Result<(), ProtocolError> {
        let [l0, l1, l2, l3, ..] = self.field;
        let len = u32::from_be_bytes([l0, l1, l2, l3]);
        if len <= PACKET_LEN_MAX {
            return Ok(());
        }
        if !self.field[..4].iter().all(|&byte| is_text(byte)) {
            return Err(ProtocolError::PacketTooLong(len));
        }
        self.aside.clear();
        // Room for 512 bytes: four always fit.
        let _ = self.aside.extend_from_slice(&self.field[..4]);
        self.state = State::Banner;
        Ok(())
    }

    /// Collects text up to the end of its line, so that the error can show it whole.
    pub(super) fn advance_banner(
        &mut self,
        input: &mut &[u8],
    ) -> Result<Option<Found>, ProtocolError> {
        loop {
            let full = self.aside.len() == BANNER_LEN_MAX;
            if full || matches!(self.aside.last(), Some(b'\n' | 0)) {
                return Err(ProtocolError::BannerText);
            }
            let Some((&byte, rest)) = input.split_first() else {
                return Ok(None);
            };
            *input = rest;
            let _ = self.aside.push(byte);
        }
    }

    pub(super) fn begin_text(&mut self, purpose: Purpose, len: u32) -> Result<(), ProtocolError> {
        match purpose {
            // A message's length may lie: what the packet holds is what there is.
            Purpose::Message => {}
            Purpose::Handle if len == 0 || len > len_u32(HANDLE_LEN_MAX) => {
                return Err(ProtocolError::HandleLen(len));
            }
            Purpose::Filename if len > len_u32(PATH_LEN_MAX) && len <= self.left => {
                return Err(ProtocolError::NameTooLong(len));
            }
            Purpose::ExtensionName
            | Purpose::ExtensionData
            | Purpose::Handle
            | Purpose::Filename
            | Purpose::Longname => self.check_field(len)?,
        }
        if matches!(purpose, Purpose::ExtensionName | Purpose::Filename) {
            self.text.clear();
        }
        self.aside.clear();
        self.text_left = len.min(self.left);
        self.state = State::Text(purpose);
        Ok(())
    }

    /// Takes bytes of a string; false if more are to come. Strings that are only shown are cut.
    pub(super) fn take_text(&mut self, input: &mut &[u8], purpose: Purpose) -> bool {
        let is_name = matches!(purpose, Purpose::ExtensionName | Purpose::Filename);
        let kept_max = match purpose {
            Purpose::Filename => PATH_LEN_MAX,
            Purpose::ExtensionName
            | Purpose::ExtensionData
            | Purpose::Message
            | Purpose::Handle
            | Purpose::Longname => ASIDE_LEN_MAX,
        };
        let kept = if is_name {
            self.text.len()
        } else {
            self.aside.len()
        };
        let room = len_u32(kept_max - kept);
        let taken = self.take(input, self.text_left.min(room));
        // Within the room that was asked for, so neither can be full.
        let _ = if is_name {
            self.text.extend_from_slice(taken)
        } else {
            self.aside.extend_from_slice(taken)
        };
        let taken_len = len_u32(taken.len());
        self.text_left -= taken_len;
        if self.text_left > 0 && taken_len == room {
            self.state = State::Skip {
                len: self.text_left,
                then: Then::Purpose(purpose),
            };
            return true;
        }
        self.text_left == 0
    }

    pub(super) fn end_text(&mut self, purpose: Purpose) -> Option<Found> {
        if matches!(self.state, State::Skip { .. }) {
            return None;
        }
        match purpose {
            Purpose::ExtensionName => self.state = State::Length(Purpose::ExtensionData),
            Purpose::ExtensionData => {
                self.state = State::Length(Purpose::ExtensionName);
                return Some(Found::Extension);
            }
            Purpose::Message | Purpose::Handle => self.state = State::Rest,
            Purpose::Filename => self.state = State::Length(Purpose::Longname),
            Purpose::Longname => self.state = State::Attrs(AttrsField::Flags),
        }
        None
    }
}

fn is_text(byte: u8) -> bool {
    byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b)
}
