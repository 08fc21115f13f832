//! The random numbers of a run.
//!
//! Aim: one seed makes one run, and a new draw in one part doesn't shift the others. Method:
//! splitmix64, and child streams that depend on the seed and a name alone, never on how many
//! numbers were drawn before.

/// A small deterministic generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng {
    /// The value that children derive from; drawing doesn't change it.
    origin: u64,
    state: u64,
}

/// The increment of splitmix64: 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of splitmix64: a bijection that spreads every bit.
const fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Rng {
    /// Makes the generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        let origin = mix(seed.wrapping_add(GOLDEN));
        Self {
            origin,
            state: origin,
        }
    }

    /// Returns the stream called `name`. The same parent and name always give the same stream.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        // FNV-1a over the name: short, and good enough once `mix` has spread it.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self::new(self.origin ^ mix(hash))
    }

    /// Draws 64 random bits.
    pub const fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Draws a number below `bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        ((self.draw() as u128 * bound as u128) >> 64) as u64
    }

    /// Draws an index below `len`.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("below a usize")
    }

    /// Draws a number from `low` to `high`, both included.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "an empty range has no numbers");
        match (high - low).checked_add(1) {
            Some(span) => low + self.below(span),
            None => self.draw(),
        }
    }

    /// Draws a number from `low` to `high` so that each order of magnitude is as likely as the
    /// next: sizes and delays, where the small ones matter as much as the large ones.
    pub const fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "an empty range has no numbers");
        let bits = self.between(0, (64 - (high - low).leading_zeros()) as u64);
        let span = if bits == 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        };
        let span = if span > high - low { high - low } else { span };
        low + self.between(0, span)
    }

    /// Draws a [`magnitude`](Self::magnitude) to count or index with.
    pub fn magnitude_index(&mut self, low: usize, high: usize) -> usize {
        usize::try_from(self.magnitude(low as u64, high as u64)).expect("between two usize")
    }

    /// Says yes once in `n` times.
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Picks one of `items`.
    ///
    /// # Panics
    /// If `items` is empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Puts `items` into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            let word = self.draw().to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_of_a_seed_never_change() {
        let mut rng = Rng::new(1);
        let drawn = [rng.draw(), rng.draw()];
        let expected = [6_791_897_765_849_424_158, 17_405_687_883_870_564_846];
        assert_eq!(
            drawn, expected,
            "every recorded seed would lose its meaning"
        );
    }

    #[test]
    fn child_streams_depend_on_seed_and_name_alone() {
        let mut parent = Rng::new(7);
        let before = parent.child("link").draw();
        parent.draw();
        assert_eq!(parent.child("link").draw(), before);
        assert_ne!(parent.child("server").draw(), before);
        assert_ne!(Rng::new(8).child("link").draw(), before);
    }

    #[test]
    fn draws_stay_in_their_ranges() {
        let mut rng = Rng::new(3);
        for _ in 0..10_000 {
            assert!(rng.below(7) < 7);
            assert!((5..=9).contains(&rng.between(5, 9)));
            assert!((10..=1_000_000).contains(&rng.magnitude(10, 1_000_000)));
            assert!(rng.index(3) < 3);
        }
        assert_eq!(rng.magnitude(4, 4), 4);
        rng.between(0, u64::MAX);
        rng.magnitude(0, u64::MAX);
    }

    #[test]
    fn small_magnitudes_come_as_often_as_large_ones() {
        let mut rng = Rng::new(11);
        let small = (0..10_000)
            .filter(|_| rng.magnitude(0, 1 << 20) < 1 << 10)
            .count();
        assert!(
            (4_000..7_000).contains(&small),
            "{small} of 10,000 below the geometric middle"
        );
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Rng::new(5).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
