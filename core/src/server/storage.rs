//! What a responder serves.

use crate::sftp::{Attrs, StatusCode};

/// Files to read from, named by the bytes that the peer sent.
///
/// Paths are at most [`PATH_LEN_MAX`](crate::sftp::PATH_LEN_MAX) bytes and otherwise unchecked: they can be empty, hold
/// NUL, or try to climb out with `..`; [`resolve`](super::resolve) settles most of that. Calls block until they are done.
///
/// # Errors
///
/// Every method declines with the code that the peer shall see; codes above 8 are unknown to version 3.
pub trait Storage {
    /// An open file. Dropped without [`Storage::close`] if the responder is dropped.
    type File;

    /// Opens a file for reading.
    fn open(&mut self, path: &[u8]) -> Result<Self::File, StatusCode>;

    /// Closes a file: the last call that it is part of.
    fn close(&mut self, file: Self::File) -> Result<(), StatusCode>;

    /// Reads into `buf` from `offset` bytes after the start, and returns the length: at most that of `buf`, and 0 only at
    /// or past the end of the file. `buf` is never empty, and holds unspecified bytes.
    fn read(
        &mut self,
        file: &mut Self::File,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize, StatusCode>;

    /// Tells the attributes of what `path` names; if that is a symbolic link, of its target if `follow`, else its own.
    fn stat(&mut self, path: &[u8], follow: bool) -> Result<Attrs, StatusCode>;

    /// Tells the attributes of an open file.
    fn fstat(&mut self, file: &mut Self::File) -> Result<Attrs, StatusCode>;

    /// Writes the absolute form of `path` into `out`, which has room for
    /// [`PATH_LEN_MAX`](crate::sftp::PATH_LEN_MAX) bytes, and returns its length.
    fn realpath(&mut self, path: &[u8], out: &mut [u8]) -> Result<usize, StatusCode>;
}
