//! How many bytes may be outstanding, and how long one READ is.
//!
//! The window counts bytes, not requests. It looks for the path's bandwidth and its shortest round trip and keeps
//! their product in flight, with headroom; what has arrived and not been consumed counts against the memory,
//! [`WindowConfig::window_bytes_max`], not against the path:
//!
//! | phase | window | leaves it when |
//! | --- | --- | --- |
//! | startup | grows by the bytes that arrive, so it doubles each round trip | a round trip brought no more rate and took longer, or three brought no more rate |
//! | steady | 1.5 x rate x shortest round trip | the shortest round trip is 10 s old, or all of a round took twice as long |
//! | drain | 0.75 x rate x shortest round trip | a round trip began below that window and ended |
//!
//! The drain empties the queue that the headroom builds, so that the next round trip is measured without it, and
//! counts from then on; while that makes it shorter, the drain goes on. A round that took twice as long has met a
//! slower path, whose old rates are forgotten, or a longer one: the drain tells which.
//! After BBR (draft-ietf-ccwg-bbr), for requests instead of packets and without pacing: the server
//! sends as fast as the path takes.

mod chunk;
#[cfg(test)]
mod tests;

pub use chunk::Chunk;

use core::time::Duration;

use crate::time::Instant;

/// Window before anything is known: reaches 375 MB (10 Gbit/s x 300 ms) in ten doublings.
const INITIAL: u64 = 512 * 1024;
/// Smallest window: two of the smallest requests keep a path busy that is slower than anything measured.
/// A drain goes down to half of it, so that what it measures does not lift the window above it.
const MIN: u64 = 32 * 1024;
/// Smallest window while the round trip is shorter than [`ROUND_TRIP_MIN`]. There it is the pace of processes on busy
/// processors that varies, by more than the path takes; 8 ms of 1 Gbit/s are a harmless queue.
const MIN_LOCAL: u64 = 1024 * 1024;
/// Round trips below this are taken for this: on a loopback path the server's own pace needs some slack.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(1);
/// A measured round trip is trusted for this long (BBR: 10 s).
const ROUND_TRIP_AGE_MAX: Duration = Duration::from_secs(10);
/// The highest of so many rounds' rates counts (BBR: 10).
const RATE_ROUNDS: usize = 10;
/// Rounds in a row without a rise of a quarter that end the startup (BBR: 3).
const FLAT_ROUNDS: u32 = 3;

/// With at most so many requests each is as long as the server allows: their number is the limit, not the window.
const REQUESTS_FEW: usize = 4;

/// How the window is set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct WindowConfig {
    /// Most bytes outstanding and unconsumed together. Default 64 MiB. Each download has at most three quarters of
    /// what the others leave, so that one whose consumer stalls never stops the others. Too small: the path idles (it
    /// needs bandwidth x round trip). Too large: a consumer that stalls leaves so much in memory.
    pub window_bytes_max: u64,
    /// Receive window of the channel below, in bytes, if it has one, less the credit that its client may withhold.
    /// A server that answers in order and may not send could never read what lets it go on: so replies with their
    /// headers are kept below this, until the server shows that it treats the channel apart from its requests.
    /// Default `None`.
    pub channel_bytes: Option<u64>,
    /// Bytes outstanding, fixed; `None`, the default, adapts them to the path.
    pub fixed: Option<u64>,
    /// Longest READ in bytes; `None`, the default, takes what the server allows.
    pub read_len_max: Option<u32>,
    /// Most requests outstanding. Default: no bound but the table's.
    pub requests_max: usize,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self {
            window_bytes_max: 64 * 1024 * 1024,
            channel_bytes: None,
            fixed: None,
            read_len_max: None,
            requests_max: usize::MAX,
        }
    }
}

impl WindowConfig {
    /// Sets [`Self::window_bytes_max`].
    #[must_use]
    pub const fn with_window_bytes_max(mut self, bytes: u64) -> Self {
        self.window_bytes_max = bytes;
        self
    }

    /// Sets [`Self::channel_bytes`].
    #[must_use]
    pub const fn with_channel_bytes(mut self, bytes: Option<u64>) -> Self {
        self.channel_bytes = bytes;
        self
    }

    /// Sets [`Self::fixed`].
    #[must_use]
    pub const fn with_fixed(mut self, bytes: u64) -> Self {
        self.fixed = Some(bytes);
        self
    }

    /// Sets [`Self::read_len_max`].
    #[must_use]
    pub const fn with_read_len_max(mut self, bytes: u32) -> Self {
        self.read_len_max = Some(bytes);
        self
    }

    /// Sets [`Self::requests_max`].
    #[must_use]
    pub const fn with_requests_max(mut self, requests: usize) -> Self {
        self.requests_max = requests;
        self
    }
}

/// What the window notes when a request leaves, and needs back when its reply comes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sample {
    /// When the request left.
    pub sent_at: Instant,
    /// Bytes that had arrived by then, and when the last of them had.
    delivered: u64,
    delivered_at: Instant,
}

impl Sample {
    pub(crate) fn at(now: Instant) -> Self {
        Self {
            sent_at: now,
            delivered: 0,
            delivered_at: now,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Startup {
        rate_full: u64,
        flat_rounds: u32,
    },
    Steady,
    /// `since` is set once no more than the drained window is in flight: when, and the shortest round trip then.
    Drain {
        since: Option<(Instant, Duration)>,
    },
}

const STARTUP: Phase = Phase::Startup {
    rate_full: 0,
    flat_rounds: 0,
};

/// The window of one session.
#[derive(Debug)]
pub struct Window {
    config: WindowConfig,
    /// Most bytes in flight: as configured, and for the time being below the channel's window.
    bytes_max: u64,
    chunk: Chunk,
    phase: Phase,
    /// Bytes that the path takes.
    bytes: u64,
    in_flight: u64,
    unconsumed: u64,
    delivered: u64,
    delivered_at: Instant,
    /// The round ends with the first reply to a request that left after `round_delivered` bytes had come.
    round_delivered: u64,
    /// Most bytes in flight during the round.
    round_in_flight: u64,
    round_trip_of_round: Option<Duration>,
    round_trip_min: Option<(Duration, Instant)>,
    rates: [u64; RATE_ROUNDS],
    round: usize,
    /// Most requests outstanding after stalls; `None` if there were none.
    requests_after_stall: Option<usize>,
}

impl Window {
    /// Makes a window for READs of up to `read_len_max` bytes.
    #[must_use]
    pub fn new(config: WindowConfig, read_len_max: u32) -> Self {
        // Headers of 13 bytes are below 1/32 of replies from 512 bytes on, the smallest that are asked for.
        let channel = config
            .channel_bytes
            .map_or(u64::MAX, |bytes| bytes - bytes / 32);
        let bytes_max = config.window_bytes_max.min(channel);
        let bytes = config.fixed.unwrap_or(INITIAL).min(bytes_max);
        Self {
            config,
            bytes_max,
            chunk: Chunk::new(config.read_len_max.unwrap_or(u32::MAX).min(read_len_max)),
            phase: STARTUP,
            bytes,
            in_flight: 0,
            unconsumed: 0,
            delivered: 0,
            delivered_at: Instant::ZERO,
            round_delivered: 0,
            round_in_flight: 0,
            round_trip_of_round: None,
            round_trip_min: None,
            rates: [0; RATE_ROUNDS],
            round: 0,
            requests_after_stall: None,
        }
    }

    /// Bytes that may be outstanding and unconsumed together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
            .saturating_add(self.unconsumed)
            .min(self.config.window_bytes_max)
    }

    /// Bytes asked for that have not arrived.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Bytes that arrived and were not consumed.
    #[must_use]
    pub fn unconsumed(&self) -> u64 {
        self.unconsumed
    }

    /// The highest rate of the last rounds, in bytes a second; 0 before the first measurement.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or_default()
    }

    /// The shortest round trip of the last seconds.
    #[must_use]
    pub fn round_trip_min(&self) -> Option<Duration> {
        self.round_trip_min.map(|(round_trip, _)| round_trip)
    }

    /// True after a stall, unless it has turned out to be a pause.
    #[must_use]
    pub fn has_stalled(&self) -> bool {
        self.requests_after_stall.is_some()
    }

    /// Most requests outstanding.
    #[must_use]
    pub fn requests_max(&self) -> usize {
        self.config
            .requests_max
            .min(self.requests_after_stall.unwrap_or(usize::MAX))
    }

    /// The longest READ that a download may send now which holds `held` bytes in flight and unconsumed; 0 if the window
    /// is full, or its part of the memory.
    ///
    /// One request may always leave while nothing is outstanding or unconsumed, however small the window. A download
    /// that `is_serial` gets READs as long as the server allows, for they go one at a time.
    #[must_use]
    pub fn read_len(&self, held: u64, is_serial: bool) -> u32 {
        let whole = self.chunk.len_max();
        let len = self.next_len();
        let used = self.in_flight + self.unconsumed;
        if used == 0 {
            return if is_serial { whole } else { len };
        }
        let left_by_others = self
            .config
            .window_bytes_max
            .saturating_sub(used.saturating_sub(held));
        let of_window = self.bytes.saturating_sub(self.in_flight);
        let of_memory = (left_by_others / 4 * 3).saturating_sub(held);
        let room = u32::try_from(of_window.min(of_memory)).unwrap_or(u32::MAX);
        match room {
            room if room < len => 0,
            room if is_serial => whole.min(room),
            _ => len,
        }
    }

    /// The longest READ to send now that fills a gap of a download with nothing in flight, though [`Self::read_len`]
    /// is 0; 0 if none may leave.
    ///
    /// A stream may wait for the gap while all that came behind it lies unconsumed, and fills its part of the memory:
    /// only the gap's bytes bring it on. They had their place when they were asked first.
    #[must_use]
    pub fn gap_len(&self) -> u32 {
        let len = self.next_len();
        let next = u64::from(len);
        let used = self.in_flight + self.unconsumed + next;
        let has_room = self.in_flight + next <= self.bytes && used <= self.config.window_bytes_max;
        if self.in_flight == 0 || has_room {
            len
        } else {
            0
        }
    }

    fn next_len(&self) -> u32 {
        if self.config.fixed.is_some() || self.requests_max() <= REQUESTS_FEW {
            self.chunk.len_max()
        } else {
            self.chunk.len(self.bytes)
        }
    }

    /// Learns the server's limit on READs.
    pub fn handle_limit(&mut self, read_len_max: u32) {
        self.chunk = Chunk::new(
            self.config
                .read_len_max
                .unwrap_or(u32::MAX)
                .min(read_len_max),
        );
    }

    /// The server takes requests in while its replies wait for the channel: its window is no bound any more.
    pub fn lift_channel(&mut self) {
        self.bytes_max = self.config.window_bytes_max;
        if let Some(bytes) = self.config.fixed {
            self.set_bytes(bytes);
        }
    }

    /// A READ of `len` bytes leaves.
    pub fn handle_sent(&mut self, now: Instant, len: u32) -> Sample {
        if self.in_flight == 0 {
            // An idle path says nothing about its rate.
            self.delivered_at = now;
        }
        self.chunk.handle_sent(len);
        self.in_flight += u64::from(len);
        self.round_in_flight = self.round_in_flight.max(self.in_flight);
        let (delivered, delivered_at) = (self.delivered, self.delivered_at);
        Sample {
            sent_at: now,
            delivered,
            delivered_at,
        }
    }

    /// The first byte of a DATA reply has come.
    pub fn handle_first_byte(&mut self, now: Instant, sample: &Sample) {
        let round_trip = now.saturating_duration_since(sample.sent_at);
        let of_round = self
            .round_trip_of_round
            .map_or(round_trip, |least| least.min(round_trip));
        self.round_trip_of_round = Some(of_round);
        if self
            .round_trip_min
            .is_none_or(|(least, _)| round_trip <= least)
        {
            self.round_trip_min = Some((round_trip, now));
        }
    }

    /// `len` bytes of data have come, and were handed on.
    pub fn handle_data(&mut self, now: Instant, len: usize) {
        let len = u64::try_from(len).unwrap_or(u64::MAX);
        self.in_flight = self.in_flight.saturating_sub(len);
        self.unconsumed += len;
        self.delivered += len;
        self.delivered_at = now;
        if matches!(self.phase, Phase::Startup { .. }) && self.config.fixed.is_none() {
            self.set_bytes(self.bytes.saturating_add(len).min(self.startup_max()));
        }
    }

    /// A DATA reply to a READ of `asked` bytes is complete with `got` of them. `is_within` tells that all that
    /// was asked lies before the file's announced end, so that a short reply says something of the server.
    pub fn handle_reply(
        &mut self,
        now: Instant,
        sample: &Sample,
        asked: u32,
        got: u32,
        is_within: bool,
    ) {
        self.in_flight = self
            .in_flight
            .saturating_sub(u64::from(asked.saturating_sub(got)));
        if is_within || got == asked {
            self.chunk.handle_reply(asked, got);
        }
        let interval = now.saturating_duration_since(sample.delivered_at);
        // Shorter than that and the clock of the driver's turns is measured, not the path.
        if interval >= ROUND_TRIP_MIN {
            let bytes = self.delivered - sample.delivered;
            let rate = rate(bytes, interval);
            let slot = &mut self.rates[self.round % RATE_ROUNDS];
            *slot = rate.max(*slot);
        }
        if sample.delivered >= self.round_delivered {
            self.end_round(now);
        }
    }

    /// `bytes` were asked for and will not come.
    pub fn handle_discarded(&mut self, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// `bytes` that had arrived are consumed.
    pub fn handle_consumed(&mut self, bytes: u64) {
        self.unconsumed = self.unconsumed.saturating_sub(bytes);
    }

    /// Nothing has come for long: the path is measured anew, and few requests are sent at once, since some servers
    /// drop what goes beyond a number.
    pub fn handle_stall(&mut self) {
        self.phase = STARTUP;
        self.rates = [0; RATE_ROUNDS];
        self.round_trip_min = None;
        if self.config.fixed.is_none() {
            self.set_bytes(INITIAL);
        }
        self.requests_after_stall = Some(match self.requests_after_stall {
            None => 4,
            Some(_) => 1,
        });
    }

    /// A reply that was given up has come: nothing had been dropped, the path had only paused.
    pub fn handle_late_reply(&mut self) {
        self.requests_after_stall = None;
    }

    fn set_bytes(&mut self, bytes: u64) {
        self.bytes = bytes.max(self.bytes_min()).min(self.bytes_max);
    }

    fn bytes_min(&self) -> u64 {
        let is_local = self
            .round_trip_min()
            .is_some_and(|round_trip| round_trip < ROUND_TRIP_MIN);
        let min = if is_local { MIN_LOCAL } else { MIN };
        match self.phase {
            Phase::Drain { .. } => min / 2,
            Phase::Startup { .. } | Phase::Steady => min,
        }
    }

    fn round_trip(&self) -> Duration {
        self.round_trip_min()
            .unwrap_or_default()
            .max(ROUND_TRIP_MIN)
    }

    /// Rate x round trip, in bytes.
    fn product(&self) -> u64 {
        let bytes = u128::from(self.rate()) * self.round_trip().as_nanos() / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// While starting up, the window may be so far ahead of what has been measured (BBR: 2.885).
    fn startup_max(&self) -> u64 {
        if self.rate() == 0 {
            return u64::MAX;
        }
        self.product().saturating_mul(3).max(INITIAL)
    }

    fn end_round(&mut self, now: Instant) {
        self.round_delivered = self.delivered;
        let round_trip = self.round_trip_of_round.take();
        let in_flight = core::mem::replace(&mut self.round_in_flight, self.in_flight);
        let bytes = self.bytes.min(self.config.window_bytes_max / 4 * 3);
        // A quarter of slack: the window may have grown since the last request left.
        if in_flight + in_flight / 4 + u64::from(self.next_len()) <= bytes {
            // Something else kept the requests few: one at a time, a slow consumer, the end of the file. That says nothing of
            // the path, and must not make the window smaller.
            return;
        }
        match self.phase {
            Phase::Startup {
                rate_full,
                flat_rounds,
            } => {
                let rate = self.rate();
                self.phase = if rate == 0 || rate / 5 * 4 >= rate_full {
                    Phase::Startup {
                        rate_full: rate,
                        flat_rounds: 0,
                    }
                } else {
                    let least = self.round_trip();
                    let queued = round_trip.is_some_and(|last| last > least + least / 4);
                    let flat_rounds = flat_rounds + 1;
                    if queued || flat_rounds == FLAT_ROUNDS {
                        Phase::Drain { since: None }
                    } else {
                        Phase::Startup {
                            rate_full,
                            flat_rounds,
                        }
                    }
                };
            }
            Phase::Steady => {
                let measured_at = self.round_trip_min.map_or(now, |(_, at)| at);
                let is_old = now.saturating_duration_since(measured_at) > ROUND_TRIP_AGE_MAX;
                // At its smallest the window may well be more than the path takes.
                let is_slow = self.bytes > self.bytes_min()
                    && round_trip.is_some_and(|least| least > self.round_trip() * 2);
                if is_slow {
                    self.forget_rates();
                }
                if is_old || is_slow {
                    self.phase = Phase::Drain { since: None };
                }
            }
            Phase::Drain { since } => self.drain(now, since, round_trip),
        }
        self.round += 1;
        self.rates[self.round % RATE_ROUNDS] = 0;
        self.follow();
    }

    /// Goes on from the drain once a whole round trip began with the queue empty: it is what the path takes now. If it
    /// is shorter than before, there may be more queue below, and the drain goes on.
    fn drain(
        &mut self,
        now: Instant,
        since: Option<(Instant, Duration)>,
        round_trip: Option<Duration>,
    ) {
        let Some((began_at, before)) = since else {
            // The path may have become slower: what it took before says nothing.
            self.forget_rates();
            self.follow();
            if self.in_flight <= self.bytes.max(self.product()) {
                self.begin_measuring(now);
            }
            return;
        };
        if now.saturating_duration_since(began_at) < self.round_trip() {
            return;
        }
        if let Some(least) = round_trip {
            self.round_trip_min = Some((least, now));
        }
        if self.round_trip() < before / 8 * 7 {
            self.begin_measuring(now);
        } else {
            self.phase = Phase::Steady;
        }
    }

    /// Forgets the rates of all rounds but this one.
    fn forget_rates(&mut self) {
        let slot = self.round % RATE_ROUNDS;
        let rate = self.rates[slot];
        if rate > 0 {
            self.rates = [0; RATE_ROUNDS];
            self.rates[slot] = rate;
        }
    }

    fn begin_measuring(&mut self, now: Instant) {
        let since = Some((now, self.round_trip()));
        self.phase = Phase::Drain { since };
    }

    /// Sets the window to what the phase makes of the measured path.
    fn follow(&mut self) {
        if self.config.fixed.is_some() || self.rate() == 0 {
            return;
        }
        match self.phase {
            Phase::Startup { .. } => {}
            Phase::Steady => self.set_bytes(self.product().saturating_mul(3) / 2),
            Phase::Drain { .. } => self.set_bytes(self.product().saturating_mul(3) / 4),
        }
    }
}

/// Bytes a second.
fn rate(bytes: u64, interval: Duration) -> u64 {
    let per_second = u128::from(bytes) * 1_000_000_000 / interval.as_nanos().max(1);
    u64::try_from(per_second).unwrap_or(u64::MAX)
}
