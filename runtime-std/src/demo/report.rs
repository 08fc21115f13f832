//! What the demo found: a table, a chart, and whether it is as it should be.

use core::fmt::Write as _;
use core::time::Duration;

use serde_json::json;

use super::file::Sum;
use super::link::Shape;
use crate::cli::{Console, Exit, Failure, show_bytes};

/// Columns of the longest bar: with name and rate 80.
const BAR_LEN: u64 = 44;

/// Round trips that no client can do without: VERSION, the open file, the first bytes.
const ROUND_TRIPS: u32 = 3;

/// How much slower than the bound the adaptive window may be, and how much faster than one request at a time it must be.
const BOUND_PERCENT: u128 = 110;
const TIMES_MIN: u64 = 20;

/// One way to fetch, and how it went.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) name: &'static str,
    pub(super) bytes: u64,
    pub(super) took: Duration,
    pub(super) sum: Sum,
}

impl Run {
    /// Bytes per second.
    fn rate(&self) -> u64 {
        let rate = u128::from(self.bytes) * 1_000_000_000 / self.took.as_nanos().max(1);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

impl Run {
    /// An error unless the bytes that came have this sum.
    pub(super) fn check(&self, sum: Sum) -> Result<(), Failure> {
        if self.sum == sum {
            return Ok(());
        }
        let message = format!(
            "{}: the bytes that came are not those of the file",
            self.name
        );
        Err(Failure::new(Exit::Failed, message))
    }
}

/// The runs, slowest way first; the last is the adaptive one.
#[derive(Debug)]
pub(super) struct Report {
    shape: Shape,
    runs: Vec<Run>,
}

impl Report {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            runs: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, run: Run) {
        self.runs.push(run);
    }

    /// Takes the last run's place if it was faster.
    pub(super) fn improve(&mut self, run: Run) {
        if let Some(last) = self.runs.last_mut()
            && run.took < last.took
        {
            *last = run;
        }
    }

    /// The shortest time in which the link carries so much.
    fn bound(&self, bytes: u64) -> Duration {
        let nanos =
            u128::from(bytes) * 1_000_000_000 / u128::from(self.shape.bytes_per_second.max(1));
        self.shape.delay * 2 * ROUND_TRIPS
            + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    pub(super) fn show(&self, console: &Console) -> Result<(), Failure> {
        if console.is_json() {
            for run in &self.runs {
                console.event(&json!({
                    "event": "demo", "name": run.name, "bytes": run.bytes, "seconds": run.took.as_secs_f64(),
                    "bound_seconds": self.bound(run.bytes).as_secs_f64(), "bytes_per_second": run.rate(), "verified": true,
                }));
            }
            return Ok(());
        }
        console.print(&self.text())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let megabits = self.shape.bytes_per_second * 8 / 1_000_000;
        let millis = (self.shape.delay * 2).as_millis();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\nOver a link with a round trip of {millis} ms and {megabits} Mbit/s:\n"
        );
        let _ = writeln!(
            text,
            "{:<24}{:>12}{:>10}{:>16}{:>16}",
            "", "fetched", "time", "rate", "1 GiB takes"
        );
        for run in &self.runs {
            let gib = (1_u64 << 30) / run.rate().max(1);
            let rate = format!("{}/s", show_bytes(run.rate()));
            let took = format!("{:.2} s", run.took.as_secs_f64());
            let _ = writeln!(
                text,
                "{:<24}{:>12}{took:>10}{rate:>16}{:>14} s",
                run.name,
                show_bytes(run.bytes),
                gib
            );
        }
        text.push('\n');
        let link = self.shape.bytes_per_second;
        let bars = self.runs.iter().map(|run| (run.name, run.rate()));
        for (name, rate) in bars.chain([("the link", link)]) {
            let len = usize::try_from(rate.min(link) * BAR_LEN / link.max(1)).unwrap_or(0);
            let rate = format!("{}/s", show_bytes(rate));
            let _ = writeln!(text, "{name:<22} {:<44} {rate:>12}", "#".repeat(len.max(1)));
        }
        text.push('\n');
        if let (Some(slowest), Some(last)) = (self.runs.first(), self.runs.last()) {
            let times = last.rate() / slowest.rate().max(1);
            let bound = self.bound(last.bytes);
            let percent = last.took.as_nanos() * 100 / bound.as_nanos().max(1);
            let _ = write!(
                text,
                "Every byte is verified (SHA-256). The window that adapts is {times} times as fast as\n\
                 one request at a time, and takes {percent} % of the shortest time possible ({:.2} s).",
                bound.as_secs_f64()
            );
        }
        text
    }

    /// An error unless the adaptive window does what it is for.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let (Some(slowest), Some(last)) = (self.runs.first(), self.runs.last()) else {
            return Err(Failure::new(Exit::Failed, "nothing was measured"));
        };
        let hint = "is the machine busy? try again";
        if last.took.as_nanos() * 100 > self.bound(last.bytes).as_nanos() * BOUND_PERCENT {
            let message = "the adaptive window is more than 10 % slower than the link allows";
            return Err(Failure::new(Exit::Failed, message).with_hint(hint));
        }
        if last.rate() < slowest.rate().saturating_mul(TIMES_MIN) {
            let message =
                "the adaptive window is less than 20 times as fast as one request at a time";
            return Err(Failure::new(Exit::Failed, message).with_hint(hint));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(times_ms: [u64; 3]) -> Report {
        let mut report = Report::new(super::super::SHAPE);
        for ((name, bytes), ms) in [
            ("one request at a time", 2),
            ("64 requests, fixed", 128),
            ("window that adapts", 512),
        ]
        .into_iter()
        .zip(times_ms)
        {
            report.add(Run {
                name,
                bytes: bytes << 20,
                took: Duration::from_millis(ms),
                sum: [0; 32],
            });
        }
        report
    }

    #[test]
    fn table_and_chart_fit_80_columns() {
        let text = report([3900, 3900, 4600]).text();
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{} {line}", line.len());
        }
        assert!(
            text.contains("220 times") || text.contains("217 times"),
            "{text}"
        );
    }

    #[test]
    fn slow_runs_are_failures() {
        assert!(report([3900, 3900, 4600]).verdict().is_ok());
        assert!(report([3900, 3900, 5000]).verdict().is_err());
        assert!(report([300, 3900, 4600]).verdict().is_err());
        assert!(Report::new(super::super::SHAPE).verdict().is_err());
    }
}
