//! The push-style streaming decoder of replies.
//!
//! It takes whatever bytes have come and hands the payload of DATA on as slices of the caller's buffer, and NAME
//! entry by entry, so its memory is one entry or one header and never a packet. Every length is checked
//! against what encloses it before it is used; nothing is allocated from it.

mod attrs;
mod fields;
mod item;
#[cfg(test)]
mod tests;
mod text;

use attrs::Progress;
use fields::len_u32;
pub use item::{Entry, Item};

use super::attrs::Attrs;
use super::status::StatusCode;
use super::wire::{
    NAME_PACKET_LEN_MAX, PACKET_LEN_MAX, PATH_LEN_MAX, SSH_FXP_ATTRS, SSH_FXP_DATA,
    SSH_FXP_EXTENDED_REPLY, SSH_FXP_HANDLE, SSH_FXP_NAME, SSH_FXP_STATUS, SSH_FXP_VERSION,
};
use crate::error::ProtocolError;

/// Bytes of text before VERSION that are kept for the error.
const BANNER_LEN_MAX: usize = 512;

/// Bytes kept of a longname, an extension's data, or another string that is only shown.
const ASIDE_LEN_MAX: usize = 256;

/// Where in a packet the decoder stands: what it collects next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Length, type, and id or version.
    Head,
    /// Text where VERSION was due.
    Banner,
    StatusCode,
    /// A string's length; then its bytes, as the purpose says.
    Length(Purpose),
    Text(Purpose),
    DataLength,
    Data,
    NameCount,
    Attrs(AttrsField),
    /// Bytes of an extended attribute, or of a string's cut end.
    Skip {
        len: u32,
        then: Then,
    },
    /// What is left of the packet is skipped, then the reply ends.
    Rest,
}

/// What a string is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Purpose {
    ExtensionName,
    ExtensionData,
    Message,
    Handle,
    Filename,
    Longname,
}

/// The fields of ATTRS in wire order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AttrsField {
    Flags,
    Size,
    UidGid,
    Permissions,
    Times,
    ExtendedCount,
    ExtendedType,
    ExtendedData,
}

/// What follows skipped bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Then {
    Purpose(Purpose),
    Attrs(AttrsField),
}

/// What `advance` found, without the bytes.
enum Found {
    Version(u32),
    Extension,
    VersionEnd,
    Status,
    Handle,
    DataStart(u32),
    Data(usize),
    DataEnd,
    NameStart(u32),
    Name,
    NameEnd,
    Attrs,
    ExtendedReply,
}

/// The decoder of everything that a server sends.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    /// A fixed-size field that came in parts.
    field: [u8; 9],
    field_len: usize,
    version_seen: bool,
    packet_type: u8,
    id: u32,
    /// Bytes of the packet not yet taken.
    left: u32,
    /// Bytes of the string or data not yet taken.
    text_left: u32,
    names_left: u32,
    code: u32,
    attrs_flags: u32,
    extended_left: u32,
    attrs: Attrs,
    text: heapless::Vec<u8, PATH_LEN_MAX>,
    aside: heapless::Vec<u8, BANNER_LEN_MAX>,
    failed: Option<ProtocolError>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Makes a decoder at the start of a session: VERSION is due.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: State::Head,
            field: [0; 9],
            field_len: 0,
            version_seen: false,
            packet_type: 0,
            id: 0,
            left: 0,
            text_left: 0,
            names_left: 0,
            code: 0,
            attrs_flags: 0,
            extended_left: 0,
            attrs: Attrs {
                size: None,
                uid_gid: None,
                permissions: None,
                atime_mtime: None,
            },
            text: heapless::Vec::new(),
            aside: heapless::Vec::new(),
            failed: None,
        }
    }

    /// Text that came where VERSION was due, cut at 512 bytes; empty if none did.
    #[must_use]
    pub fn banner(&self) -> &[u8] {
        if self.version_seen { &[] } else { &self.aside }
    }

    /// Takes a prefix of `input` and returns the next item, or `None` once all of `input` is taken.
    ///
    /// # Errors
    /// The rule that the server broke. Every later call returns the same error.
    pub fn handle_input<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Item<'s>>, ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let whole = *input;
        let found = match self.advance(input) {
            Ok(found) => found,
            Err(error) => {
                self.failed = Some(error);
                return Err(error);
            }
        };
        let id = self.id;
        Ok(found.map(|found| match found {
            Found::Version(version) => Item::Version { version },
            Found::Extension => Item::Extension {
                name: &self.text,
                data: &self.aside,
            },
            Found::VersionEnd => Item::VersionEnd,
            Found::Status => Item::Status {
                id,
                code: StatusCode(self.code),
                message: &self.aside,
            },
            Found::Handle => Item::Handle {
                id,
                handle: &self.aside,
            },
            Found::DataStart(len) => Item::DataStart { id, len },
            Found::Data(len) => {
                // `advance` took `len` bytes last, so they end where `input` begins.
                let end = whole.len() - input.len();
                Item::Data {
                    id,
                    bytes: whole.get(end - len..end).unwrap_or_default(),
                }
            }
            Found::DataEnd => Item::DataEnd { id },
            Found::NameStart(count) => Item::NameStart { id, count },
            Found::Name => {
                let (filename, longname) = (self.text.as_slice(), self.aside.as_slice());
                Item::Name {
                    id,
                    entry: Entry {
                        filename,
                        longname,
                        attrs: self.attrs,
                    },
                }
            }
            Found::NameEnd => Item::NameEnd { id },
            Found::Attrs => Item::Attrs {
                id,
                attrs: self.attrs,
            },
            Found::ExtendedReply => Item::ExtendedReply {
                id,
                data: &self.aside,
            },
        }))
    }

    /// Tells the decoder that the stream has ended.
    ///
    /// # Errors
    /// [`ProtocolError::EofInsidePacket`], or [`ProtocolError::BannerText`] if text came instead of VERSION.
    pub fn handle_eof(&mut self) -> Result<(), ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let error = match self.state {
            State::Head if self.field_len == 0 => return Ok(()),
            State::Banner => ProtocolError::BannerText,
            State::Head
            | State::StatusCode
            | State::Length(_)
            | State::Text(_)
            | State::DataLength
            | State::Data
            | State::NameCount
            | State::Attrs(_)
            | State::Skip { .. }
            | State::Rest => ProtocolError::EofInsidePacket,
        };
        self.failed = Some(error);
        Err(error)
    }

    fn advance(&mut self, input: &mut &[u8]) -> Result<Option<Found>, ProtocolError> {
        loop {
            match self.state {
                State::Head => {
                    // The length is looked at as soon as it is there: a login text may be shorter than a head.
                    if !self.version_seen && self.field_len < 4 {
                        if !self.collect(input, 4) {
                            return Ok(None);
                        }
                        self.check_banner()?;
                        continue;
                    }
                    if !self.collect(input, 9) {
                        return Ok(None);
                    }
                    if let Some(found) = self.begin()? {
                        return Ok(Some(found));
                    }
                }
                State::Banner => return self.advance_banner(input),
                State::StatusCode => {
                    let Some(code) = self.u32(input)? else {
                        return Ok(None);
                    };
                    self.code = code;
                    // Servers leave out the language, or the message too.
                    self.state = if self.left < 4 {
                        State::Rest
                    } else {
                        State::Length(Purpose::Message)
                    };
                }
                State::Length(purpose) => {
                    if self.left == 0 && purpose == Purpose::ExtensionName {
                        self.state = State::Head;
                        return Ok(Some(Found::VersionEnd));
                    }
                    let Some(len) = self.u32(input)? else {
                        return Ok(None);
                    };
                    self.begin_text(purpose, len)?;
                }
                State::Text(purpose) => {
                    if !self.take_text(input, purpose) {
                        return Ok(None);
                    }
                    if let Some(found) = self.end_text(purpose) {
                        return Ok(Some(found));
                    }
                }
                State::DataLength => {
                    let Some(len) = self.u32(input)? else {
                        return Ok(None);
                    };
                    self.check_field(len)?;
                    self.text_left = len;
                    self.state = State::Data;
                    return Ok(Some(Found::DataStart(len)));
                }
                State::Data => {
                    if self.text_left > 0 {
                        let taken = self.take(input, self.text_left);
                        let taken_len = taken.len();
                        self.text_left -= len_u32(taken_len);
                        return Ok((taken_len > 0).then_some(Found::Data(taken_len)));
                    }
                    self.state = State::Rest;
                }
                State::NameCount => {
                    let Some(count) = self.u32(input)? else {
                        return Ok(None);
                    };
                    // The shortest entry is two empty strings and the flags.
                    if u64::from(count) * 12 > u64::from(self.left) {
                        return Err(ProtocolError::NameCount(count));
                    }
                    self.names_left = count;
                    self.state = self.next_name();
                    return Ok(Some(Found::NameStart(count)));
                }
                State::Attrs(field) => match self.advance_attrs(input, field)? {
                    Progress::Waits => return Ok(None),
                    Progress::Done => {
                        if let Some(found) = self.end_attrs() {
                            return Ok(Some(found));
                        }
                    }
                    Progress::Goes => {}
                },
                State::Skip { len, then } => {
                    let left = len - len_u32(self.take(input, len).len());
                    if left > 0 {
                        self.state = State::Skip { len: left, then };
                        return Ok(None);
                    }
                    self.state = match then {
                        Then::Attrs(field) => State::Attrs(field),
                        Then::Purpose(purpose) => {
                            self.text_left = 0;
                            State::Text(purpose)
                        }
                    };
                }
                State::Rest => {
                    self.take(input, self.left);
                    if self.left > 0 {
                        return Ok(None);
                    }
                    self.state = State::Head;
                    return Ok(Some(match self.packet_type {
                        SSH_FXP_STATUS => Found::Status,
                        SSH_FXP_HANDLE => Found::Handle,
                        SSH_FXP_DATA => Found::DataEnd,
                        SSH_FXP_NAME => Found::NameEnd,
                        SSH_FXP_ATTRS => Found::Attrs,
                        _ => Found::ExtendedReply,
                    }));
                }
            }
        }
    }

    /// Begins a packet from its head of 9 bytes.
    fn begin(&mut self) -> Result<Option<Found>, ProtocolError> {
        let [l0, l1, l2, l3, packet_type, i0, i1, i2, i3] = self.field;
        let len = u32::from_be_bytes([l0, l1, l2, l3]);
        self.field_len = 0;
        self.packet_type = packet_type;
        self.id = u32::from_be_bytes([i0, i1, i2, i3]);
        let version_due = !self.version_seen;
        if version_due != (packet_type == SSH_FXP_VERSION) {
            return Err(ProtocolError::PacketTypeUnexpected(packet_type));
        }
        let len_max = if packet_type == SSH_FXP_NAME {
            NAME_PACKET_LEN_MAX
        } else {
            PACKET_LEN_MAX
        };
        if len > len_max {
            return Err(ProtocolError::PacketTooLong(len));
        }
        let Some(left) = len.checked_sub(5) else {
            return Err(ProtocolError::PacketTooShort(len));
        };
        self.left = left;
        self.text.clear();
        self.aside.clear();
        self.attrs = Attrs::default();
        self.state = match packet_type {
            SSH_FXP_VERSION => {
                self.version_seen = true;
                self.state = State::Length(Purpose::ExtensionName);
                return Ok(Some(Found::Version(self.id)));
            }
            SSH_FXP_STATUS => State::StatusCode,
            SSH_FXP_HANDLE => State::Length(Purpose::Handle),
            SSH_FXP_DATA => State::DataLength,
            SSH_FXP_NAME => State::NameCount,
            SSH_FXP_ATTRS => State::Attrs(AttrsField::Flags),
            SSH_FXP_EXTENDED_REPLY => {
                // Replies that are known hold fixed fields; the rest is skipped like a string's cut end.
                self.text_left = left;
                State::Text(Purpose::Message)
            }
            _ => return Err(ProtocolError::PacketTypeUnexpected(packet_type)),
        };
        Ok(None)
    }

    fn next_name(&self) -> State {
        if self.names_left == 0 {
            State::Rest
        } else {
            State::Length(Purpose::Filename)
        }
    }
}
