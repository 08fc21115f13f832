//! What the decoder makes of the bytes.

use crate::sftp::{Attrs, StatusCode};

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
