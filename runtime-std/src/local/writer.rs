//! From arriving bytes to the part file, without making the executor wait for a disk.
//!
//! Fragments are gathered to pieces of up to 1 MiB, which one worker thread writes. A bounded queue lies between: when
//! the disk is slower than the link, [`PartWriter::write`] waits, and the session asks for less.

use std::path::PathBuf;

use smol::channel::{Receiver, Sender, bounded};
use smol::{Task, unblock};

use super::{LocalError, Part};

/// Largest single write. Smaller ones cost system calls; larger ones only memory.
const PIECE_LEN_MAX: usize = 1 << 20;

/// Pieces that wait for the worker. With the one being filled and the one being written: 6 MiB.
const QUEUE_LEN_MAX: usize = 4;

/// The mark is recorded each time that it has moved by this, so a killed process loses no more than this.
const MARK_STEP_BYTES: u64 = 8 << 20;

enum Job {
    Mark(u64),
    Write(u64, Vec<u8>),
}

/// Writes one download.
pub(crate) struct PartWriter {
    piece: Vec<u8>,
    /// Where `piece` goes in the file.
    offset: u64,
    /// The last mark that was given to the worker.
    mark: u64,
    jobs: Sender<Job>,
    spare: Receiver<Vec<u8>>,
    worker: Task<(Part, Result<(), LocalError>)>,
}

/// What is left of a download that was stopped.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The part file.
    pub(crate) path: PathBuf,
    /// Bytes at its beginning from which a resume goes on.
    pub(crate) bytes: u64,
    /// What went wrong while writing, if anything did.
    pub(crate) error: Option<LocalError>,
}

impl PartWriter {
    /// Starts the worker. Bytes below the part's mark need not be written again.
    pub(crate) fn new(part: Part) -> Self {
        let (jobs, queue) = bounded(QUEUE_LEN_MAX);
        let (used, spare) = bounded(QUEUE_LEN_MAX + 1);
        let mark = part.mark();
        let worker = unblock(move || work(part, &queue, &used));
        Self {
            piece: Vec::new(),
            offset: 0,
            mark,
            jobs,
            spare,
            worker,
        }
    }

    /// Takes bytes for `offset` of the file.
    ///
    /// An error means that the worker has stopped; [`Self::keep`] tells its cause.
    pub(crate) async fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Stopped> {
        let (mut offset, mut bytes) = (offset, bytes);
        while !bytes.is_empty() {
            let end = self.offset + self.piece.len() as u64;
            if self.piece.len() == PIECE_LEN_MAX || (end != offset && !self.piece.is_empty()) {
                self.flush().await?;
            }
            if self.piece.is_empty() {
                self.offset = offset;
                self.piece.reserve_exact(PIECE_LEN_MAX);
            }
            let len = bytes.len().min(PIECE_LEN_MAX - self.piece.len());
            let (now, later) = bytes.split_at(len);
            self.piece.extend_from_slice(now);
            bytes = later;
            offset += len as u64;
        }
        Ok(())
    }

    /// Says that all bytes below `contiguous` have been given to [`Self::write`]. Cheap enough to call at each step.
    pub(crate) async fn mark(&mut self, contiguous: u64) -> Result<(), Stopped> {
        if contiguous.saturating_sub(self.mark) < MARK_STEP_BYTES {
            return Ok(());
        }
        self.send_mark(contiguous).await
    }

    async fn send_mark(&mut self, contiguous: u64) -> Result<(), Stopped> {
        self.flush().await?;
        self.mark = contiguous;
        self.jobs
            .send(Job::Mark(contiguous))
            .await
            .map_err(|_| Stopped)
    }

    async fn flush(&mut self) -> Result<(), Stopped> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let spare = self.spare.try_recv().unwrap_or_default();
        let piece = core::mem::replace(&mut self.piece, spare);
        self.jobs
            .send(Job::Write(self.offset, piece))
            .await
            .map_err(|_| Stopped)
    }

    /// Writes the rest and gives the file, which is `size` bytes long, its final name.
    ///
    /// If that fails, tells what is left instead.
    pub(crate) async fn finish(mut self, size: u64) -> Result<(), Kept> {
        // If this fails the worker has stopped, and tells why below.
        let _ = self.flush().await;
        self.jobs.close();
        let (part, result) = self.worker.await;
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
    used: &Sender<Vec<u8>>,
) -> (Part, Result<(), LocalError>) {
    while let Ok(job) = queue.recv_blocking() {
        let result = match job {
            Job::Write(offset, mut piece) => {
                let result = part.write_at(offset, &piece);
                piece.clear();
                // Full or closed: then the buffer is simply freed.
                let _ = used.try_send(piece);
                result
            }
            Job::Mark(0) => Ok(()),
            Job::Mark(mark) => part.record(mark, false),
        };
        if let Err(error) = result {
            queue.close();
            return (part, Err(error));
        }
    }
    (part, Ok(()))
}

#[cfg(test)]
mod tests;
