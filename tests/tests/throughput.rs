//! How fast a download is, for each round trip and rate of the path.
//!
//! Aim: the window finds the path's rate by itself, keeps the path full, and keeps little more in flight than it
//! takes. Method: the engine against the model server over a link of exact latency and rate, in virtual time; the
//! payload that arrives is counted for each round trip from the first READ on. `tests/golden/throughput.txt` holds a
//! table of virtual throughput, compared exactly; `UPDATE_GOLDEN=1` rewrites it.

use core::fmt::Write as _;
use std::path::Path;

use longhaul_core::Instant;
use longhaul_core::download::DownloadConfig;
use longhaul_core::engine::{Command, Config, Engine, Event, OpEvent, OpId, Outcome};
use longhaul_core::window::WindowConfig;
use longhaul_tests::file::FileHistory;
use longhaul_tests::link::{Chunking, Link, LinkConfig};
use longhaul_tests::model::{ModelServer, Quirks};
use longhaul_tests::rng::Rng;
use longhaul_tests::{MS, SECOND};

/// Bits a second.
const GIGABIT: u64 = 1_000_000_000;
/// Bits a second.
const MEGABIT: u64 = 1_000_000;
/// The window's documented floor, in bytes.
const FLOOR: u64 = 32 * 1024;
/// More than any run downloads.
const SIZE: u64 = 1 << 50;

/// A download that never ends, of which every byte is consumed at once.
struct Run {
    engine: Box<Engine<2, 4096, 4>>,
    server: ModelServer,
    link: Link,
    out: Vec<u8>,
    now: u64,
    rtt: u64,
    open: Option<OpId>,
    /// When the first READ left.
    began: u64,
    /// Payload by round trip from then on.
    rounds: Vec<u64>,
    /// The most bytes in flight since it was last looked at.
    in_flight: u64,
}

impl Run {
    /// Opens the file: the first READ has just left.
    fn new(rtt_ms: u64, rate: u64, window: WindowConfig) -> Self {
        let rng = Rng::new(1);
        let chunk = (product(rtt_ms, rate) / 16).clamp(64, 64 * 1024);
        let config = LinkConfig {
            chunking: Chunking::UpTo(usize::try_from(chunk).expect("small")),
            ..LinkConfig::new(rtt_ms, rate)
        };
        let mut run = Self {
            engine: Box::new(Engine::new(Config::default().with_window(window))),
            server: ModelServer::new(Quirks::default(), rng.child("server"))
                .with_file("f", FileHistory::new(1, SIZE)),
            link: Link::new(&config, &rng.child("link")),
            out: vec![0; 64 * 1024],
            now: 0,
            rtt: rtt_ms * MS,
            open: None,
            began: 0,
            rounds: Vec::new(),
            in_flight: 0,
        };
        let open = run.engine.submit(Instant::ZERO, Command::Open(b"f"));
        run.open = Some(open.expect("room"));
        while run.began == 0 {
            run.turn();
            if run.began == 0 {
                run.now = run.next_moment();
            }
        }
        run
    }

    /// Runs until so many nanoseconds after the first READ.
    fn run_to(&mut self, since_began: u64) {
        let at = self.began + since_began;
        while self.now < at {
            self.now = self.next_moment().min(at);
            self.turn();
        }
    }

    fn next_moment(&self) -> u64 {
        let deadline = self.engine.deadline().map(|due| due.at.as_nanos());
        let moments = [
            self.link.next_arrival(),
            self.server.poll_timeout(),
            deadline,
        ];
        let next = moments.into_iter().flatten().min();
        next.expect("a download goes on").max(self.now)
    }

    /// Does all that can be done at this moment.
    fn turn(&mut self) {
        let now = Instant::from_nanos(self.now);
        while let Some(piece) = self.link.server_receive(self.now) {
            self.server.handle_input(self.now, piece.bytes());
        }
        while let Some(packet) = self.server.poll_output(self.now) {
            for piece in packet {
                self.link.server_send(self.now, piece);
            }
        }
        while let Some(piece) = self.link.client_receive(self.now) {
            self.take(now, piece.bytes());
        }
        if self
            .engine
            .deadline()
            .is_some_and(|due| due.at.as_nanos() <= self.now)
        {
            self.engine.handle_timeout(now);
        }
        while let Some(event) = self.engine.poll_event() {
            if let OpEvent::Finished(op) = event {
                assert_eq!(self.open.take(), Some(op), "only OPEN ever ends");
                let Some(Ok(Outcome::Handle(handle))) = self.engine.take(op) else {
                    panic!("OPEN failed");
                };
                let config = DownloadConfig::default().with_size(Some(SIZE));
                self.engine.download(now, handle, config).expect("room");
                self.began = self.now;
            }
        }
        loop {
            let len = self.engine.poll_transmit(now, &mut self.out);
            if len == 0 {
                break;
            }
            self.link.client_send(self.now, &self.out[..len]);
        }
        self.in_flight = self.in_flight.max(self.engine.window().in_flight());
    }

    fn take(&mut self, now: Instant, mut input: &[u8]) {
        while let Some(event) = self.engine.handle_input(now, &mut input).expect("good") {
            if let Event::Data { op, bytes, .. } = event {
                let len = bytes.len() as u64;
                let round = usize::try_from((self.now - self.began) / self.rtt).expect("few");
                if self.rounds.len() <= round {
                    self.rounds.resize(round + 1, 0);
                }
                self.rounds[round] += len;
                self.engine.consume(now, op, len);
            }
        }
    }

    /// Payload that came from one moment after the first READ to another, as a part of what `rate` could have brought.
    fn share(&self, from: u64, to: u64, rate: u64) -> f64 {
        let index = |at: u64| usize::try_from(at / self.rtt).expect("few");
        let bytes: u64 = self.rounds[index(from)..index(to)].iter().sum();
        bytes as f64 / (rate as f64 / 8.0 * (to - from) as f64 / SECOND as f64)
    }

    /// The round trip, from 1, in which at least 95 % of `rate` came first, at or after the moment `from`.
    fn full_in_round(&self, from: u64, rate: u64) -> usize {
        let skip = usize::try_from(from / self.rtt).expect("few");
        let full = product(self.rtt / MS, rate) * 95 / 100;
        let rounds = self.rounds[skip..].iter();
        rounds.take_while(|bytes| **bytes < full).count() + 1
    }
}

/// Bytes that a path holds.
const fn product(rtt_ms: u64, rate: u64) -> u64 {
    rate / 8 * rtt_ms / 1000
}

fn adaptive() -> WindowConfig {
    WindowConfig::default().with_window_bytes_max(1 << 30)
}

/// Settled is what comes after 20 round trips, and not before two seconds: at 10 Mbit/s the window that every path
/// begins with takes 420 ms alone.
fn settled(rtt_ms: u64) -> u64 {
    (20 * rtt_ms * MS).max(2 * SECOND)
}

fn reaches_the_rate(rtt_ms: u64, rate: u64) {
    let mut run = Run::new(rtt_ms, rate, adaptive());
    let settled = settled(rtt_ms);
    run.run_to(settled);
    let startup = core::mem::take(&mut run.in_flight);
    // Longer than a measured round trip is trusted, so that one drain is part of it.
    let end = settled + if rate > GIGABIT { 3 } else { 13 } * SECOND;
    run.run_to(end);
    let (product, full) = (product(rtt_ms, rate), run.full_in_round(0, rate));
    let share = run.share(settled, end, rate);
    let in_flight = run.in_flight;
    eprintln!(
        "{rtt_ms} ms, {} Mbit/s: 95 % in round trip {full}; settled {:.1} %, {in_flight} in flight, {:.2} products; startup {startup}",
        rate / MEGABIT,
        share * 100.0,
        in_flight as f64 / product as f64,
    );
    assert!(full <= 12, "95 % of the link only in round trip {full}");
    assert!(
        in_flight <= FLOOR.max(2 * product),
        "{in_flight} bytes in flight on a path that holds {product}"
    );
    assert!(share >= 0.95, "a share of {share} once settled");
}

#[test]
fn ten_megabits_are_reached_in_twelve_round_trips() {
    for rtt_ms in [1, 20, 100, 300] {
        reaches_the_rate(rtt_ms, 10 * MEGABIT);
    }
}

#[test]
fn one_gigabit_is_reached_in_twelve_round_trips() {
    for rtt_ms in [1, 20, 100, 300] {
        reaches_the_rate(rtt_ms, GIGABIT);
    }
}

#[test]
fn ten_gigabits_are_reached_in_twelve_round_trips() {
    for rtt_ms in [1, 20, 100, 300] {
        reaches_the_rate(rtt_ms, 10 * GIGABIT);
    }
}

#[test]
fn a_minute_at_100_ms_averages_95_percent_from_the_first_read_on() {
    let mut run = Run::new(100, GIGABIT, adaptive());
    run.run_to(60 * SECOND);
    let share = run.share(0, 60 * SECOND, GIGABIT);
    eprintln!("60 s at 100 ms, 1 Gbit/s: {:.2} %", share * 100.0);
    assert!(share >= 0.95, "{share}");
}

#[test]
fn window_follows_a_rate_that_falls_to_a_tenth_and_rises_again() {
    for rtt_ms in [20, 100] {
        let mut run = Run::new(rtt_ms, GIGABIT, adaptive());
        run.run_to(8 * SECOND);
        run.link.down.set_rate(GIGABIT / 10);
        run.run_to(13 * SECOND);
        run.in_flight = 0;
        run.run_to(30 * SECOND);
        let slow = run.share(10 * SECOND, 30 * SECOND, GIGABIT / 10);
        let in_flight = run.in_flight;
        run.link.down.set_rate(GIGABIT);
        run.run_to(50 * SECOND);
        let again = run.full_in_round(30 * SECOND, GIGABIT);
        eprintln!(
            "{rtt_ms} ms, 1 Gbit/s to a tenth: {:.1} %, {:.2} products in flight after 5 s; back at 95 % in round trip {again}",
            slow * 100.0,
            in_flight as f64 / product(rtt_ms, GIGABIT / 10) as f64,
        );
        assert!(slow >= 0.95, "{slow}");
        assert!(
            in_flight <= 2 * product(rtt_ms, GIGABIT / 10),
            "{in_flight}"
        );
        // Half as much again in two round trips.
        assert!(again <= 16, "{again}");
        let rest = run.share(33 * SECOND, 50 * SECOND, GIGABIT);
        assert!(rest >= 0.95, "{rest}");
    }
}

#[test]
fn window_follows_a_round_trip_that_rises_and_falls_again() {
    let mut run = Run::new(20, GIGABIT, adaptive());
    run.run_to(5 * SECOND);
    // A server that takes 80 ms for each request is as far away as one behind 80 ms more of wire.
    run.server.quirks_mut().service = (80 * MS, 80 * MS);
    run.run_to(25 * SECOND);
    let full = run.full_in_round(5 * SECOND + 100 * MS, GIGABIT);
    let long = run.share(7 * SECOND, 25 * SECOND, GIGABIT);
    run.server.quirks_mut().service = (0, 0);
    // The queue that the shorter path leaves is found out when the measured round trip is ten seconds old.
    run.run_to(37 * SECOND);
    run.in_flight = 0;
    run.run_to(50 * SECOND);
    let short = run.share(26 * SECOND, 50 * SECOND, GIGABIT);
    let in_flight = run.in_flight as f64 / product(20, GIGABIT) as f64;
    eprintln!(
        "20 ms to 100 ms: 95 % again after {} ms, then {:.1} %; back: {:.1} %, {in_flight:.2} products in flight",
        full * 20 + 100,
        long * 100.0,
        short * 100.0,
    );
    assert!(full * 20 <= 12 * 100, "{full} short round trips");
    assert!(long >= 0.95, "{long}");
    assert!(short >= 0.95, "{short}");
    assert!(in_flight <= 2.0, "{in_flight}");
}

/// A column of the table.
type Column = (&'static str, fn() -> WindowConfig);

const COLUMNS: [Column; 4] = [
    ("1 x 32 KiB", || {
        WindowConfig::default()
            .with_fixed(32 * 1024)
            .with_read_len_max(32 * 1024)
            .with_requests_max(1)
    }),
    ("2 MiB", || WindowConfig::default().with_fixed(2 << 20)),
    ("16 MiB", || WindowConfig::default().with_fixed(16 << 20)),
    ("adaptive", WindowConfig::default),
];

fn table() -> String {
    let mut table = String::from(
        "# Virtual throughput in MB/s at 1 Gbit/s, over the first ten seconds from the first READ on.\n\
         # Written by tests/tests/throughput.rs: UPDATE_GOLDEN=1 cargo test -p longhaul-tests --test throughput\n\
         RTT/ms",
    );
    for (name, _) in COLUMNS {
        let _ = write!(table, "{name:>12}");
    }
    table.push('\n');
    for rtt_ms in [1, 5, 20, 50, 100, 200, 300] {
        let _ = write!(table, "{rtt_ms:>6}");
        for (_, window) in COLUMNS {
            let mut run = Run::new(rtt_ms, GIGABIT, window());
            run.run_to(10 * SECOND);
            let bytes: u64 = run.rounds.iter().sum();
            // A hundredth of a MB/s is enough, and integers are the same everywhere.
            let hundredths = bytes / 100_000;
            let cell = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            let _ = write!(table, "{cell:>12}");
        }
        table.push('\n');
    }
    table
}

#[test]
fn throughput_table_is_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/throughput.txt");
    let table = table();
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(&path, &table).expect("the golden file is writable");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        table == golden,
        "the table differs from tests/golden/throughput.txt; if it should, rewrite it:\n\
         UPDATE_GOLDEN=1 cargo test -p longhaul-tests --test throughput\n{table}"
    );
}
