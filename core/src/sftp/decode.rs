//! The push-style streaming decoder of replies.
//!
//! It takes whatever bytes have come and hands the payload of DATA on as slices of the caller's buffer, and NAME
//! entry by entry, so its memory is one entry or one header and never a packet. Every length is checked
//! against what encloses it before it is used; nothing is allocated from it.

use super::attrs::Attrs;
use super::status::StatusCode;
use super::wire::{
    HANDLE_LEN_MAX, NAME_PACKET_LEN_MAX, PACKET_LEN_MAX, PATH_LEN_MAX, SSH_FXP_ATTRS, SSH_FXP_DATA,
    SSH_FXP_EXTENDED_REPLY, SSH_FXP_HANDLE, SSH_FXP_NAME, SSH_FXP_STATUS, SSH_FXP_VERSION,
};
use crate::error::ProtocolError;

/// Bytes of text before VERSION that are kept for the error.
const BANNER_LEN_MAX: usize = 512;

/// Bytes kept of a longname, an extension's data, or another string that is only shown.
const ASIDE_LEN_MAX: usize = 256;

/// One piece of a reply. Strings lie in the decoder until its next turn; data lies in the caller's input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Item<'s> {
    /// VERSION begins.
    Version {
        /// The version number.
        version: u32,
    },
    /// One extension pair of VERSION; both cut at 256 bytes.
    Extension {
        /// The extension's name.
        name: &'s [u8],
        /// Its data, mostly a version number in ASCII.
        data: &'s [u8],
    },
    /// VERSION is complete.
    VersionEnd,
    /// STATUS.
    Status {
        /// Request id.
        id: u32,
        /// The code.
        code: StatusCode,
        /// The message, cut at 256 bytes; empty if the server left it out.
        message: &'s [u8],
    },
    /// HANDLE.
    Handle {
        /// Request id.
        id: u32,
        /// 1 to 256 opaque bytes.
        handle: &'s [u8],
    },
    /// DATA begins; `len` bytes follow as [`Item::Data`] pieces.
    DataStart {
        /// Request id.
        id: u32,
        /// Bytes of data in the reply.
        len: u32,
    },
    /// A piece of a DATA reply's payload, in order, never empty.
    Data {
        /// Request id.
        id: u32,
        /// The bytes: a slice of the caller's input.
        bytes: &'s [u8],
    },
    /// DATA is complete.
    DataEnd {
        /// Request id.
        id: u32,
    },
    /// NAME begins; `count` entries follow.
    NameStart {
        /// Request id.
        id: u32,
        /// Entries announced; the packet is long enough for that many.
        count: u32,
    },
    /// One entry of NAME.
    Name {
        /// Request id.
        id: u32,
        /// The entry.
        entry: Entry<'s>,
    },
    /// NAME is complete.
    NameEnd {
        /// Request id.
        id: u32,
    },
    /// ATTRS.
    Attrs {
        /// Request id.
        id: u32,
        /// The attributes.
        attrs: Attrs,
    },
    /// EXTENDED_REPLY, cut at 256 bytes.
    ExtendedReply {
        /// Request id.
        id: u32,
        /// The reply's data.
        data: &'s [u8],
    },
}

/// One entry of a NAME reply. The names are bytes: version 3 knows no character set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Entry<'s> {
    /// The name or path, unchecked.
    pub filename: &'s [u8],
    /// What `ls -l` would print, cut at 256 bytes; free text.
    pub longname: &'s [u8],
    /// The attributes.
    pub attrs: Attrs,
}

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
            _ => ProtocolError::EofInsidePacket,
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

    /// Before VERSION, a length that no VERSION can have is text: "This" is 1,416,128,883 bytes.
    fn check_banner(&mut self) -> Result<(), ProtocolError> {
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
    fn advance_banner(&mut self, input: &mut &[u8]) -> Result<Option<Found>, ProtocolError> {
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

    fn begin_text(&mut self, purpose: Purpose, len: u32) -> Result<(), ProtocolError> {
        match purpose {
            // A message's length may lie: what the packet holds is what there is.
            Purpose::Message => {}
            Purpose::Handle if len == 0 || len > len_u32(HANDLE_LEN_MAX) => {
                return Err(ProtocolError::HandleLen(len));
            }
            Purpose::Filename if len > len_u32(PATH_LEN_MAX) && len <= self.left => {
                return Err(ProtocolError::NameTooLong(len));
            }
            _ => self.check_field(len)?,
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
    fn take_text(&mut self, input: &mut &[u8], purpose: Purpose) -> bool {
        let is_name = matches!(purpose, Purpose::ExtensionName | Purpose::Filename);
        let kept_max = match purpose {
            Purpose::Filename => PATH_LEN_MAX,
            _ => ASIDE_LEN_MAX,
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

    fn end_text(&mut self, purpose: Purpose) -> Option<Found> {
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

    fn next_name(&self) -> State {
        if self.names_left == 0 {
            State::Rest
        } else {
            State::Length(Purpose::Filename)
        }
    }

    fn end_attrs(&mut self) -> Option<Found> {
        if self.packet_type == SSH_FXP_NAME {
            self.names_left = self.names_left.saturating_sub(1);
            self.state = self.next_name();
            return Some(Found::Name);
        }
        self.state = State::Rest;
        None
    }

    fn advance_attrs(
        &mut self,
        input: &mut &[u8],
        field: AttrsField,
    ) -> Result<Progress, ProtocolError> {
        use AttrsField as F;
        let has = |flags: u32, bit: u32| flags & bit != 0;
        let next = match field {
            F::Flags => {
                let Some(flags) = self.u32(input)? else {
                    return Ok(Progress::Waits);
                };
                self.attrs = Attrs::default();
                self.attrs_flags = flags;
                F::Size
            }
            F::Size => {
                if has(self.attrs_flags, Attrs::SIZE) {
                    let Some(size) = self.u64(input)? else {
                        return Ok(Progress::Waits);
                    };
                    self.attrs.size = Some(size);
                }
                F::UidGid
            }
            F::UidGid => {
                if has(self.attrs_flags, Attrs::UIDGID) {
                    let Some(both) = self.u64(input)? else {
                        return Ok(Progress::Waits);
                    };
                    self.attrs.uid_gid = Some(halves(both));
                }
                F::Permissions
            }
            F::Permissions => {
                if has(self.attrs_flags, Attrs::PERMISSIONS) {
                    let Some(mode) = self.u32(input)? else {
                        return Ok(Progress::Waits);
                    };
                    self.attrs.permissions = Some(mode);
                }
                F::Times
            }
            F::Times => {
                if has(self.attrs_flags, Attrs::ACMODTIME) {
                    let Some(both) = self.u64(input)? else {
                        return Ok(Progress::Waits);
                    };
                    self.attrs.atime_mtime = Some(halves(both));
                }
                F::ExtendedCount
            }
            F::ExtendedCount => {
                if !has(self.attrs_flags, Attrs::EXTENDED) {
                    return Ok(Progress::Done);
                }
                let Some(count) = self.u32(input)? else {
                    return Ok(Progress::Waits);
                };
                // The shortest pair is two empty strings.
                if u64::from(count) * 8 > u64::from(self.left) {
                    return Err(ProtocolError::AttrsExtendedCount(count));
                }
                self.extended_left = count;
                F::ExtendedType
            }
            F::ExtendedType | F::ExtendedData => {
                if self.extended_left == 0 {
                    return Ok(Progress::Done);
                }
                let Some(len) = self.u32(input)? else {
                    return Ok(Progress::Waits);
                };
                self.check_field(len)?;
                let then = if field == F::ExtendedType {
                    F::ExtendedData
                } else {
                    self.extended_left -= 1;
                    F::ExtendedType
                };
                self.state = State::Skip {
                    len,
                    then: Then::Attrs(then),
                };
                return Ok(Progress::Goes);
            }
        };
        self.state = State::Attrs(next);
        Ok(Progress::Goes)
    }

    fn check_field(&self, len: u32) -> Result<(), ProtocolError> {
        if len > self.left {
            return Err(ProtocolError::FieldBeyondPacket {
                packet_type: self.packet_type,
            });
        }
        Ok(())
    }

    /// Takes up to `len` bytes of the packet from `input`.
    fn take<'i>(&mut self, input: &mut &'i [u8], len: u32) -> &'i [u8] {
        let len = usize::try_from(len.min(self.left))
            .unwrap_or(usize::MAX)
            .min(input.len());
        let (taken, rest) = input.split_at(len);
        *input = rest;
        self.left -= len_u32(len);
        taken
    }

    /// Collects bytes until `field` holds `len`; true once it does.
    fn collect(&mut self, input: &mut &[u8], len: usize) -> bool {
        let count = (len - self.field_len).min(input.len());
        let (taken, rest) = input.split_at(count);
        self.field[self.field_len..self.field_len + count].copy_from_slice(taken);
        self.field_len += count;
        *input = rest;
        self.field_len == len
    }

    /// Reads a field of `LEN` bytes within the packet.
    fn fixed<const LEN: usize>(
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

    fn u32(&mut self, input: &mut &[u8]) -> Result<Option<u32>, ProtocolError> {
        Ok(self.fixed(input)?.map(u32::from_be_bytes))
    }

    fn u64(&mut self, input: &mut &[u8]) -> Result<Option<u64>, ProtocolError> {
        Ok(self.fixed(input)?.map(u64::from_be_bytes))
    }
}

/// How far a step of ATTRS came.
enum Progress {
    /// A field is incomplete: more input.
    Waits,
    /// The next field.
    Goes,
    /// The last field is read.
    Done,
}

fn halves(both: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = both.to_be_bytes();
    (
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    )
}

/// Lengths here are at most a packet's.
fn len_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn is_text(byte: u8) -> bool {
    byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b)
}
