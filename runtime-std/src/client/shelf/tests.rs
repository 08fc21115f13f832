use core::task::Waker;

use longhaul_core::Instant;
use longhaul_core::engine::{Command, Config, Engine};

use super::*;

const MIB: u64 = 1 << 20;

/// Ids of operations come from an engine only.
fn ops() -> [OpId; 2] {
    let mut engine: Box<Engine> = Box::new(Engine::new(Config::default()));
    [b"/a", b"/b"].map(|path| {
        let submitted = engine.submit(Instant::ZERO, Command::Stat(path));
        submitted.expect("room for two")
    })
}

fn bytes(offset: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (offset + i).wrapping_mul(0x9e37_79b9).to_le_bytes()[2])
        .collect()
}

#[test]
fn bytes_that_follow_each_other_become_one_piece() {
    let (shelves, [op, _]) = (Shelves::new(MIB), ops());
    for offset in [0, 100, 200, 500, 600] {
        shelves.deliver(op, offset, &bytes(offset, 100));
    }
    let piece = |offset, len| (offset, bytes(offset, len));
    let mut taken = Vec::new();
    while let Some((piece, _)) = shelves.take_piece(op, true) {
        taken.push((piece.offset, piece.bytes));
    }
    assert_eq!(taken, [piece(0, 300), piece(500, 200)]);
    assert_eq!(shelves.lowest(op), None);
}

#[test]
fn pieces_are_cut_at_their_full_size_and_taken_when_full() {
    let (shelves, [op, _]) = (Shelves::new(8 * MIB), ops());
    let len = usize::try_from(MIB).expect("small");
    shelves.deliver(op, 7, &bytes(7, len - 1));
    assert!(
        shelves.take_piece(op, false).is_none(),
        "one byte is missing"
    );
    shelves.deliver(op, 6 + MIB, &bytes(6 + MIB, 3));
    let (piece, _) = shelves.take_piece(op, false).expect("a full one");
    assert!(piece.offset == 7 && piece.bytes == bytes(7, len));
    assert!(shelves.take_piece(op, false).is_none());
    assert_eq!(shelves.lowest(op), Some(7 + MIB));
    let (piece, _) = shelves.take_at(op, 7 + MIB).expect("the rest");
    assert_eq!(piece.bytes, bytes(7 + MIB, 2));
}

#[test]
fn only_what_is_beyond_the_credit_counts_against_the_window() {
    let (shelves, [op, other]) = (Shelves::new(1000), ops());
    assert_eq!(shelves.deliver(op, 0, &[1; 800]), 800);
    assert_eq!(shelves.deliver(op, 5000, &[1; 800]), 200);
    assert_eq!(shelves.deliver(op, 9000, &[1; 50]), 0);
    assert_eq!(
        shelves.deliver(other, 0, &[1; 900]),
        900,
        "each has its own"
    );
    // In all 1,650: consumed by taking is what brings it down to 1,000.
    let consumed = |taken: Option<(Piece, u64)>| taken.map(|(_, consumed)| consumed);
    assert_eq!(consumed(shelves.take_at(op, 5000)), Some(650));
    assert_eq!(consumed(shelves.take_at(op, 0)), Some(0));
    assert_eq!(consumed(shelves.take_at(op, 9000)), Some(0));
}

#[test]
fn much_in_small_pieces_is_taken_too() {
    let (shelves, [op, _]) = (Shelves::new(1000), ops());
    let cx = Context::from_waker(Waker::noop());
    assert!(shelves.poll(op, Want::Full, &cx).is_pending());
    shelves.deliver(op, 0, &[1; 500]);
    assert!(shelves.poll(op, Want::Full, &cx).is_pending());
    assert!(shelves.poll(op, Want::At(0), &cx).is_ready());
    assert!(shelves.poll(op, Want::At(1), &cx).is_pending());
    shelves.deliver(op, 600, &[1]);
    assert!(shelves.poll(op, Want::Full, &cx).is_ready());
    assert!(shelves.take_piece(op, false).is_some());
}

#[test]
fn a_shelf_that_was_removed_is_empty_when_it_is_used_again() {
    let (shelves, [op, other]) = (Shelves::new(1000), ops());
    shelves.deliver(op, 0, b"old");
    shelves.deliver(other, 0, b"other");
    shelves.remove(op);
    assert!(shelves.take_at(op, 0).is_none());
    assert!(shelves.take_at(other, 0).is_some());
}
