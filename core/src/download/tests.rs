//! The machine alone: each test is one dialogue.

use super::*;

type Machine = Download<8>;

fn machine(size: Option<u64>) -> Machine {
    Download::new(DownloadConfig::default().with_size(size))
}

fn ask(offset: u64, len: u32) -> Ask {
    Ask { offset, len }
}

/// Asks for 100 bytes at most.
fn next(machine: &mut Machine) -> Option<(u64, u32)> {
    machine.poll_request(100).map(|ask| (ask.offset, ask.len))
}

fn eof(machine: &mut Machine, ask: Ask) {
    machine.handle_status(ask, StatusCode::EOF, b"");
}

#[test]
fn short_reply_reasks_the_gap_only() {
    let mut machine = machine(Some(300));
    assert_eq!(next(&mut machine), Some((0, 100)));
    assert_eq!(next(&mut machine), Some((100, 100)));
    machine.handle_data(ask(0, 100), 40);
    assert_eq!(next(&mut machine), Some((40, 60)));
    assert_eq!(next(&mut machine), Some((200, 100)));
    assert_eq!(machine.outstanding(), 3);
}

#[test]
fn early_eof_is_asked_again_and_may_prove_wrong() {
    let mut machine = machine(Some(200));
    assert_eq!(next(&mut machine), Some((0, 100)));
    assert_eq!(next(&mut machine), Some((100, 100)));
    machine.handle_data(ask(0, 100), 100);
    eof(&mut machine, ask(100, 100));
    assert_eq!(machine.poll_end(), None);
    assert_eq!(next(&mut machine), Some((100, 100)));
    machine.handle_data(ask(100, 100), 100);
    assert_eq!(machine.poll_end(), None);
    assert_eq!(next(&mut machine), Some((200, 100)));
    eof(&mut machine, ask(200, 100));
    assert_eq!(machine.poll_end(), Some(Ok(200)));
}

#[test]
fn confirmed_eof_is_shrunk_or_the_end_as_configured() {
    let shrunk = OpError::Shrunk {
        size: 200,
        end: 100,
    };
    for (shrink, end) in [(Shrink::Fail, Err(shrunk)), (Shrink::Accept, Ok(100))] {
        let config = DownloadConfig::default().with_size(Some(200));
        let mut machine = Machine::new(config.with_shrink(shrink));
        assert_eq!(next(&mut machine), Some((0, 100)));
        machine.handle_data(ask(0, 100), 100);
        for is_again in [false, true] {
            assert_eq!(next(&mut machine), Some((100, 100)));
            assert_eq!(next(&mut machine), None);
            eof(&mut machine, ask(100, 100));
            assert_eq!(machine.poll_end(), is_again.then(|| end.clone()));
        }
    }
}

#[test]
fn eof_that_overtakes_lower_data_waits_for_it() {
    let mut machine = machine(None);
    for offset in [0, 100, 200] {
        assert_eq!(next(&mut machine), Some((offset, 100)));
    }
    eof(&mut machine, ask(200, 100));
    eof(&mut machine, ask(100, 100));
    assert_eq!((machine.poll_end(), next(&mut machine)), (None, None));
    machine.handle_data(ask(0, 100), 40);
    assert_eq!(machine.poll_end(), None);
    // Gaps that touch are one: this asks across the end.
    assert_eq!(next(&mut machine), Some((40, 100)));
    eof(&mut machine, ask(40, 100));
    assert_eq!(machine.poll_end(), Some(Ok(40)));
}

#[test]
fn second_empty_reply_at_one_offset_fails() {
    let mut machine = machine(Some(100));
    assert_eq!(next(&mut machine), Some((0, 100)));
    machine.handle_data(ask(0, 100), 0);
    assert_eq!(machine.poll_end(), None);
    assert_eq!(next(&mut machine), Some((0, 100)));
    machine.handle_data(ask(0, 100), 0);
    let error = OpError::Protocol(ProtocolError::DataEmptyRepeated);
    assert_eq!(machine.poll_end(), Some(Err(error)));
}

#[test]
fn error_in_the_middle_first_delivers_what_is_below() {
    let mut machine = machine(Some(300));
    assert_eq!(next(&mut machine), Some((0, 100)));
    assert_eq!(next(&mut machine), Some((100, 100)));
    machine.handle_status(ask(100, 100), StatusCode::FAILURE, b"disk");
    machine.handle_data(ask(0, 100), 50);
    assert_eq!(machine.poll_end(), None);
    assert_eq!(next(&mut machine), Some((50, 50)));
    assert_eq!(next(&mut machine), None);
    machine.handle_data(ask(50, 50), 50);
    let error = StatusError::new(StatusCode::FAILURE, b"disk");
    assert_eq!(machine.poll_end(), Some(Err(OpError::Status(error))));
    assert_eq!(machine.contiguous(None), 100);
}

#[test]
fn growth_past_the_size_is_followed_one_by_one_until_a_whole_reply() {
    let mut machine = machine(Some(100));
    assert_eq!(next(&mut machine), Some((0, 100)));
    assert_eq!(next(&mut machine), None);
    machine.handle_data(ask(0, 100), 100);
    assert_eq!(next(&mut machine), Some((100, 100)));
    assert_eq!(next(&mut machine), None);
    machine.handle_data(ask(100, 100), 100);
    assert_eq!(machine.size(), None);
    assert_eq!(next(&mut machine), Some((200, 100)));
    assert_eq!(next(&mut machine), Some((300, 100)));
    eof(&mut machine, ask(300, 100));
    eof(&mut machine, ask(200, 100));
    assert_eq!(machine.poll_end(), Some(Ok(200)));
}

#[test]
fn size_zero_is_serial_until_a_whole_reply() {
    let mut machine = machine(Some(0));
    assert_eq!(next(&mut machine), Some((0, 100)));
    assert_eq!(next(&mut machine), None);
    machine.handle_data(ask(0, 100), 40);
    assert_eq!(next(&mut machine), Some((40, 60)));
    assert_eq!(next(&mut machine), None);
    machine.handle_data(ask(40, 60), 60);
    assert_eq!(next(&mut machine), Some((100, 100)));
    assert_eq!(next(&mut machine), Some((200, 100)));
}

#[test]
fn range_ends_without_asking_past_it() {
    let config = DownloadConfig::default().with_start(50);
    let mut machine = Machine::new(config.with_end(Some(120)));
    assert_eq!(next(&mut machine), Some((50, 70)));
    assert_eq!(next(&mut machine), None);
    assert_eq!(machine.poll_end(), None);
    machine.handle_data(ask(50, 70), 70);
    assert_eq!(machine.poll_end(), Some(Ok(120)));
    let mut empty = Machine::new(config.with_end(Some(50)));
    assert_eq!(empty.poll_end(), Some(Ok(50)));
}

#[test]
fn contiguous_mark_stands_at_the_lowest_byte_missing() {
    let mut machine = machine(Some(300));
    for offset in [0, 100, 200] {
        assert_eq!(next(&mut machine), Some((offset, 100)));
    }
    assert_eq!(machine.contiguous(Some(0)), 0);
    machine.handle_data(ask(100, 100), 100);
    assert_eq!(machine.contiguous(Some(30)), 30);
    machine.handle_data(ask(0, 100), 60);
    assert_eq!(machine.contiguous(Some(200)), 60);
    assert_eq!(next(&mut machine), Some((60, 40)));
    machine.handle_data(ask(60, 40), 40);
    assert_eq!(machine.contiguous(Some(200)), 200);
    machine.handle_data(ask(200, 100), 100);
    assert_eq!(machine.contiguous(None), 300);
}

#[test]
fn lost_request_is_asked_anew() {
    let mut machine = machine(Some(100));
    assert_eq!(next(&mut machine), Some((0, 100)));
    // 30 bytes had come before it was given up.
    machine.handle_lost(30, 70);
    assert_eq!(machine.poll_end(), None);
    assert_eq!(next(&mut machine), Some((30, 70)));
}
