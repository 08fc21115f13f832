//! How long one READ is: a part of the window, within what the server serves whole.

/// A window holds at least so many READs, so that one reply more or less does not matter.
const PARTS: u64 = 16;
/// Below that number of READs, they get no longer than the portable 32 KiB: each costs every process on its way some
/// system calls.
const PARTS_MIN: u64 = 4;
/// Length of READs that four parts of a window may have.
const LEN_PORTABLE: u64 = 32 * 1024;
/// Shortest READ that the window makes, in bytes: less would be all headers.
const LEN_MIN: u64 = 8 * 1024;
/// READs are cut at a page of most servers' caches.
const ALIGN: u64 = 4096;
/// Short replies of one length in a row that show a cap. One short reply shows nothing: it may be the
/// file's end, or a server that had no more at hand.
const EVIDENCE: u32 = 3;
/// No server caps READs below this, in bytes (OpenSSH's client goes no lower).
const CAP_MIN: u32 = 512;
/// Whole replies after which a longer READ tries whether the cap still holds.
const TRY_AFTER: u32 = 256;

/// The length of READs: learns the cap that a server has in fact, and unlearns it.
#[derive(Debug)]
pub struct Chunk {
    /// What the server and the configuration allow.
    len_max: u32,
    /// What replies have shown; at most `len_max`.
    cap: u32,
    short_len: u32,
    short_count: u32,
    whole_count: u32,
}

impl Chunk {
    /// Makes it for READs of at most `len_max` bytes.
    #[must_use]
    pub fn new(len_max: u32) -> Self {
        let len_max = len_max.max(1);
        Self {
            len_max,
            cap: len_max,
            short_len: 0,
            short_count: 0,
            whole_count: 0,
        }
    }

    /// The longest READ to send, in bytes; now and then one that tries beyond a learned cap.
    #[must_use]
    pub fn len_max(&self) -> u32 {
        if self.cap < self.len_max && self.whole_count >= TRY_AFTER {
            return self.cap.saturating_mul(2).min(self.len_max);
        }
        self.cap
    }

    /// A READ of `len` bytes leaves.
    pub fn handle_sent(&mut self, len: u32) {
        if len > self.cap {
            self.whole_count = 0;
        }
    }

    /// The length of a READ for a window of `window` bytes.
    #[must_use]
    pub fn len(&self, window: u64) -> u32 {
        let least = (window / PARTS_MIN).clamp(LEN_MIN, LEN_PORTABLE);
        let part = (window / PARTS).max(least) / ALIGN * ALIGN;
        let len_max = self.len_max();
        u32::try_from(part).unwrap_or(u32::MAX).min(len_max)
    }

    /// A READ of `asked` bytes brought `got`.
    pub fn handle_reply(&mut self, asked: u32, got: u32) {
        if got >= asked {
            if got > self.cap {
                self.cap = got.min(self.len_max);
            }
            if got >= self.cap {
                self.whole_count = self.whole_count.saturating_add(1);
                self.short_count = 0;
            }
            return;
        }
        if got < CAP_MIN {
            return;
        }
        if got != self.short_len {
            self.short_len = got;
            self.short_count = 0;
        }
        self.short_count += 1;
        if self.short_count >= EVIDENCE && got < self.cap {
            self.cap = got;
            self.short_count = 0;
            self.whole_count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_short_reply_changes_nothing() {
        let mut chunk = Chunk::new(65_536);
        chunk.handle_reply(65_536, 1);
        assert_eq!(chunk.len_max(), 65_536);
    }

    #[test]
    fn a_repeated_short_length_is_the_cap() {
        let mut chunk = Chunk::new(261_120);
        for _ in 0..EVIDENCE {
            chunk.handle_reply(261_120, 102_400);
        }
        assert_eq!(chunk.len_max(), 102_400);
    }

    #[test]
    fn short_replies_of_many_lengths_show_no_cap() {
        let mut chunk = Chunk::new(261_120);
        for got in 1..1000 {
            chunk.handle_reply(261_120, got);
        }
        assert_eq!(chunk.len_max(), 261_120);
    }

    #[test]
    fn a_learned_cap_is_tried_and_unlearned() {
        let mut chunk = Chunk::new(100_000);
        for _ in 0..EVIDENCE {
            chunk.handle_reply(100_000, 30_000);
        }
        for _ in 0..TRY_AFTER {
            assert_eq!(chunk.len_max(), 30_000);
            chunk.handle_reply(30_000, 30_000);
        }
        assert_eq!(chunk.len_max(), 60_000, "a longer READ tries");
        chunk.handle_sent(60_000);
        assert_eq!(chunk.len_max(), 30_000, "and only one");
        chunk.handle_reply(60_000, 60_000);
        assert_eq!(chunk.len_max(), 60_000, "and its whole reply lifts the cap");
    }

    #[test]
    fn a_window_holds_several_reads() {
        let chunk = Chunk::new(261_120);
        assert_eq!(chunk.len(512 * 1024), 32 * 1024);
        assert_eq!(chunk.len(64 * 1024 * 1024), 261_120);
        assert_eq!(chunk.len(1), 8 * 1024);
    }
}
