//! File attributes of protocol version 3.

use super::wire::{Full, Writer};

/// ATTRS: each field is there only if the server sent it.
///
/// Source: draft-ietf-secsh-filexfer-02 §5. Extended pairs are skipped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Attrs {
    /// Length of the file in bytes; a hint, never proof of where the file ends.
    pub size: Option<u64>,
    /// Numeric owner and group.
    pub uid_gid: Option<(u32, u32)>,
    /// POSIX mode, with the file type in its upper bits where the server sets them.
    pub permissions: Option<u32>,
    /// Access and modification time in seconds since 1970, unsigned: it ends in 2106.
    pub atime_mtime: Option<(u32, u32)>,
}

/// The kind of file that `permissions` tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, socket or pipe.
    Other,
    /// The server sent no type bits.
    Unknown,
}

impl Attrs {
    pub(crate) const SIZE: u32 = 0x0000_0001;
    pub(crate) const UIDGID: u32 = 0x0000_0002;
    pub(crate) const PERMISSIONS: u32 = 0x0000_0004;
    pub(crate) const ACMODTIME: u32 = 0x0000_0008;
    pub(crate) const EXTENDED: u32 = 0x8000_0000;

    /// The file type, from the mode's type bits.
    #[must_use]
    pub const fn file_type(&self) -> FileType {
        let Some(permissions) = self.permissions else {
            return FileType::Unknown;
        };
        match permissions & 0o170_000 {
            0o100_000 => FileType::Regular,
            0o040_000 => FileType::Directory,
            0o120_000 => FileType::Symlink,
            0 => FileType::Unknown,
            _ => FileType::Other,
        }
    }

    /// Modification time in seconds since 1970.
    #[must_use]
    pub fn mtime(&self) -> Option<u32> {
        self.atime_mtime.map(|(_, mtime)| mtime)
    }

    pub(crate) fn flags(&self) -> u32 {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        flag(self.size.is_some(), Self::SIZE)
            | flag(self.uid_gid.is_some(), Self::UIDGID)
            | flag(self.permissions.is_some(), Self::PERMISSIONS)
            | flag(self.atime_mtime.is_some(), Self::ACMODTIME)
    }

    pub(crate) fn encode(&self, out: &mut Writer<'_>) -> Result<(), Full> {
        out.u32(self.flags())?;
        if let Some(size) = self.size {
            out.u64(size)?;
        }
        if let Some((uid, gid)) = self.uid_gid {
            out.u32(uid)?;
            out.u32(gid)?;
        }
        if let Some(permissions) = self.permissions {
            out.u32(permissions)?;
        }
        if let Some((atime, mtime)) = self.atime_mtime {
            out.u32(atime)?;
            out.u32(mtime)?;
        }
        Ok(())
    }
}
