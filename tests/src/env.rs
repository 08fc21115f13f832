//! How a run is steered from outside, and seeds are spread over threads.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `SIM_SEED` | run this one seed, decimal or with `0x` |
//! | `SIM_RUNS` | how many seeds to run |
//! | `SIM_JOBS` | how many threads; by default one for each processor |
//! | `SIM_TRACE` | print the last lines of the trace of a run that passes, too |

use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::rng::Rng;

/// Reads a number from the environment.
///
/// # Panics
/// If the variable is there and is no number: a typing error must not run something else.
#[must_use]
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let digits = text.trim().replace('_', "");
    let parsed = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    Some(parsed.unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

/// Runs `run` once for each seed: `SIM_SEED` alone, or `SIM_RUNS` of them (else `runs_default`),
/// over `SIM_JOBS` threads. `stream` keeps tests from running the same seeds.
///
/// # Panics
/// If a run does.
pub fn for_each_seed(stream: &str, runs_default: u64, run: impl Fn(u64) + Sync) {
    if let Some(seed) = number("SIM_SEED") {
        return run(seed);
    }
    let runs = number("SIM_RUNS").unwrap_or(runs_default);
    let jobs = number("SIM_JOBS")
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, |count| count.get() as u64));
    let (root, next) = (Rng::new(0).child(stream), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, runs.max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= runs {
                        return;
                    }
                    // After one failure the other threads stop too: its line is the one to read.
                    let stop = StopOnPanic(&next, runs);
                    run(root.child(&index.to_string()).draw());
                    core::mem::forget(stop);
                }
            });
        }
    });
}

/// Lets all threads come to an end when this one panics.
struct StopOnPanic<'a>(&'a AtomicU64, u64);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        self.0.store(self.1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn every_seed_runs_once_and_streams_differ() {
        let collect = |stream| {
            let seeds = Mutex::new(Vec::new());
            for_each_seed(stream, 100, |seed| {
                seeds.lock().expect("no panic").push(seed)
            });
            let mut seeds = seeds.into_inner().expect("no panic");
            seeds.sort_unstable();
            seeds
        };
        let (one, two) = (collect("one"), collect("two"));
        if number("SIM_SEED").is_none() {
            assert_eq!(one, collect("one"));
            assert_ne!(one, two);
            let len = one.len();
            assert_eq!(len as u64, number("SIM_RUNS").unwrap_or(100));
        }
    }

    #[test]
    #[should_panic = "a scoped thread panicked"]
    fn a_failing_seed_fails_the_whole() {
        for_each_seed("fails", 3, |_| panic!("on purpose"));
    }
}
