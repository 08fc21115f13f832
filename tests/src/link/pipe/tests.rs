//! What a direction promises: no byte lost, none reordered, and the times that arithmetic gives.

use super::*;
use crate::link::flatten;
use crate::{MS, SECOND};

fn pipe(config: &LinkConfig) -> Pipe {
    Pipe::new(config, Rng::new(1), None)
}

/// Takes everything, and returns it with the arrival of each chunk.
fn drain(pipe: &mut Pipe) -> (Vec<u8>, Vec<u64>) {
    let (mut pieces, mut times) = (Vec::new(), Vec::new());
    while let Some(at) = pipe.next_arrival() {
        assert!(
            at == 0 || pipe.receive(at - 1).is_none(),
            "nothing comes before its time"
        );
        pieces.push(pipe.receive(at).expect("due"));
        times.push(at);
    }
    (flatten(&pieces), times)
}

#[test]
fn bytes_arrive_after_latency_and_serialisation() {
    let mut pipe = pipe(&LinkConfig::new(100, 8_000_000));
    pipe.send(0, Piece::Static(&[1; 1_000]));
    pipe.send(0, Piece::Static(&[2; 500]));
    assert_eq!(pipe.unsent(MS), 500);
    let (_, times) = drain(&mut pipe);
    assert_eq!(times, [51 * MS, 51 * MS + MS / 2]);
    pipe.send(SECOND, Piece::Static(&[3; 1_000]));
    assert_eq!(
        pipe.next_arrival(),
        Some(SECOND + 51 * MS),
        "an idle wire starts at once"
    );
}

#[test]
fn ten_gigabit_moves_a_gigabyte_in_eight_tenths_of_a_second() {
    static PAYLOAD: [u8; 1 << 20] = [0; 1 << 20];
    let mut pipe = pipe(&LinkConfig::new(0, 10_000_000_000));
    for _ in 0..1_024 {
        pipe.send(0, Piece::Static(&PAYLOAD));
    }
    let mut last = 0;
    while let Some(at) = pipe.next_arrival() {
        assert!(pipe.receive(at).is_some());
        last = at;
    }
    assert_eq!(last, (1 << 30) * 8 / 10 + 1, "rounded up to a nanosecond");
}

#[test]
fn no_chunking_or_jitter_loses_or_reorders_a_byte() {
    let sent: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    for chunking in [Chunking::UpTo(1), Chunking::UpTo(7), Chunking::Random(900)] {
        let config = LinkConfig {
            chunking,
            jitter: 5 * MS,
            ..LinkConfig::new(10, 1_000_000)
        };
        let mut pipe = pipe(&config);
        for part in sent.chunks(613) {
            pipe.send(0, Piece::from(part));
        }
        assert_eq!(pipe.queued(), sent.len());
        let (received, times) = drain(&mut pipe);
        assert_eq!(received, sent);
        assert!(times.is_sorted());
        assert_eq!(pipe.queued(), 0);
    }
}

#[test]
fn a_stall_delays_what_is_on_the_way_and_what_follows() {
    let mut pipe = pipe(&LinkConfig::new(100, 8_000_000));
    pipe.send(0, Piece::Static(&[1; 1_000]));
    pipe.send(0, Piece::Static(&[2; 1_000]));
    pipe.stall(10 * MS, SECOND);
    pipe.send(20 * MS, Piece::Static(&[3; 1_000]));
    let (_, times) = drain(&mut pipe);
    assert_eq!(times, [1_051 * MS, 1_052 * MS, 1_061 * MS]);
}

#[test]
fn a_cut_delivers_exactly_its_bytes() {
    for cut in [1, 999, 1_000, 1_001, 1_500] {
        let mut pipe = Pipe::new(&LinkConfig::new(2, 0), Rng::new(1), Some(cut));
        pipe.send(0, Piece::Static(&[1; 1_000]));
        pipe.send(0, Piece::Static(&[2; 1_000]));
        let (received, _) = drain(&mut pipe);
        assert_eq!(received.len() as u64, cut);
        assert!(pipe.is_cut() && pipe.at_end(MS));
        pipe.send(9 * MS, Piece::Static(&[3; 10]));
        assert_eq!(pipe.next_arrival(), None, "nothing crosses a cut");
    }
}

#[test]
fn the_end_of_the_stream_comes_behind_the_bytes() {
    let mut pipe = pipe(&LinkConfig::new(100, 8_000_000));
    pipe.send(0, Piece::Static(&[1; 1_000]));
    pipe.end(0);
    pipe.send(0, Piece::Static(&[1; 1_000]));
    assert!(!pipe.at_end(51 * MS), "a chunk is still to be taken");
    assert!(pipe.receive(51 * MS).is_some());
    assert!(pipe.at_end(51 * MS));
    assert_eq!(pipe.next_arrival(), Some(51 * MS));
}

#[test]
fn cuts_at_once_and_taken_back() {
    let mut pipe = pipe(&LinkConfig::new(2, 0));
    pipe.send(0, Piece::Static(&[1; 10]));
    pipe.cut_after(5);
    pipe.heal();
    assert_eq!(
        pipe.receive(MS).map(|piece| piece.len()),
        Some(5),
        "planned before the healing"
    );
    assert_eq!(pipe.receive(MS).map(|piece| piece.len()), Some(5));
    pipe.cut_after(0);
    assert!(pipe.at_end(MS));
}
