//! The one place that reads the clock.

use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant;

/// Time since the first call in this process.
pub(crate) fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    START.get_or_init(Instant::now).elapsed()
}
