//! No allocation after construction.
//!
//! Aim: the engine lives in the memory it was made with. Method: a counting allocator around a whole transfer, with
//! replies out of order and short; what the test itself needs is reserved before.

use longhaul_core::Instant;
use longhaul_core::download::DownloadConfig;
use longhaul_core::engine::{Command, Config, Engine, Event, OpEvent, Outcome};

const SIZE: u64 = 8 << 20;
const VERSION: &[u8] = &[0, 0, 0, 5, 2, 0, 0, 0, 3];

/// One side of the wire that answers by itself, in reserved memory.
struct Server {
    out: Vec<u8>,
    /// Type, id, and for READ the offset and length.
    due: Vec<(u8, [u8; 4], u64, u32)>,
    reply: Vec<u8>,
    turn: u32,
}

#[test]
fn whole_transfer_allocates_nothing() {
    let mut engine = Box::new(Engine::<4, 64, 2>::new(Config::default()));
    let mut server = Server {
        out: vec![0; 8192],
        due: Vec::with_capacity(1024),
        reply: Vec::with_capacity(1 << 19),
        turn: 0,
    };
    let mut fetched = 0;
    let mut short = 0;
    let count = allocation_counter::measure(|| {
        (fetched, short) = transfer(&mut engine, &mut server);
    });
    assert_eq!(fetched, SIZE);
    assert!(short > 0, "some replies were short");
    assert_eq!(count.count_total, 0, "{count:?}");
}

/// Stats, opens, downloads and closes; returns the bytes that came, and the number of short replies.
fn transfer(engine: &mut Engine<4, 64, 2>, server: &mut Server) -> (u64, u32) {
    let mut now = 0;
    let stat = engine.submit(Instant::ZERO, Command::Stat(b"/f"));
    let open = engine.submit(Instant::ZERO, Command::Open(b"/f"));
    assert!(stat.is_ok() && open.is_ok());
    let (mut fetched, mut short) = (0, 0);
    // STAT and the download: close once both have ended.
    let mut left = 2;
    server.due.push((1, [0; 4], 0, 0));
    while !engine.is_drained() {
        now += 1_000_000;
        assert!(now < 1_000_000_000_000, "the transfer does not end");
        let at = Instant::from_nanos(now);
        server.take_requests(engine, at);
        // The last comes first.
        if let Some((kind, id, offset, len)) = server.due.pop() {
            short += server.answer(kind, id, offset, len);
            let mut input = server.reply.as_slice();
            while let Ok(Some(event)) = engine.handle_input(at, &mut input) {
                if let Event::Data { op, bytes, .. } = event {
                    let len = u64::try_from(bytes.len()).unwrap_or_default();
                    fetched += len;
                    engine.consume(at, op, len);
                }
            }
        }
        while let Some(event) = engine.poll_event() {
            let OpEvent::Finished(op) = event else {
                continue;
            };
            match engine.take(op) {
                Some(Ok(Outcome::Handle(handle))) => {
                    let config = DownloadConfig::default().with_size(Some(SIZE));
                    assert!(engine.download(at, handle, config).is_ok());
                }
                Some(Ok(Outcome::Fetched(end))) => {
                    assert_eq!(end, SIZE);
                    left -= 1;
                }
                Some(Ok(_)) => left -= 1,
                other => panic!("failed: {other:?}"),
            }
        }
        if left == 0 {
            engine.close(at);
        }
        assert_eq!(engine.ended(), None);
    }
    (fetched, short)
}

impl Server {
    fn take_requests(&mut self, engine: &mut Engine<4, 64, 2>, at: Instant) {
        loop {
            let len = engine.poll_transmit(at, &mut self.out);
            let mut rest = &self.out[..len];
            while let [a, b, c, d, body @ ..] = rest {
                let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
                let (packet, after) = body.split_at(len);
                rest = after;
                let id = [packet[1], packet[2], packet[3], packet[4]];
                match packet[0] {
                    1 => {}
                    5 => {
                        let (offset, count) = packet.split_at(len - 4);
                        let offset = *offset.last_chunk().expect("an offset");
                        let count = count.try_into().expect("a length");
                        self.due.push((
                            5,
                            id,
                            u64::from_be_bytes(offset),
                            u32::from_be_bytes(count),
                        ));
                    }
                    kind => self.due.push((kind, id, 0, 0)),
                }
            }
            if len == 0 {
                return;
            }
        }
    }

    /// Writes the reply; returns 1 if it is short, else 0.
    fn answer(&mut self, kind: u8, id: [u8; 4], offset: u64, len: u32) -> u32 {
        self.reply.clear();
        if kind == 1 {
            self.reply.extend(VERSION);
            return 0;
        }
        let left = SIZE.saturating_sub(offset);
        match kind {
            3 => self.packet(102, id, &[0, 0, 0, 1, 9], 0),
            5 if left > 0 => {
                self.turn += 1;
                let len = len.min(u32::try_from(left).unwrap_or(u32::MAX));
                let is_short = self.turn.is_multiple_of(3) && len > 1;
                let got = if is_short { len / 2 } else { len };
                self.packet(103, id, &got.to_be_bytes(), got);
                return u32::from(is_short);
            }
            5 => self.packet(101, id, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 0),
            4 => self.packet(101, id, &[0; 12], 0),
            _ => self.packet(105, id, &[0; 4], 0),
        }
        0
    }

    fn packet(&mut self, kind: u8, id: [u8; 4], fields: &[u8], fill: u32) {
        let fields_len = u32::try_from(fields.len()).expect("a short packet");
        self.reply.extend((5 + fields_len + fill).to_be_bytes());
        self.reply.push(kind);
        self.reply.extend(id);
        self.reply.extend(fields);
        self.reply.resize(self.reply.len() + fill as usize, 0x5a);
    }
}
