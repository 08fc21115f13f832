//! Downloads to local files.

use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use longhaul_core::OpError;
use longhaul_core::download::DownloadConfig;
use longhaul_core::driver::File;
use longhaul_core::engine::Progress;
use smol::{Timer, unblock};

use super::intake::Intake;
use super::io::Hub;
use super::shelf::{Piece, Want};
use super::{Client, Error};
use crate::Target;
use crate::local::{Fresh, Kept, Part, PartWriter, Source, Start, Stopped, resolve};

/// How often progress is told while little arrives.
const TICK: Duration = Duration::from_millis(100);

/// Pieces that are carried to the writer before progress is told and the mark may move: with a slow disk there are
/// always more.
const TURN_PIECES: u32 = 8;

/// How a download to a local file begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DownloadOptions {
    /// Go on with what an interrupted download left, if the source is the same as far as size, modification time and the
    /// end of what was left can tell.
    pub resume: bool,
}

impl DownloadOptions {
    /// Sets [`Self::resume`].
    #[must_use]
    pub fn with_resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }
}

/// Where a download begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Begin {
    /// At zero.
    Fresh(Fresh),
    /// At this offset: what is before it was there, and its end is what the server has.
    Resumed(u64),
}

/// A download to a local file, which has begun but moves only within [`Self::run`].
///
/// The bytes go to a part file beside the target, which gets the target's name once it is whole. Dropping the download leaves
/// the part as a killed process would; [`Self::keep`] leaves it in good order.
pub struct Download {
    client: Client,
    url: String,
    path: PathBuf,
    size: Option<u64>,
    begin: Begin,
    /// Closed when the download is dropped or has ended.
    file: Option<File<Hub>>,
    intake: Option<Intake>,
    /// Taken from the shelf and not yet given to the writer.
    waiting: VecDeque<Piece>,
    writer: Option<PartWriter>,
    /// What a failure of the writer has left, until [`Self::keep`] tells it.
    kept: Option<Kept>,
    /// All bytes below it were taken from the shelf.
    contiguous: u64,
    arrived: u64,
    ended: Option<u64>,
}

enum Step {
    Finished(Result<u64, OpError>),
    Shelf,
    Tick,
}

impl Client {
    /// Downloads `target` to `local`, a file or a directory, and returns the number of bytes of the file.
    ///
    /// If it fails, what has arrived is kept beside `local` for a later [`DownloadOptions::resume`].
    ///
    /// # Errors
    /// By who is to blame; nothing stands under the final name then, except what was there before.
    pub async fn download(&self, target: &Target, local: impl AsRef<Path>) -> Result<u64, Error> {
        let options = DownloadOptions::default();
        let mut download = self.begin_download(target, local, options).await?;
        let result = download.run(|_| ()).await;
        if result.is_err() {
            download.keep().await;
        }
        result
    }

    /// Opens both files of a download and finds out where it begins. The host of `target` is not looked at: it
    /// belongs to the connection.
    ///
    /// # Errors
    /// As [`Self::download`].
    pub async fn begin_download(
        &self,
        target: &Target,
        local: impl AsRef<Path>,
        options: DownloadOptions,
    ) -> Result<Download, Error> {
        let url = target.to_string();
        let local = local.as_ref().to_owned();
        let name = target.file_name().map(<[u8]>::to_vec);
        // What is wrong here need not wait for the server.
        let path = unblock(move || resolve(&local, name.as_deref())).await?;
        let opened = self.open(target.path(), &url).await?;
        let attrs = opened.attrs.unwrap_or_default();
        let source = Source {
            url: url.clone(),
            size: attrs.size,
            mtime: attrs.mtime().map(u64::from),
        };
        let (mut part, start) = {
            let path = path.clone();
            unblock(move || Part::open(&path, source, options.resume)).await?
        };
        let begin = match start {
            Start::Fresh(fresh) => Begin::Fresh(fresh),
            Start::Resume { mark, tail } => {
                if self.has(&opened.file, &url, mark, &tail).await? {
                    Begin::Resumed(mark)
                } else {
                    part = unblock(move || part.restart().map(|()| part)).await?;
                    Begin::Fresh(Fresh::Changed)
                }
            }
        };
        let from = match begin {
            Begin::Fresh(_) => 0,
            Begin::Resumed(mark) => mark,
        };
        let config = DownloadConfig::default()
            .with_start(from)
            .with_size(attrs.size);
        let intake = self.intake(&opened.file, &url, config).await?;
        Ok(Download {
            client: self.clone(),
            url,
            path,
            size: attrs.size,
            begin,
            file: Some(opened.file),
            intake: Some(intake),
            waiting: VecDeque::new(),
            writer: Some(PartWriter::new(part)),
            kept: None,
            contiguous: from,
            arrived: from,
            ended: None,
        })
    }

    async fn intake(
        &self,
        file: &File<Hub>,
        url: &str,
        config: DownloadConfig,
    ) -> Result<Intake, Error> {
        let inner = &self.inner;
        let config = config.with_serial(inner.config.serial);
        let (remote, shelves) = (inner.remote.clone(), inner.shelves.clone());
        let begun = Intake::begin(remote, shelves, file, config).await;
        self.explained(url, begun).await
    }

    /// Tells whether the file has `tail` right before `mark`.
    async fn has(
        &self,
        file: &File<Hub>,
        url: &str,
        mark: u64,
        tail: &[u8],
    ) -> Result<bool, Error> {
        let start = mark.saturating_sub(tail.len() as u64);
        let config = DownloadConfig::default()
            .with_start(start)
            .with_end(Some(mark));
        let mut intake = self.intake(file, url, config).await?;
        let end = poll_fn(|cx| intake.poll_finished(cx)).await;
        let end = self.explained(url, end).await?;
        let mut found = Vec::new();
        while let Some(piece) = intake.take_at(start + found.len() as u64) {
            found.extend_from_slice(&piece.bytes);
        }
        Ok(end == mark && found == tail)
    }
}

impl Download {
    /// The local file that it is for.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the source as the server told it, in bytes: a hint.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Where it begins.
    #[must_use]
    pub fn begin(&self) -> Begin {
        self.begin
    }

    /// Carries the download out and gives the file its name; returns the file's size in bytes. `progress` is called about ten
    /// times a second or more, with the number of bytes that are here. Dropping the future pauses the download: it can be run
    /// again.
    ///
    /// # Errors
    /// By who is to blame. [`Self::keep`] may follow.
    pub async fn run(&mut self, mut progress: impl FnMut(u64)) -> Result<u64, Error> {
        let mut tick = Timer::interval(TICK);
        while self.ended.is_none() {
            let step = self.next(&mut tick).await;
            let all = matches!(step, Step::Finished(_));
            if self.carry(all).await.is_err() {
                return Err(self.local_error().await);
            }
            progress(self.arrived);
            if let Step::Finished(end) = step {
                let end = self.client.explained(&self.url, end).await?;
                self.ended = Some(end);
            }
        }
        self.finish().await
    }

    async fn next(&mut self, tick: &mut Timer) -> Step {
        let Some(intake) = &mut self.intake else {
            return Step::Finished(Err(OpError::Closed));
        };
        poll_fn(|cx| {
            if let Poll::Ready(end) = intake.poll_finished(cx) {
                return Poll::Ready(Step::Finished(end));
            }
            if intake.poll_shelf(Want::Full, cx).is_ready() {
                return Poll::Ready(Step::Shelf);
            }
            let mut tick = Pin::new(&mut *tick);
            smol::stream::Stream::poll_next(tick.as_mut(), cx).map(|_| Step::Tick)
        })
        .await
    }

    /// Carries pieces from the shelf to the writer, one by one: what the writer has no room for stays on the shelf, and counts
    /// against the window. If this is dropped halfway, nothing is lost.
    async fn carry(&mut self, all: bool) -> Result<(), Stopped> {
        // Before anything is taken: what arrives meanwhile is above the mark.
        let progress = self.look();
        self.write().await?;
        let mut turns = 0..TURN_PIECES;
        while (all || turns.next().is_some()) && self.take(all) {
            self.write().await?;
        }
        let lowest = self.intake.as_ref().and_then(Intake::lowest);
        let mark = progress.contiguous.min(lowest.unwrap_or(u64::MAX));
        self.contiguous = self.contiguous.max(mark);
        match &mut self.writer {
            Some(writer) => writer.mark(self.contiguous).await,
            None => Err(Stopped),
        }
    }

    /// Looks how far it is.
    fn look(&mut self) -> Progress {
        let progress = self.intake.as_ref().map(Intake::progress);
        let progress = progress.unwrap_or_default();
        let from = match self.begin {
            Begin::Fresh(_) => 0,
            Begin::Resumed(mark) => mark,
        };
        self.arrived = self.arrived.max(from + progress.arrived);
        progress
    }

    /// Takes a piece from the shelf, if one is there.
    fn take(&mut self, all: bool) -> bool {
        let Some(intake) = &self.intake else {
            return false;
        };
        if let Some(spare) = self.writer.as_mut().and_then(PartWriter::take_spare) {
            intake.recycle(spare);
        }
        let piece = intake.take_piece(all);
        let is_one = piece.is_some();
        self.waiting.extend(piece);
        is_one
    }

    /// Gives the writer what was taken.
    async fn write(&mut self) -> Result<(), Stopped> {
        let Some(writer) = &mut self.writer else {
            return Err(Stopped);
        };
        while let Some(piece) = self.waiting.front_mut() {
            writer.write(piece.offset, &mut piece.bytes).await?;
            self.waiting.pop_front();
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<u64, Error> {
        let path = self.url.clone();
        let (Some(end), Some(writer)) = (self.ended, self.writer.take()) else {
            return Err(Error::Cancelled { path });
        };
        // The server may close the file while the last bytes are being written here.
        self.intake = None;
        self.file = None;
        match writer.finish(end).await {
            Ok(()) => Ok(end),
            Err(kept) => Err(self.failed(kept)),
        }
    }

    /// Why the writer has stopped.
    async fn local_error(&mut self) -> Error {
        match self.keep().await {
            Some(kept) => self.failed(kept),
            None => Error::Cancelled {
                path: self.url.clone(),
            },
        }
    }

    /// Takes the error out of what is left, and remembers the rest.
    fn failed(&mut self, mut kept: Kept) -> Error {
        let error = kept.error.take();
        self.kept = Some(kept);
        error.map_or_else(
            || Error::Cancelled {
                path: self.url.clone(),
            },
            Error::Local,
        )
    }

    /// Stops the download and leaves the part in good order for a later [`DownloadOptions::resume`]; if nothing worth that
    /// has arrived, it is removed. `None` if nothing is left to keep, since the download has ended. After a local error,
    /// which [`Self::run`] has told, this tells once what that has left.
    pub async fn keep(&mut self) -> Option<Kept> {
        // Closed first, so that no more comes; a writer that has stopped tells why below.
        self.file = None;
        let _ = self.carry(true).await;
        self.intake = None;
        let Some(writer) = self.writer.take() else {
            return self.kept.take();
        };
        Some(writer.keep(self.contiguous).await)
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("url", &self.url)
            .field("path", &self.path)
            .field("contiguous", &self.contiguous)
            .finish_non_exhaustive()
    }
}
