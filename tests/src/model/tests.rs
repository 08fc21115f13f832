//! The model against hand-made requests: what it answers with and without its knobs.

use super::*;
use crate::MS;
use crate::link::{flatten, pieces_len};
use crate::rng::Rng;

/// A request packet from its type, its id and its fields.
fn packet(kind: u8, id: u32, fields: &[&[u8]]) -> Vec<u8> {
    let mut reply = Reply::new(kind, id);
    fields.iter().for_each(|field| reply.head.extend(*field));
    flatten(&reply.into_pieces())
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&wire::wire_len(bytes.len()).to_be_bytes(), bytes].concat()
}

fn open(id: u32, path: &str) -> Vec<u8> {
    packet(
        kind::OPEN,
        id,
        &[&string(path.as_bytes()), &[0, 0, 0, 1], &[0; 4]],
    )
}

fn read(id: u32, handle: u32, offset: u64, len: u32) -> Vec<u8> {
    let handle = string(&handle.to_be_bytes());
    packet(
        kind::READ,
        id,
        &[&handle, &offset.to_be_bytes(), &len.to_be_bytes()],
    )
}

const INIT: [u8; 9] = [0, 0, 0, 5, 1, 0, 0, 0, 3];

/// Makes a server with a file of 100,000 bytes at `f`, past VERSION and an OPEN.
fn opened(quirks: Quirks) -> ModelServer {
    let file = FileHistory::new(1, 100_000);
    let mut server = ModelServer::new(quirks, Rng::new(1)).with_file("f", file);
    server.handle_input(0, &INIT);
    server.handle_input(0, &open(1, "f"));
    while server.poll_output(0).is_some() {}
    server
}

/// Takes what is ready: type, id, and the number behind it (length of DATA, code of STATUS).
fn replies(server: &mut ModelServer, now: u64) -> Vec<(u8, u32, u32)> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().expect("four"));
    let mut list = Vec::new();
    while let Some(packet) = server.poll_output(now) {
        let bytes = flatten(&packet);
        assert_eq!(number(&bytes) as usize, bytes.len() - 4, "framed");
        list.push((bytes[4], number(&bytes[5..]), number(&bytes[9..])));
    }
    list
}

#[test]
fn a_dialogue_without_quirks_is_openssh() {
    let file = FileHistory::new(1, 100_000);
    let mut server = ModelServer::new(Quirks::default(), Rng::new(1)).with_file("f", file.clone());
    for byte in INIT {
        server.handle_input(0, &[byte]);
    }
    let version = flatten(&server.poll_output(0).expect("VERSION"));
    assert_eq!(version[4..9], [2, 0, 0, 0, 3]);
    assert!(
        version
            .windows(18)
            .any(|part| part == b"limits@openssh.com")
    );
    server.handle_input(0, &[open(1, "f"), read(2, 1, 99_000, 32_768)].concat());
    assert_eq!(replies(&mut server, 0)[0], (kind::HANDLE, 1, 4));
    server.handle_input(0, &read(3, 1, 10, 50_000));
    let data = server.poll_output(0).expect("DATA");
    assert!(
        core::ptr::eq(data[1].bytes(), file.at(0).content.slice(10, 50_000)),
        "zero copies"
    );
    let handle = string(&1_u32.to_be_bytes());
    server.handle_input(0, &read(4, 1, 100_000, 1));
    server.handle_input(0, &packet(kind::FSTAT, 5, &[&handle]));
    server.handle_input(0, &packet(kind::STAT, 6, &[&string(b"missing")]));
    server.handle_input(
        0,
        &packet(kind::EXTENDED, 7, &[&string(b"limits@openssh.com")]),
    );
    server.handle_input(0, &packet(13, 8, &[&string(b"f")]));
    server.handle_input(0, &packet(kind::CLOSE, 9, &[&handle]));
    let (status, attrs, extended) = (kind::STATUS, kind::ATTRS, kind::EXTENDED_REPLY);
    let expected = [
        (status, 4, 1),
        (attrs, 5, 15),
        (status, 6, 2),
        (extended, 7, 0),
        (status, 8, 8),
        (status, 9, 0),
    ];
    assert_eq!(replies(&mut server, 0), expected);
    let record = server.record();
    assert_eq!(
        (
            record.handles_opened,
            record.handles_leaked(),
            record.owed()
        ),
        (1, 0, 0)
    );
    assert_eq!(record.payload_sent, 1_000 + 50_000);
    assert_eq!(record.violations, Vec::<String>::new());
}

#[test]
fn read_knobs_bend_the_replies() {
    let lens = |quirks: Quirks| {
        let mut server = opened(quirks);
        for id in 2..6 {
            server.handle_input(0, &read(id, 1, 0, 60_000));
        }
        replies(&mut server, 0)
            .into_iter()
            .map(|(kind, _, number)| (kind, number))
            .collect::<Vec<_>>()
    };
    let (data, status) = (kind::DATA, kind::STATUS);
    let base = Quirks::default();
    assert_eq!(lens(base.clone()), [(data, 60_000); 4]);
    let capped = Quirks {
        read_cap: ReadCap::Fixed(32_768),
        ..base.clone()
    };
    assert_eq!(lens(capped), [(data, 32_768); 4]);
    let tiny = Quirks {
        tiny_read: Some((2, 1)),
        ..base.clone()
    };
    assert_eq!(lens(tiny)[..3], [(data, 60_000), (data, 1), (data, 60_000)]);
    let empty = Quirks {
        empty_reads: Some((2, 2)),
        ..base.clone()
    };
    assert_eq!(
        lens(empty),
        [(data, 60_000), (data, 0), (data, 0), (data, 60_000)]
    );
    let long = Quirks {
        long_read: Some((3, 90_000)),
        ..base.clone()
    };
    assert_eq!(
        lens(long)[1..],
        [(data, 60_000), (data, 90_000), (data, 60_000)]
    );
    let eof = Quirks {
        early_eof: Some(1),
        ..base.clone()
    };
    assert_eq!(lens(eof)[..2], [(status, 1), (data, 60_000)]);
    let error = Quirks {
        read_error: Some((4, 4)),
        ..base.clone()
    };
    assert_eq!(lens(error)[2..], [(data, 60_000), (status, 4)]);
    let dropping = Quirks {
        reads_outstanding_max: Some(2),
        ..base.clone()
    };
    assert_eq!(lens(dropping).len(), 2);
    let random = lens(Quirks {
        read_cap: ReadCap::Random(10, 20),
        ..base
    });
    assert!(random.iter().all(|(_, len)| (10..=20).contains(len)));
}

#[test]
fn slow_servers_answer_in_order_or_in_any() {
    let ids = |reorder| {
        let mut server = opened(Quirks {
            reorder,
            ..Quirks::default()
        });
        server.quirks_mut().service = (MS, 9 * MS);
        for id in 2..42 {
            server.handle_input(10 * MS, &read(id, 1, 0, 10));
        }
        assert_eq!(replies(&mut server, 10 * MS), []);
        assert!(
            server
                .poll_timeout()
                .is_some_and(|due| (11 * MS..20 * MS).contains(&due))
        );
        replies(&mut server, 19 * MS)
            .into_iter()
            .map(|(_, id, _)| id)
            .collect::<Vec<_>>()
    };
    let in_order: Vec<u32> = (2..42).collect();
    assert_eq!(ids(0), in_order);
    let mut any = ids(8);
    assert_ne!(any, in_order);
    any.sort_unstable();
    assert_eq!(any, in_order);
}

#[test]
fn eof_overtakes_data_when_told_to() {
    let mut server = opened(Quirks {
        eof_overtakes: true,
        ..Quirks::default()
    });
    server.quirks_mut().service = (MS, MS);
    server.handle_input(0, &[read(2, 1, 0, 10), read(3, 1, 100_000, 10)].concat());
    assert_eq!(replies(&mut server, 0), [(kind::STATUS, 3, status::EOF)]);
    assert_eq!(replies(&mut server, MS), [(kind::DATA, 2, 10)]);
}

#[test]
fn replies_are_lost_doubled_and_added() {
    let ids = |quirks| {
        let mut server = opened(quirks);
        server.handle_input(0, &[read(2, 1, 0, 10), read(3, 1, 10, 10)].concat());
        replies(&mut server, 0)
            .into_iter()
            .map(|(_, id, _)| id)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        ids(Quirks {
            swallow: Some(2),
            ..Quirks::default()
        }),
        [3]
    );
    assert_eq!(
        ids(Quirks {
            duplicate: Some(2),
            ..Quirks::default()
        }),
        [2, 2, 3]
    );
    assert_eq!(
        ids(Quirks {
            unasked: Some(2),
            ..Quirks::default()
        }),
        [2, u32::MAX, 3]
    );
    assert_eq!(
        ids(Quirks {
            close_after: Some(2),
            ..Quirks::default()
        }),
        [2]
    );
}

#[test]
fn every_malformation_changes_the_packet() {
    let right = {
        let mut server = opened(Quirks::default());
        server.handle_input(0, &read(2, 1, 0, 100));
        flatten(&server.poll_output(0).expect("DATA"))
    };
    for how in Malform::ALL {
        let mut server = opened(Quirks {
            malform: Some((2, how)),
            ..Quirks::default()
        });
        server.handle_input(0, &read(2, 1, 0, 100));
        let packet = server.poll_output(0).expect("something");
        assert_ne!(flatten(&packet), right, "{how:?}");
        assert_eq!(server.has_ended(), how == Malform::Truncated);
    }
}

#[test]
fn a_blocking_server_takes_no_input_while_it_has_work() {
    let mut server = opened(Quirks::default());
    server.quirks_mut().blocking = true;
    assert!(server.takes_input(false) && !server.takes_input(true));
    server.handle_input(0, &[read(2, 1, 0, 10), read(3, 1, 10, 10)].concat());
    for _ in 0..2 {
        assert!(!server.takes_input(false));
        assert_eq!(
            server.poll_output(0).map(|packet| pieces_len(&packet)),
            Some(13 + 10)
        );
    }
    assert!(server.takes_input(false));
}

#[test]
fn held_requests_are_answered_by_the_test() {
    let mut server = opened(Quirks::default());
    server.quirks_mut().manual = true;
    for id in 2..5 {
        server.handle_input(0, &read(id, 1, 0, 100));
    }
    assert_eq!(replies(&mut server, MS), []);
    assert_eq!(
        server.waiting().map(|(id, _)| id).collect::<Vec<_>>(),
        [2, 3, 4]
    );
    server.answer(MS, 1, Some(7));
    server.answer(MS, 1, None);
    assert_eq!(
        replies(&mut server, MS),
        [(kind::DATA, 3, 7), (kind::DATA, 4, 100)]
    );
}

#[test]
fn clients_that_break_the_rules_are_found_out() {
    for (what, bytes) in [
        ("second INIT", INIT.to_vec()),
        ("malformed", vec![0, 0, 0, 2, 5, 0]),
        ("too long", vec![0, 5, 0, 0]),
        ("closed twice", packet(kind::CLOSE, 9, &[&string(b"none")])),
        ("never opened", read(9, 77, 0, 1)),
    ] {
        let mut server = opened(Quirks::default());
        server.handle_input(0, &bytes);
        replies(&mut server, 0);
        assert_eq!(server.record().violations.len(), 1, "{what}");
    }
    let mut early = ModelServer::new(Quirks::default(), Rng::new(1));
    early.handle_input(0, &open(1, "f"));
    assert!(early.has_ended() && early.record().violations.len() == 1);
    let mut closing = opened(Quirks::default());
    closing.quirks_mut().service = (MS, MS);
    closing.handle_input(MS, &read(2, 1, 0, 10));
    closing.handle_input(
        MS,
        &packet(kind::CLOSE, 3, &[&string(&1_u32.to_be_bytes())]),
    );
    assert_eq!(closing.record().closes_before_reads_done, 1);
}

#[test]
fn attributes_lie_when_told_to() {
    let sizes = |size_attr| {
        let mut server = opened(Quirks {
            size_attr,
            ..Quirks::default()
        });
        [(); 3].map(|()| {
            server.handle_input(0, &packet(kind::STAT, 2, &[&string(b"f")]));
            let attrs = flatten(&server.poll_output(0).expect("ATTRS"));
            let size = || u64::from_be_bytes(attrs[13..21].try_into().expect("eight"));
            (attrs[12] & 1 == 1).then(size)
        })
    };
    assert_eq!(sizes(SizeAttr::Right), [Some(100_000); 3]);
    assert_eq!(sizes(SizeAttr::Absent), [None; 3]);
    assert_eq!(sizes(SizeAttr::Wrong(0)), [Some(0); 3]);
    assert_eq!(
        sizes(SizeAttr::Changing),
        [Some(100_000), Some(100_001), Some(50_000)]
    );
}
