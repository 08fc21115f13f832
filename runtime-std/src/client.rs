//! A session with a server, and what can be done with it.
//!
//! [`Client::connect`] takes a [`Connection`] and starts the core's loop as a task of `smol`'s global executor. Clones of
//! the client share the session, which ends well once the last of them and of the files and downloads made by them is dropped.
//! Every operation is cancelled by dropping its future.

mod config;
mod download;
mod error;
mod intake;
mod io;
mod read;
mod shelf;

use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use longhaul_core::driver::{self, Opened, Remote, RunError, Shared as _};
use longhaul_core::sftp::{Attrs, FileType};
use longhaul_core::{OpError, ProtocolError};
use smol::Timer;
use smol::future::FutureExt as _;
use smol::lock::OnceCell;

pub use self::config::Config;
pub use self::download::{Begin, Download, DownloadOptions};
pub use self::error::Error;
pub use self::read::RemoteFile;

use self::io::{Alarm, Hub, Stream};
use self::shelf::Shelves;
use crate::text::escaped;
use crate::transport::{ConnectError, Connection};

/// One read of the stream: a few replies of the usual size, and what a cache still holds.
const RECEIVE_LEN: usize = 512 << 10;

/// Room for requests: five hundred READs leave in one write.
const TRANSMIT_LEN: usize = 16 << 10;

/// How long the end of a connection may take to be explained by its child process.
const EXPLAIN_GRACE: Duration = Duration::from_secs(2);

/// A session with a server. Clones share it.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    remote: Remote<Hub>,
    shelves: Shelves,
    ending: Arc<OnceCell<Ending>>,
    config: Config,
}

/// Why a session ended that should have gone on.
#[derive(Debug)]
struct Ending {
    /// What the transport knows.
    explained: Option<ConnectError>,
    /// What the system said of the stream.
    failed: Option<std::io::Error>,
    /// Text that came in place of the server's first packet.
    banner: Option<String>,
}

impl Client {
    /// Begins a session over `connection`. That the server is no SFTP server, or that the login fails, is told by the first
    /// operation.
    #[must_use]
    pub fn connect(connection: Connection, config: Config) -> Self {
        let hub = Hub::new(config.engine(&connection));
        let shelves = Shelves::new(config.credit());
        let ending = Arc::new(OnceCell::new());
        let driver = drive(
            hub.clone(),
            connection,
            shelves.clone(),
            Arc::clone(&ending),
        );
        smol::spawn(driver).detach();
        let inner = Inner {
            remote: Remote::new(hub),
            shelves,
            ending,
            config,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Waits until the server has said that it is there. Operations need not wait for that.
    ///
    /// # Errors
    /// Why it is not.
    pub async fn ready(&self) -> Result<(), Error> {
        let result = self.inner.remote.ready().await;
        self.explained("the connection", result).await
    }

    /// Tells whether the server has said that it is there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let hub = self.inner.remote.shared();
        hub.with(|state| state.engine().is_ready())
    }

    /// Attributes of what `path` names, symbolic links followed.
    ///
    /// # Errors
    /// What the server declined with, or why there is no session.
    pub async fn stat(&self, path: impl AsRef<[u8]>) -> Result<Attrs, Error> {
        let path = path.as_ref();
        let name = escaped(path);
        self.limited(&name, self.inner.remote.stat(path)).await
    }

    /// Attributes of `path` itself, symbolic links not followed.
    ///
    /// # Errors
    /// As [`Self::stat`].
    pub async fn lstat(&self, path: impl AsRef<[u8]>) -> Result<Attrs, Error> {
        let path = path.as_ref();
        let name = escaped(path);
        self.limited(&name, self.inner.remote.lstat(path)).await
    }

    /// Opens a file for reading as a stream. Nothing is fetched until it is read.
    ///
    /// # Errors
    /// What the server declined with, why there is no session, or [`Error::Directory`].
    pub async fn read(&self, path: impl AsRef<[u8]>) -> Result<RemoteFile, Error> {
        let path = path.as_ref();
        let name = escaped(path);
        let opened = self.open(path, &name).await?;
        Ok(RemoteFile::new(self.clone(), name, opened))
    }

    /// Opens a file, told by `name` in errors, with its attributes.
    async fn open(&self, path: &[u8], name: &str) -> Result<Opened<Hub>, Error> {
        let is_directory = |attrs: &Attrs| attrs.file_type() == FileType::Directory;
        let directory = || Error::Directory {
            path: name.to_owned(),
        };
        match self
            .limited(name, self.inner.remote.open_with_attrs(path))
            .await
        {
            Ok(opened) if opened.attrs.as_ref().is_some_and(is_directory) => Err(directory()),
            Err(Error::Declined { path: of, error }) => {
                // Some servers open no directory, and call that a failure.
                match self.inner.remote.stat(path).await {
                    Ok(attrs) if is_directory(&attrs) => Err(directory()),
                    _ => Err(Error::Declined { path: of, error }),
                }
            }
            result => result,
        }
    }

    /// Carries an operation out within the time that one may take.
    async fn limited<T>(
        &self,
        name: &str,
        operation: impl Future<Output = Result<T, OpError>>,
    ) -> Result<T, Error> {
        let Some(after) = self.inner.config.operation_max else {
            let result = operation.await;
            return self.explained(name, result).await;
        };
        let limit = async {
            Timer::after(after).await;
            None
        };
        match async { Some(operation.await) }.or(limit).await {
            Some(result) => self.explained(name, result).await,
            None => Err(Error::Timeout {
                path: name.to_owned(),
                after: Some(after),
            }),
        }
    }

    /// Makes an error of what the core says, and of what the transport knows besides.
    async fn explained<T>(&self, name: &str, result: Result<T, OpError>) -> Result<T, Error> {
        let config = &self.inner.config;
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => Error::of(name, error, config.no_progress_max),
        };
        if let Error::Disconnected { path, cause: None } = error {
            return Err(self.lost(path).await);
        }
        // A file of its own may break the protocol, and the session goes on.
        let hub = self.inner.remote.shared();
        let is_over = hub.with(|state| state.engine().ended().is_some());
        let Error::Protocol { path, error, .. } = error else {
            return Err(error);
        };
        let banner = if is_over {
            self.inner.ending.wait().await.banner.clone()
        } else {
            None
        };
        if is_over && banner.is_none() && error == ProtocolError::EofInsidePacket {
            return Err(self.lost(path).await);
        }
        Err(Error::Protocol {
            path,
            error,
            banner,
        })
    }

    /// Why the connection ended.
    async fn lost(&self, path: String) -> Error {
        let ending = self.inner.ending.wait().await;
        match &ending.explained {
            Some(error) => Error::Connect(error.clone()),
            None => Error::Disconnected {
                path,
                cause: ending.failed.as_ref().map(again),
            },
        }
    }
}

/// An error of the system cannot be cloned, but be told again.
fn again(error: &std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => std::io::Error::new(error.kind(), error.to_string()),
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.remote.close();
    }
}

/// The task behind a client.
async fn drive(hub: Hub, connection: Connection, shelves: Shelves, ending: Arc<OnceCell<Ending>>) {
    let Connection {
        reader,
        writer,
        mut guard,
        ..
    } = connection;
    let mut stream = Stream { reader, writer };
    let mut receive = vec![0; RECEIVE_LEN];
    let mut transmit = vec![0; TRANSMIT_LEN];
    let result = driver::run(
        &hub,
        &mut stream,
        &mut Alarm::new(),
        &mut receive,
        &mut transmit,
        |op, offset, bytes| shelves.deliver(op, offset, bytes),
    )
    .await;
    // Then a child process ends, and can be asked why.
    drop(stream);
    let explained = match &result {
        Ok(()) => None,
        Err(_) => guard.explain(EXPLAIN_GRACE).await,
    };
    let banner = hub.with(|state| escaped(state.engine().banner().trim_ascii()));
    let ended = Ending {
        explained,
        failed: match result {
            Err(RunError::Transport(error)) => Some(error),
            Ok(()) | Err(_) => None,
        },
        banner: (!banner.is_empty()).then_some(banner),
    };
    // Nobody else sets it.
    let _ = ending.set(ended).await;
}

#[cfg(test)]
mod tests;
