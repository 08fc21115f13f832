//! The download machine: every state with every input, those that should not come included.
//!
//! Aim: no pair is left to chance. Method: one table; each row brings a fresh machine into its state, gives it the
//! input, and says what the machine does next.

use longhaul_core::OpError;
use longhaul_core::download::{Ask, Download, DownloadConfig};
use longhaul_core::sftp::StatusCode;

type Machine = Download<8>;

const LOW: Ask = Ask {
    offset: 0,
    len: 100,
};
const HIGH: Ask = Ask {
    offset: 100,
    len: 100,
};

/// The states of the table in `core/src/download/mod.rs`. In each, one request is outstanding.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The low half has come, the high one is outstanding.
    Fetching,
    /// EOF was answered at 100, the low half is outstanding.
    Ending,
    /// EOF was answered at 100 and is asked again.
    Confirming,
    /// An error was answered at 100, the low half is outstanding.
    Failing,
}

#[derive(Clone, Copy, Debug)]
enum Input {
    Whole,
    /// 40 bytes of 100.
    Short,
    Empty,
    Eof,
    Status,
    Lost,
    NoProgress,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    Asks(u64, u32),
    /// Neither asks nor ends: the outstanding request decides.
    Waits,
    Shrunk,
    Declined,
}

use Input as I;
use Next::{Asks, Declined, Shrunk, Waits};
use State as S;

const TABLE: [(State, [(Input, Next); 7]); 4] = [
    (
        S::Fetching,
        [
            (I::Whole, Asks(200, 100)),
            (I::Short, Asks(140, 60)),
            (I::Empty, Asks(100, 100)),
            (I::Eof, Asks(100, 100)),
            (I::Status, Declined),
            (I::Lost, Asks(100, 100)),
            (I::NoProgress, Waits),
        ],
    ),
    (
        S::Ending,
        [
            (I::Whole, Asks(100, 100)),
            (I::Short, Asks(40, 100)),
            (I::Empty, Asks(0, 100)),
            (I::Eof, Asks(0, 100)),
            (I::Status, Declined),
            (I::Lost, Asks(0, 100)),
            (I::NoProgress, Waits),
        ],
    ),
    (
        S::Confirming,
        [
            (I::Whole, Asks(200, 100)),
            (I::Short, Asks(140, 60)),
            (I::Empty, Asks(100, 100)),
            (I::Eof, Shrunk),
            (I::Status, Declined),
            (I::Lost, Asks(100, 100)),
            (I::NoProgress, Waits),
        ],
    ),
    (
        S::Failing,
        [
            (I::Whole, Declined),
            (I::Short, Asks(40, 60)),
            (I::Empty, Asks(0, 100)),
            (I::Eof, Declined),
            (I::Status, Declined),
            (I::Lost, Asks(0, 100)),
            (I::NoProgress, Waits),
        ],
    ),
];

#[test]
fn every_state_takes_every_input() {
    for (state, inputs) in TABLE {
        for (input, next) in inputs {
            let (mut machine, ask) = enter(state);
            give(&mut machine, ask, input);
            assert_eq!(look(&mut machine), next, "{state:?} given {input:?}");
        }
    }
}

#[test]
fn no_state_ends_or_asks_nothing_while_a_request_is_outstanding() {
    for (state, _) in TABLE {
        let (mut machine, _) = enter(state);
        assert_eq!(machine.poll_end(), None, "{state:?}");
        assert_eq!(machine.poll_request(0), None, "{state:?}");
        assert_eq!(machine.outstanding(), 1, "{state:?}");
    }
}

/// A machine in `state`, and its outstanding request.
fn enter(state: State) -> (Machine, Ask) {
    let mut machine = Machine::new(DownloadConfig::default().with_size(Some(200)));
    assert_eq!(machine.poll_request(100), Some(LOW));
    assert_eq!(machine.poll_request(100), Some(HIGH));
    let outstanding = match state {
        S::Fetching => {
            machine.handle_data(LOW, 100);
            HIGH
        }
        S::Ending => {
            machine.handle_status(HIGH, StatusCode::EOF, b"");
            LOW
        }
        S::Confirming => {
            machine.handle_data(LOW, 100);
            machine.handle_status(HIGH, StatusCode::EOF, b"");
            assert_eq!(machine.poll_end(), None);
            assert_eq!(machine.poll_request(100), Some(HIGH));
            HIGH
        }
        S::Failing => {
            machine.handle_status(HIGH, StatusCode::FAILURE, b"");
            LOW
        }
    };
    (machine, outstanding)
}

fn give(machine: &mut Machine, ask: Ask, input: Input) {
    match input {
        I::Whole => machine.handle_data(ask, ask.len),
        I::Short => machine.handle_data(ask, 40),
        I::Empty => machine.handle_data(ask, 0),
        I::Eof => machine.handle_status(ask, StatusCode::EOF, b""),
        I::Status => machine.handle_status(ask, StatusCode::FAILURE, b""),
        I::Lost => machine.handle_lost(ask.offset, ask.len.into()),
        I::NoProgress => machine.handle_no_progress(),
    }
}

fn look(machine: &mut Machine) -> Next {
    match machine.poll_end() {
        None => machine
            .poll_request(100)
            .map_or(Waits, |ask| Asks(ask.offset, ask.len)),
        Some(Err(OpError::Shrunk {
            size: 200,
            end: 100,
        })) => Shrunk,
        Some(Err(OpError::Status(error))) if error.code == StatusCode::FAILURE => Declined,
        Some(end) => panic!("no row has {end:?}"),
    }
}
