//! How a client behaves.

use core::time::Duration;

use longhaul_core::engine;
use longhaul_core::window::WindowConfig;

use crate::transport::Connection;

/// How a [`Client`](super::Client) behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Bytes in flight; `None`, the default, finds out what the path holds.
    pub window_bytes: Option<u64>,
    /// Most memory for what is in flight or has arrived and was not taken, in bytes. Default 48 MiB, of which one
    /// download gets 27 MiB in flight: that fills 1 Gbit/s at 150 ms. Too small: the path idles. Too large: only memory.
    pub memory_max: u64,
    /// Longest READ in bytes; `None`, the default, takes what the server allows.
    pub read_len_max: Option<u32>,
    /// Most requests in flight; `None`, the default, leaves that to the window.
    pub requests_max: Option<usize>,
    /// One request at a time, for servers that cannot take more.
    pub serial: bool,
    /// Longest time without any byte for an operation that waits for some; `None` waits for ever. Default 60 s.
    pub no_progress_max: Option<Duration>,
    /// Longest time until the server's first words; `None`, the default, is as [`Self::no_progress_max`], except over `ssh`,
    /// where a password may have to be typed first.
    pub handshake_max: Option<Duration>,
    /// Longest time for one operation as a whole: an open, a stat, a download; `None`, the default, sets no limit.
    pub operation_max: Option<Duration>,
}

/// Part of the memory that arrived bytes may take without counting against the window, and as much again for what is being
/// written.
const CREDIT_PART: u64 = 8;

/// Bytes of channel credit that `ssh` may hold back before it grants them anew: three packets of 32 KiB, rounded up.
const CREDIT_WITHHELD_BYTES: u64 = 128 << 10;

impl Default for Config {
    fn default() -> Self {
        Self {
            window_bytes: None,
            memory_max: 48 << 20,
            read_len_max: None,
            requests_max: None,
            serial: false,
            no_progress_max: Some(Duration::from_secs(60)),
            handshake_max: None,
            operation_max: None,
        }
    }
}

impl Config {
    /// Sets [`Self::window_bytes`].
    #[must_use]
    pub fn with_window_bytes(mut self, bytes: Option<u64>) -> Self {
        self.window_bytes = bytes;
        self
    }

    /// Sets [`Self::memory_max`].
    #[must_use]
    pub fn with_memory_max(mut self, bytes: u64) -> Self {
        self.memory_max = bytes;
        self
    }

    /// Sets [`Self::read_len_max`].
    #[must_use]
    pub fn with_read_len_max(mut self, bytes: u32) -> Self {
        self.read_len_max = Some(bytes);
        self
    }

    /// Sets [`Self::requests_max`].
    #[must_use]
    pub fn with_requests_max(mut self, requests: usize) -> Self {
        self.requests_max = Some(requests);
        self
    }

    /// Sets [`Self::serial`].
    #[must_use]
    pub fn with_serial(mut self, serial: bool) -> Self {
        self.serial = serial;
        self
    }

    /// Sets [`Self::no_progress_max`].
    #[must_use]
    pub fn with_no_progress_max(mut self, time: Option<Duration>) -> Self {
        self.no_progress_max = time;
        self
    }

    /// Sets [`Self::handshake_max`].
    #[must_use]
    pub fn with_handshake_max(mut self, time: Option<Duration>) -> Self {
        self.handshake_max = time;
        self
    }

    /// Sets [`Self::operation_max`].
    #[must_use]
    pub fn with_operation_max(mut self, time: Option<Duration>) -> Self {
        self.operation_max = time;
        self
    }

    /// Bytes on a shelf that do not count against the window.
    pub(super) fn credit(&self) -> u64 {
        self.memory_max / CREDIT_PART
    }

    /// The same for the core, over `connection`.
    pub(super) fn engine(&self, connection: &Connection) -> engine::Config {
        let adaptive = self.memory_max - 2 * self.credit();
        let mut window = WindowConfig::default()
            .with_window_bytes_max(self.window_bytes.map_or(adaptive, |bytes| {
                // One download gets three quarters of it.
                bytes.saturating_add(bytes / 3 + 1).max(adaptive)
            }))
            .with_channel_bytes(
                connection
                    .window_bytes
                    .map(|bytes| bytes.saturating_sub(CREDIT_WITHHELD_BYTES)),
            );
        if let Some(bytes) = self.window_bytes {
            window = window.with_fixed(bytes);
        }
        if let Some(bytes) = self.read_len_max {
            window = window.with_read_len_max(bytes);
        }
        if let Some(requests) = self.requests_max {
            window = window.with_requests_max(requests);
        }
        let no_progress_max = self.no_progress_max.unwrap_or(Duration::MAX);
        // ssh has limits of its own for all but the login.
        let is_ssh = connection.window_bytes.is_some();
        let handshake_max = if is_ssh {
            Duration::MAX
        } else {
            no_progress_max
        };
        engine::Config::default()
            .with_window(window)
            .with_no_progress_max(no_progress_max)
            .with_handshake_max(self.handshake_max.unwrap_or(handshake_max))
    }
}
