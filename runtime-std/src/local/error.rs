//! What can go wrong on this side of the link.

use std::io;
use std::path::{Path, PathBuf};

use crate::text::{escaped, io_text};

/// A local file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", escaped(path.as_os_str().as_encoded_bytes()))]
pub struct LocalError {
    kind: LocalErrorKind,
    path: PathBuf,
    message: String,
    source: Option<io::Error>,
}

/// What stood in the way of a local file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LocalErrorKind {
    /// Another process is writing the same download.
    Busy,
    /// The remote name cannot be a name here.
    Name,
    /// The target is a directory, a device or something else that is no file.
    NotAFile,
    /// The directory of the target does not exist.
    NotFound,
    /// The system refused; the message says why.
    System,
    /// The file system or the user's quota is full.
    Full,
    /// Writing there is not permitted.
    Permission,
}

impl LocalError {
    /// What stood in the way.
    #[must_use]
    pub fn kind(&self) -> LocalErrorKind {
        self.kind
    }

    /// The file or directory that it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the user can do about it, as the rest of a sentence.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self.kind {
            LocalErrorKind::Busy => Some("wait for it to end, or write to another name"),
            LocalErrorKind::Full => Some("free some space"),
            LocalErrorKind::Name => Some("name the local file"),
            LocalErrorKind::NotAFile => Some("name a file to write, or a directory to write into"),
            LocalErrorKind::NotFound => Some("create the directory first"),
            LocalErrorKind::Permission => Some("check the permissions of the directory"),
            LocalErrorKind::System => None,
        }
    }

    pub(super) fn new(kind: LocalErrorKind, path: &Path, message: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            message: message.into(),
            source: None,
        }
    }

    /// `action` completes "cannot …".
    pub(super) fn io(action: &str, path: &Path, error: io::Error) -> Self {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the system has more errors than we have advice"
        )]
        let kind = match error.kind() {
            io::ErrorKind::IsADirectory => LocalErrorKind::NotAFile,
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => LocalErrorKind::NotFound,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                LocalErrorKind::Permission
            }
            io::ErrorKind::QuotaExceeded | io::ErrorKind::StorageFull => LocalErrorKind::Full,
            _ => LocalErrorKind::System,
        };
        let message = format!("cannot {action}: {}", io_text(&error));
        Self {
            kind,
            path: path.to_owned(),
            message,
            source: Some(error),
        }
    }
}
