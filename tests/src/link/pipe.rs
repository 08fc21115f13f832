//! One direction of a link.

use alloc::collections::VecDeque;

use super::{LinkConfig, Piece};
use crate::rng::Rng;

/// How a receiver finds the stream split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunking {
    /// As it was sent, in chunks of at most so many bytes.
    UpTo(usize),
    /// Of every size from 1 to so many bytes, small ones as likely as large ones.
    Random(usize),
}

/// Picoseconds in a nanosecond: at 10 Gbit/s a byte takes 800 of them, so nanoseconds are too
/// coarse to add up.
const PS: u128 = 1_000;

/// One direction of a link: what was sent and hasn't been received.
#[derive(Clone, Debug)]
pub struct Pipe {
    latency: u64,
    jitter: u64,
    /// Picoseconds a byte.
    pace: u128,
    chunking: Chunking,
    rng: Rng,
    /// Pieces, each with the picosecond at which its first byte goes onto the wire.
    queue: VecDeque<(u128, Piece)>,
    queued: usize,
    /// When the wire is free again, in picoseconds.
    free_at: u128,
    /// Length and arrival of the chunk in front.
    front: Option<(usize, u64)>,
    /// The arrival of the last chunk: jitter never reorders.
    last_arrival: u64,
    /// Bytes until the cut, if one is planned.
    cut_in: Option<u64>,
    /// When the sender's end of stream arrives, behind all bytes.
    end_at: Option<u64>,
}

impl Pipe {
    pub(super) fn new(config: &LinkConfig, rng: Rng, cut: Option<u64>) -> Self {
        Self {
            latency: config.latency,
            jitter: config.jitter,
            pace: pace(config.rate),
            chunking: config.chunking.clone(),
            rng,
            queue: VecDeque::new(),
            queued: 0,
            free_at: 0,
            front: None,
            last_arrival: 0,
            cut_in: cut,
            end_at: None,
        }
    }

    /// Puts a piece behind all others. What is sent after the end or the cut is lost.
    pub fn send(&mut self, now: u64, piece: Piece) {
        if self.is_cut() || self.end_at.is_some() {
            return;
        }
        if piece.is_empty() && !matches!(piece, Piece::Credit(_)) {
            return;
        }
        let start = self.free_at.max(u128::from(now) * PS);
        self.free_at = start + piece.len() as u128 * self.pace;
        self.queued += piece.len();
        self.queue.push_back((start, piece));
        self.plan_front();
    }

    /// Takes the next chunk if it has arrived by `now`.
    pub fn receive(&mut self, now: u64) -> Option<Piece> {
        let (len, at) = self.front?;
        if at > now {
            return None;
        }
        self.last_arrival = at;
        self.front = None;
        let (start, piece) = self.queue.front_mut().expect("a planned chunk has a piece");
        let chunk = piece.split_to(len);
        *start += len as u128 * self.pace;
        if piece.is_empty() {
            self.queue.pop_front();
        }
        self.queued -= len;
        if let Some(left) = &mut self.cut_in {
            *left -= len as u64;
        }
        if self.is_cut() {
            self.queue.clear();
            self.queued = 0;
        }
        self.plan_front();
        Some(chunk)
    }

    /// Returns the moment of the next arrival; once all bytes are taken, of the stream's end, which
    /// stays the answer after it has come.
    #[must_use]
    pub fn next_arrival(&self) -> Option<u64> {
        match self.front {
            Some((_, at)) => Some(at),
            None => self.end_at,
        }
    }

    /// Returns how many bytes haven't gone onto the wire at `now`.
    #[must_use]
    pub fn unsent(&self, now: u64) -> usize {
        let wait = self.free_at.saturating_sub(u128::from(now) * PS);
        wait.checked_div(self.pace)
            .map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Returns the first moment from `now` on at which at most `len` bytes haven't gone onto the wire.
    #[must_use]
    pub fn unsent_at(&self, now: u64, len: usize) -> u64 {
        let at = self.free_at.saturating_sub(len as u128 * self.pace);
        u64::try_from(at.div_ceil(PS)).unwrap_or(u64::MAX).max(now)
    }

    /// Returns how many bytes have been sent and not received.
    #[must_use]
    pub const fn queued(&self) -> usize {
        self.queued
    }

    /// Stops everything at `now` for `pause` nanoseconds.
    pub fn stall(&mut self, now: u64, pause: u64) {
        let pause = u128::from(pause) * PS;
        for (start, _) in &mut self.queue {
            *start += pause;
        }
        self.free_at = self.free_at.max(u128::from(now) * PS) + pause;
        if let Some((_, at)) = &mut self.front {
            *at = (*at)
                .max(now)
                .saturating_add(u64::try_from(pause / PS).unwrap_or(u64::MAX));
        }
    }

    /// Changes the rate of what is sent from here on, in bits a second.
    pub const fn set_rate(&mut self, rate: u64) {
        self.pace = pace(rate);
    }

    /// Cuts the stream after `len` more bytes have been received; 0 cuts at once.
    pub fn cut_after(&mut self, len: u64) {
        self.cut_in = Some(len);
        self.front = None;
        if len == 0 {
            self.queue.clear();
            self.queued = 0;
        }
        self.plan_front();
    }

    /// Takes a planned cut back, if it hasn't come yet.
    pub fn heal(&mut self) {
        if !self.is_cut() {
            self.cut_in = None;
        }
    }

    /// Ends the stream behind what was sent.
    pub fn end(&mut self, now: u64) {
        let behind = u64::try_from(self.free_at.div_ceil(PS))
            .unwrap_or(u64::MAX)
            .max(now);
        let at = behind.saturating_add(self.latency).max(self.last_arrival);
        self.end_at = self.end_at.or(Some(at));
    }

    /// Says whether the cut has come.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut_in == Some(0)
    }

    /// Says whether the receiver has seen the end of the stream by `now`.
    #[must_use]
    pub fn at_end(&self, now: u64) -> bool {
        self.is_cut() || self.queue.is_empty() && self.end_at.is_some_and(|at| at <= now)
    }

    /// Decides length and arrival of the chunk in front.
    fn plan_front(&mut self) {
        if self.front.is_some() {
            return;
        }
        let Some((start, piece)) = self.queue.front() else {
            return;
        };
        let len_max = match self.chunking {
            Chunking::UpTo(len) => len,
            Chunking::Random(len) => self.rng.magnitude_index(1, len),
        };
        let cut = self.cut_in.map_or(usize::MAX, |left| {
            usize::try_from(left).unwrap_or(usize::MAX)
        });
        let len = piece.len().min(len_max).min(cut);
        let sent =
            u64::try_from((start + len as u128 * self.pace).div_ceil(PS)).unwrap_or(u64::MAX);
        let jitter = if self.jitter > 0 {
            self.rng.between(0, self.jitter)
        } else {
            0
        };
        let at = sent
            .saturating_add(self.latency)
            .saturating_add(jitter)
            .max(self.last_arrival);
        self.front = Some((len, at));
    }
}

/// Returns the picoseconds a byte takes at `rate` bits a second; 0 stands for no limit.
const fn pace(rate: u64) -> u128 {
    if rate == 0 {
        0
    } else {
        8_000_000_000_000 / rate as u128
    }
}

#[cfg(test)]
mod tests;
