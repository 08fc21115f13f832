//! Why there is no connection, in one line.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

use crate::text::{escaped, io_text};

/// The program of a child, for messages.
#[derive(Clone, Debug)]
pub(super) enum Program {
    Command(OsString),
    Ssh { program: OsString, host: String },
}

impl Program {
    fn name(&self) -> String {
        match self {
            Self::Command(program) | Self::Ssh { program, .. } => {
                escaped(program.as_encoded_bytes())
            }
        }
    }
}

/// A connection could not be opened, or ended before its time.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    kind: ConnectErrorKind,
    message: String,
    hint: Option<String>,
}

/// What stood in the way of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The server did not accept the user's name and credentials.
    Authentication,
    /// The stream ended; nothing more is known of the cause.
    Closed,
    /// The server's host key is unknown, or not the one that is known.
    HostKey,
    /// The host's name has no address.
    HostNotFound,
    /// The program that makes the connection could not be started or did not take its options.
    Program,
    /// The server cannot be reached, or nothing listens there.
    Unreachable,
    /// The server runs SSH but no SFTP.
    Unsupported,
}

impl ConnectError {
    /// What stood in the way.
    #[must_use]
    pub fn kind(&self) -> ConnectErrorKind {
        self.kind
    }

    /// What the user can do about it, as the rest of a sentence.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    fn new(kind: ConnectErrorKind, message: String, hint: &str) -> Self {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        Self {
            kind,
            message,
            hint,
        }
    }

    pub(super) fn start(program: &Program, error: &io::Error) -> Self {
        let message = format!("cannot start {}: {}", program.name(), io_text(error));
        let hint = match program {
            Program::Command(_) => "check the command and PATH",
            Program::Ssh { .. } => "install the OpenSSH client, or name it in LONGHAUL_SSH",
        };
        Self::new(ConnectErrorKind::Program, message, hint)
    }

    pub(super) fn resolve(host: &str, error: &io::Error) -> Self {
        let host = escaped(host.as_bytes());
        let message = format!("cannot find host {host}: {}", io_text(error));
        Self::new(
            ConnectErrorKind::HostNotFound,
            message,
            "check the name of the host",
        )
    }

    pub(super) fn tcp(host: &str, port: u16, error: &io::Error) -> Self {
        let host = escaped(host.as_bytes());
        let message = format!("cannot connect to {host} port {port}: {}", io_text(error));
        let hint = "check host and port, and that the server runs";
        Self::new(ConnectErrorKind::Unreachable, message, hint)
    }

    /// Judges a child by how it ended (`None` if it still runs) and the end of its standard error.
    pub(super) fn ended(
        program: &Program,
        status: Option<ExitStatus>,
        stderr: &[u8],
    ) -> Option<Self> {
        let said = last_line(stderr);
        if said.is_none() && status.is_none_or(|status| status.success()) {
            return None;
        }
        let name = program.name();
        if let Program::Ssh { host, .. } = program
            && let Some(cause) = classify(stderr)
        {
            let host = escaped(host.as_bytes());
            let said = said.unwrap_or_default();
            let message = format!(
                "{} (ssh said: {said})",
                cause.message.replace("HOST", &host)
            );
            return Some(Self::new(
                cause.kind,
                message,
                &cause.hint.replace("HOST", &host),
            ));
        }
        let how = match status {
            Some(status) => format!("{name} ended ({status})"),
            None => format!("{name} closed its output"),
        };
        let message = match said {
            Some(said) => format!("{how} and said: {said}"),
            None => how,
        };
        Some(Self::new(ConnectErrorKind::Closed, message, ""))
    }
}

struct Cause {
    /// What OpenSSH prints, from its sources.
    text: &'static str,
    kind: ConnectErrorKind,
    message: &'static str,
    hint: &'static str,
}

/// In order: the first that stands anywhere in the text counts.
const CAUSES: &[Cause] = &[
    Cause {
        text: "REMOTE HOST IDENTIFICATION HAS CHANGED",
        kind: ConnectErrorKind::HostKey,
        message: "the host key of HOST is not the known one",
        hint: "somebody may be listening in; if the server is known to have a new key, forget the old one with ssh-keygen -R HOST",
    },
    Cause {
        text: "Host key verification failed",
        kind: ConnectErrorKind::HostKey,
        message: "the host key of HOST is not known",
        hint: "connect once with ssh HOST and compare the fingerprint",
    },
    Cause {
        text: "Permission denied (",
        kind: ConnectErrorKind::Authentication,
        message: "HOST did not accept the login",
        hint: "check the user's name and key (-i), or try ssh HOST",
    },
    Cause {
        text: "Too many authentication failures",
        kind: ConnectErrorKind::Authentication,
        message: "HOST did not accept the login",
        hint: "name the one key to try with -i and -o IdentitiesOnly=yes",
    },
    Cause {
        text: "Could not resolve hostname",
        kind: ConnectErrorKind::HostNotFound,
        message: "cannot find host HOST",
        hint: "check the name of the host",
    },
    Cause {
        text: "subsystem request failed",
        kind: ConnectErrorKind::Unsupported,
        message: "HOST offers no SFTP",
        hint: "ask its administrator to enable the sftp subsystem",
    },
    Cause {
        text: "Bad configuration option",
        kind: ConnectErrorKind::Program,
        message: "ssh did not take its options",
        hint: "check -o and the ssh configuration",
    },
    Cause {
        text: "Connection refused",
        kind: ConnectErrorKind::Unreachable,
        message: "nothing listens at HOST",
        hint: "check the port (-p)",
    },
    Cause {
        text: "ssh: connect to host",
        kind: ConnectErrorKind::Unreachable,
        message: "cannot reach HOST",
        hint: "check host, port and network",
    },
    Cause {
        text: "timed out",
        kind: ConnectErrorKind::Unreachable,
        message: "HOST does not answer",
        hint: "check host, port and network, or allow more with --timeout",
    },
];

fn classify(stderr: &[u8]) -> Option<&'static Cause> {
    let text = String::from_utf8_lossy(stderr);
    CAUSES.iter().find(|cause| text.contains(cause.text))
}

/// The last line with something in it, safe to print.
fn last_line(text: &[u8]) -> Option<String> {
    let line = text
        .split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii)
        .rfind(|line| !line.is_empty())?;
    Some(escaped(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(stderr: &str) -> Option<ConnectError> {
        let program = Program::Ssh {
            program: OsString::from("ssh"),
            host: "far".into(),
        };
        ConnectError::ended(&program, None, stderr.as_bytes())
    }

    #[test]
    fn each_failure_of_ssh_gets_its_kind_and_a_hint() {
        let table = [
            (
                "@@@\r\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\n@@@\r\nHost key verification failed.\r\n",
                ConnectErrorKind::HostKey,
                "not the known one",
            ),
            (
                "Host key verification failed.\r\n",
                ConnectErrorKind::HostKey,
                "not known",
            ),
            (
                "ada@far: Permission denied (publickey,password).\r\n",
                ConnectErrorKind::Authentication,
                "ada@far",
            ),
            (
                "ssh: Could not resolve hostname far: Name or service not known\r\n",
                ConnectErrorKind::HostNotFound,
                "far",
            ),
            (
                "ssh: connect to host far port 22: Connection refused\r\n",
                ConnectErrorKind::Unreachable,
                "port 22",
            ),
            (
                "ssh: connect to host far port 22: No route to host\r\n",
                ConnectErrorKind::Unreachable,
                "No route",
            ),
            (
                "subsystem request failed on channel 0\r\n",
                ConnectErrorKind::Unsupported,
                "no SFTP",
            ),
            (
                "command-line: line 0: Bad configuration option: x\r\n",
                ConnectErrorKind::Program,
                "options",
            ),
        ];
        for (stderr, kind, part) in table {
            let error = ssh(stderr).expect("an error");
            assert_eq!(error.kind(), kind, "{stderr}");
            let text = error.to_string();
            assert!(
                text.contains(part) && !text.contains('\n') && !text.contains("HOST"),
                "{text}"
            );
            assert!(
                error.hint().is_some_and(|hint| !hint.contains("HOST")),
                "{stderr}"
            );
        }
    }

    #[test]
    fn silence_is_no_error_and_other_words_are_kept_escaped() {
        assert!(ssh("\r\n \n").is_none());
        let error = ssh("first\n\x1b[2Jlast\n\n").expect("an error");
        assert_eq!(error.kind(), ConnectErrorKind::Closed);
        assert_eq!(
            error.to_string(),
            "ssh closed its output and said: \\u{1b}[2Jlast"
        );
        assert!(error.hint().is_none());
    }
}
