//! A remote file as a stream.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, SeekFrom};
use std::sync::Arc;

use longhaul_core::OpError;
use longhaul_core::download::DownloadConfig;
use longhaul_core::driver::{File, Opened};
use longhaul_core::sftp::Attrs;
use smol::io::{AsyncRead, AsyncSeek};

use super::intake::Intake;
use super::io::Hub;
use super::shelf::{Piece, Want};
use super::{Client, Error};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A file on the server, read as a stream: `AsyncRead` and `AsyncSeek` of `futures-io`.
///
/// Reading fetches ahead as far as the window allows, from the position on, to the end of the file or to
/// [`Self::with_end`]. Seeking elsewhere starts over from there; dropping it cancels everything and closes the file.
pub struct RemoteFile {
    client: Client,
    name: String,
    file: Arc<File<Hub>>,
    attrs: Option<Attrs>,
    position: u64,
    end: Option<u64>,
    phase: Phase,
    /// What lies at `position`, and how much of it was read.
    piece: Piece,
    taken: usize,
    size: Option<Boxed<Result<Attrs, OpError>>>,
}

enum Phase {
    Idle,
    Begins(Boxed<Result<Intake, OpError>>),
    Goes(Intake),
    /// Nothing more comes; the rest lies on the shelf.
    Ends(Intake, Option<OpError>),
    Failing(Boxed<Error>),
    Failed,
}

impl RemoteFile {
    pub(super) fn new(client: Client, name: String, opened: Opened<Hub>) -> Self {
        Self {
            client,
            name,
            file: Arc::new(opened.file),
            attrs: opened.attrs,
            position: 0,
            end: None,
            phase: Phase::Idle,
            piece: Piece::default(),
            taken: 0,
            size: None,
        }
    }

    /// Attributes from when it was opened, unless the server declined to tell them.
    #[must_use]
    pub fn attrs(&self) -> Option<&Attrs> {
        self.attrs.as_ref()
    }

    /// Makes the file seem to end at `end`, so that nothing beyond is fetched.
    #[must_use]
    pub fn with_end(mut self, end: u64) -> Self {
        self.end = Some(end);
        self.phase = Phase::Idle;
        self
    }

    fn begin(&self) -> Boxed<Result<Intake, OpError>> {
        let size = self.attrs.and_then(|attrs| attrs.size);
        let config = DownloadConfig::default()
            .with_start(self.position)
            .with_end(self.end)
            .with_size(size)
            .with_serial(self.client.inner.config.serial);
        let file = Arc::clone(&self.file);
        let inner = &self.client.inner;
        let (remote, shelves) = (inner.remote.clone(), inner.shelves.clone());
        Box::pin(async move { Intake::begin(remote, shelves, &file, config).await })
    }

    /// Ready once `piece` has something to read, or with `false` at the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Error>> {
        loop {
            if self.taken < self.piece.bytes.len() {
                return Poll::Ready(Ok(true));
            }
            match &mut self.phase {
                Phase::Idle if self.end.is_some_and(|end| self.position >= end) => {
                    return Poll::Ready(Ok(false));
                }
                Phase::Idle => self.phase = Phase::Begins(self.begin()),
                Phase::Begins(begin) => match ready!(begin.as_mut().poll(cx)) {
                    Ok(intake) => self.phase = Phase::Goes(intake),
                    Err(error) => self.fail(error),
                },
                Phase::Goes(intake) => {
                    if intake.poll_shelf(Want::At(self.position), cx).is_ready() {
                        self.take();
                        continue;
                    }
                    let end = ready!(intake.poll_finished(cx));
                    let Phase::Goes(intake) = core::mem::replace(&mut self.phase, Phase::Failed)
                    else {
                        continue;
                    };
                    self.phase = Phase::Ends(intake, end.err());
                }
                Phase::Ends(_, error) => {
                    let error = error.clone();
                    if !self.take() {
                        match error {
                            Some(error) => self.fail(error),
                            None => return Poll::Ready(Ok(false)),
                        }
                    }
                }
                Phase::Failing(error) => {
                    let error = ready!(error.as_mut().poll(cx));
                    self.phase = Phase::Failed;
                    return Poll::Ready(Err(error));
                }
                Phase::Failed => {
                    let path = self.name.clone();
                    return Poll::Ready(Err(Error::Cancelled { path }));
                }
            }
        }
    }

    /// Fetches what lies at the position; tells whether anything does.
    fn take(&mut self) -> bool {
        let (Phase::Goes(intake) | Phase::Ends(intake, _)) = &self.phase else {
            return false;
        };
        let Some(piece) = intake.take_at(self.position) else {
            return false;
        };
        let used = core::mem::replace(&mut self.piece, piece);
        intake.recycle(used.bytes);
        self.taken = 0;
        true
    }

    /// Finds out why, which may take a moment.
    fn fail(&mut self, error: OpError) {
        let (client, name) = (self.client.clone(), self.name.clone());
        self.phase = Phase::Failing(Box::pin(async move {
            match client.explained(&name, Err::<(), _>(error)).await {
                Err(error) => error,
                Ok(()) => Error::Cancelled { path: name },
            }
        }));
    }

    fn move_to(&mut self, position: u64) {
        if position != self.position {
            self.position = position;
            self.phase = Phase::Idle;
            self.piece = Piece::default();
            self.taken = 0;
        }
    }

    fn poll_size(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let size = self.size.get_or_insert_with(|| {
            let file = Arc::clone(&self.file);
            Box::pin(async move { file.fstat().await })
        });
        let attrs = ready!(size.as_mut().poll(cx));
        self.size = None;
        let unknown = || io::Error::new(io::ErrorKind::Unsupported, "the server tells no size");
        Poll::Ready(attrs.ok().and_then(|attrs| attrs.size).ok_or_else(unknown))
    }
}

impl AsyncRead for RemoteFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if buf.is_empty() || !ready!(this.poll_piece(cx))? {
            return Poll::Ready(Ok(0));
        }
        let rest = this.piece.bytes.get(this.taken..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        let ((to, _), (from, _)) = (buf.split_at_mut(len), rest.split_at(len));
        to.copy_from_slice(from);
        this.taken += len;
        this.position += len as u64;
        Poll::Ready(Ok(len))
    }
}

impl AsyncSeek for RemoteFile {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let this = &mut *self;
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => this.position.checked_add_signed(by),
            SeekFrom::End(by) => {
                let end = match this.end {
                    Some(end) => end,
                    None => ready!(this.poll_size(cx))?,
                };
                end.checked_add_signed(by)
            }
        };
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "a position before the start");
        this.move_to(position.ok_or_else(invalid)?);
        Poll::Ready(Ok(this.position))
    }
}

impl fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteFile")
            .field("name", &self.name)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
