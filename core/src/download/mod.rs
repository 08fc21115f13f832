//! One file, fetched by READs of ranges whose replies may come in any order and any length.
//!
//! Short replies re-ask the gap only; good bytes are never thrown away. The size is a hint: the end is
//! where the server says STATUS EOF, and an end before the announced size is asked for twice.
//!
//! | state | asks | leaves it when |
//! | --- | --- | --- |
//! | fetching | gaps first, then what follows `next`; one READ at a time past the announced size | EOF, an error, or the range is asked |
//! | ending (EOF seen at `end`) | gaps below `end` | all below `end` has come: done, or confirming if bytes were promised or have come beyond |
//! | confirming | one READ at `end` | data: fetching again; EOF: done, or `Shrunk` |
//! | failing (error at `offset`) | gaps below `offset` | all below has come: the error ends it |
//!
//! Source: draft-ietf-secsh-filexfer-02 §6.4; what servers do in fact is in `docs/servers.md`.

#[cfg(test)]
mod tests;

use crate::error::{OpError, ProtocolError, StatusError};
use crate::sftp::StatusCode;

/// What to fetch, and what to make of a size that turns out wrong.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct DownloadConfig {
    /// First byte to fetch.
    pub start: u64,
    /// End of the range to fetch (exclusive); `None`, the default, fetches to the end of the file.
    pub end: Option<u64>,
    /// Size that the server announced, if it did: a hint. With size 0 the file is read one request at a time
    /// until the first whole reply, since files made up on the spot (`/proc`) announce that.
    pub size: Option<u64>,
    /// What to do if the file ends before `size`.
    pub shrink: Shrink,
    /// One request at a time, for servers that cannot take more.
    pub serial: bool,
}

impl DownloadConfig {
    /// Sets [`Self::start`].
    #[must_use]
    pub const fn with_start(mut self, start: u64) -> Self {
        self.start = start;
        self
    }

    /// Sets [`Self::end`]. With the announced size it makes a snapshot: a file that grows is not followed.
    #[must_use]
    pub const fn with_end(mut self, end: Option<u64>) -> Self {
        self.end = end;
        self
    }

    /// Sets [`Self::size`].
    #[must_use]
    pub const fn with_size(mut self, size: Option<u64>) -> Self {
        self.size = size;
        self
    }

    /// Sets [`Self::shrink`].
    #[must_use]
    pub const fn with_shrink(mut self, shrink: Shrink) -> Self {
        self.shrink = shrink;
        self
    }

    /// Sets [`Self::serial`].
    #[must_use]
    pub const fn with_serial(mut self, serial: bool) -> Self {
        self.serial = serial;
        self
    }
}

/// What a file is that ends before its announced size, when asked twice.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Shrink {
    /// The end counts, whatever was announced.
    Accept,
    /// An error: something is missing.
    #[default]
    Fail,
}

/// A range to ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ask {
    /// Place of the first byte.
    pub offset: u64,
    /// Bytes, at least 1.
    pub len: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Gap {
    offset: u64,
    len: u64,
}

/// How a download ended.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Failure {
    Status(StatusError),
    Protocol(ProtocolError),
    NoProgress,
}

/// The machine of one download. `GAPS` must be at least the number of requests that can be outstanding.
#[derive(Debug)]
pub struct Download<const GAPS: usize> {
    config: DownloadConfig,
    /// Everything below was asked.
    next: u64,
    /// Asked, but not brought by its reply: in falling order, so that the lowest is popped.
    gaps: heapless::Vec<Gap, GAPS>,
    outstanding: usize,
    /// End of the highest byte that came.
    arrived_end: u64,
    /// Lowest offset at which EOF was answered.
    eof: Option<u64>,
    /// The READ outstanding, or answered last, asks EOF again at this offset.
    confirming: Option<u64>,
    /// The size is still believed: past it, one request at a time.
    size: Option<u64>,
    /// Offset of an empty DATA reply that was let pass.
    empty_at: Option<u64>,
    failure: Option<(u64, Failure)>,
}

impl<const GAPS: usize> Download<GAPS> {
    /// Makes a download of which nothing has been asked.
    #[must_use]
    pub fn new(config: DownloadConfig) -> Self {
        Self {
            next: config.start,
            gaps: heapless::Vec::new(),
            outstanding: 0,
            arrived_end: config.start,
            eof: None,
            confirming: None,
            size: config.size,
            empty_at: None,
            failure: None,
            config,
        }
    }

    /// Requests outstanding.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// What was configured.
    #[must_use]
    pub fn config(&self) -> &DownloadConfig {
        &self.config
    }

    /// Size that the server announced, as long as it is believed.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// End of the gap-free prefix, given the lowest byte that an outstanding request has yet to bring.
    #[must_use]
    pub fn contiguous(&self, lowest_missing: Option<u64>) -> u64 {
        let gap = self.gaps.last().map_or(self.next, |gap| gap.offset);
        let asked = lowest_missing
            .map_or(gap, |missing| missing.min(gap))
            .min(self.next);
        // An EOF or an error below what was asked: what follows it has not come.
        asked.min(self.ask_end()).max(self.config.start)
    }

    /// The next range to ask, of at most `len_max` bytes; `None` if there is nothing to ask now.
    pub fn poll_request(&mut self, len_max: u32) -> Option<Ask> {
        if len_max == 0 || self.is_waiting() {
            return None;
        }
        let ask = self.next_gap(len_max).or_else(|| self.next_new(len_max))?;
        self.outstanding += 1;
        Some(ask)
    }

    /// True if [`Self::poll_request`] would ask something.
    #[must_use]
    pub fn has_request(&self, len_max: u32) -> bool {
        let gap = self.gap_due().filter(|gap| self.can_take(gap, len_max));
        len_max > 0 && !self.is_waiting() && (gap.is_some() || self.new_len_max() > 0)
    }

    /// True if it would ask for a gap next.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        !self.is_waiting() && self.gap_due().is_some()
    }

    /// True if it asks one request at a time, whatever the window: as configured, or since a size of 0 is announced for
    /// what may be made up on the spot.
    #[must_use]
    pub fn is_serial(&self) -> bool {
        self.config.serial || self.size == Some(0)
    }

    /// One request at a time, and one is outstanding.
    fn is_waiting(&self) -> bool {
        let one_at_a_time = self.config.serial
            || self.confirming.is_some()
            // A gap was split without room for both parts: see `can_take`.
            || self.gaps.len() + self.outstanding > GAPS;
        one_at_a_time && self.outstanding > 0
    }

    /// True if a request of at most `len_max` bytes may take the gap, or a part of it.
    ///
    /// Each outstanding request can leave a gap and must find room for it. A part counts besides what is left of
    /// its gap; a part that is outstanding alone does not, since what it leaves lies next to that.
    fn can_take(&self, gap: &Gap, len_max: u32) -> bool {
        gap.len <= u64::from(len_max)
            || self.outstanding == 0
            || self.gaps.len() + self.outstanding < GAPS
    }

    /// Where asking ends for now: at an EOF or an error.
    fn ask_end(&self) -> u64 {
        let failed = self
            .failure
            .as_ref()
            .map_or(u64::MAX, |(offset, _)| *offset);
        self.eof.unwrap_or(u64::MAX).min(failed)
    }

    fn gap_due(&self) -> Option<Gap> {
        self.gaps
            .last()
            .copied()
            .filter(|gap| gap.offset < self.ask_end())
    }

    fn next_gap(&mut self, len_max: u32) -> Option<Ask> {
        let gap = self.gap_due().filter(|gap| self.can_take(gap, len_max))?;
        self.gaps.pop();
        let len = u32::try_from(gap.len).unwrap_or(u32::MAX).min(len_max);
        let rest = gap.len - u64::from(len);
        if rest > 0 {
            // Into the place that was just freed.
            let _ = self.gaps.push(Gap {
                offset: gap.offset + u64::from(len),
                len: rest,
            });
        }
        Some(Ask {
            offset: gap.offset,
            len,
        })
    }

    fn next_new(&mut self, len_max: u32) -> Option<Ask> {
        let len = u32::try_from(self.new_len_max())
            .unwrap_or(u32::MAX)
            .min(len_max);
        if len == 0 {
            return None;
        }
        let ask = Ask {
            offset: self.next,
            len,
        };
        self.next += u64::from(len);
        Some(ask)
    }

    /// Bytes after `next` that may be asked in one request.
    fn new_len_max(&self) -> u64 {
        // Every outstanding request can leave a gap, and must find room for it.
        if self.failure.is_some()
            || self.eof.is_some()
            || self.gaps.len() + self.outstanding >= GAPS
        {
            return 0;
        }
        let end = self.config.end.unwrap_or(u64::MAX);
        match self.size {
            Some(size) if self.next < size => size.min(end).saturating_sub(self.next),
            // Past the announced size only one request looks whether there is more: some servers are slow to
            // answer those, and most files end where they said.
            Some(_) if self.outstanding > 0 || !self.gaps.is_empty() => 0,
            _ => end.saturating_sub(self.next),
        }
    }

    /// A DATA reply to `ask` is complete with `got` bytes, at most `ask.len`.
    pub fn handle_data(&mut self, ask: Ask, got: u32) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if got == 0 {
            self.handle_empty(ask.offset);
        } else {
            self.empty_at = None;
            self.arrived_end = self.arrived_end.max(ask.offset + u64::from(got));
            if self.confirming == Some(ask.offset) {
                // The EOF was wrong: there is more.
                self.confirming = None;
                self.eof = None;
            }
            if got == ask.len && self.size.is_some_and(|size| ask.offset >= size) {
                // The file has outgrown its size by a whole request: it says nothing any more.
                self.size = None;
            }
        }
        let rest = u64::from(ask.len - got.min(ask.len));
        if rest > 0 {
            self.add_gap(ask.offset + u64::from(got), rest);
        }
    }

    /// One reply without data may pass; a second at the same offset makes no progress.
    fn handle_empty(&mut self, offset: u64) {
        if self.empty_at == Some(offset) {
            self.fail(offset, Failure::Protocol(ProtocolError::DataEmptyRepeated));
        }
        let lower = self.empty_at.is_none_or(|empty_at| offset < empty_at);
        if lower {
            self.empty_at = Some(offset);
        }
    }

    /// STATUS has answered `ask`.
    pub fn handle_status(&mut self, ask: Ask, code: StatusCode, message: &[u8]) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if code != StatusCode::EOF {
            let error = StatusError::new(code, message);
            self.fail(ask.offset, Failure::Status(error));
            return;
        }
        if self.eof.is_none_or(|eof| ask.offset < eof) {
            self.eof = Some(ask.offset);
        }
        // Should the EOF prove wrong, this is asked again.
        self.add_gap(ask.offset, u64::from(ask.len));
    }

    /// The request for a range was given up: its reply may never come.
    pub fn handle_lost(&mut self, offset: u64, len: u64) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if len > 0 {
            self.add_gap(offset, len);
        }
    }

    /// Nothing has come for too long.
    pub fn handle_no_progress(&mut self) {
        self.fail(self.config.start, Failure::NoProgress);
    }

    fn fail(&mut self, offset: u64, failure: Failure) {
        if self
            .failure
            .as_ref()
            .is_none_or(|(first, _)| offset < *first)
        {
            self.failure = Some((offset, failure));
        }
    }

    fn add_gap(&mut self, offset: u64, len: u64) {
        let index = self.gaps.partition_point(|gap| gap.offset > offset);
        if let Some(after) = index
            .checked_sub(1)
            .and_then(|before| self.gaps.get_mut(before))
            && offset + len == after.offset
        {
            *after = Gap {
                offset,
                len: len + after.len,
            };
            return;
        }
        // `new_len_max` keeps room for the gap of each outstanding request.
        let inserted = self.gaps.insert(index, Gap { offset, len });
        debug_assert!(
            inserted.is_ok(),
            "gaps and outstanding requests are at most GAPS"
        );
    }

    /// How it ended: the end of what was fetched, or why it failed; `None` while it goes on.
    ///
    /// Called after each reply: it also decides whether an EOF is asked for again.
    pub fn poll_end(&mut self) -> Option<Result<u64, OpError>> {
        if self.outstanding > 0 || self.gap_due().is_some() {
            return None;
        }
        if let Some((_, failure)) = &self.failure {
            return Some(Err(match failure {
                Failure::NoProgress => OpError::NoProgress,
                Failure::Protocol(error) => OpError::Protocol(*error),
                Failure::Status(error) => OpError::Status(error.clone()),
            }));
        }
        let Some(end) = self.eof else {
            let range_end = self.config.end?;
            return (self.next >= range_end && self.gaps.is_empty())
                .then_some(Ok(range_end.max(self.config.start)));
        };
        let promised = self
            .size
            .map(|size| size.min(self.config.end.unwrap_or(u64::MAX)));
        let promised = promised.unwrap_or_default().max(self.config.start);
        if end >= promised.max(self.arrived_end) {
            return Some(Ok(end));
        }
        if self.confirming != Some(end) {
            // Servers have said EOF within a file once, and served the bytes when asked again. The READ that
            // was answered by EOF is among the gaps: lifting the end asks for it.
            self.confirming = Some(end);
            self.eof = None;
            return None;
        }
        if self.config.shrink == Shrink::Accept {
            return Some(Ok(end));
        }
        Some(Err(OpError::Shrunk {
            size: promised.max(self.arrived_end),
            end,
        }))
    }
}
