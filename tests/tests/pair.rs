//! The engine against the core's own responder.
//!
//! Aim: the two halves of the core agree, however their bytes are cut. Method: bytes are shuttled in pieces of odd
//! sizes; every byte of every file is compared.
#![expect(
    clippy::result_large_err,
    reason = "what an operation brought, as the engine gives it"
)]

use longhaul_core::download::DownloadConfig;
use longhaul_core::engine::{Command, Config, Engine, Event, OpEvent, OpId, Outcome};
use longhaul_core::server::{MemoryFile, MemoryStorage, REPLY_LEN_MAX, Responder};
use longhaul_core::sftp::StatusCode;
use longhaul_core::{Instant, OpError};

const CHUNK: usize = 261_120;

struct Pair<'a> {
    engine: Box<Engine<4, 32, 4>>,
    responder: Responder<MemoryStorage<'a>, 4>,
    up: Vec<u8>,
    down: Vec<u8>,
    /// Most bytes moved at once.
    piece: usize,
    content: Vec<u8>,
    now: u64,
}

type Taken = Result<Outcome, OpError>;

impl<'a> Pair<'a> {
    fn new(files: &'a [MemoryFile<'a>], piece: usize) -> Self {
        Self {
            engine: Box::new(Engine::new(Config::default())),
            responder: Responder::new(MemoryStorage::new(files)),
            up: Vec::new(),
            down: Vec::new(),
            piece,
            content: Vec::new(),
            now: 0,
        }
    }

    /// Moves one piece each way; false if there was nothing to move.
    fn step(&mut self) -> bool {
        self.now += 1_000;
        let at = Instant::from_nanos(self.now);
        let mut out = vec![0; 1024 + self.piece % 4096];
        let sent = self.engine.poll_transmit(at, &mut out);
        self.up.extend(&out[..sent]);
        let asked = self.up.len().min(self.piece);
        let mut input = &self.up[..asked];
        self.responder
            .handle_input(&mut input)
            .expect("requests are well-formed");
        let taken = asked - input.len();
        self.up.drain(..taken);
        let mut reply = vec![0; REPLY_LEN_MAX];
        let replied = self.responder.poll_transmit(&mut reply);
        self.down.extend(&reply[..replied]);
        let got = self.down.len().min(self.piece);
        let mut input = &self.down[..got];
        while let Some(event) = self
            .engine
            .handle_input(at, &mut input)
            .expect("replies are well-formed")
        {
            if let Event::Data { op, offset, bytes } = event {
                let start = usize::try_from(offset).expect("a small file");
                let end = start + bytes.len();
                let len = self.content.len().max(end);
                self.content.resize(len, 0);
                self.content[start..end].copy_from_slice(bytes);
                let len = u64::try_from(bytes.len()).expect("a small piece");
                self.engine.consume(at, op, len);
            }
        }
        self.down.drain(..got);
        sent + taken + replied + got > 0
    }

    /// Steps until `op` has finished.
    fn run(&mut self, op: OpId) -> Taken {
        loop {
            let moved = self.step();
            while let Some(event) = self.engine.poll_event() {
                if event == OpEvent::Finished(op) {
                    return self.engine.take(op).expect("finished");
                }
            }
            assert!(moved, "both sides wait");
        }
    }

    fn command(&mut self, command: Command<'_>) -> Taken {
        let at = Instant::from_nanos(self.now);
        let op = self.engine.submit(at, command).expect("room");
        self.run(op)
    }

    fn close(&mut self) {
        self.engine.close(Instant::from_nanos(self.now));
        while !self.engine.is_drained() {
            let moved = self.step();
            while self.engine.poll_event().is_some() {}
            assert!(moved || self.engine.is_drained(), "both sides wait");
        }
        assert_eq!(self.responder.handle_count(), 0, "every handle is closed");
        assert_eq!(self.engine.handles_open(), 0);
    }
}

#[test]
fn files_around_the_chunk_arrive_whole() {
    let bytes: Vec<u8> = (0..3 * CHUNK + 7)
        .map(|at| u8::try_from(at * 31 % 251).expect("below 251"))
        .collect();
    let sizes = [
        0,
        1,
        32_768,
        CHUNK - 1,
        CHUNK,
        CHUNK + 1,
        2 * CHUNK,
        3 * CHUNK + 7,
    ];
    for size in sizes {
        for piece in [997, 65_537, 1 << 20] {
            let files = [MemoryFile::new(b"/f", &bytes[..size])];
            let mut pair = Pair::new(&files, piece);
            let Ok(Outcome::Attrs(attrs)) = pair.command(Command::Stat(b"/f")) else {
                panic!("STAT succeeds");
            };
            assert_eq!(attrs.size, u64::try_from(size).ok());
            let Ok(Outcome::Handle(handle)) = pair.command(Command::Open(b"/f")) else {
                panic!("OPEN succeeds");
            };
            let at = Instant::from_nanos(pair.now);
            let config = DownloadConfig::default().with_size(attrs.size);
            let op = pair.engine.download(at, handle, config).expect("room");
            let end = u64::try_from(size).expect("a small file");
            assert_eq!(pair.run(op), Ok(Outcome::Fetched(end)), "{size} by {piece}");
            assert!(pair.content == bytes[..size], "{size} by {piece} differs");
            pair.engine.release(Instant::from_nanos(pair.now), handle);
            pair.close();
        }
    }
}

#[test]
fn missing_file_is_declined_and_the_session_goes_on() {
    let files = [MemoryFile::new(b"/f", b"content")];
    let mut pair = Pair::new(&files, 3);
    for command in [Command::Open(b"/g"), Command::Stat(b"/g")] {
        let Err(OpError::Status(error)) = pair.command(command) else {
            panic!("there is no such file");
        };
        assert_eq!(error.code, StatusCode::NO_SUCH_FILE);
    }
    assert_eq!(pair.engine.handles_open(), 0);
    assert!(pair.command(Command::Open(b"/f")).is_ok());
    // The handle that is open is closed with the session.
    assert_eq!(pair.responder.handle_count(), 1);
    pair.close();
}
