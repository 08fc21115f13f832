//! Ids, cancels, timeouts, ends of the connection, and handles (groups D and E).

use core::time::Duration;

use longhaul_core::engine::{Command, Config};
use longhaul_core::{OpError, SubmitError};
use longhaul_tests::file::FileHistory;
use longhaul_tests::job::{Job, SizeFrom};
use longhaul_tests::model::Quirks;
use longhaul_tests::model::wire::{kind, status};
use longhaul_tests::world::Setup;
use longhaul_tests::{MS, SECOND};

use crate::scene::{PATH, Scene, fetch, file, fixed, old_server, run, setup};

const MIB: u64 = 1 << 20;

// Q48
#[test]
fn a_reply_that_comes_after_its_cancel_goes_to_no_later_file() {
    // INIT, limits, OPEN and STAT come first: the seventh request is the third READ.
    let quirks = Quirks {
        slow_request: Some((7, 30 * SECOND)),
        reorder: 64,
        ..Quirks::default()
    };
    let (first, second) = (file(MIB), FileHistory::new(8, 8 * MIB));
    let config = fixed(8, 32_768).with_stall_after(Duration::from_secs(100));
    let setup = setup(quirks, config, &first).with_file("second", second.clone());
    let mut world = Scene::new(setup);
    let cancelled = world.start(Job {
        cancel_at: Some(SECOND),
        ..Job::new(PATH, first)
    });
    let next = world.start(Job {
        begin_at: 2 * SECOND,
        ..Job::new("second", second)
    });
    world.run_to(29 * SECOND);
    assert_eq!(world.job(cancelled).failure(), &OpError::Cancelled);
    // Each byte is compared on arrival.
    assert_eq!(world.job(next).success(), 8 * MIB);
    let slow = world.server.record().seen[6];
    assert_eq!(slow.kind, kind::READ);
    let same_id = world.server.record().seen.iter();
    assert_eq!(
        same_id
            .filter(|seen| seen.id == slow.id && seen.kind != kind::INIT)
            .count(),
        1,
        "the id is not used again while its reply is owed"
    );
    world.run_to(40 * SECOND);
    world.run();
    assert_eq!(world.server.record().handles_closed, 2);
}

// Q48
#[test]
fn a_handle_that_comes_after_its_cancel_is_closed() {
    let quirks = Quirks {
        slow_request: Some((3, 30 * SECOND)),
        reorder: 64,
        ..Quirks::default()
    };
    let file = file(MIB);
    let mut world = Scene::new(setup(quirks, Config::default(), &file));
    let id = world.start(Job {
        cancel_at: Some(SECOND),
        ..Job::new(PATH, file)
    });
    world.run_to(40 * SECOND);
    assert_eq!(world.job(id).failure(), &OpError::Cancelled);
    let record = world.server.record();
    assert_eq!((record.handles_opened, record.handles_closed), (1, 1));
    assert_eq!(world.engine.handles_open(), 0);
    world.run();
}

// Q50
#[test]
fn a_connection_lost_at_any_reply_ends_each_operation_once_and_takes_no_more() {
    let file = file(MIB);
    for nth in 0..12 {
        let quirks = Quirks {
            close_after: Some(nth),
            ..Quirks::default()
        };
        let mut world = Scene::new(setup(quirks, fixed(4, 131_072), &file));
        let ids = [0, 1].map(|_| world.start(Job::new(PATH, file.clone())));
        world.run_until(|world| world.engine.ended().is_some());
        let now = world.instant();
        let refused = world.engine.submit(now, Command::Stat(b"file"));
        assert_eq!(refused, Err(SubmitError::Closed));
        // The world holds that each operation finishes exactly once.
        world.run();
        assert_eq!(world.now(), now.as_nanos(), "nothing is waited for");
        for id in ids {
            assert_eq!(world.job(id).failure(), &OpError::Closed);
        }
    }
}

// Q51
#[test]
fn a_reply_that_never_comes_ends_with_no_progress() {
    // The reply to OPEN, and one to a READ that is not asked again in time.
    for nth in [2, 6] {
        let quirks = Quirks {
            swallow: Some(nth),
            ..Quirks::default()
        };
        let config = fixed(4, 32_768)
            .with_stall_after(Duration::from_secs(1_000))
            .with_no_progress_max(Duration::from_secs(30));
        let ran = fetch(quirks, config, &file(MIB));
        assert_eq!(ran.job().failure(), &OpError::NoProgress);
        assert!(ran.job().ended > 30 * SECOND && ran.job().ended < 32 * SECOND);
    }
}

// Q51
#[test]
fn a_lost_reply_to_a_read_is_asked_for_again() {
    for nth in 4..20 {
        let quirks = Quirks {
            swallow: Some(nth),
            ..Quirks::default()
        };
        let ran = fetch(quirks, fixed(4, 32_768), &file(MIB));
        assert_eq!(ran.job().success(), MIB);
    }
}

// Q52
#[test]
fn a_slow_link_on_which_bytes_flow_never_times_out() {
    let size = 64 * 32_768;
    let file = file(size);
    let config = fixed(64, 32_768)
        .with_no_progress_max(Duration::from_secs(10))
        .with_stall_after(Duration::from_secs(5));
    let mut setup = setup(Quirks::default(), config, &file);
    setup.link.rate = 800_000;
    setup.link.chunking = longhaul_tests::link::Chunking::UpTo(1_400);
    let ran = run(setup, Job::new(PATH, file));
    ran.came_once(size);
    assert_eq!(ran.world.tap.requests_max(), 64);
    assert!(ran.job().ended > 20 * SECOND, "longer than either timer");
}

// Q55
#[test]
fn a_hundred_files_opened_and_dropped_fit_a_limit_of_four_handles() {
    let quirks = Quirks {
        limits: Some([262_144, 261_120, 261_120, 4]),
        handles_max: Some(4),
        ..Quirks::default()
    };
    let file = file(64 * MIB);
    let mut world = Scene::new(setup(quirks, Config::default(), &file));
    // Some are dropped before OPEN is answered, some in the middle of the download.
    let ids: Vec<_> = (0..100)
        .map(|index| {
            let begin_at = SECOND + index * 200 * MS;
            let after = [5, 15, 25, 60, 100][usize::try_from(index % 5).expect("small")];
            world.start(Job {
                begin_at,
                cancel_at: Some(begin_at + after * MS),
                ..Job::new(PATH, file.clone())
            })
        })
        .collect();
    world.run();
    for id in ids {
        assert_eq!(world.job(id).failure(), &OpError::Cancelled);
    }
    let record = world.server.record();
    assert_eq!((record.handles_opened, record.handles_closed), (100, 100));
}

// Q56
#[test]
fn an_error_at_any_step_leaks_no_handle() {
    let file = file(10 * 32_768);
    let refused = Some(status::FAILURE);
    let mut servers = vec![
        Quirks {
            stat_refused: refused,
            ..Quirks::default()
        },
        Quirks {
            fstat_refused: refused,
            ..Quirks::default()
        },
        Quirks {
            limits: None,
            ..Quirks::default()
        },
    ];
    for nth in 1..=11 {
        servers.push(Quirks {
            read_error: Some((nth, status::FAILURE)),
            ..Quirks::default()
        });
        servers.push(Quirks {
            empty_reads: Some((nth, 1_000)),
            ..Quirks::default()
        });
        servers.push(Quirks {
            early_eof: Some(nth),
            ..old_server()
        });
    }
    for quirks in servers {
        for size_from in [SizeFrom::Stat, SizeFrom::Fstat, SizeFrom::Given(None)] {
            let job = Job {
                size_from,
                ..Job::new(PATH, file.clone())
            };
            let ran = run(setup(quirks.clone(), fixed(4, 32_768), &file), job);
            let record = ran.record();
            assert_eq!((record.handles_opened, record.handles_closed), (1, 1));
        }
    }
}

// Q56
#[test]
fn a_cancel_at_any_moment_leaks_no_handle() {
    let file = file(MIB);
    for half_ms in 0..400 {
        let setup = Setup {
            seed: half_ms,
            ..setup(Quirks::default(), fixed(4, 32_768), &file)
        };
        let job = Job {
            cancel_at: Some(half_ms * MS / 2),
            ..Job::new(PATH, file.clone())
        };
        let ran = run(setup, job);
        let record = ran.record();
        assert_eq!(record.handles_opened, record.handles_closed);
        assert_eq!(ran.world.engine.handles_open(), 0);
    }
}
