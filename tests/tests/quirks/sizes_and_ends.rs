//! Short replies, long replies, ends that lie and sizes that lie (group A).

use longhaul_core::download::Shrink;
use longhaul_core::engine::Config;
use longhaul_core::sftp::READ_LEN_MAX;
use longhaul_core::{OpError, ProtocolError};
use longhaul_tests::file::FileHistory;
use longhaul_tests::job::{Job, SizeFrom};
use longhaul_tests::model::wire::{kind, status};
use longhaul_tests::model::{Malform, Quirks, ReadCap, SizeAttr};
use longhaul_tests::odometer::Odometer;
use longhaul_tests::reference::Wanted;
use longhaul_tests::world::Setup;
use longhaul_tests::{MS, SECOND};

use crate::scene::{PATH, Scene, fetch, fetch_hostile, file, fixed, old_server, run, setup};

const MIB: u64 = 1 << 20;

fn capped(cap: u32) -> Quirks {
    Quirks {
        read_cap: ReadCap::Fixed(cap),
        ..Quirks::default()
    }
}

fn job(file: &FileHistory) -> Job {
    Job::new(PATH, file.clone())
}

fn of_unknown_size(file: &FileHistory) -> Job {
    Job {
        size_from: SizeFrom::Given(None),
        ..job(file)
    }
}

// Q1
#[test]
fn a_reply_below_the_servers_own_limit_is_not_the_end() {
    let file = file(150 * 1024);
    for size_from in [SizeFrom::Stat, SizeFrom::Given(None)] {
        let job = Job {
            size_from,
            ..job(&file)
        };
        let ran = run(setup(capped(102_400), fixed(16, READ_LEN_MAX), &file), job);
        ran.came_once(150 * 1024);
        let first = ran.record().of(kind::READ).next().expect("a READ");
        assert!(first.len > 102_400, "the cap was met");
    }
}

// Q2
#[test]
fn the_missing_end_of_each_short_reply_is_asked_again() {
    let ran = fetch(capped(102_400), fixed(8, READ_LEN_MAX), &file(4 * MIB));
    ran.came_once(4 * MIB);
    assert!(ran.record().outstanding_reads_max > 1);
}

// Q4
#[test]
fn a_large_file_has_no_holes_when_reads_exceed_what_the_server_serves() {
    let ran = fetch(capped(65_536), fixed(16, READ_LEN_MAX), &file(100 * MIB));
    ran.came_once(100 * MIB);
}

// Q5
#[test]
fn a_server_without_limits_is_asked_for_32_kib_and_a_hidden_cap_is_found() {
    let size = 8 * MIB;
    let quirks = Quirks {
        read_cap: ReadCap::Fixed(32_768),
        ..old_server()
    };
    let ran = fetch(quirks, fixed(16, READ_LEN_MAX), &file(size));
    ran.came_once(size);
    assert!(ran.record().of(kind::READ).all(|seen| seen.len <= 32_768));

    let ran = fetch(capped(32_768), fixed(16, READ_LEN_MAX), &file(size));
    ran.came_once(size);
    let mut later = ran.record().of(kind::READ).skip(2 * 16);
    assert!(later.all(|seen| seen.len <= 32_768), "the cap was learned");
    assert!(ran.reads_below(size) <= 256 + 2 * 16);
}

// Q6
#[test]
fn no_byte_is_sent_twice_when_many_reads_meet_a_cap() {
    let (size, cap) = (4 * MIB, 64_512);
    let ran = fetch(capped(cap), fixed(17, 65_536), &file(size));
    ran.came_once(size);
    assert!(ran.record().outstanding_reads_max >= 17);
    // READs in flight when the cap shows leave a gap each; later ones fit it.
    let (whole, gaps) = (size.div_ceil(u64::from(cap)), 2 * 17);
    let reads = ran.reads_below(size) as u64;
    assert!(reads <= whole + gaps, "{reads} READs");
    assert!(ran.record().asked_twice(size) <= 1024 * gaps);
}

// Q8
#[test]
fn replies_of_random_length_give_the_same_file_each_time() {
    for seed in 0..20 {
        let quirks = Quirks {
            read_cap: ReadCap::Random(1, 65_536),
            reorder: 8,
            service: (0, 5 * MS),
            ..Quirks::default()
        };
        let file = file(MIB + 17);
        let setup = Setup {
            seed,
            ..setup(quirks, fixed(16, 65_536), &file)
        };
        run(setup, job(&file)).came_once(MIB + 17);
    }
}

// Q9
#[test]
fn one_tiny_reply_costs_one_more_read_and_shrinks_nothing() {
    let file = file(MIB);
    for tiny in [1, 512, 4_096] {
        let quirks = Quirks {
            tiny_read: Some((1, tiny)),
            ..Quirks::default()
        };
        let job = Job {
            wanted: Wanted {
                offset: 0,
                len: Some(MIB),
            },
            ..job(&file)
        };
        let ran = run(setup(quirks, fixed(4, 65_536), &file), job);
        ran.came_once(MIB);
        assert_eq!(ran.record().count(kind::READ), 16 + 1, "{tiny} bytes first");
    }
}

// Q10
#[test]
fn four_segments_of_reads_above_the_cap_do_not_stall_at_the_end() {
    let file = file(4 * MIB);
    let mut world = Scene::new(setup(capped(65_536), fixed(8, 131_072), &file));
    let ids: Vec<_> = (0..4)
        .map(|part| {
            world.start(Job {
                wanted: Wanted {
                    offset: part * MIB,
                    len: Some(MIB),
                },
                ..job(&file)
            })
        })
        .collect();
    world.run();
    for id in ids {
        assert_eq!(world.job(id).success(), MIB);
        // The link alone takes a third of a second.
        assert!(world.job(id).ended < SECOND, "{}", world.job(id).ended);
    }
}

// Q11
#[test]
fn an_end_below_the_known_size_is_asked_for_again_before_it_is_believed() {
    let size = 4 * MIB;
    for nth in [1, 5, 40, 128] {
        let quirks = Quirks {
            early_eof: Some(nth),
            ..Quirks::default()
        };
        let ran = fetch(quirks, fixed(16, 32_768), &file(size));
        ran.came_once(size);
        assert_eq!(ran.reads_below(size), 128 + 1, "one READ confirms");
    }
}

// Q13
#[test]
fn each_of_three_layers_alone_saves_a_file_from_being_cut_short() {
    let (size, config) = (MIB, fixed(8, 131_072));
    // The gaps are asked again, though nobody knows the size.
    let ran = run(
        setup(capped(32_768), config, &file(size)),
        of_unknown_size(&file(size)),
    );
    ran.came_once(size);
    // An end that lies is asked for again.
    let quirks = Quirks {
        early_eof: Some(3),
        ..capped(32_768)
    };
    fetch(quirks, config, &file(size)).came_once(size);
    // A file that stays short of its size is no success.
    let quirks = Quirks {
        size_attr: SizeAttr::Wrong(4 * size),
        ..capped(32_768)
    };
    let shrunk = OpError::Shrunk {
        size: 4 * size,
        end: size,
    };
    let ran = fetch(quirks.clone(), config, &file(size));
    assert_eq!(ran.job().failure(), &shrunk);
    // Unless that is what the caller wants.
    let job = Job {
        shrink: Shrink::Accept,
        ..job(&file(size))
    };
    assert_eq!(
        run(setup(quirks, config, &file(size)), job).job().success(),
        size
    );
}

// Q14
#[test]
fn an_end_that_overtakes_lower_data_does_not_end_the_file_there() {
    let quirks = Quirks {
        eof_overtakes: true,
        reorder: 64,
        service: (MS, 50 * MS),
        ..Quirks::default()
    };
    let file = file(MIB + 1);
    for job in [job(&file), of_unknown_size(&file)] {
        let ran = run(setup(quirks.clone(), fixed(64, 32_768), &file), job);
        ran.came_once(MIB + 1);
    }
}

// Q16
#[test]
fn a_failed_read_is_an_error_after_all_bytes_below_it() {
    for code in [
        status::FAILURE,
        status::PERMISSION_DENIED,
        status::OP_UNSUPPORTED,
    ] {
        let quirks = Quirks {
            read_error: Some((4, code)),
            ..Quirks::default()
        };
        let ran = fetch(quirks, fixed(8, 32_768), &file(8 * 32_768));
        let OpError::Status(error) = ran.job().failure() else {
            panic!("{:?}", ran.job().outcome);
        };
        assert_eq!(error.code.0, code);
        assert_eq!(ran.job().sink.contiguous(), 3 * 32_768);
    }
}

// Q17
#[test]
fn a_size_that_is_too_small_does_not_cut_the_file() {
    let quirks = Quirks {
        size_attr: SizeAttr::Wrong(84_518),
        ..Quirks::default()
    };
    fetch(quirks, Config::default(), &file(91_332)).came_once(91_332);
}

// Q18
#[test]
fn a_size_of_zero_or_none_still_brings_the_content() {
    for size_attr in [SizeAttr::Wrong(0), SizeAttr::Absent] {
        for size in [0, 2_349, 300_000] {
            let quirks = Quirks {
                size_attr,
                ..Quirks::default()
            };
            fetch(quirks, Config::default(), &file(size)).came_once(size);
        }
    }
}

// Q20
#[test]
fn a_reply_longer_than_its_read_is_an_error_and_no_byte_of_it_is_kept() {
    let quirks = Quirks {
        long_read: Some((5, 41_084)),
        ..Quirks::default()
    };
    let ran = fetch_hostile(quirks, fixed(2, 32_768), &file(4 * MIB));
    let error = ProtocolError::DataTooLong {
        asked: 32_768,
        got: 41_084,
    };
    assert_eq!(ran.job().failure(), &OpError::Protocol(error));
    assert_eq!(ran.job().sink.len(), 4 * 32_768);
}

// Q21
#[test]
fn a_server_that_answers_each_read_with_the_whole_file_is_refused_at_its_head() {
    let quirks = Quirks {
        long_read: Some((1, 1 << 30)),
        ..Quirks::default()
    };
    let ran = fetch_hostile(quirks, fixed(2, 32_768), &file(1 << 30));
    let error = ProtocolError::PacketTooLong((1 << 30) + 9);
    assert_eq!(ran.job().failure(), &OpError::Protocol(error));
    assert_eq!(ran.job().sink.len(), 0);
}

// Q23
#[test]
fn buffer_size_and_cap_and_order_have_no_bearing_on_the_bytes() {
    let file = file(200_001);
    let mut odometer = Odometer::new();
    let mut runs = 0;
    loop {
        let len = [512, 1_000, 32_768, 131_072][odometer.pick(4)];
        let read_cap = [
            ReadCap::Fixed(261_120),
            ReadCap::Fixed(4_096),
            ReadCap::Fixed(777),
            ReadCap::Random(1, 65_536),
        ][odometer.pick(4)];
        let reorder = [0, 3, 64][odometer.pick(3)];
        let count = [1, 3, 64][odometer.pick(3)];
        let quirks = Quirks {
            read_cap,
            reorder,
            service: (0, 3 * MS),
            ..Quirks::default()
        };
        let setup = Setup {
            is_ragged: true,
            seed: runs,
            ..setup(quirks, fixed(count, len), &file)
        };
        run(setup, job(&file)).came_once(200_001);
        runs += 1;
        if !odometer.advance() {
            break;
        }
    }
    assert_eq!(runs, 4 * 4 * 3 * 3);
}

// Q24
#[test]
fn a_stream_cut_at_any_byte_ends_every_operation_once() {
    let file = file(300);
    let whole = fetch(old_server(), Config::default(), &file);
    let len = whole.record().bytes_sent;
    for cut in 0..len {
        let mut setup = setup(old_server(), Config::default(), &file);
        setup.link.cut_down = Some(cut);
        let ran = run(setup, job(&file));
        // The world holds that no handle stays open, that nothing is due, and that each ends once.
        let outcome = ran.job().outcome.as_ref().expect("every job ends");
        let inside = OpError::Protocol(ProtocolError::EofInsidePacket);
        assert!(
            [Ok(300), Err(OpError::Closed), Err(inside)].contains(outcome),
            "{outcome:?} when cut at {cut} of {len}"
        );
    }
}

// Q24
#[test]
fn malformed_data_ends_the_session_and_frees_everything() {
    for how in [
        Malform::BodyLengthHuge,
        Malform::BodyLengthLong,
        Malform::IdUnknown,
        Malform::PacketLengthZero,
        Malform::Truncated,
        Malform::TypeUnknown,
        Malform::TypeWrong,
    ] {
        let quirks = Quirks {
            malform: Some((5, how)),
            ..Quirks::default()
        };
        let ran = fetch_hostile(quirks, fixed(8, 4_096), &file(MIB));
        assert!(
            matches!(ran.job().failure(), OpError::Protocol(_)),
            "{how:?}: {:?}",
            ran.job().outcome
        );
        assert_eq!(ran.world.engine.handles_open(), 0);
        assert!(ran.world.engine.is_drained(), "{how:?}");
    }
}

// Q26
#[test]
fn a_growing_file_is_a_snapshot_or_is_followed_as_the_caller_says() {
    let growing = file(MIB).resized(60 * MS, 2 * MIB);
    let snapshot = Job {
        wanted: Wanted {
            offset: 0,
            len: Some(MIB),
        },
        ..job(&growing)
    };
    let ran = run(
        setup(Quirks::default(), fixed(4, 32_768), &growing),
        snapshot,
    );
    assert_eq!(ran.job().success(), MIB);
    assert_eq!(ran.reads_from(MIB), 0);
    let ran = fetch(Quirks::default(), fixed(4, 32_768), &growing);
    ran.came_once(2 * MIB);
}

// Q26
#[test]
fn a_file_that_shrinks_on_the_way_is_an_error() {
    let shrinking = file(MIB).resized(100 * MS, 32_768);
    let ran = fetch(Quirks::default(), fixed(4, 32_768), &shrinking);
    let OpError::Shrunk { size, end } = ran.job().failure() else {
        panic!("{:?}", ran.job().outcome);
    };
    assert!(*size == MIB && end < size, "{size} {end}");
}

// Q28
#[test]
fn one_empty_reply_is_asked_again_and_a_second_is_an_error() {
    let quirks = |count| Quirks {
        empty_reads: Some((3, count)),
        ..Quirks::default()
    };
    fetch(quirks(1), fixed(1, 32_768), &file(MIB)).came_once(MIB);
    let ran = fetch(quirks(1_000_000), fixed(8, 32_768), &file(MIB));
    let error = OpError::Protocol(ProtocolError::DataEmptyRepeated);
    assert_eq!(ran.job().failure(), &error);
}

// Q28
#[test]
fn limits_beyond_every_packet_are_clamped() {
    let quirks = Quirks {
        limits: Some([u64::MAX; 4]),
        ..Quirks::default()
    };
    let ran = fetch(quirks, fixed(4, u32::MAX), &file(4 * MIB));
    ran.came_once(4 * MIB);
    assert!(
        ran.record()
            .of(kind::READ)
            .all(|seen| seen.len <= READ_LEN_MAX)
    );
}

// Q29
#[test]
fn a_tiny_file_costs_one_read_and_one_past_its_end() {
    let quirks = Quirks {
        past_eof_delay: SECOND,
        ..Quirks::default()
    };
    let ran = fetch(quirks.clone(), Config::default(), &file(23));
    ran.came_once(23);
    assert!(ran.reads_from(23) <= 1);
    assert_eq!(ran.record().count(kind::READ), 2);
    // A range that ends with the file needs none at all.
    let file = file(23);
    let job = Job {
        wanted: Wanted {
            offset: 0,
            len: Some(23),
        },
        ..job(&file)
    };
    let ran = run(setup(quirks, Config::default(), &file), job);
    ran.came_once(23);
    assert_eq!(ran.record().count(kind::READ), 1);
    assert!(ran.job().ended < SECOND);
}
