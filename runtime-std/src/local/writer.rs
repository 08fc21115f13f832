//! From arriving bytes to the part file, without making the executor wait for a disk.
//!
//! One worker thread writes pieces of up to 1 MiB, and gives their buffers back. A bounded queue lies between: when the disk
//! is slower than the link, [`PartWriter::write`] waits, and the session asks for less.

use std::path::PathBuf;

use smol::channel::{Receiver, Sender, bounded};
use smol::{Task, unblock};

use super::{LocalError, Part};

/// Jobs that wait for the worker or are under way. With pieces of 1 MiB: 4 MiB.
const JOBS_MAX: usize = 4;

/// The mark is recorded each time that it has moved by this, so a killed process loses no more than this.
const MARK_STEP_BYTES: u64 = 8 << 20;

#[derive(Debug)]
enum Job {
    Mark(u64),
    Write(u64, Vec<u8>),
}

/// Writes one download. Dropping a future of it loses nothing that it was given.
#[derive(Debug)]
pub(crate) struct PartWriter {
    /// The last mark that was given to the worker.
    mark: u64,
    jobs: Sender<Job>,
    /// Jobs that the worker has not answered.
    waiting: usize,
    /// One answer for each job: the buffer of a piece, empty.
    done: Receiver<Option<Vec<u8>>>,
    spare: Vec<Vec<u8>>,
    worker: Task<(Part, Result<(), LocalError>)>,
}

/// What is left of a download that was stopped.
#[derive(Debug)]
#[non_exhaustive]
pub struct Kept {
    /// The part file.
    pub path: PathBuf,
    /// Bytes at its beginning from which a resume goes on; 0 if there is no part.
    pub bytes: u64,
    /// What went wrong while writing, if anything did.
    pub error: Option<LocalError>,
}

impl PartWriter {
    /// Starts the worker. Bytes below the part's mark need not be written again.
    pub(crate) fn new(part: Part) -> Self {
        let (jobs, queue) = bounded(JOBS_MAX);
        let (answers, done) = bounded(JOBS_MAX);
        let mark = part.mark();
        let worker = unblock(move || work(part, &queue, &answers));
        Self {
            mark,
            jobs,
            waiting: 0,
            done,
            spare: Vec::new(),
            worker,
        }
    }

    /// Takes a piece for `offset` of the file, and leaves `piece` empty.
    ///
    /// An error means that the worker has stopped; [`Self::keep`] tells its cause.
    pub(crate) async fn write(&mut self, offset: u64, piece: &mut Vec<u8>) -> Result<(), Stopped> {
        self.room().await?;
        self.put(Job::Write(offset, core::mem::take(piece)))
    }

    /// Says that all bytes below `contiguous` have been given to [`Self::write`]. Cheap enough to call at each step.
    pub(crate) async fn mark(&mut self, contiguous: u64) -> Result<(), Stopped> {
        if contiguous.saturating_sub(self.mark) < MARK_STEP_BYTES {
            return Ok(());
        }
        self.send_mark(contiguous).await
    }

    /// An empty buffer that has done its work.
    pub(crate) fn take_spare(&mut self) -> Option<Vec<u8>> {
        while let Ok(answer) = self.done.try_recv() {
            self.handle_done(answer);
        }
        self.spare.pop()
    }

    async fn send_mark(&mut self, contiguous: u64) -> Result<(), Stopped> {
        self.room().await?;
        self.mark = contiguous;
        self.put(Job::Mark(contiguous))
    }

    /// Waits until the worker can be given a job.
    async fn room(&mut self) -> Result<(), Stopped> {
        while self.waiting >= JOBS_MAX {
            let answer = self.done.recv().await.map_err(|_| Stopped)?;
            self.handle_done(answer);
        }
        Ok(())
    }

    fn handle_done(&mut self, answer: Option<Vec<u8>>) {
        self.waiting = self.waiting.saturating_sub(1);
        self.spare.extend(answer);
    }

    fn put(&mut self, job: Job) -> Result<(), Stopped> {
        // There is room, so this fails only once the worker has stopped.
        self.jobs.try_send(job).map_err(|_| Stopped)?;
        self.waiting += 1;
        Ok(())
    }

    /// Writes the rest and gives the file, which is `size` bytes long, its final name.
    ///
    /// If that fails, tells what is left instead.
    pub(crate) async fn finish(self, size: u64) -> Result<(), Kept> {
        self.jobs.close();
        let (mut part, result) = self.worker.await;
        unblock(move || match result.and_then(|()| part.finish(size)) {
            Ok(()) => Ok(()),
            Err(error) => Err(leave(part, Some(error))),
        })
        .await
    }

    /// Writes the rest and leaves the part with a state from which a later download can go on.
    ///
    /// `contiguous` is as for [`Self::mark`]. If nothing worth keeping has arrived, the part is removed.
    pub(crate) async fn keep(mut self, contiguous: u64) -> Kept {
        let _ = self.send_mark(contiguous.max(self.mark)).await;
        self.jobs.close();
        let (part, result) = self.worker.await;
        unblock(move || leave(part, result.err())).await
    }
}

/// Makes the mark durable, or removes a part without one. The first error counts.
fn leave(mut part: Part, error: Option<LocalError>) -> Kept {
    let result = if part.mark() > 0 {
        part.record_synced()
    } else {
        part.discard()
    };
    Kept {
        path: part.path().to_owned(),
        bytes: part.mark(),
        error: error.or_else(|| result.err()),
    }
}

/// The worker has met an error and writes no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped;

fn work(
    mut part: Part,
    queue: &Receiver<Job>,
    answers: &Sender<Option<Vec<u8>>>,
) -> (Part, Result<(), LocalError>) {
    while let Ok(job) = queue.recv_blocking() {
        let (result, buffer) = match job {
            Job::Write(offset, mut piece) => {
                let result = part.write_at(offset, &piece);
                piece.clear();
                (result, Some(piece))
            }
            Job::Mark(0) => (Ok(()), None),
            Job::Mark(mark) => (part.record(mark, false), None),
        };
        if let Err(error) = result {
            queue.close();
            return (part, Err(error));
        }
        // One answer for each job that waits: there is room, unless nobody listens any more.
        let _ = answers.try_send(buffer);
    }
    (part, Ok(()))
}

#[cfg(test)]
mod tests;
