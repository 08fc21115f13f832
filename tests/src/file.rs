//! Files that change over time.
//!
//! Aim: a growing log, a file cut short, one rewritten at the same size (Q26, Q84), without
//! storing any. Method: a list of versions, each from a moment on.

use crate::content::Content;

/// What a file is from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The moment in virtual nanoseconds.
    pub at: u64,
    /// The size in bytes.
    pub size: u64,
    /// The bytes.
    pub content: Content,
    /// The time of change that attributes carry, in seconds.
    pub mtime: u32,
}

/// The life of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHistory {
    file: u64,
    generation: u32,
    /// In order of time, the first at 0: never empty.
    versions: Vec<Version>,
}

/// The time of change of every file at the start of a run.
const MTIME_START: u32 = 1_700_000_000;

impl FileHistory {
    /// Makes a file of `size` bytes that never changes. `file` chooses its content.
    #[must_use]
    pub fn new(file: u64, size: u64) -> Self {
        let content = Content::new(file, 0);
        let first = Version {
            at: 0,
            size,
            content,
            mtime: MTIME_START,
        };
        Self {
            file,
            generation: 0,
            versions: vec![first],
        }
    }

    /// Lets the file have another size from `at` on, with the same bytes where both have some.
    #[must_use]
    pub fn resized(mut self, at: u64, size: u64) -> Self {
        let last = *self.last();
        assert!(at >= last.at, "changes come in order");
        self.versions.push(Version {
            at,
            size,
            mtime: last.mtime + 1,
            ..last
        });
        self
    }

    /// Lets all bytes differ from `at` on, with the same size.
    #[must_use]
    pub fn rewritten(mut self, at: u64) -> Self {
        let last = *self.last();
        assert!(at >= last.at, "changes come in order");
        self.generation += 1;
        let content = Content::new(self.file, self.generation);
        self.versions.push(Version {
            at,
            content,
            mtime: last.mtime + 1,
            ..last
        });
        self
    }

    /// Returns what the file is at `now`.
    #[must_use]
    pub fn at(&self, now: u64) -> &Version {
        let past = |version: &&Version| version.at <= now;
        self.versions
            .iter()
            .rev()
            .find(past)
            .expect("the first version starts at 0")
    }

    /// Returns every version that was there at some moment from `start` to `end`.
    pub fn between(&self, start: u64, end: u64) -> impl Iterator<Item = &Version> {
        let first = self
            .versions
            .iter()
            .rposition(|version| version.at <= start)
            .unwrap_or(0);
        self.versions[first..]
            .iter()
            .take_while(move |version| version.at <= end.max(start))
    }

    /// Says whether the file changes at all.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        self.versions.len() == 1
    }

    fn last(&self) -> &Version {
        self.versions.last().expect("never empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_holds_until_the_next() {
        let file = FileHistory::new(1, 100)
            .resized(50, 200)
            .rewritten(90)
            .resized(95, 10);
        assert_eq!(
            [0, 49, 50, 89, 90, 95].map(|at| file.at(at).size),
            [100, 100, 200, 200, 200, 10]
        );
        assert_eq!(file.at(0).content, file.at(89).content);
        assert_ne!(file.at(89).content, file.at(90).content);
        assert!(file.at(95).mtime > file.at(0).mtime);
        assert!(!file.is_stable());
    }

    #[test]
    fn between_gives_every_version_that_could_be_seen() {
        let file = FileHistory::new(1, 100).resized(50, 200).resized(90, 300);
        let sizes = |start, end| -> Vec<u64> { file.between(start, end).map(|v| v.size).collect() };
        assert_eq!(sizes(0, 10), [100]);
        assert_eq!(sizes(10, 50), [100, 200]);
        assert_eq!(sizes(60, 100), [200, 300]);
        assert_eq!(sizes(95, 95), [300]);
    }
}
