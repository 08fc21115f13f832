//! What a download must produce.
//!
//! Aim: judge bytes and lengths without a window, a gap or a retry in sight. Method: the file's
//! history says which bytes could be read at which time; a sink checks each fragment on arrival
//! against that, and remembers in the plainest way what has come. It shares no code with the core.

use alloc::collections::BTreeMap;

use crate::file::FileHistory;

/// The bytes that a download asks for: from `offset`, `len` of them or up to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// The most bytes; `None` is up to the end.
    pub len: Option<u64>,
}

impl Wanted {
    /// The whole file.
    pub const ALL: Self = Self {
        offset: 0,
        len: None,
    };

    /// Returns where the range ends in a file of `size` bytes.
    #[must_use]
    pub fn end(self, size: u64) -> u64 {
        let end = self
            .len
            .map_or(u64::MAX, |len| self.offset.saturating_add(len));
        size.min(end).max(self.offset)
    }
}

/// Returns the bytes of the range as they are at `now`: for small files only.
///
/// # Panics
/// If the range is longer than the content's longest slice.
#[must_use]
pub fn whole(file: &FileHistory, wanted: Wanted, now: u64) -> Vec<u8> {
    let version = file.at(now);
    let len = usize::try_from(wanted.end(version.size) - wanted.offset).expect("a small file");
    version.content.slice(wanted.offset, len).to_vec()
}

/// Takes the bytes of one download and checks them.
#[derive(Clone, Debug)]
pub struct Sink {
    file: FileHistory,
    wanted: Wanted,
    started: u64,
    /// Ranges that have come, merged: start to end.
    placed: BTreeMap<u64, u64>,
    placed_twice: u64,
    fault: Option<String>,
}

impl Sink {
    /// Starts a sink for a range of `file`, asked for at `started`.
    #[must_use]
    pub const fn new(file: FileHistory, wanted: Wanted, started: u64) -> Self {
        Self {
            file,
            wanted,
            started,
            placed: BTreeMap::new(),
            placed_twice: 0,
            fault: None,
        }
    }

    /// Takes bytes that belong at `offset`.
    pub fn place(&mut self, now: u64, offset: u64, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len() as u64);
        if bytes.is_empty() {
            return;
        }
        if offset < self.wanted.offset || end > self.wanted.end(u64::MAX) {
            self.fault(format!("{offset}..{end} is outside of the range"));
        }
        let right = |version: &crate::file::Version| {
            end <= version.size && version.content.mismatch(offset, bytes).is_none()
        };
        if !self.file.between(self.started, now).any(right) {
            let version = self.file.at(now);
            let place = version.content.mismatch(offset, bytes);
            self.fault(format!(
                "wrong bytes at {offset}..{end}, first at {place:?}; the size is {}",
                version.size
            ));
        }
        self.merge(offset, end);
    }

    /// Returns the first thing that was wrong.
    #[must_use]
    pub fn wrong(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Returns the end of the gap-free run from the start of the range.
    #[must_use]
    pub fn contiguous(&self) -> u64 {
        self.placed
            .get(&self.wanted.offset)
            .copied()
            .unwrap_or(self.wanted.offset)
    }

    /// Returns the count of different bytes that have come.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.placed.iter().map(|(start, end)| end - start).sum()
    }

    /// Says whether nothing has come.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.placed.is_empty()
    }

    /// Returns the count of bytes that came again.
    #[must_use]
    pub const fn placed_twice(&self) -> u64 {
        self.placed_twice
    }

    /// Judges a success at `now`: all bytes right, no gap, and an end that the file had at some
    /// moment of the transfer.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn judge(&self, now: u64) -> Result<(), String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let end = self.contiguous();
        if self.placed.len() > 1 || self.len() != end - self.wanted.offset {
            return Err(format!("success with gaps: {:?}", self.placed));
        }
        let mut ends = self
            .file
            .between(self.started, now)
            .map(|v| self.wanted.end(v.size));
        if ends.any(|right| right == end) {
            return Ok(());
        }
        let right = self.wanted.end(self.file.at(now).size);
        Err(format!("success at {end}, but the range ends at {right}"))
    }

    fn fault(&mut self, text: String) {
        self.fault.get_or_insert(text);
    }

    fn merge(&mut self, mut start: u64, mut end: u64) {
        let len = end - start;
        let before = self.len_between(start, end);
        self.placed_twice += before;
        debug_assert!(
            before <= len,
            "a range overlaps itself no more than its length"
        );
        let touching = |(_, other_end): &(&u64, &u64)| **other_end >= start;
        let mut swallowed: Vec<u64> = self
            .placed
            .range(..=end)
            .rev()
            .take_while(touching)
            .map(|(at, _)| *at)
            .collect();
        for at in swallowed.drain(..) {
            let other_end = self.placed.remove(&at).expect("just seen");
            start = start.min(at);
            end = end.max(other_end);
        }
        self.placed.insert(start, end);
    }

    /// Returns how many bytes between `start` and `end` have come already.
    fn len_between(&self, start: u64, end: u64) -> u64 {
        let touching = |(_, other_end): &(&u64, &u64)| **other_end > start;
        let ranges = self.placed.range(..end).rev().take_while(touching);
        ranges
            .map(|(at, other_end)| end.min(*other_end) - start.max(*at))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(file: &FileHistory, wanted: Wanted) -> Sink {
        Sink::new(file.clone(), wanted, 0)
    }

    #[test]
    fn right_bytes_in_any_order_are_a_success() {
        let file = FileHistory::new(1, 1_000);
        let content = file.at(0).content;
        let mut sink = sink(&file, Wanted::ALL);
        for (offset, len) in [(500, 500), (0, 100), (200, 300), (100, 100)] {
            assert!(sink.judge(0).is_err());
            sink.place(0, offset, content.slice(offset, len));
        }
        assert_eq!(sink.judge(0), Ok(()));
        assert_eq!(
            (sink.contiguous(), sink.len(), sink.placed_twice()),
            (1_000, 1_000, 0)
        );
        sink.place(0, 450, content.slice(450, 100));
        assert_eq!((sink.len(), sink.placed_twice()), (1_000, 100));
    }

    #[test]
    fn wrong_bytes_gaps_and_ends_are_found() {
        let file = FileHistory::new(1, 1_000);
        let content = file.at(0).content;
        let mut shifted = sink(&file, Wanted::ALL);
        shifted.place(0, 0, content.slice(1, 1_000));
        assert!(shifted.judge(0).is_err() && shifted.wrong().is_some());
        let mut short = sink(&file, Wanted::ALL);
        short.place(0, 0, content.slice(0, 999));
        assert!(short.judge(0).is_err() && short.wrong().is_none());
        let mut long = sink(&file, Wanted::ALL);
        long.place(0, 0, content.slice(0, 1_001));
        assert!(long.wrong().is_some());
        let mut outside = sink(
            &file,
            Wanted {
                offset: 10,
                len: Some(5),
            },
        );
        outside.place(0, 10, content.slice(10, 6));
        assert!(outside.wrong().is_some());
        let empty = sink(&FileHistory::new(1, 0), Wanted::ALL);
        assert_eq!(empty.judge(0), Ok(()));
        assert!(empty.is_empty());
    }

    #[test]
    fn ranges_end_with_the_file() {
        let file = FileHistory::new(1, 1_000);
        let content = file.at(0).content;
        for (wanted, len) in [
            (
                Wanted {
                    offset: 900,
                    len: Some(500),
                },
                100,
            ),
            (
                Wanted {
                    offset: 100,
                    len: Some(50),
                },
                50,
            ),
            (
                Wanted {
                    offset: 2_000,
                    len: None,
                },
                0,
            ),
        ] {
            let mut sink = sink(&file, wanted);
            sink.place(0, wanted.offset, content.slice(wanted.offset, len));
            assert_eq!(sink.judge(0), Ok(()), "{wanted:?}");
            assert_eq!(whole(&file, wanted, 0).len(), len);
        }
    }

    #[test]
    fn bytes_of_any_version_seen_count_and_others_do_not() {
        let file = FileHistory::new(1, 1_000).rewritten(50).resized(80, 2_000);
        let (old, new) = (file.at(0).content, file.at(50).content);
        let mut sink = sink(&file, Wanted::ALL);
        sink.place(10, 0, old.slice(0, 500));
        sink.place(60, 500, new.slice(500, 500));
        assert_eq!(sink.judge(60), Ok(()));
        sink.place(90, 1_000, new.slice(1_000, 1_000));
        assert_eq!(sink.judge(90), Ok(()));
        let mut late = Sink::new(file, Wanted::ALL, 55);
        late.place(60, 0, old.slice(0, 500));
        assert!(late.wrong().is_some());
    }
}
