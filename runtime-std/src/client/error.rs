//! What can go wrong, by who is to blame.

use core::time::Duration;
use std::io;

use longhaul_core::sftp::StatusCode;
use longhaul_core::{OpError, ProtocolError, StatusError};

use crate::local::LocalError;
use crate::text::{escaped, io_text};
use crate::transport::ConnectError;

/// Why an operation failed. Each is one line, which names what it is about; [`Error::hint`] tells what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operation was cancelled, or its client is gone.
    #[error("{path}: cancelled")]
    Cancelled {
        /// What it was about.
        path: String,
    },
    /// There is no connection, and the transport knows why.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server declined.
    #[error("{path}: {}", declined(error))]
    Declined {
        /// What it was about.
        path: String,
        /// Code and words of the server.
        #[source]
        error: StatusError,
    },
    /// The path names a directory where a file is needed.
    #[error("{path}: is a directory")]
    Directory {
        /// The path.
        path: String,
    },
    /// The connection ended, and nothing is known of the cause but perhaps what the system said.
    #[error("{path}: the connection ended{}", said(.cause.as_ref()))]
    Disconnected {
        /// What was going on.
        path: String,
        /// What the system said.
        #[source]
        cause: Option<io::Error>,
    },
    /// A local file could not be written or read.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The path is longer than the protocol allows here (4,096 bytes).
    #[error("{path}: the path is too long")]
    PathTooLong {
        /// The path.
        path: String,
    },
    /// The server broke the protocol.
    #[error("{path}: {error}{}", quoted(.banner.as_deref()))]
    Protocol {
        /// What was going on.
        path: String,
        /// The rule.
        #[source]
        error: ProtocolError,
        /// Text that came where the server's first packet was due, safe to print.
        banner: Option<String>,
    },
    /// The file ended before the size that the server had announced, and did so when asked again.
    #[error("{path}: the file shrank: it ends at byte {end}, its size was {size}")]
    Shrunk {
        /// The path.
        path: String,
        /// Size that was announced, in bytes.
        size: u64,
        /// Where it ends, in bytes.
        end: u64,
    },
    /// Nothing came for too long, or the operation took longer than it may.
    #[error("{path}: {}", timeout(*after))]
    Timeout {
        /// What was going on.
        path: String,
        /// The time that was allowed, if it is known.
        after: Option<Duration>,
    },
}

impl Error {
    /// What the user can do about it, as the rest of a sentence.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Connect(error) => error
                .hint()
                .or(Some("check that the server runs, and try again")),
            Self::Local(error) => error.hint(),
            Self::Declined { error, .. } => match error.code {
                StatusCode::NO_SUCH_FILE | StatusCode::NO_SUCH_PATH => {
                    Some("check the path; a relative one starts in the home directory")
                }
                StatusCode::PERMISSION_DENIED => {
                    Some("check with stat whether the user may read it")
                }
                _ => None,
            },
            Self::Directory { .. } => Some("name a file in it; whole trees come later"),
            Self::Disconnected { .. } => Some("check that the server runs, and try again"),
            Self::Protocol {
                banner: Some(_), ..
            } => {
                Some("the account's start-up files must print nothing, and the account needs SFTP")
            }
            Self::Shrunk { .. } => Some("somebody writes to it; try again"),
            Self::Timeout { .. } => {
                Some("check the network and the server; --timeout sets the limit")
            }
            Self::Cancelled { .. } | Self::PathTooLong { .. } | Self::Protocol { .. } => None,
        }
    }

    /// The same about another name of the file: one with its host, say.
    #[must_use]
    pub fn renamed(mut self, name: impl Into<String>) -> Self {
        match &mut self {
            Self::Cancelled { path }
            | Self::Declined { path, .. }
            | Self::Directory { path }
            | Self::Disconnected { path, .. }
            | Self::PathTooLong { path }
            | Self::Protocol { path, .. }
            | Self::Shrunk { path, .. }
            | Self::Timeout { path, .. } => *path = name.into(),
            Self::Connect(_) | Self::Local(_) => {}
        }
        self
    }

    /// Makes it of what the core says about `path`; `Closed` and `Protocol` may have better causes.
    pub(super) fn of(path: &str, error: OpError, no_progress_max: Option<Duration>) -> Self {
        let path = path.to_owned();
        match error {
            OpError::Cancelled => Self::Cancelled { path },
            OpError::NoProgress => Self::Timeout {
                path,
                after: no_progress_max,
            },
            OpError::PathTooLong => Self::PathTooLong { path },
            OpError::Protocol(error) => Self::Protocol {
                path,
                error,
                banner: None,
            },
            OpError::Shrunk { size, end } => Self::Shrunk { path, size, end },
            OpError::Status(error) if error.code == StatusCode::FILE_IS_A_DIRECTORY => {
                Self::Directory { path }
            }
            OpError::Status(error) => Self::Declined { path, error },
            OpError::Closed => Self::Disconnected { path, cause: None },
            // The core may learn of more.
            error => Self::Disconnected {
                path,
                cause: Some(io::Error::other(error)),
            },
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

/// The code's name, and the server's own words if they say more.
fn declined(error: &StatusError) -> String {
    let name = error.code.name();
    let words = error.message.trim_ascii();
    if words.is_empty() || words.eq_ignore_ascii_case(name.as_bytes()) {
        return match error.code {
            StatusCode::FAILURE => "the server failed to do it, and does not say why".to_owned(),
            _ => name.to_owned(),
        };
    }
    format!("{name} (the server said: {})", escaped(words))
}

fn said(cause: Option<&io::Error>) -> String {
    cause
        .map(|cause| format!(" ({})", io_text(cause)))
        .unwrap_or_default()
}

fn quoted(text: Option<&str>) -> String {
    text.map(|text| format!("; it said: {text}"))
        .unwrap_or_default()
}

fn timeout(after: Option<Duration>) -> String {
    match after {
        Some(after) => format!("no answer for {} s", after.as_secs_f64()),
        None => "no answer for too long".to_owned(),
    }
}
