//! The simulator judged by arithmetic, before any core runs in it.
//!
//! Aim: trust what the simulator says of the core. Method: a client of thirty lines, with a fixed
//! count of READs in flight and no wit, must take exactly as long as latency, rate and window say,
//! must stop for good where real clients did, and must be found out when it breaks a rule.

use crate::file::FileHistory;
use crate::link::{Link, LinkConfig, Piece};
use crate::model::wire::{Reply, kind};
use crate::model::{ModelServer, Quirks};
use crate::reference::{Sink, Wanted};
use crate::rng::Rng;
use crate::tap::Tap;
use crate::{MS, SECOND, link};

/// How a run of the plain client ended.
#[derive(Debug)]
struct Outcome {
    /// Bytes received.
    len: u64,
    /// Virtual nanoseconds from the first READ to the last byte.
    took: u64,
    /// The most bytes in flight.
    in_flight: u64,
}

/// Downloads `size` bytes with `window` READs of `read_len` bytes in flight.
fn download(config: &LinkConfig, quirks: Quirks, size: u64, window: u64, read_len: u32) -> Outcome {
    let rng = Rng::new(1);
    let file = FileHistory::new(1, size);
    let mut server = ModelServer::new(quirks, rng.child("server")).with_file("f", file.clone());
    let mut link = Link::new(config, &rng);
    let (mut tap, mut sink) = (Tap::new(), Sink::new(file, Wanted::ALL, 0));
    let (mut now, mut started, mut asked) = (0, 0, 0);
    let mut buffer = Vec::new();
    let send = |link: &mut Link, tap: &mut Tap, now, reply: Reply| {
        let bytes = link::flatten(&reply.into_pieces());
        tap.sent(&bytes);
        link.client_send(now, &bytes);
    };
    send(
        &mut link,
        &mut tap,
        0,
        Reply {
            head: vec![0, 0, 0, 3],
            ..Reply::new(kind::INIT, 0)
        },
    );
    // Replies come in order, so the place of the next byte is the count of bytes so far.
    loop {
        while server.takes_input(link.server_is_blocked()) {
            let Some(piece) = link.server_receive(now) else {
                break;
            };
            server.handle_input(now, piece.bytes());
        }
        while !link.server_is_blocked() {
            let Some(packet) = server.poll_output(now) else {
                break;
            };
            packet
                .into_iter()
                .for_each(|piece| link.server_send(now, piece));
        }
        while let Some(piece) = link.client_receive(now) {
            tap.received(piece.bytes());
            link.client_consumed(now, piece.len() as u64);
            match piece {
                Piece::Static(bytes) => sink.place(now, sink.contiguous(), bytes),
                Piece::Bytes { .. } => buffer.extend(piece.bytes()),
                Piece::Credit(_) => unreachable!("credit goes the other way"),
            }
        }
        if buffer.get(4) == Some(&kind::VERSION) {
            buffer.clear();
            let open = Reply::new(kind::OPEN, 0).string(b"f").u32(1).u32(0);
            send(&mut link, &mut tap, now, open);
        } else if buffer.get(4) == Some(&kind::HANDLE) {
            buffer.clear();
            started = now;
        }
        while started > 0 && asked < size && (tap.requests() as u64) < window {
            let id = u32::try_from(asked / u64::from(read_len)).expect("few") + 1;
            let len = read_len.min(u32::try_from(size - asked).unwrap_or(u32::MAX));
            let read = Reply::new(kind::READ, id)
                .string(&1_u32.to_be_bytes())
                .u64(asked)
                .u32(len);
            send(&mut link, &mut tap, now, read);
            asked += u64::from(len);
        }
        let next = link
            .next_arrival()
            .into_iter()
            .chain(server.poll_timeout())
            .min();
        match next.filter(|_| sink.contiguous() < size) {
            // An arrival that nobody takes: the server waits for credit that it doesn't read.
            Some(at) if at <= now && !server.takes_input(link.server_is_blocked()) => break,
            Some(at) => now = now.max(at),
            None => break,
        }
    }
    assert_eq!((sink.wrong(), &tap.violations), (None, &Vec::new()));
    Outcome {
        len: sink.len(),
        took: now - started,
        in_flight: tap.take_bytes_max(),
    }
}

/// The nanoseconds that `bytes` take at `rate` bits a second.
fn serialisation(bytes: u64, rate: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(rate)).expect("days")
}

#[test]
fn a_small_window_moves_one_window_each_round_trip() {
    let (rtt, rate) = (100 * MS, 1_000_000_000);
    let config = LinkConfig::new(100, rate);
    let outcome = download(&config, Quirks::default(), 64 << 20, 64, 32_768);
    let round = rtt + serialisation(32_768 + 13 + 29, rate);
    let expected = (64 << 20) / (64 * 32_768) * round;
    assert_eq!(outcome.len, 64 << 20);
    assert!(
        outcome.took.abs_diff(expected) < expected / 100,
        "{outcome:?} {expected}"
    );
    assert_eq!(outcome.in_flight, 64 * 32_768);
}

#[test]
fn a_window_above_the_product_of_rate_and_round_trip_fills_the_link() {
    let rate = 10_000_000_000;
    let config = LinkConfig::new(300, rate);
    let size = 4 << 30;
    let outcome = download(&config, Quirks::default(), size, 2_000, 261_120);
    let expected = 300 * MS + serialisation(size + size / 261_120 * 13, rate);
    assert_eq!(outcome.len, size);
    assert!(
        outcome.took.abs_diff(expected) < expected / 100,
        "{outcome:?} {expected}"
    );
}

#[test]
fn a_server_that_answers_in_order_stops_for_good_when_replies_exceed_the_channel_window() {
    let config = |credit_step| LinkConfig {
        channel_window: Some(2 << 20),
        credit_step,
        ..LinkConfig::new(20, 0)
    };
    let quirks = Quirks {
        blocking: true,
        ..Quirks::default()
    };
    let size = 16 << 20;
    let len = |step, window| download(&config(step), quirks.clone(), size, window, 32_768).len;
    assert_eq!(len(1, 63), size, "63 replies with their headers fit");
    assert!(len(1, 64) < size, "64 don't, for 13 bytes each");
    assert_eq!(
        len(131_072, 59),
        size,
        "credit that the client withholds is missing, too"
    );
    assert!(len(131_072, 63) < size);
    let config = config(1);
    let others = download(&config, Quirks::default(), size, 64, 32_768);
    assert_eq!(
        others.len, size,
        "a server that goes on reading never stops"
    );
}
