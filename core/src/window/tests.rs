//! Window against a path in miniature; the simulator has the whole tables.

use heapless::Deque;

use super::*;

const READ_LEN: u32 = 261_120;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A path that serves one request after the other, each at `rate` bytes a second, and is `round_trip` long.
struct Path {
    window: Window,
    now: Instant,
    free_at: Instant,
    round_trip: Duration,
    rate: u64,
    /// What is outstanding, with the moment of its reply.
    outstanding: Deque<(Instant, Sample, u32), 1024>,
}

impl Path {
    fn new(round_trip: Duration, rate: u64, config: WindowConfig) -> Self {
        Self {
            window: Window::new(config, READ_LEN),
            now: Instant::ZERO,
            free_at: Instant::ZERO,
            round_trip,
            rate,
            outstanding: Deque::new(),
        }
    }

    fn ask(&mut self) {
        loop {
            let len = self.window.read_len(0, false);
            if len == 0 {
                break;
            }
            let sample = self.window.handle_sent(self.now, len);
            let starts_at = self.free_at.max(self.now + self.round_trip);
            let nanos = u64::from(len) * 1_000_000_000 / self.rate;
            self.free_at = starts_at + Duration::from_nanos(nanos);
            let pushed = self.outstanding.push_back((starts_at, sample, len));
            assert!(pushed.is_ok(), "more than a thousand READs");
        }
    }

    /// Asks and takes replies for so long; consumes at once. Returns the bytes that came.
    fn run(&mut self, time: Duration) -> u64 {
        let (until, before) = (self.now + time, self.window.delivered);
        self.ask();
        while let Some((starts_at, sample, len)) = self.outstanding.pop_front() {
            self.now = starts_at.max(self.now);
            self.window.handle_first_byte(self.now, &sample);
            self.now = self.now + Duration::from_nanos(u64::from(len) * 1_000_000_000 / self.rate);
            let bytes = usize::try_from(len).expect("few");
            self.window.handle_data(self.now, bytes);
            self.window.handle_reply(self.now, &sample, len, len, true);
            self.window.handle_consumed(u64::from(len));
            if self.now >= until {
                break;
            }
            self.ask();
        }
        self.window.delivered - before
    }

    /// Window by product of rate and round trip, in percent.
    fn percent(&self) -> u64 {
        let product = u128::from(self.rate) * self.round_trip.as_nanos() / 1_000_000_000;
        self.window.bytes() * 100 / u64::try_from(product).expect("small")
    }
}

#[test]
fn startup_doubles_each_round_trip_and_ends_in_half_more_than_the_product() {
    let mut path = Path::new(ms(100), 100_000_000, WindowConfig::default());
    path.run(ms(101));
    assert!(matches!(path.window.phase, Phase::Startup { .. }));
    path.run(ms(240));
    assert!(
        path.window.bytes() >= 4 * INITIAL,
        "{}",
        path.window.bytes()
    );
    path.run(ms(2_000));
    assert_eq!(path.window.phase, Phase::Steady);
    assert!((145..=155).contains(&path.percent()), "{}", path.percent());
}

#[test]
fn a_short_round_trip_is_found_again_below_the_queue() {
    let mut path = Path::new(ms(100), 100_000_000, WindowConfig::default());
    path.run(ms(3_000));
    path.round_trip = ms(20);
    path.run(ms(12_000));
    assert!((145..=155).contains(&path.percent()), "{}", path.percent());
}

#[test]
fn a_slower_path_is_followed_before_the_round_trip_is_old() {
    let mut path = Path::new(ms(50), 100_000_000, WindowConfig::default());
    path.run(ms(2_000));
    path.rate = 10_000_000;
    path.run(ms(4_000));
    assert!((145..=155).contains(&path.percent()), "{}", path.percent());
}

#[test]
fn a_path_that_takes_less_than_the_floor_keeps_the_floor() {
    let mut path = Path::new(ms(1), 1_250_000, WindowConfig::default());
    for _ in 0..30 {
        path.run(ms(1_000));
    }
    assert_eq!(path.window.bytes(), MIN, "also after two drains");
}

#[test]
fn a_round_trip_below_a_millisecond_keeps_the_local_floor() {
    let mut path = Path::new(
        Duration::from_micros(50),
        100_000_000,
        WindowConfig::default(),
    );
    path.run(ms(2_000));
    assert!(
        path.window.bytes() >= MIN_LOCAL / 2,
        "{}",
        path.window.bytes()
    );
}

#[test]
fn a_fixed_window_stays() {
    let config = WindowConfig::default().with_fixed(2 << 20);
    let mut path = Path::new(ms(100), 100_000_000, config);
    let came = path.run(ms(1_000));
    assert_eq!(path.window.bytes(), 2 << 20);
    assert!(came <= 10 * (2 << 20), "{came}");
    path.window.handle_stall();
    assert_eq!(path.window.bytes(), 2 << 20);
}

#[test]
fn replies_with_their_headers_stay_below_the_channel_until_it_is_lifted() {
    let config = WindowConfig::default().with_channel_bytes(Some(1 << 20));
    let mut path = Path::new(ms(100), 100_000_000, config);
    path.run(ms(2_000));
    assert_eq!(path.window.bytes(), (1 << 20) - (1 << 15));
    path.window.lift_channel();
    path.run(ms(2_000));
    assert!(path.percent() >= 145, "{}", path.percent());

    let mut fixed = Window::new(config.with_fixed(4 << 20), READ_LEN);
    assert!(fixed.bytes() < 1 << 20);
    fixed.lift_channel();
    assert_eq!(fixed.bytes(), 4 << 20);
}

#[test]
fn each_download_has_three_quarters_of_what_the_others_leave() {
    let config = WindowConfig::default()
        .with_window_bytes_max(4 << 20)
        .with_fixed(4 << 20)
        .with_read_len_max(32 * 1024);
    let mut window = Window::new(config, READ_LEN);
    let mut fill = |held: &mut u64| {
        while window.read_len(*held, false) > 0 {
            let len = window.read_len(*held, false);
            let _ = window.handle_sent(Instant::ZERO, len);
            window.handle_data(Instant::ZERO, usize::try_from(len).expect("few"));
            *held += u64::from(len);
        }
        *held
    };
    assert_eq!(fill(&mut 0), 3 << 20);
    assert_eq!(fill(&mut 0), 3 << 18);
    assert!(window.gap_len() > 0, "there is room for a gap");
    assert!(window.in_flight() + window.unconsumed() < 4 << 20);
}

#[test]
fn a_gap_is_asked_though_all_that_came_lies_unconsumed() {
    let config = WindowConfig::default().with_window_bytes_max(64 * 1024);
    let mut window = Window::new(config, 32 * 1024);
    let asked = window.read_len(0, false);
    assert_eq!(asked, 16 * 1024);
    let mut held = 0;
    while window.read_len(held, false) > 0 {
        let _ = window.handle_sent(Instant::ZERO, asked);
        held += u64::from(asked);
    }
    assert_eq!(held, 48 * 1024);
    assert!(window.gap_len() > 0, "within the last quarter");
    let _ = window.handle_sent(Instant::ZERO, asked);
    assert_eq!(window.gap_len(), 0, "full, and something is on its way");
    window.handle_data(Instant::ZERO, 64 * 1024);
    assert_eq!((window.read_len(held, false), window.gap_len()), (0, asked));
}

#[test]
fn one_request_leaves_however_small_the_window() {
    let config = WindowConfig::default().with_window_bytes_max(1);
    let mut window = Window::new(config, READ_LEN);
    let len = window.read_len(0, false);
    assert!(len > 0);
    let _ = window.handle_sent(Instant::ZERO, len);
    assert_eq!(window.read_len(u64::from(len), false), 0);
    window.handle_discarded(u64::from(len));
    assert_eq!(window.read_len(0, false), len);
}

#[test]
fn a_stall_sends_few_at_once_and_a_late_reply_takes_that_back() {
    let mut path = Path::new(ms(100), 100_000_000, WindowConfig::default());
    path.run(ms(2_000));
    assert_eq!(path.window.requests_max(), usize::MAX);
    path.window.handle_stall();
    assert_eq!(path.window.requests_max(), 4);
    assert_eq!((path.window.phase, path.window.rate()), (STARTUP, 0));
    assert_eq!(path.window.round_trip_min(), None);
    assert_eq!(path.window.bytes(), INITIAL);
    path.window.handle_stall();
    assert_eq!(path.window.requests_max(), 1);
    path.window.handle_late_reply();
    assert_eq!(path.window.requests_max(), usize::MAX);
}
