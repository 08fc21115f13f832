//! Byte slices served as files.

use super::path::resolve;
use super::storage::Storage;
use crate::sftp::{Attrs, PATH_LEN_MAX, StatusCode};

/// A file in memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MemoryFile<'a> {
    /// Absolute path as [`resolve`] writes it, such as `/pub/readme`. Its folders are there by being named.
    pub path: &'a [u8],
    /// What the file holds.
    pub data: &'a [u8],
    /// Modification time in seconds since 1970.
    pub mtime: u32,
}

impl<'a> MemoryFile<'a> {
    /// Names `data`. The modification time is 1970.
    #[must_use]
    pub const fn new(path: &'a [u8], data: &'a [u8]) -> Self {
        Self {
            path,
            data,
            mtime: 0,
        }
    }
}

/// A [`Storage`] of borrowed files. Of several with one path, the first is served.
#[derive(Clone, Copy, Debug)]
pub struct MemoryStorage<'a> {
    files: &'a [MemoryFile<'a>],
}

/// What a path names.
enum Found<'a> {
    File(&'a MemoryFile<'a>),
    Folder,
}

impl<'a> MemoryStorage<'a> {
    /// Serves `files`.
    #[must_use]
    pub const fn new(files: &'a [MemoryFile<'a>]) -> Self {
        Self { files }
    }

    fn find(&self, path: &[u8]) -> Result<Found<'a>, StatusCode> {
        let mut absolute = [0; PATH_LEN_MAX + 1];
        let len = resolve(path, &mut absolute)?;
        let path = absolute.get(..len).unwrap_or_default();
        if let Some(file) = self.files.iter().find(|file| file.path == path) {
            return Ok(Found::File(file));
        }
        let is_folder = |file: &MemoryFile<'_>| {
            let below = file.path.strip_prefix(path);
            below.is_some_and(|rest| rest.starts_with(b"/"))
        };
        if path == b"/" || self.files.iter().any(is_folder) {
            return Ok(Found::Folder);
        }
        Err(StatusCode::NO_SUCH_FILE)
    }
}

fn file_attrs(file: &MemoryFile<'_>) -> Attrs {
    Attrs {
        size: u64::try_from(file.data.len()).ok(),
        permissions: Some(0o100_444),
        atime_mtime: Some((file.mtime, file.mtime)),
        ..Attrs::default()
    }
}

impl<'a> Storage for MemoryStorage<'a> {
    type File = &'a MemoryFile<'a>;

    /// Declines folders with `FAILURE`, as version 3 has no better code.
    fn open(&mut self, path: &[u8]) -> Result<Self::File, StatusCode> {
        match self.find(path)? {
            Found::File(file) => Ok(file),
            Found::Folder => Err(StatusCode::FAILURE),
        }
    }

    fn close(&mut self, _file: Self::File) -> Result<(), StatusCode> {
        Ok(())
    }

    fn read(
        &mut self,
        file: &mut Self::File,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize, StatusCode> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| file.data.get(offset..))
            .unwrap_or_default();
        let taken = rest.get(..buf.len()).unwrap_or(rest);
        if let Some(place) = buf.get_mut(..taken.len()) {
            place.copy_from_slice(taken);
        }
        Ok(taken.len())
    }

    fn stat(&mut self, path: &[u8], _follow: bool) -> Result<Attrs, StatusCode> {
        Ok(match self.find(path)? {
            Found::File(file) => file_attrs(file),
            Found::Folder => Attrs {
                permissions: Some(0o040_555),
                ..Attrs::default()
            },
        })
    }

    fn fstat(&mut self, file: &mut Self::File) -> Result<Attrs, StatusCode> {
        Ok(file_attrs(file))
    }

    fn realpath(&mut self, path: &[u8], out: &mut [u8]) -> Result<usize, StatusCode> {
        resolve(path, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sftp::FileType;

    #[test]
    fn files_are_found_by_any_spelling_and_folders_by_what_they_hold() {
        let files = [MemoryFile::new(b"/a/b", b"12345")];
        let mut storage = MemoryStorage::new(&files);
        assert!(storage.open(b"a//x/../b").is_ok());
        assert_eq!(storage.open(b"/a"), Err(StatusCode::FAILURE));
        assert_eq!(storage.open(b"/a/"), Err(StatusCode::FAILURE));
        assert_eq!(storage.open(b"/a/b/c"), Err(StatusCode::NO_SUCH_FILE));
        assert_eq!(storage.open(b"/A/b"), Err(StatusCode::NO_SUCH_FILE));
        let mut kind = |path: &[u8]| storage.stat(path, true).map(|attrs| attrs.file_type());
        assert_eq!(kind(b""), Ok(FileType::Directory));
        assert_eq!(kind(b"/a"), Ok(FileType::Directory));
        assert_eq!(kind(b"/a/b"), Ok(FileType::Regular));
        assert_eq!(kind(b"/"), Ok(FileType::Directory));
        assert_eq!(kind(b"/b"), Err(StatusCode::NO_SUCH_FILE));
    }

    #[test]
    fn reads_stop_at_the_end() {
        let files = [MemoryFile::new(b"/f", b"12345")];
        let mut storage = MemoryStorage::new(&files);
        let mut file = storage.open(b"f").unwrap();
        let mut buf = [0; 3];
        assert_eq!(storage.read(&mut file, 0, &mut buf), Ok(3));
        assert_eq!(&buf, b"123");
        assert_eq!(storage.read(&mut file, 4, &mut buf), Ok(1));
        assert_eq!(buf[0], b'5');
        assert_eq!(storage.read(&mut file, 5, &mut buf), Ok(0));
        assert_eq!(storage.read(&mut file, u64::MAX, &mut buf), Ok(0));
    }
}
