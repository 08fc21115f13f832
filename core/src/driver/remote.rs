//! The applications' side: what follows one another on a session, as plain `async fn`.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_lite::future::{poll_fn, zip};

use super::{Shared, State};
use crate::download::DownloadConfig;
use crate::engine::{Command, OpId, Outcome, Progress};
use crate::error::{OpError, SubmitError};
use crate::sftp::{Attrs, HandleKey};
use crate::time::Instant;

/// The server, as an application sees it. Clones share the session.
#[derive(Clone, Debug)]
pub struct Remote<S: Shared> {
    shared: S,
}

impl<S: Shared> Remote<S> {
    /// Makes it of what the loop was given.
    pub fn new(shared: S) -> Self {
        Self { shared }
    }

    /// The shared state.
    pub fn shared(&self) -> &S {
        &self.shared
    }

    /// Waits until the server has said VERSION.
    ///
    /// # Errors
    /// [`OpError::Closed`] or what ended the session.
    pub async fn ready(&self) -> Result<(), OpError> {
        poll_fn(|cx| {
            self.shared.with(|state| {
                if let Some(error) = ended(state) {
                    return Poll::Ready(Err(error));
                }
                if state.engine.is_ready() {
                    return Poll::Ready(Ok(()));
                }
                state.waiters.register(cx.waker());
                Poll::Pending
            })
        })
        .await
    }

    /// Attributes of what `path` names, symbolic links followed.
    ///
    /// # Errors
    /// What the server declined with, or why the session ended.
    pub async fn stat(&self, path: &[u8]) -> Result<Attrs, OpError> {
        attrs(self.request(Command::Stat(path)).await?)
    }

    /// Attributes of `path` itself, symbolic links not followed.
    ///
    /// # Errors
    /// As [`Self::stat`].
    pub async fn lstat(&self, path: &[u8]) -> Result<Attrs, OpError> {
        attrs(self.request(Command::Lstat(path)).await?)
    }

    /// Opens a file for reading. It is closed when the [`File`] is dropped.
    ///
    /// # Errors
    /// As [`Self::stat`].
    pub async fn open(&self, path: &[u8]) -> Result<File<S>, OpError> {
        match self.request(Command::Open(path)).await? {
            Outcome::Handle(key) => Ok(File {
                remote: self.clone(),
                key,
            }),
            Outcome::Attrs(_) | Outcome::Fetched(_) => Err(OpError::Closed),
        }
    }

    /// Opens a file and asks for its attributes, in one round trip.
    ///
    /// STAT goes first: some servers allow none while a file is open. Where it is declined, the file is
    /// readable all the same, and its size unknown.
    ///
    /// # Errors
    /// Why the file could not be opened.
    pub async fn open_with_attrs(&self, path: &[u8]) -> Result<Opened<S>, OpError> {
        let (attrs, file) = zip(self.stat(path), self.open(path)).await;
        Ok(Opened {
            file: file?,
            attrs: attrs.ok(),
        })
    }

    /// `bytes` that were delivered for `op` need no memory any more.
    pub fn consume(&self, op: OpId, bytes: u64) {
        self.command(|state, now| state.engine.consume(now, op, bytes));
    }

    /// Asks the loop to end the session well; it returns once that is done. What goes on is cancelled.
    pub fn close(&self) {
        self.command(|state, now| {
            state.engine.close(now);
            state.wake_all();
        });
    }

    fn command<R>(&self, f: impl FnOnce(&mut State, Instant) -> R) -> R {
        self.shared.with(|state| {
            let result = f(state, self.shared.now());
            state.driver.wake();
            result
        })
    }

    /// Submits once there is room.
    async fn submit(
        &self,
        mut submit: impl FnMut(&mut State, Instant) -> Result<OpId, SubmitError>,
    ) -> Result<Pending<S>, OpError> {
        let id = poll_fn(|cx| {
            self.command(|state, now| match submit(state, now) {
                Ok(id) => Poll::Ready(Ok(id)),
                Err(SubmitError::Full) => {
                    state.waiters.register(cx.waker());
                    Poll::Pending
                }
                Err(SubmitError::Closed | SubmitError::HandleUnknown) => {
                    Poll::Ready(Err(ended(state).unwrap_or(OpError::Closed)))
                }
                Err(SubmitError::PathTooLong) => Poll::Ready(Err(OpError::PathTooLong)),
            })
        })
        .await?;
        Ok(Pending {
            remote: self.clone(),
            id,
        })
    }

    async fn request(&self, command: Command<'_>) -> Result<Outcome, OpError> {
        self.submit(|state, now| state.engine.submit(now, command))
            .await?
            .await
    }
}

fn attrs(outcome: Outcome) -> Result<Attrs, OpError> {
    match outcome {
        Outcome::Attrs(attrs) => Ok(attrs),
        Outcome::Fetched(_) | Outcome::Handle(_) => Err(OpError::Closed),
    }
}

fn ended(state: &State) -> Option<OpError> {
    state.engine.ended().map(OpError::from)
}

/// An operation that somebody waits for. Dropping it cancels it.
#[derive(Debug)]
struct Pending<S: Shared> {
    remote: Remote<S>,
    id: OpId,
}

impl<S: Shared> Future for Pending<S> {
    type Output = Result<Outcome, OpError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.remote
            .shared
            .with(|state| match state.engine.take(self.id) {
                Some(outcome) => {
                    state.waiters.wake();
                    Poll::Ready(outcome)
                }
                None => {
                    if let Some(waker) = state.ops.get_mut(self.id.index()) {
                        waker.register(cx.waker());
                    }
                    Poll::Pending
                }
            })
    }
}

impl<S: Shared> Drop for Pending<S> {
    fn drop(&mut self) {
        self.remote.command(|state, now| {
            state.engine.cancel(now, self.id);
            match state.engine.take(self.id) {
                // Nobody will ever hear of this handle.
                Some(Ok(Outcome::Handle(handle))) => state.engine.release(now, handle),
                Some(_) => {}
                None => return,
            }
            state.waiters.wake();
        });
    }
}

/// An open file and what was told of it.
#[derive(Debug)]
pub struct Opened<S: Shared> {
    /// The file.
    pub file: File<S>,
    /// Its attributes, unless the server declined to tell them.
    pub attrs: Option<Attrs>,
}

/// A file open for reading. Dropping it closes it.
#[derive(Debug)]
pub struct File<S: Shared> {
    remote: Remote<S>,
    key: HandleKey,
}

impl<S: Shared> File<S> {
    /// Attributes of the open file.
    ///
    /// # Errors
    /// What the server declined with, or why the session ended.
    pub async fn fstat(&self) -> Result<Attrs, OpError> {
        attrs(self.remote.request(Command::Fstat(self.key)).await?)
    }

    /// Begins to fetch a range; its bytes go to the loop's `deliver`.
    ///
    /// # Errors
    /// Why the session ended.
    pub async fn download(&self, config: DownloadConfig) -> Result<Transfer<S>, OpError> {
        let submit = |state: &mut State, now| state.engine.download(now, self.key, config);
        Ok(Transfer {
            pending: self.remote.submit(submit).await?,
        })
    }
}

impl<S: Shared> Drop for File<S> {
    fn drop(&mut self) {
        self.remote
            .command(|state, now| state.engine.release(now, self.key));
    }
}

/// A range that is being fetched. Dropping it cancels it; nothing is delivered for it after that.
#[derive(Debug)]
pub struct Transfer<S: Shared> {
    pending: Pending<S>,
}

impl<S: Shared> Transfer<S> {
    /// The operation that `deliver` is given.
    pub fn op(&self) -> OpId {
        self.pending.id
    }

    /// How far it is. `None` once its end was taken.
    pub fn progress(&self) -> Option<Progress> {
        self.pending
            .remote
            .shared
            .with(|state| state.engine.progress(self.pending.id))
    }

    /// Waits for the end: the end of the range that was fetched and delivered.
    ///
    /// # Errors
    /// Why it failed.
    pub async fn finished(&mut self) -> Result<u64, OpError> {
        poll_fn(|cx| self.poll_finished(cx)).await
    }

    /// As [`Self::finished`], for those who also wait for something else. Not to be called again once it was ready.
    ///
    /// # Errors
    /// Why it failed.
    pub fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<Result<u64, OpError>> {
        Pin::new(&mut self.pending)
            .poll(cx)
            .map(|outcome| match outcome? {
                Outcome::Fetched(end) => Ok(end),
                Outcome::Attrs(_) | Outcome::Handle(_) => Err(OpError::Closed),
            })
    }
}
