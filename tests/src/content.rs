//! File content as a function of the offset.
//!
//! Aim: serve terabytes without holding them, and check them at the speed of `memcmp`. Method: one
//! random table that repeats with a prime period; a file is a shift into it, so every piece of
//! every file is a `&'static` slice. The period divides no chunk size, so a byte that lands at a
//! wrong multiple of a chunk differs from the one that belongs there.

use std::sync::LazyLock;

use crate::rng::Rng;

/// The bytes after which the pattern repeats: the largest prime below 2^16.
pub const PERIOD: usize = 65_521;

/// The longest slice that [`Content::slice`] can give: more than any packet a server sends.
pub const SLICE_LEN_MAX: usize = 1 << 20;

static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut table = vec![0; PERIOD + SLICE_LEN_MAX];
    Rng::new(0).child("content").fill(&mut table[..PERIOD]);
    for at in PERIOD..table.len() {
        table[at] = table[at - PERIOD];
    }
    table
});

/// The content of one generation of one file, without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    shift: u64,
}

impl Content {
    /// Returns the content of a file's `generation`. Files and generations differ at every offset
    /// (byte by byte by chance they may agree, as random bytes do).
    #[must_use]
    pub fn new(file: u64, generation: u32) -> Self {
        // A step that is no multiple of the period: two generations never share a shift before
        // the steps have gone round it once.
        let start = Rng::new(file).child("shift").below(PERIOD as u64);
        Self {
            shift: (start + u64::from(generation) * 7_919) % PERIOD as u64,
        }
    }

    /// Returns `len` bytes from `offset`.
    ///
    /// # Panics
    /// If `len` is above [`SLICE_LEN_MAX`].
    #[must_use]
    pub fn slice(self, offset: u64, len: usize) -> &'static [u8] {
        assert!(len <= SLICE_LEN_MAX, "{len} bytes are more than one slice");
        let start = (u128::from(offset) + u128::from(self.shift)) % PERIOD as u128;
        let start = usize::try_from(start).expect("below the period");
        &TABLE[start..start + len]
    }

    /// Returns the place of the first byte of `bytes` that isn't the content from `offset`.
    #[must_use]
    pub fn mismatch(self, offset: u64, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let len = (bytes.len() - at).min(SLICE_LEN_MAX);
            let (expected, got) = (self.slice(offset + at as u64, len), &bytes[at..at + len]);
            // A payload that nobody copied is still the table itself: no need to read it.
            if !core::ptr::eq(expected, got) && expected != got {
                let differs = |(expected, got): (&u8, &u8)| expected != got;
                return expected
                    .iter()
                    .zip(got)
                    .position(differs)
                    .map(|place| at + place);
            }
            at += len;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_agree_where_they_overlap() {
        let content = Content::new(1, 0);
        let whole = content.slice(0, 300_000);
        for (offset, len) in [(0, 1), (65_520, 2), (65_521, 100_000), (131_042, 50_000)] {
            assert_eq!(content.slice(offset as u64, len), &whole[offset..][..len]);
        }
        assert_eq!(content.slice(u64::MAX, SLICE_LEN_MAX).len(), SLICE_LEN_MAX);
    }

    #[test]
    fn a_slip_by_any_common_chunk_size_is_seen() {
        let content = Content::new(1, 0);
        let right = content.slice(0, 4096);
        for slip in [
            1,
            512,
            4096,
            32_768,
            64_512,
            65_536,
            102_400,
            261_120,
            1 << 30,
            1 << 40,
        ] {
            assert!(content.mismatch(slip, right).is_some(), "slip of {slip}");
        }
        assert_eq!(content.mismatch(0, right), None);
    }

    #[test]
    fn the_first_wrong_byte_is_named() {
        let content = Content::new(2, 0);
        let mut bytes = content.slice(77, 2_000).to_vec();
        bytes.extend_from_slice(content.slice(2_077, SLICE_LEN_MAX));
        assert_eq!(content.mismatch(77, &bytes), None);
        bytes[1_234] ^= 1;
        assert_eq!(content.mismatch(77, &bytes), Some(1_234));
    }

    #[test]
    fn files_and_generations_differ() {
        let old = Content::new(3, 0);
        assert!(Content::new(3, 1).mismatch(0, old.slice(0, 64)).is_some());
        assert!(Content::new(4, 0).mismatch(0, old.slice(0, 64)).is_some());
    }
}
