//! Downloads of one session side by side.
//!
//! Aim: a session's window is shared fairly, a consumer that stalls stops only its own download, and what is kept for
//! it stays bounded. Method: two or three jobs in the simulator's world, looked at in the middle of the run; sinks
//! check every byte.

use longhaul_core::engine::Config;
use longhaul_core::window::WindowConfig;
use longhaul_tests::file::FileHistory;
use longhaul_tests::job::{Consume, Job, JobId};
use longhaul_tests::world::{Setup, World};
use longhaul_tests::{MS, SECOND};

const RATE: u64 = 100_000_000;
const RTT_MS: u64 = 20;
/// Bytes a second.
const BYTES: u64 = RATE / 8;

fn world(names: &[&str], size: u64, window: WindowConfig) -> World {
    let mut setup =
        Setup::new("fairness", 1, RTT_MS, RATE).with_config(Config::default().with_window(window));
    for name in names {
        setup = setup.with_file(name, file(name, size));
    }
    World::new(setup)
}

fn file(name: &str, size: u64) -> FileHistory {
    FileHistory::new(name.bytes().map(u64::from).sum(), size)
}

fn start(world: &mut World, name: &str, size: u64, begin_at: u64, consume: Consume) -> JobId {
    world.start(Job {
        begin_at,
        consume,
        ..Job::new(name, file(name, size))
    })
}

/// Runs up to the moment `at`; returns the most bytes that were in flight or unconsumed.
fn run_to(world: &mut World, at: u64) -> u64 {
    let mut used_max = 0;
    world.run_until(|world| {
        let window = world.engine.window();
        used_max = used_max.max(window.in_flight() + window.unconsumed());
        world.now() >= at
    });
    used_max
}

#[test]
fn two_downloads_share_within_ten_percent() {
    let size = 1 << 30;
    let windows = [
        WindowConfig::default(),
        WindowConfig::default().with_fixed(1 << 20),
    ];
    for window in windows {
        let mut world = world(&["a", "b"], size, window);
        let both = ["a", "b"].map(|name| start(&mut world, name, size, 0, Consume::AtOnce));
        world.run_to(2 * SECOND);
        let before = both.map(|id| world.job(id).arrived);
        world.run_to(8 * SECOND);
        let [a, b] = [0, 1].map(|index| world.job(both[index]).arrived - before[index]);
        eprintln!("two downloads: {a} and {b} bytes");
        assert!(a.abs_diff(b) <= a.max(b) / 10, "{a} and {b}");
        assert!(a + b >= 6 * BYTES * 95 / 100, "{}", a + b);
        world.close();
    }
}

#[test]
fn a_download_that_begins_later_soon_has_its_share() {
    let size = 1 << 30;
    let mut world = world(&["a", "b"], size, WindowConfig::default());
    let a = start(&mut world, "a", size, 0, Consume::AtOnce);
    let b = start(&mut world, "b", size, 3 * SECOND, Consume::AtOnce);
    world.run_to(4 * SECOND);
    let before = [a, b].map(|id| world.job(id).arrived);
    world.run_to(8 * SECOND);
    let a = world.job(a).arrived - before[0];
    let b = world.job(b).arrived - before[1];
    eprintln!("one later: {a} and {b} bytes");
    assert!(a.abs_diff(b) <= a.max(b) / 10, "{a} and {b}");
    world.close();
}

#[test]
fn a_stalled_consumer_stops_only_its_own_download() {
    let size = 1 << 30;
    let bytes_max = 8 << 20;
    // It stalls from the beginning, beside the other or long before it.
    for begin_at in [0, 5 * SECOND] {
        let window = WindowConfig::default().with_window_bytes_max(bytes_max);
        let mut world = world(&["a", "b"], size, window);
        let stalled = start(&mut world, "a", size, 0, Consume::Never);
        let other = start(&mut world, "b", size, begin_at, Consume::AtOnce);
        let early = run_to(&mut world, begin_at + 3 * SECOND);
        let before = world.job(other).arrived;
        let kept = world.job(stalled).arrived;
        let used_max = run_to(&mut world, begin_at + 9 * SECOND).max(early);
        let came = world.job(other).arrived - before;
        eprintln!("stalled at {kept} bytes, the other got {came} in 6 s, at most {used_max} used");
        assert_eq!(world.job(stalled).arrived, kept, "nothing more is asked");
        assert!(came >= 6 * BYTES * 95 / 100, "{came}");
        assert!(kept <= bytes_max / 4 * 3, "{kept}");
        assert!(used_max <= bytes_max, "{used_max}");
        world.close();
    }
}

#[test]
fn two_stalled_consumers_leave_room_for_a_third() {
    let size = 1 << 30;
    let bytes_max = 64 << 20;
    let window = WindowConfig::default().with_window_bytes_max(bytes_max);
    let mut world = world(&["a", "b", "c"], size, window);
    start(&mut world, "a", size, 0, Consume::Never);
    start(&mut world, "b", size, 10 * SECOND, Consume::Never);
    let third = start(&mut world, "c", size, 20 * SECOND, Consume::AtOnce);
    let early = run_to(&mut world, 23 * SECOND);
    let before = world.job(third).arrived;
    let used_max = run_to(&mut world, 26 * SECOND).max(early);
    let came = world.job(third).arrived - before;
    eprintln!("two stalled, the third got {came} in 3 s, at most {used_max} used");
    assert!(came >= 3 * BYTES * 95 / 100, "{came}");
    assert!(used_max <= bytes_max, "{used_max}");
    world.close();
}

#[test]
fn a_slow_consumer_slows_only_its_own_download() {
    let size = 1 << 30;
    let bytes_max = 4 << 20;
    let window = WindowConfig::default().with_window_bytes_max(bytes_max);
    let mut world = world(&["a", "b"], size, window);
    let slow = start(&mut world, "a", size, 0, Consume::After(2_000 * MS));
    let other = start(&mut world, "b", size, 0, Consume::AtOnce);
    let early = run_to(&mut world, 5 * SECOND);
    let before = [slow, other].map(|id| world.job(id).arrived);
    let used_max = run_to(&mut world, 11 * SECOND).max(early);
    let slow = world.job(slow).arrived - before[0];
    let other = world.job(other).arrived - before[1];
    eprintln!("slow {slow}, other {other} bytes in 6 s, at most {used_max} used");
    assert!(slow > 0, "it goes on");
    assert!(slow + other >= 6 * BYTES * 90 / 100, "{slow} and {other}");
    assert!(other > 3 * slow, "{slow} and {other}");
    assert!(used_max <= bytes_max, "{used_max}");
    world.close();
}
