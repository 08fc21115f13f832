//! Windows that stall, memory that grows, and servers that take few requests at once (groups B and C).

use core::time::Duration;

use longhaul_core::OpError;
use longhaul_core::engine::Config;
use longhaul_core::window::WindowConfig;
use longhaul_tests::job::{Consume, Job, SizeFrom};
use longhaul_tests::model::wire::{kind, status};
use longhaul_tests::model::{Quirks, SizeAttr};
use longhaul_tests::world::Setup;
use longhaul_tests::{MS, SECOND};

use crate::scene::{PATH, Scene, fetch, file, fixed, old_server, run, setup};

const MIB: u64 = 1 << 20;
/// The receive window that OpenSSH's client gives a channel, and what it holds back before it gives credit.
const CHANNEL: u64 = 2 * MIB;
const HELD_BACK: u64 = 3 * 32_768;

/// A server that reads no request while a reply waits for the channel.
fn in_order() -> Quirks {
    Quirks {
        blocking: true,
        ..old_server()
    }
}

fn of_channel(fixed: Option<u64>) -> Config {
    let mut window = WindowConfig::default().with_channel_bytes(Some(CHANNEL - HELD_BACK));
    if let Some(bytes) = fixed {
        window = window.with_fixed(bytes);
    }
    Config::default().with_window(window)
}

fn with_channel(setup: Setup, window: u64) -> Setup {
    let mut setup = setup;
    setup.link.channel_window = Some(window);
    setup.link.credit_step = HELD_BACK.min(window / 4);
    setup
}

// Q30
#[test]
fn replies_with_their_headers_fit_the_channel_of_a_server_that_works_in_order() {
    let file = file(32 * MIB);
    for config in [of_channel(None), of_channel(Some(CHANNEL))] {
        let setup = with_channel(setup(in_order(), config, &file), CHANNEL);
        let ran = run(setup, Job::new(PATH, file.clone()));
        ran.came_once(32 * MIB);
        let wire =
            ran.record().outstanding_bytes_max + 13 * ran.record().outstanding_reads_max as u64;
        assert!(wire < CHANNEL, "{wire} bytes owed");
        assert!(ran.job().ended < 10 * SECOND, "and it never stood still");
    }
}

// Q31
#[test]
fn a_window_of_2048_reads_does_not_freeze_at_the_channels_window() {
    let file = file(128 * MIB);
    let wish = 2_048 * 32_768;
    // A server that works in order: the channel bounds the wish.
    let in_order = with_channel(setup(in_order(), of_channel(Some(wish)), &file), CHANNEL);
    // One that goes on reading: the wish counts, whatever the channel holds.
    let others = with_channel(
        setup(Quirks::default(), of_channel(Some(wish)), &file),
        CHANNEL,
    );
    for setup in [in_order, others] {
        let ran = run(setup, Job::new(PATH, file.clone()));
        ran.came_once(128 * MIB);
        assert!(ran.job().ended < 30 * SECOND);
    }
}

// Q32
#[test]
fn a_channel_cut_to_a_quarter_of_what_was_offered_only_slows_down() {
    let file = file(16 * MIB);
    let setup = with_channel(
        setup(Quirks::default(), Config::default(), &file),
        CHANNEL / 4,
    );
    let ran = run(setup, Job::new(PATH, file.clone()));
    ran.came_once(16 * MIB);
    assert!(ran.job().ended < 10 * SECOND);
}

// Q34
#[test]
fn a_consumer_that_takes_nothing_bounds_what_is_ever_asked() {
    let file = file(1 << 30);
    let window = WindowConfig::default().with_window_bytes_max(MIB);
    let config = Config::default().with_window(window);
    let mut world = Scene::new(setup(Quirks::default(), config, &file));
    let id = world.start(Job {
        consume: Consume::Never,
        cancel_at: Some(300 * SECOND),
        ..Job::new(PATH, file.clone())
    });
    world.run_to(299 * SECOND);
    assert!(
        !world.job(id).is_done(),
        "its own side is no reason to fail"
    );
    let asked: u64 = world
        .server
        .record()
        .of(kind::READ)
        .map(|seen| u64::from(seen.len))
        .sum();
    assert!(asked <= MIB && asked > MIB / 2, "{asked} bytes asked");
    assert_eq!(world.job(id).arrived, asked);
    world.run();
    assert_eq!(world.job(id).failure(), &OpError::Cancelled);
}

// Q35
#[test]
fn a_download_that_nobody_drains_stops_no_other() {
    let file = file(64 * MIB);
    let window = WindowConfig::default().with_window_bytes_max(4 * MIB);
    let config = Config::default().with_window(window);
    let mut world = Scene::new(setup(Quirks::default(), config, &file));
    let stuck = world.start(Job {
        consume: Consume::Never,
        cancel_at: Some(100 * SECOND),
        ..Job::new(PATH, file.clone())
    });
    let other = world.start(Job {
        begin_at: SECOND,
        ..Job::new(PATH, file.clone())
    });
    world.run();
    assert_eq!(world.job(other).success(), 64 * MIB);
    assert!(world.job(other).ended < 20 * SECOND);
    assert_eq!(world.job(stuck).failure(), &OpError::Cancelled);
}

// Q38
#[test]
fn a_cancel_in_a_huge_file_leaves_at_most_one_window_asked() {
    let file = file(100 << 30);
    let mut world = Scene::new(setup(Quirks::default(), Config::default(), &file));
    let id = world.start(Job::new(PATH, file));
    world.run_until(|world| world.job(id).sink.len() >= MIB);
    let now = world.instant();
    let (window, arrived) = (world.engine.window().bytes(), world.job(id).arrived);
    let op = world.job(id).op().expect("it goes on");
    world.engine.cancel(now, op);
    world.run();
    assert_eq!(world.job(id).failure(), &OpError::Cancelled);
    let reads = world.server.record().of(kind::READ);
    let asked: u64 = reads.map(|seen| u64::from(seen.len)).sum();
    assert!(
        asked <= arrived + window,
        "{asked} asked, {arrived} came, window {window}"
    );
    assert_eq!(
        world.job(id).arrived,
        arrived,
        "nothing comes after the cancel"
    );
}

/// The nanoseconds of a download of `size` bytes by a client as it ships.
fn took(rtt_ms: u64, rate: u64, size: u64) -> u64 {
    let file = file(size);
    let setup = Setup::new("quirks", 1, rtt_ms, rate).with_file(PATH, file.clone());
    let ran = run(setup, Job::new(PATH, file));
    ran.came_once(size);
    ran.job().ended
}

/// The nanoseconds that the link alone takes.
fn alone(rate: u64, size: u64) -> u64 {
    u64::try_from(u128::from(size) * 8 * u128::from(SECOND) / u128::from(rate)).expect("days")
}

// Q39
#[test]
fn a_gigabyte_over_100_ms_takes_as_long_as_the_link() {
    let (rate, size) = (1_000_000_000, 1 << 30);
    let took = took(100, rate, size);
    // Handshake, OPEN, the doublings of the start and the last look past the end.
    let most = alone(rate, size) * 21 / 20 + 14 * 100 * MS;
    assert!(took < most, "{took} of {most}");
}

// Q40
#[test]
fn no_round_trip_needs_a_window_tuned_by_hand() {
    let (rate, size) = (200_000_000, 128 * MIB);
    for rtt_ms in [0, 1, 5, 20, 50, 100, 200, 300] {
        let took = took(rtt_ms, rate, size);
        let most = alone(rate, size) * 21 / 20 + 14 * rtt_ms * MS;
        assert!(took < most, "{rtt_ms} ms: {took} of {most}");
    }
}

// Q42
#[test]
fn a_server_that_drops_reads_beyond_a_number_still_serves_the_file() {
    for most in [1, 2, 3, 15, 16] {
        let quirks = Quirks {
            reads_outstanding_max: Some(most),
            service: (5 * MS, 5 * MS),
            ..Quirks::default()
        };
        let config = Config::default().with_stall_after(Duration::from_secs(2));
        let file = file(4 * MIB);
        let ran = fetch(quirks, config, &file);
        ran.came_once(4 * MIB);
        // The model notes every id that is used again while its reply is owed.
        assert_eq!(ran.record().violations, Vec::<String>::new());
        assert_eq!(ran.record().handles_closed, 1);
        // Few stalls: after the second one, READs leave one at a time.
        let bound = if most < 3 { 20 } else { 8 };
        assert!(
            ran.job().ended < bound * SECOND,
            "{most}: {}",
            ran.job().ended
        );
    }
}

// Q44
#[test]
fn a_size_from_the_caller_spares_every_stat() {
    let quirks = Quirks {
        stat_refused_while_open: true,
        handles_max: Some(1),
        ..old_server()
    };
    let file = file(MIB);
    for size in [Some(MIB), None] {
        let job = Job {
            size_from: SizeFrom::Given(size),
            ..Job::new(PATH, file.clone())
        };
        let ran = run(setup(quirks.clone(), Config::default(), &file), job);
        ran.came_once(MIB);
        for kind in [kind::STAT, kind::LSTAT, kind::FSTAT] {
            assert_eq!(ran.record().count(kind), 0);
        }
        assert_eq!(ran.record().count(kind::OPEN), 1);
    }
}

// Q45
#[test]
fn a_refused_stat_leaves_the_size_unknown_and_the_file_readable() {
    let quirks = Quirks {
        stat_refused: Some(status::PERMISSION_DENIED),
        fstat_refused: Some(status::FAILURE),
        ..Quirks::default()
    };
    let file = file(MIB + 3);
    for size_from in [SizeFrom::Stat, SizeFrom::Fstat] {
        let job = Job {
            size_from,
            ..Job::new(PATH, file.clone())
        };
        run(setup(quirks.clone(), Config::default(), &file), job).came_once(MIB + 3);
    }
    let quirks = Quirks {
        size_attr: SizeAttr::Absent,
        ..quirks
    };
    fetch(quirks, fixed(4, 32_768), &file).came_once(MIB + 3);
}
