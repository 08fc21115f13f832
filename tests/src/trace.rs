//! The last lines of a run, the hash over all of it, and the line that replays it.
//!
//! Aim: two runs are equal if their hashes are, and a failure shows what led to it. Method: events
//! stay numbers until somebody wants to read them, so tracing costs next to nothing.

use alloc::collections::VecDeque;
use core::fmt;
use std::process::Command;

/// How many events are kept.
const KEPT: usize = 50;

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    at: u64,
    what: &'static str,
    numbers: [u64; 3],
}

/// The trace of one run. When it is dropped by a panic it prints itself with the replay command.
#[derive(Debug)]
pub struct Trace {
    test: &'static str,
    seed: u64,
    lines: VecDeque<Line>,
    count: u64,
    hash: u64,
}

impl Trace {
    /// Starts the trace of `seed` in the test file `test`.
    #[must_use]
    pub fn new(test: &'static str, seed: u64) -> Self {
        Self {
            test,
            seed,
            lines: VecDeque::with_capacity(KEPT),
            count: 0,
            hash: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Adds an event with up to three numbers that say more.
    pub fn note(&mut self, at: u64, what: &'static str, numbers: [u64; 3]) {
        let words = [at, numbers[0], numbers[1], numbers[2], what.len() as u64];
        for word in words.into_iter().chain(what.bytes().map(u64::from)) {
            self.hash = (self.hash ^ word)
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(23);
        }
        self.count += 1;
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(Line { at, what, numbers });
    }

    /// Returns the hash over every event so far.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the count of events so far.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the line to copy that runs this seed again.
    #[must_use]
    pub fn replay(&self) -> String {
        let command = format!(
            "SIM_SEED={:#x} cargo test --profile sim -p longhaul-tests --test {}",
            self.seed, self.test
        );
        match commit() {
            Some(commit) => format!("{command}  # commit {commit}"),
            None => command,
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out = self.count - self.lines.len() as u64;
        writeln!(
            formatter,
            "{left_out} earlier events left out; times in microseconds"
        )?;
        for Line {
            at,
            what,
            numbers: [a, b, c],
        } in &self.lines
        {
            writeln!(
                formatter,
                "{:>14}.{:03} {what} {a} {b} {c}",
                at / 1_000,
                at % 1_000
            )?;
        }
        Ok(())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{self}replay: {}", self.replay());
        }
    }
}

/// Returns the commit of the sources, if git is there to say.
fn commit() -> Option<String> {
    let args = ["rev-parse", "--short", "HEAD"];
    let output = Command::new("git")
        .args(args)
        .output()
        .ok()
        .filter(|out| out.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_events_give_equal_hashes_and_others_differ() {
        let hash = |events: &[(u64, &'static str, [u64; 3])]| {
            let mut trace = Trace::new("safety", 1);
            events
                .iter()
                .for_each(|(at, what, numbers)| trace.note(*at, what, *numbers));
            trace.hash()
        };
        let base = hash(&[(1, "sent", [1, 2, 3]), (2, "received", [4, 5, 6])]);
        assert_eq!(
            base,
            hash(&[(1, "sent", [1, 2, 3]), (2, "received", [4, 5, 6])])
        );
        assert_ne!(
            base,
            hash(&[(2, "received", [4, 5, 6]), (1, "sent", [1, 2, 3])])
        );
        assert_ne!(
            base,
            hash(&[(1, "sent", [1, 2, 3]), (2, "received", [4, 5, 7])])
        );
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut trace = Trace::new("safety", 0x2a);
        (0..1_000).for_each(|at| trace.note(at * 1_000, "step", [at, 0, 0]));
        let text = trace.to_string();
        assert!(text.starts_with("950 earlier events left out"));
        assert!(text.contains("999.000 step 999 0 0"));
        assert_eq!(text.lines().count(), 51);
        let replay = trace.replay();
        assert!(
            replay.starts_with(
                "SIM_SEED=0x2a cargo test --profile sim -p longhaul-tests --test safety"
            )
        );
    }
}
