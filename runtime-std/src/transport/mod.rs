//! Byte streams to a server: `ssh` ([`Ssh`]), any command ([`Command`]), plain TCP ([`Tcp`]), or streams that
//! the caller already has ([`Connection::new`]).
//!
//! SFTP needs nothing from below but bytes in order. What a session would also like to know of its stream
//! stands in [`Connection`]: the receive window of an SSH channel, which must never be filled by replies, and
//! what the child process wrote to its standard error, which is where `ssh` says why it failed.

mod child;
mod command;
mod error;
mod ssh;
mod tcp;

use core::fmt;
use core::time::Duration;

use smol::io::{AsyncRead, AsyncWrite};

pub use self::command::Command;
pub use self::error::{ConnectError, ConnectErrorKind};
pub use self::ssh::Ssh;
pub use self::tcp::Tcp;

use self::child::ChildGuard;

/// The reading half of a stream.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// The writing half of a stream.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// How a standard error stream of a child process is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stderr {
    /// The last 4 KiB are kept for the error message and nothing is shown (default).
    ///
    /// Passwords and passphrases are still asked for, since `ssh` does that on the terminal itself. Its
    /// reminder to touch a security key goes to standard error, and is not seen.
    #[default]
    Keep,
    /// The child writes to the standard error of this process; error messages know nothing of it.
    Inherit,
}

/// A stream of bytes in both directions over which a session can be opened.
#[must_use]
pub struct Connection {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) guard: Guard,
    pub(crate) window_bytes: Option<u64>,
}

impl Connection {
    /// Wraps two halves of a stream that the caller has opened.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            guard: Guard { child: None },
            window_bytes: None,
        }
    }

    /// Tells the session how many bytes the stream takes in while nobody reads, as an SSH channel's window.
    ///
    /// The session keeps the replies it waits for below that; a server that answers in order and may not
    /// send would otherwise never read what would let it go on.
    pub fn with_window_bytes(mut self, window_bytes: u64) -> Self {
        self.window_bytes = Some(window_bytes);
        self
    }

    /// Receive window of the stream in bytes, if it has a known one.
    #[must_use]
    pub fn window_bytes(&self) -> Option<u64> {
        self.window_bytes
    }

    /// Takes the connection apart, for those who drive the core by hand.
    ///
    /// The third part says why the stream ended ([`Guard::explain`]).
    #[must_use]
    pub fn into_parts(self) -> (Reader, Writer, Guard) {
        (self.reader, self.writer, self.guard)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("guard", &self.guard)
            .field("window_bytes", &self.window_bytes)
            .finish_non_exhaustive()
    }
}

/// What stays of a connection beside its two halves: the child process, if there is one.
///
/// Dropping it never kills the child: it may be the master of a shared SSH connection. The child ends by itself
/// once both halves of the stream are gone, and nobody waits for that.
pub struct Guard {
    child: Option<ChildGuard>,
}

impl Guard {
    /// Says why the stream ended before its time, as far as the transport knows.
    ///
    /// Waits up to `grace` for the child to end, so that what it had to say is complete. `None` when there is no
    /// child, or when it neither failed nor said anything.
    pub async fn explain(&mut self, grace: Duration) -> Option<ConnectError> {
        match &mut self.child {
            Some(child) => child.explain(grace).await,
            None => None,
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("child", &self.child.as_ref().map(ChildGuard::id))
            .finish()
    }
}
