//! Every combination of a handful of choices, one run each.
//!
//! Aim: prove small cases by trying all of them. Method: a run asks `pick(n)` wherever it has a
//! choice; the odometer replays the same choices and turns the last one that can still turn, as
//! the wheels of a mileage counter do. Runs may ask for different numbers of choices.

/// The choices of one run, and how to get to the next.
#[derive(Clone, Debug, Default)]
pub struct Odometer {
    /// Each choice as (taken, count).
    wheels: Vec<(usize, usize)>,
    at: usize,
}

impl Odometer {
    /// Starts with the first option everywhere.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Picks one of `count` options.
    ///
    /// # Panics
    /// If `count` is 0, or differs from what the same place of the run asked before: then the run
    /// isn't a function of its choices.
    pub fn pick(&mut self, count: usize) -> usize {
        assert!(count > 0, "nothing to pick from");
        if self.at == self.wheels.len() {
            self.wheels.push((0, count));
        }
        let (taken, known) = self.wheels[self.at];
        assert_eq!(known, count, "choice {} differs between runs", self.at);
        self.at += 1;
        taken
    }

    /// Turns to the next combination; `false` after the last one.
    pub fn advance(&mut self) -> bool {
        self.wheels.truncate(self.at);
        self.at = 0;
        while let Some((taken, count)) = self.wheels.pop() {
            if taken + 1 < count {
                self.wheels.push((taken + 1, count));
                return true;
            }
        }
        false
    }

    /// Returns the choices of this run, for a failure's report.
    #[must_use]
    pub fn choices(&self) -> Vec<usize> {
        self.wheels.iter().map(|(taken, _)| *taken).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_permutations_come_once_each() {
        let (mut odometer, mut seen) = (Odometer::new(), Vec::new());
        loop {
            let mut left: Vec<u8> = (0..4).collect();
            let order: Vec<u8> = (0..4)
                .map(|_| left.remove(odometer.pick(left.len())))
                .collect();
            seen.push(order);
            if !odometer.advance() {
                break;
            }
        }
        assert_eq!(seen.len(), 24);
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 24);
    }

    #[test]
    fn later_choices_may_depend_on_earlier_ones() {
        let (mut odometer, mut runs) = (Odometer::new(), Vec::new());
        loop {
            if odometer.pick(2) == 1 {
                odometer.pick(3);
            }
            runs.push(odometer.choices());
            if !odometer.advance() {
                break;
            }
        }
        assert_eq!(runs, [vec![0], vec![1, 0], vec![1, 1], vec![1, 2]]);
    }
}
