//! Where arriving bytes lie until somebody takes them: one shelf for each operation.
//!
//! The loop copies what arrives into pieces of up to 1 MiB, and goes on with a piece as long as bytes follow its end. Files
//! take whole pieces in any order, streams take bytes at their position.
//!
//! Up to `credit` bytes on a shelf count as consumed at once: the window is then free of the jitter between the loop and
//! the one who takes. Beyond that they count against the window until they are taken, so that a slow taker makes the
//! session ask for less.

use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_core::engine::OpId;

/// Largest piece. Smaller ones cost system calls and wake-ups; larger ones only memory.
const PIECE_LEN_MAX: usize = 1 << 20;

/// Pieces that are given a buffer of full size at once; more of them come only with replies out of order.
const PIECES_IN_ORDER: usize = 8;

/// Buffers that wait for their next use.
const SPARE_MAX: usize = 4;

/// Bytes that lie together, and where in the file.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    /// Bytes at this offset.
    At(u64),
    /// A piece that is full, or much in small pieces.
    Full,
}

/// All shelves of a session.
#[derive(Clone, Debug)]
pub(super) struct Shelves {
    credit: u64,
    shelves: Arc<Mutex<Vec<(OpId, Shelf)>>>,
}

impl Shelves {
    pub(super) fn new(credit: u64) -> Self {
        Self {
            credit,
            shelves: Arc::default(),
        }
    }

    /// Runs `f` on the shelf of `op`. It begins to be with its first byte, or when somebody asks for it: nothing
    /// depends on who comes first.
    fn with<R>(&self, op: OpId, f: impl FnOnce(&mut Shelf) -> R) -> R {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let index = shelves.iter().position(|(id, _)| *id == op);
        let index = index.unwrap_or_else(|| {
            shelves.push((op, Shelf::default()));
            shelves.len() - 1
        });
        // The index is of an element that is there.
        #[expect(clippy::indexing_slicing, reason = "found or pushed right above")]
        let (_, shelf) = &mut shelves[index];
        f(shelf)
    }

    /// Lays down what has arrived, and tells how many bytes count as consumed.
    pub(super) fn deliver(&self, op: OpId, offset: u64, bytes: &[u8]) -> u64 {
        let credit = self.credit;
        let (consumed, waker) = self.with(op, |shelf| {
            let before = shelf.owed(credit);
            shelf.put(offset, bytes);
            let owed = shelf.owed(credit) - before;
            let is_met = shelf
                .waiting
                .as_ref()
                .is_some_and(|(want, _)| shelf.has(*want, credit));
            let waker = shelf.waiting.take_if(|_| is_met).map(|(_, waker)| waker);
            ((bytes.len() as u64).saturating_sub(owed), waker)
        });
        if let Some(waker) = waker {
            waker.wake();
        }
        consumed
    }

    /// Ready once what is wanted has come.
    pub(super) fn poll(&self, op: OpId, want: Want, cx: &Context<'_>) -> Poll<()> {
        self.with(op, |shelf| {
            if shelf.has(want, self.credit) {
                return Poll::Ready(());
            }
            shelf.waiting = Some((want, cx.waker().clone()));
            Poll::Pending
        })
    }

    /// Takes a piece, the lowest first: a full one, or with `all` any. Also tells what is consumed by that.
    pub(super) fn take_piece(&self, op: OpId, all: bool) -> Option<(Piece, u64)> {
        self.with(op, |shelf| {
            let before = shelf.owed(self.credit);
            let all = all || shelf.is_crowded(self.credit);
            let full = |(_, bytes): &(&u64, &Vec<u8>)| all || bytes.len() >= PIECE_LEN_MAX;
            let offset = *shelf.pieces.iter().find(full)?.0;
            let bytes = shelf.pieces.remove(&offset)?;
            shelf.held -= bytes.len() as u64;
            Some((Piece { offset, bytes }, before - shelf.owed(self.credit)))
        })
    }

    /// Takes the piece that holds the byte at `offset`. Also tells what is consumed by that.
    pub(super) fn take_at(&self, op: OpId, offset: u64) -> Option<(Piece, u64)> {
        self.with(op, |shelf| {
            let before = shelf.owed(self.credit);
            let bytes = shelf.pieces.remove(&offset)?;
            shelf.held -= bytes.len() as u64;
            Some((Piece { offset, bytes }, before - shelf.owed(self.credit)))
        })
    }

    /// Offset of the lowest byte that lies here.
    pub(super) fn lowest(&self, op: OpId) -> Option<u64> {
        self.with(op, |shelf| shelf.pieces.keys().next().copied())
    }

    /// Gives a buffer back for the next piece.
    pub(super) fn recycle(&self, op: OpId, mut buffer: Vec<u8>) {
        buffer.clear();
        self.with(op, |shelf| {
            if buffer.capacity() >= PIECE_LEN_MAX && shelf.spare.len() < SPARE_MAX {
                shelf.spare.push(buffer);
            }
        });
    }

    /// Takes the shelf of an operation away that delivers nothing any more.
    pub(super) fn remove(&self, op: OpId) {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.retain(|(id, _)| *id != op);
    }
}

#[derive(Debug, Default)]
struct Shelf {
    /// By the offset of their first byte; never empty.
    pieces: BTreeMap<u64, Vec<u8>>,
    /// Bytes in all pieces.
    held: u64,
    spare: Vec<Vec<u8>>,
    waiting: Option<(Want, Waker)>,
}

impl Shelf {
    /// Bytes that count against the window.
    fn owed(&self, credit: u64) -> u64 {
        self.held.saturating_sub(credit)
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) {
        self.held += bytes.len() as u64;
        let (mut offset, mut rest) = (offset, bytes);
        if let Some((start, piece)) = self.pieces.range_mut(..=offset).next_back()
            && *start + piece.len() as u64 == offset
        {
            let room = PIECE_LEN_MAX.saturating_sub(piece.len());
            let (now, later) = rest.split_at(rest.len().min(room));
            piece.extend_from_slice(now);
            (offset, rest) = (offset + now.len() as u64, later);
        }
        for bytes in rest.chunks(PIECE_LEN_MAX) {
            let mut piece = self.buffer();
            piece.extend_from_slice(bytes);
            self.pieces.insert(offset, piece);
            offset += bytes.len() as u64;
        }
    }

    fn buffer(&mut self) -> Vec<u8> {
        if let Some(buffer) = self.spare.pop() {
            return buffer;
        }
        if self.pieces.len() < PIECES_IN_ORDER {
            Vec::with_capacity(PIECE_LEN_MAX)
        } else {
            Vec::new()
        }
    }

    fn has(&self, want: Want, credit: u64) -> bool {
        match want {
            Want::At(offset) => self.pieces.contains_key(&offset),
            Want::Full => {
                self.is_crowded(credit)
                    || self
                        .pieces
                        .values()
                        .any(|piece| piece.len() >= PIECE_LEN_MAX)
            }
        }
    }

    /// Much lies here, though perhaps in small pieces: it is time to take them.
    fn is_crowded(&self, credit: u64) -> bool {
        self.held > credit / 2
    }
}

#[cfg(test)]
mod tests;
