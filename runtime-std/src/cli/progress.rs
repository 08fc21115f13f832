//! How far a transfer is: a bar on a terminal, a line now and then elsewhere, events with `--json`.

use core::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::console::{Console, line};
use super::size::show_bytes;
use crate::clock;

/// Pause between lines where no bar can be drawn.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Pause between progress events.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);

/// Redraws of the bar in a second.
const BAR_HZ: u8 = 10;

/// Progress of one file.
pub(super) struct Progress<'a> {
    console: &'a Console,
    /// URL of the source, for events.
    url: &'a str,
    name: String,
    total: Option<u64>,
    /// Bytes that were there at the start.
    first: u64,
    started: Duration,
    /// Time and bytes of the last line or event.
    last: (Duration, u64),
    bar: Option<ProgressBar>,
}

impl<'a> Progress<'a> {
    /// Begins with `first` bytes of `total` in place.
    pub(super) fn new(
        console: &'a Console,
        url: &'a str,
        name: String,
        total: Option<u64>,
        first: u64,
    ) -> Self {
        let now = clock::now();
        let is_bar = console.is_terminal() && !console.is_quiet();
        let bar = is_bar.then(|| bar(&name, total, first));
        Self {
            console,
            url,
            name,
            total,
            first,
            started: now,
            last: (now, first),
            bar,
        }
    }

    /// `bytes` are in place.
    pub(super) fn update(&mut self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
            if !self.console.is_json() {
                return;
            }
        }
        let now = clock::now();
        let interval = if self.console.is_json() {
            EVENT_INTERVAL
        } else {
            LINE_INTERVAL
        };
        let (since, before) = (
            now.saturating_sub(self.last.0),
            bytes.saturating_sub(self.last.1),
        );
        if since < interval {
            return;
        }
        self.last = (now, bytes);
        let rate = rate(before, since);
        if self.console.is_json() {
            self.console.event(&json!({
                "event": "progress", "url": self.url, "bytes": bytes, "size": self.total, "bytes_per_second": rate,
            }));
        } else if !self.console.is_quiet() {
            line(&format!(
                "{}: {}",
                self.name,
                status(bytes, self.total, rate)
            ));
        }
    }

    /// Takes the bar away and says nothing: what went wrong is said elsewhere.
    pub(super) fn stop(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Everything is in place.
    pub(super) fn finish(self, bytes: u64) {
        let took = clock::now().saturating_sub(self.started);
        let rate = rate(bytes.saturating_sub(self.first), took);
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.console.event(&json!({
            "event": "done", "url": self.url, "bytes": bytes, "resumed_at": self.first,
            "seconds": took.as_secs_f64(), "bytes_per_second": rate,
        }));
        if !self.console.is_quiet() && !self.console.is_json() {
            let (size, rate, took) = (show_bytes(bytes), show_bytes(rate), took.as_secs_f64());
            line(&format!("{}: {size} in {took:.1} s ({rate}/s)", self.name));
        }
    }
}

fn bar(name: &str, total: Option<u64>, first: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(BAR_HZ);
    let bar = ProgressBar::with_draw_target(total, target);
    let template = if total.is_some() {
        "{msg} [{bar:24}] {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}"
    } else {
        "{msg} {binary_bytes} {binary_bytes_per_sec}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(name.to_owned());
    bar.set_position(first);
    bar.reset_eta();
    bar
}

fn status(bytes: u64, total: Option<u64>, rate: u64) -> String {
    let (done, speed) = (show_bytes(bytes), show_bytes(rate));
    let Some(total) = total.filter(|&total| total >= bytes && total > 0) else {
        return format!("{done}, {speed}/s");
    };
    let percent = u128::from(bytes) * 100 / u128::from(total);
    let left = (total - bytes).checked_div(rate);
    let left = left
        .map(|seconds| format!(", {seconds} s left"))
        .unwrap_or_default();
    format!(
        "{done} of {} ({percent} %), {speed}/s{left}",
        show_bytes(total)
    )
}

/// Bytes per second.
fn rate(bytes: u64, time: Duration) -> u64 {
    let per_second = u128::from(bytes) * 1_000_000_000 / time.as_nanos().max(1);
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_known() {
        assert_eq!(status(1 << 20, None, 2048), "1.0 MiB, 2.0 KiB/s");
        assert_eq!(
            status(1 << 20, Some(4 << 20), 1 << 20),
            "1.0 MiB of 4.0 MiB (25 %), 1.0 MiB/s, 3 s left"
        );
        assert_eq!(status(0, Some(4), 0), "0 B of 4 B (0 %), 0 B/s");
        // Sizes that lie.
        assert_eq!(status(5, Some(4), 1), "5 B, 1 B/s");
        assert_eq!(status(5, Some(0), 1), "5 B, 1 B/s");
        assert_eq!(rate(10, Duration::from_millis(500)), 20);
        assert_eq!(rate(0, Duration::ZERO), 0);
    }
}
