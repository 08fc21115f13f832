//! Exit codes, and failures that carry one.

use core::fmt;
use std::process::ExitCode;

use longhaul::transport::ConnectError;
use longhaul::{Error, LocalError, LocalErrorKind, Target, TargetError};

/// How the command ends. The numbers are documented in `--help`: scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Connection = 3,
    Local = 4,
    Protocol = 5,
    Timeout = 6,
    Interrupted = 130,
    OutputClosed = 141,
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why the command fails: one line, and what the user can do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The remote file that was being worked on.
    pub(crate) url: Option<String>,
    /// The next file may fare better.
    pub(crate) is_of_file: bool,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
            url: None,
            is_of_file: exit == Exit::Failed,
        }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: &str) -> Self {
        Self::new(Exit::Usage, message).with_hint(hint)
    }

    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

    /// Names what the failure is about in front of the message.
    pub(crate) fn about(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let failure = Self::new(Exit::Connection, error.to_string());
        Self {
            hint: error.hint().map(str::to_owned),
            ..failure
        }
    }
}

impl From<LocalError> for Failure {
    fn from(error: LocalError) -> Self {
        let failure = Self::new(Exit::Local, error.to_string());
        Self {
            hint: error.hint().map(str::to_owned),
            is_of_file: is_of_file(&error),
            ..failure
        }
    }
}

impl Failure {
    /// Why something failed that was done for `target`.
    pub(super) fn of(target: &Target, error: Error) -> Self {
        let url = target.to_string();
        let is_of_connection = matches!(error, Error::Connect(_));
        // The client knows the path alone, and there may be several hosts.
        let failure = Self::from(error.renamed(&url));
        let failure = if is_of_connection {
            failure.about(&url)
        } else {
            failure
        };
        failure.with_url(url)
    }

    /// Names the remote file, for events.
    pub(super) fn with_url(mut self, url: String) -> Self {
        self.url = Some(url);
        self
    }
}

/// Whether only this one file is in the way, and not its directory or the disk.
fn is_of_file(error: &LocalError) -> bool {
    matches!(
        error.kind(),
        LocalErrorKind::Busy | LocalErrorKind::Name | LocalErrorKind::NotAFile
    )
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Connect(_) | Error::Disconnected { .. } => Exit::Connection,
            Error::Local(_) => Exit::Local,
            Error::Protocol { .. } => Exit::Protocol,
            Error::Timeout { .. } => Exit::Timeout,
            Error::Cancelled { .. }
            | Error::Declined { .. }
            | Error::Directory { .. }
            | Error::PathTooLong { .. }
            | Error::Shrunk { .. }
            | _ => Exit::Failed,
        };
        let hint = error.hint().map(str::to_owned);
        let is_of_file = if let Error::Local(error) = &error {
            is_of_file(error)
        } else {
            exit == Exit::Failed
        };
        Self {
            hint,
            is_of_file,
            ..Self::new(exit, error.to_string())
        }
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        Self::new(Exit::Usage, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_name_the_host_and_tell_whether_others_may_fare_better() {
        let target: Target = "h:x".parse().expect("a target");
        let path = "x".to_owned();
        let failure = Failure::of(&target, Error::Directory { path });
        assert!(
            failure.message.starts_with("sftp://h/~/x: "),
            "{}",
            failure.message
        );
        assert_eq!(failure.url.as_deref(), Some("sftp://h/~/x"));
        assert!(failure.is_of_file);
        let error = Error::Timeout {
            path: "x".into(),
            after: None,
        };
        assert!(!Failure::of(&target, error).is_of_file);
    }
}
