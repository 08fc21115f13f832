//! What the fuzz targets call, one function for each: plain functions, so that `cargo test` replays
//! the corpora without a fuzzer (`tests/fuzz_corpus.rs`).
//!
//! Method: a judge that counts by itself what the engine was asked, what it sent and what it handed
//! on, and compares after each step.

use core::time::Duration;

use longhaul_core::download::DownloadConfig;
use longhaul_core::engine::{Command, Config, Engine, Event, OpEvent, OpId, Outcome};
use longhaul_core::sftp::{Decoder, HandleKey, Item};
use longhaul_core::{Cause, Instant, ProtocolError};

/// VERSION 3, no extensions.
const VERSION: &[u8] = &[0, 0, 0, 5, 2, 0, 0, 0, 3];

const OPS: usize = 4;

/// Feeds `data` to the streaming decoder, whole and split at places taken from it. An error is fine;
/// a panic is not, nor a result that depends on the split.
pub fn decode_packet(data: &[u8]) {
    let mut whole = Recorder::default();
    whole.feed(data);
    let mut split = Recorder::default();
    for piece in pieces(data, 17) {
        split.feed(piece);
    }
    assert_eq!(
        whole.seen, split.seen,
        "what is decoded depends on the split"
    );
    assert_eq!(whole.failed, split.failed, "the error depends on the split");
    assert_eq!(
        whole.decoder.handle_eof(),
        split.decoder.handle_eof(),
        "the end depends on the split"
    );
}

/// Feeds `data` to a session as what its server sends, handshake included; if its first byte is even,
/// also to one that has had VERSION.
pub fn session_bytes(data: &[u8]) {
    session_of(&[], data);
    if data.first().is_some_and(|byte| byte % 2 == 0) {
        session_of(VERSION, data);
    }
}

fn session_of(prefix: &[u8], data: &[u8]) {
    let mut judge = Judge::new();
    judge.submit(Command::Stat(b"/a"));
    judge.submit(Command::Open(b"/b"));
    judge.transmit(1024);
    judge.feed(prefix);
    for piece in pieces(data, 251) {
        judge.feed(piece);
        judge.take_all();
        if let Some(&handle) = judge.handles.last()
            && judge.downloads() == 0
        {
            judge.download(handle, DownloadConfig::default().with_size(Some(1 << 20)));
        }
        judge.transmit(1024);
        judge.check();
    }
    judge.eof();
    judge.check();
}

/// Reads `data` as a sequence of operations on a session and checks the invariants after each.
pub fn machine_ops(data: &[u8]) {
    let mut judge = Judge::new();
    let mut bytes = data.iter().copied();
    // Most sequences are of no use without VERSION.
    if data.first().is_none_or(|byte| byte % 8 != 7) {
        judge.transmit(1024);
        judge.feed(VERSION);
    }
    while let Some(code) = bytes.next() {
        let arg = bytes.next().unwrap_or_default();
        judge.step(code, arg);
        judge.check();
    }
    judge.run_out();
}

/// Splits `data` into pieces of 1 to `most` bytes, as its own bytes say.
fn pieces(data: &[u8], most: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    core::iter::from_fn(move || {
        let len = 1 + usize::from(rest.first()? % most);
        let (piece, after) = rest.split_at(len.min(rest.len()));
        rest = after;
        Some(piece)
    })
}

/// What a decoder has brought, adjacent pieces of data joined.
#[derive(Default)]
struct Recorder {
    decoder: Decoder,
    seen: Vec<Seen>,
    failed: Option<ProtocolError>,
}

#[derive(Debug, Eq, PartialEq)]
enum Seen {
    Data(u32, Vec<u8>),
    Other(String),
}

impl Recorder {
    fn feed(&mut self, mut input: &[u8]) {
        let turns_max = 2 * input.len() + 8;
        for _ in 0..turns_max {
            match self.decoder.handle_input(&mut input) {
                Ok(None) => {
                    assert!(input.is_empty(), "input is left, and nothing came of it");
                    return;
                }
                Ok(Some(Item::Data { id, bytes })) => {
                    assert!(!bytes.is_empty(), "an empty piece of data");
                    if let Some(Seen::Data(last, all)) = self.seen.last_mut()
                        && *last == id
                    {
                        all.extend(bytes);
                    } else {
                        self.seen.push(Seen::Data(id, bytes.to_vec()));
                    }
                }
                Ok(Some(item)) => self.seen.push(Seen::Other(format!("{item:?}"))),
                Err(error) => {
                    assert!(
                        self.failed.is_none_or(|first| first == error),
                        "an error changes"
                    );
                    self.failed = Some(error);
                    return;
                }
            }
        }
        panic!("more than {turns_max} items: the decoder does not move on");
    }
}

/// A request seen on the wire.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: u32,
    kind: u8,
    len: u32,
}

/// A download as the application knows it.
#[derive(Debug)]
struct Fetch {
    config: DownloadConfig,
    /// Ranges that came, in rising order, adjacent ones joined.
    came: Vec<(u64, u64)>,
    contiguous: u64,
    unconsumed: u64,
}

impl Fetch {
    fn place(&mut self, start: u64, len: u64) {
        let end = start + len;
        assert!(start >= self.config.start, "data before the range");
        assert!(
            self.config.end.is_none_or(|range_end| end <= range_end),
            "data behind the range"
        );
        let index = self.came.partition_point(|&(from, _)| from < start);
        let before = index.checked_sub(1).map(|index| self.came[index].1);
        let after = self.came.get(index).map(|&(from, _)| from);
        assert!(
            before.is_none_or(|before| before <= start) && after.is_none_or(|after| end <= after),
            "a byte comes twice"
        );
        self.came.insert(index, (start, end));
        if after == Some(end) {
            self.came[index].1 = self.came.remove(index + 1).1;
        }
        if before == Some(start) {
            self.came[index - 1].1 = self.came.remove(index).1;
        }
        self.unconsumed += len;
    }

    /// End of the prefix that came.
    fn prefix(&self) -> u64 {
        let first = self.came.first();
        first
            .filter(|&&(from, _)| from == self.config.start)
            .map_or(self.config.start, |&(_, to)| to)
    }
}

#[derive(Debug)]
struct Op {
    id: OpId,
    fetch: Option<Fetch>,
    finished: bool,
}

struct Judge {
    engine: Box<Engine<OPS, 8, 3>>,
    now: u64,
    ops: Vec<Op>,
    handles: Vec<HandleKey>,
    sent: Vec<u8>,
    asked: Vec<Asked>,
    /// Every reply so far was written here, so `asked` is what the server owes.
    is_exact: bool,
}

impl Judge {
    fn new() -> Self {
        Self {
            engine: Box::new(Engine::new(Config::default())),
            now: 0,
            ops: Vec::new(),
            handles: Vec::new(),
            sent: Vec::new(),
            asked: Vec::new(),
            is_exact: true,
        }
    }

    fn at(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn downloads(&self) -> usize {
        self.ops.iter().filter(|op| op.fetch.is_some()).count()
    }

    fn pick<T: Copy>(items: &[T], arg: u8) -> Option<T> {
        let index = usize::from(arg).checked_rem(items.len())?;
        items.get(index).copied()
    }

    fn pick_op(&self, arg: u8) -> Option<OpId> {
        let ids: Vec<_> = self.ops.iter().map(|op| op.id).collect();
        Self::pick(&ids, arg)
    }

    fn step(&mut self, code: u8, arg: u8) {
        match code % 20 {
            0 => self.submit(Command::Stat(b"/s")),
            1 => self.submit(Command::Open(b"/o")),
            2 | 3 => {
                if let Some(handle) = Self::pick(&self.handles, arg) {
                    self.download(handle, config(arg));
                }
            }
            4 => {
                if let Some(op) = self.pick_op(arg) {
                    self.engine.cancel(self.at(), op);
                }
            }
            5 => {
                // Also handles that were released before.
                if let Some(handle) = Self::pick(&self.handles, arg) {
                    self.engine.release(self.at(), handle);
                    if !arg.is_multiple_of(4) {
                        self.handles.retain(|other| *other != handle);
                    }
                }
            }
            6 => self.consume(arg),
            7 => self.timeout(),
            8 => {
                self.now += u64::from(arg) << 26;
                self.engine.handle_timeout(self.at());
            }
            9 => self.transmit(1024),
            10..=13 => self.reply(arg, u32::MAX),
            14 => self.reply(arg, u32::from(arg)),
            15 => self.decline(arg, 1),
            16 => self.decline(arg, 4),
            17 => self.take_all(),
            18 => {
                if let Some(handle) = Self::pick(&self.handles, arg) {
                    self.submit(Command::Fstat(handle));
                }
            }
            _ => match arg {
                0..32 => self.engine.close(self.at()),
                32..64 => self.ill_formed(arg),
                64..72 => self.eof(),
                _ => self.transmit(1024 + usize::from(arg)),
            },
        }
    }

    fn submit(&mut self, command: Command<'_>) {
        let before = self.engine.outstanding();
        match self.engine.submit(self.at(), command) {
            Ok(id) => self.begin(id, None),
            Err(_) => assert_eq!(self.engine.outstanding(), before, "a refusal costs a slot"),
        }
    }

    fn download(&mut self, handle: HandleKey, config: DownloadConfig) {
        if let Ok(id) = self.engine.download(self.at(), handle, config) {
            let fetch = Fetch {
                config,
                came: Vec::new(),
                contiguous: config.start,
                unconsumed: 0,
            };
            self.begin(id, Some(fetch));
        }
    }

    fn begin(&mut self, id: OpId, fetch: Option<Fetch>) {
        let free = self.ops.iter().all(|op| op.id.index() != id.index());
        assert!(free, "an operation's slot is used twice");
        self.ops.push(Op {
            id,
            fetch,
            finished: false,
        });
    }

    fn consume(&mut self, arg: u8) {
        let Some(id) = self.pick_op(arg) else { return };
        let bytes = u64::from(arg) << 8;
        self.engine.consume(self.at(), id, bytes);
        let op = self.ops.iter_mut().find(|op| op.id == id);
        if let Some(fetch) = op.and_then(|op| op.fetch.as_mut()) {
            fetch.unconsumed = fetch.unconsumed.saturating_sub(bytes);
        }
    }

    fn timeout(&mut self) {
        // What fails can uncover that another operation has waited too long: a few turns, not many.
        for _ in 0..=OPS {
            let Some(deadline) = self.engine.deadline() else {
                return;
            };
            self.now = self.now.max(deadline.at.as_nanos());
            self.engine.handle_timeout(self.at());
            if self
                .engine
                .deadline()
                .is_none_or(|next| next.at > self.at())
            {
                return;
            }
        }
        panic!("due again and again: {:?}", self.engine.deadline());
    }

    /// Drains what is to be sent through a buffer of `room` bytes, and keeps the requests.
    fn transmit(&mut self, room: usize) {
        let mut out = vec![0; room];
        loop {
            let due = self.engine.poll_timeout();
            let len = self.engine.poll_transmit(self.at(), &mut out);
            let is_due = due.is_some_and(|due| due.cause == Cause::Transmit && due.at <= self.at());
            assert_eq!(
                len > 0,
                is_due,
                "output waits, or the deadline says it does"
            );
            if len == 0 {
                break;
            }
            self.sent.extend(&out[..len]);
        }
        while let Some(len) = self.sent.first_chunk().map(|len| word(*len))
            && self.sent.len() >= 4 + len
        {
            let packet: Vec<_> = self.sent.drain(..4 + len).skip(4).collect();
            self.request(&packet);
        }
        assert!(self.sent.is_empty(), "a request is left in half");
    }

    fn request(&mut self, packet: &[u8]) {
        let &[kind, a, b, c, d, ..] = packet else {
            panic!("a request without an id");
        };
        if kind == 1 {
            return;
        }
        let len = packet
            .last_chunk()
            .map_or(0, |len| u32::from_be_bytes(*len));
        let id = u32::from_be_bytes([a, b, c, d]);
        assert!(
            !self.is_exact || self.asked.iter().all(|asked| asked.id != id),
            "the id of a request that is outstanding is used again"
        );
        self.asked.push(Asked { id, kind, len });
    }

    fn remove(&mut self, arg: u8) -> Option<Asked> {
        let index = usize::from(arg).checked_rem(self.asked.len())?;
        Some(self.asked.remove(index))
    }

    /// Gives one request what it asked for; to a READ, at most `len_max` bytes.
    fn reply(&mut self, arg: u8, len_max: u32) {
        let Some(asked) = self.remove(arg) else {
            return;
        };
        match asked.kind {
            3 => self.packet(102, asked.id, &[&1_u32.to_be_bytes(), &[arg]]),
            4 => self.packet(101, asked.id, &[&[0; 12]]),
            5 => {
                let len = asked.len.min(len_max);
                let bytes = vec![arg; usize::try_from(len).unwrap_or_default()];
                self.packet(103, asked.id, &[&len.to_be_bytes(), &bytes]);
            }
            _ => self.packet(105, asked.id, &[&[0, 0, 0, 1], &[0; 8]]),
        }
    }

    fn decline(&mut self, arg: u8, code: u32) {
        if let Some(asked) = self.remove(arg) {
            self.packet(101, asked.id, &[&code.to_be_bytes(), &[0; 8]]);
        }
    }

    fn ill_formed(&mut self, arg: u8) {
        self.is_exact = false;
        let id = Self::pick(&self.asked, arg).map_or(u32::MAX, |asked| asked.id);
        match arg % 4 {
            0 => self.packet(103, id, &[&u32::MAX.to_be_bytes()]),
            1 => self.packet(104, id, &[&[0; 4]]),
            2 => self.packet(arg, id, &[&[0; 4]]),
            _ => self.feed(&[0xff; 5]),
        }
    }

    fn packet(&mut self, kind: u8, id: u32, fields: &[&[u8]]) {
        let body = fields.concat();
        let len = u32::try_from(body.len() + 5).unwrap_or(u32::MAX);
        let id = id.to_be_bytes();
        let packet = [&len.to_be_bytes(), [kind].as_slice(), &id, &body].concat();
        let middle = packet.len() / 2;
        self.feed(&packet[..middle]);
        self.feed(&packet[middle..]);
    }

    fn feed(&mut self, mut input: &[u8]) {
        let at = self.at();
        loop {
            match self.engine.handle_input(at, &mut input) {
                Ok(None) => {
                    assert!(input.is_empty(), "input is left, and nothing came of it");
                    return;
                }
                Ok(Some(Event::Data { op, offset, bytes })) => {
                    assert!(!bytes.is_empty(), "an empty piece of data");
                    let known = self.ops.iter_mut().find(|known| known.id == op);
                    let known = known.expect("data for an operation that goes on");
                    assert!(!known.finished, "data after the end");
                    let fetch = known.fetch.as_mut().expect("data for a download");
                    fetch.place(offset, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                }
                Ok(Some(_)) => {}
                Err(_) => {
                    assert!(self.engine.ended().is_some(), "an error that ends nothing");
                    return;
                }
            }
        }
    }

    fn eof(&mut self) {
        let _ = self.engine.handle_eof(self.at());
        assert!(
            self.engine.ended().is_some(),
            "the stream's end ends nothing"
        );
    }

    /// Takes what has finished.
    fn take_all(&mut self) {
        let mut ops = core::mem::take(&mut self.ops);
        self.news(&mut ops);
        ops.retain(|op| {
            let taken = self.engine.take(op.id);
            assert_eq!(
                taken.is_some(),
                op.finished,
                "finished, and nothing to take"
            );
            match (taken, &op.fetch) {
                (Some(Ok(Outcome::Handle(handle))), _) => self.handles.push(handle),
                (Some(Ok(Outcome::Fetched(end))), Some(fetch)) => {
                    assert_eq!(end, fetch.prefix(), "an end before all has come");
                }
                _ => {}
            }
            assert!(
                !op.finished || self.engine.take(op.id).is_none(),
                "taken twice"
            );
            !op.finished
        });
        self.ops = ops;
    }

    fn news(&mut self, ops: &mut [Op]) {
        while let Some(event) = self.engine.poll_event() {
            if let OpEvent::Finished(id) = event {
                let op = ops.iter_mut().find(|op| op.id == id);
                let op = op.expect("only what was begun can finish");
                assert!(!op.finished, "finished twice");
                op.finished = true;
            }
        }
    }

    fn check(&mut self) {
        let mut ops = core::mem::take(&mut self.ops);
        self.news(&mut ops);
        let mut unconsumed = 0;
        for op in &mut ops {
            let progress = self.engine.progress(op.id).expect("not taken");
            let Some(fetch) = &mut op.fetch else { continue };
            assert!(
                progress.contiguous >= fetch.contiguous,
                "the contiguous mark falls from {} to {}",
                fetch.contiguous,
                progress.contiguous
            );
            assert!(
                progress.contiguous <= fetch.prefix(),
                "the contiguous mark is ahead of what came"
            );
            fetch.contiguous = progress.contiguous;
            unconsumed += fetch.unconsumed;
        }
        let window = self.engine.window();
        assert_eq!(window.unconsumed(), unconsumed, "unconsumed bytes are lost");
        if self.engine.ended().is_some() {
            assert!(
                ops.iter().all(|op| op.finished),
                "an operation outlives its session"
            );
            assert_eq!(self.engine.poll_timeout(), None, "a deadline after the end");
        } else if self.engine.outstanding() == 0 {
            assert_eq!(window.in_flight(), 0, "bytes in flight, and none is owed");
        }
        self.ops = ops;
    }

    /// Time passes without a word from the server: everything must end.
    fn run_out(&mut self) {
        self.engine.close(self.at());
        for _ in 0..64 {
            self.transmit(8192);
            self.take_all();
            self.check();
            if self.engine.is_drained() {
                return;
            }
            self.now += u64::try_from(Duration::from_secs(1).as_nanos()).unwrap_or_default();
            self.timeout();
        }
        panic!("closed, and never drained: {:?}", self.engine.deadline());
    }
}

fn config(arg: u8) -> DownloadConfig {
    let size = [None, Some(0), Some(1000), Some(300_000)][usize::from(arg / 4 % 4)];
    let end = [None, Some(500), Some(100_000), size][usize::from(arg / 16 % 4)];
    DownloadConfig::default()
        .with_start(u64::from(arg / 64) * 100)
        .with_size(size)
        .with_end(end)
        .with_serial(arg % 4 == 3)
}

fn word(bytes: [u8; 4]) -> usize {
    usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX)
}
