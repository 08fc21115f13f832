//! The contract of `longhaul_core` broken on purpose, clause by clause.
//!
//! Aim: a caller's mistake costs the caller an error or nothing, never bytes or a slot. Method: replies written out by
//! hand against an engine with small tables.

use longhaul_core::download::DownloadConfig;
use longhaul_core::engine::{Command, Config, Ended, Engine, Event, OpEvent, OpId, Outcome};
use longhaul_core::sftp::HandleKey;
use longhaul_core::{Instant, OpError, ProtocolError, SubmitError};

type Small = Engine<3, 4, 2>;

const NOW: Instant = Instant::ZERO;
const VERSION: &[u8] = &[0, 0, 0, 5, 2, 0, 0, 0, 3];

#[test]
fn stale_id_does_nothing() {
    let mut engine = ready();
    let old = engine.submit(NOW, Command::Stat(b"/a")).unwrap();
    engine.cancel(NOW, old);
    assert_eq!(engine.take(old), Some(Err(OpError::Cancelled)));
    let new = engine.submit(NOW, Command::Stat(b"/b")).unwrap();
    assert_eq!(new.index(), old.index());
    engine.cancel(NOW, old);
    engine.consume(NOW, old, 10);
    assert_eq!((engine.take(old), engine.progress(old)), (None, None));
    assert_eq!(engine.poll_event(), None, "the new operation goes on");
    let (_, id) = last_request(&mut engine);
    let _ = feed(&mut engine, &packet(105, id, &[&[0; 4]]));
    assert_eq!(engine.poll_event(), Some(OpEvent::Finished(new)));
}

#[test]
fn operation_that_goes_on_cannot_be_taken_nor_twice() {
    let mut engine = ready();
    let op = engine.submit(NOW, Command::Stat(b"/a")).unwrap();
    assert_eq!(engine.take(op), None);
    let (_, id) = last_request(&mut engine);
    let _ = feed(&mut engine, &packet(105, id, &[&[0; 4]]));
    assert!(engine.take(op).is_some());
    assert_eq!(engine.take(op), None);
}

#[test]
fn release_during_a_download_cancels_it_and_closes_after_the_reply() {
    let (mut engine, handle) = opened();
    let op = download(&mut engine, handle);
    let (kind, id) = last_request(&mut engine);
    assert_eq!(kind, 5);
    engine.release(NOW, handle);
    assert_eq!(engine.poll_event(), Some(OpEvent::Finished(op)));
    assert_eq!(engine.take(op), Some(Err(OpError::Cancelled)));
    assert_eq!(requests(&mut engine), [], "CLOSE waits for the READ");
    let refused = engine.download(NOW, handle, DownloadConfig::default());
    assert_eq!(refused, Err(SubmitError::HandleUnknown));
    let fed = feed(&mut engine, &packet(103, id, &[&[0, 0, 0, 1, 7]]));
    assert_eq!(fed, Ok(0), "nothing is handed on");
    let (kind, id) = last_request(&mut engine);
    assert_eq!(kind, 4);
    engine.release(NOW, handle);
    assert_eq!(requests(&mut engine), [], "one CLOSE");
    let _ = feed(&mut engine, &packet(101, id, &[&[0; 12]]));
    assert_eq!((engine.handles_open(), engine.outstanding()), (0, 0));
}

#[test]
fn consuming_more_than_was_handed_on_counts_what_was() {
    let (mut engine, handle) = opened();
    let op = download(&mut engine, handle);
    let (_, id) = last_request(&mut engine);
    assert_eq!(
        feed(&mut engine, &packet(103, id, &[&[0, 0, 0, 2, 7, 7]])),
        Ok(2)
    );
    assert_eq!(engine.window().unconsumed(), 2);
    engine.consume(NOW, op, u64::MAX);
    engine.consume(NOW, op, 1);
    assert_eq!(engine.window().unconsumed(), 0);
}

#[test]
fn nothing_is_accepted_after_close() {
    let (mut engine, handle) = opened();
    engine.close(NOW);
    assert_eq!(
        engine.submit(NOW, Command::Stat(b"/a")),
        Err(SubmitError::Closed)
    );
    let refused = engine.download(NOW, handle, DownloadConfig::default());
    assert_eq!(refused, Err(SubmitError::Closed));
    assert!(!engine.is_drained(), "CLOSE has to leave");
    let (kind, id) = last_request(&mut engine);
    assert_eq!(kind, 4);
    engine.close(NOW);
    let _ = feed(&mut engine, &packet(101, id, &[&[0; 12]]));
    assert!(engine.is_drained());
}

#[test]
fn input_and_commands_after_the_end_change_nothing() {
    let mut engine = ready();
    let op = engine.submit(NOW, Command::Stat(b"/a")).unwrap();
    assert_eq!(engine.handle_eof(NOW), Ok(()));
    assert_eq!(engine.ended(), Some(Ended::Eof));
    let mut input = VERSION;
    assert_eq!(engine.handle_input(NOW, &mut input), Ok(None));
    assert!(
        input.is_empty(),
        "taken, so that no driver keeps offering it"
    );
    assert_eq!(
        engine.submit(NOW, Command::Stat(b"/b")),
        Err(SubmitError::Closed)
    );
    assert_eq!(requests(&mut engine), []);
    assert_eq!((engine.poll_timeout(), engine.deadline()), (None, None));
    engine.handle_timeout(NOW);
    assert_eq!(engine.poll_event(), Some(OpEvent::Finished(op)));
    assert_eq!(engine.take(op), Some(Err(OpError::Closed)));
    assert!(engine.is_drained());
}

#[test]
fn error_of_the_server_stays_the_same() {
    let mut engine = ready();
    let error = Err(ProtocolError::PacketTooLong(u32::MAX));
    assert_eq!(feed(&mut engine, &[0xff; 9]), error);
    assert_eq!(feed(&mut engine, VERSION), error);
}

#[test]
fn full_tables_refuse_and_lose_nothing() {
    let mut engine = ready();
    let ops: Vec<_> = (0..3)
        .map(|_| engine.submit(NOW, Command::Stat(b"/a")).unwrap())
        .collect();
    assert_eq!(
        engine.submit(NOW, Command::Stat(b"/b")),
        Err(SubmitError::Full)
    );
    let sent = requests(&mut engine);
    assert_eq!(sent.len(), 3);
    for (_, id) in sent {
        let _ = feed(&mut engine, &packet(105, id, &[&[0; 4]]));
    }
    assert_eq!(
        engine.submit(NOW, Command::Stat(b"/b")),
        Err(SubmitError::Full),
        "finished, not taken"
    );
    for op in ops {
        assert!(matches!(engine.take(op), Some(Ok(Outcome::Attrs(_)))));
    }
    assert!(engine.submit(NOW, Command::Stat(b"/b")).is_ok());
}

#[test]
fn full_handles_refuse_and_give_back_the_slot() {
    let mut engine = ready();
    for _ in 0..2 {
        assert!(engine.submit(NOW, Command::Open(b"/a")).is_ok());
    }
    for _ in 0..5 {
        assert_eq!(
            engine.submit(NOW, Command::Open(b"/a")),
            Err(SubmitError::Full)
        );
    }
    assert_eq!((engine.outstanding(), engine.handles_open()), (2, 2));
    assert!(engine.submit(NOW, Command::Stat(b"/a")).is_ok());
}

#[test]
fn path_that_is_too_long_is_the_callers_mistake() {
    let mut engine = ready();
    let path = [b'a'; 4097];
    for command in [
        Command::Open(&path),
        Command::Stat(&path),
        Command::Lstat(&path),
    ] {
        assert_eq!(engine.submit(NOW, command), Err(SubmitError::PathTooLong));
    }
    assert_eq!((engine.outstanding(), engine.handles_open()), (0, 0));
    assert!(engine.submit(NOW, Command::Stat(&path[..4096])).is_ok());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "time never goes back")]
fn time_that_goes_back_panics_in_debug_builds() {
    let mut engine = ready();
    engine.handle_timeout(Instant::from_nanos(2));
    engine.handle_timeout(Instant::from_nanos(1));
}

fn ready() -> Box<Small> {
    let mut engine = Box::new(Small::new(Config::default()));
    requests(&mut engine);
    assert_eq!(feed(&mut engine, VERSION), Ok(0));
    assert_eq!(engine.poll_event(), Some(OpEvent::Ready));
    engine
}

fn opened() -> (Box<Small>, HandleKey) {
    let mut engine = ready();
    let op = engine
        .submit(NOW, Command::Open(b"/f"))
        .expect("room for an operation");
    let (_, id) = last_request(&mut engine);
    let _ = feed(&mut engine, &packet(102, id, &[&[0, 0, 0, 1, 9]]));
    assert_eq!(engine.poll_event(), Some(OpEvent::Finished(op)));
    let Some(Ok(Outcome::Handle(handle))) = engine.take(op) else {
        panic!("OPEN has succeeded");
    };
    (engine, handle)
}

/// A download of a file so small that it asks once.
fn download(engine: &mut Small, handle: HandleKey) -> OpId {
    let config = DownloadConfig::default().with_size(Some(1000));
    engine
        .download(NOW, handle, config)
        .expect("room for an operation")
}

/// Drains what is to be sent: type and id of each request.
fn requests(engine: &mut Small) -> Vec<(u8, [u8; 4])> {
    let mut sent = Vec::new();
    let mut out = [0; 8192];
    loop {
        let len = engine.poll_transmit(NOW, &mut out);
        if len == 0 {
            break;
        }
        sent.extend(&out[..len]);
    }
    let mut rest = sent.as_slice();
    let mut all = Vec::new();
    while let [a, b, c, d, body @ ..] = rest {
        let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        all.push((body[0], [body[1], body[2], body[3], body[4]]));
        rest = &body[len..];
    }
    all
}

fn last_request(engine: &mut Small) -> (u8, [u8; 4]) {
    *requests(engine).last().expect("a request is due")
}

/// Returns the bytes of files that came.
fn feed(engine: &mut Small, mut input: &[u8]) -> Result<usize, ProtocolError> {
    let mut count = 0;
    while let Some(event) = engine.handle_input(NOW, &mut input)? {
        if let Event::Data { bytes, .. } = event {
            count += bytes.len();
        }
    }
    Ok(count)
}

fn packet(kind: u8, id: [u8; 4], fields: &[&[u8]]) -> Vec<u8> {
    let body = fields.concat();
    let len = u32::try_from(body.len() + 5).expect("a short packet");
    [&len.to_be_bytes(), [kind].as_slice(), &id, &body].concat()
}
