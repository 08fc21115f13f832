//! Time as the core sees it: an input, never a call.

use core::ops::Add;
use core::time::Duration;

/// A point in time, in nanoseconds since an epoch that the driver picks.
///
/// The driver passes it into every call and never lets it go back. It has no link to wall time.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(u64);

impl Instant {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);

    /// Makes the instant `nanos` nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero if `earlier` is later than `self`.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at the end of time, 584 years after the epoch.
    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// When the driver must call `handle_timeout` at the latest, and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Deadline {
    /// The point in time.
    pub at: Instant,
    /// What the deadline is for.
    pub cause: Cause,
}

impl Deadline {
    /// The earlier of two deadlines.
    pub(crate) fn earliest(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// What a [`Deadline`] is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// The server has not answered INIT.
    Handshake,
    /// An operation has requests outstanding and nothing has arrived for it.
    NoProgress,
    /// Nothing at all has arrived for a while: requests may have been dropped.
    Stall,
    /// Output waits: call `poll_transmit` or `poll_event` now.
    Transmit,
}
