//! What a byte costs on its way in: the decoder alone, and the whole engine.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use longhaul_core::Instant;
use longhaul_core::download::DownloadConfig;
use longhaul_core::engine::{Command, Config, Engine, Event, Outcome};
use longhaul_core::sftp::Decoder;
use longhaul_core::window::WindowConfig;

const VERSION: &[u8] = &[0, 0, 0, 5, 2, 0, 0, 0, 3];

/// A DATA reply of `len` bytes to request `id`.
fn data(id: [u8; 4], len: u32) -> Vec<u8> {
    let mut packet = (len + 9).to_be_bytes().to_vec();
    packet.push(103);
    packet.extend(id);
    packet.extend(len.to_be_bytes());
    packet.resize(packet.len() + len as usize, 0x5a);
    packet
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for len in [32_768, 261_120] {
        let packet = data([0; 4], len);
        group.throughput(Throughput::Bytes(len.into()));
        group.bench_function(format!("data/{len}"), |bencher| {
            let mut decoder = Decoder::new();
            let mut input = VERSION;
            while let Ok(Some(_)) = decoder.handle_input(&mut input) {}
            bencher.iter(|| {
                let mut input = packet.as_slice();
                while let Ok(Some(item)) = decoder.handle_input(&mut input) {
                    core::hint::black_box(item);
                }
            });
        });
    }
    group.finish();
}

/// Hands `input` to the engine and consumes what it brings.
fn feed(engine: &mut Engine, now: Instant, mut input: &[u8]) {
    while let Ok(Some(event)) = engine.handle_input(now, &mut input) {
        if let Event::Data { op, bytes, .. } = event {
            engine.consume(now, op, bytes.len() as u64);
        }
    }
}

/// An engine with a download that never ends, and the READ that it sends first.
fn downloading(now: Instant, read_len: u32) -> (Box<Engine>, [u8; 1024]) {
    let window = WindowConfig::default()
        .with_fixed(u64::from(read_len))
        .with_read_len_max(read_len);
    let mut engine: Box<Engine> = Box::new(Engine::new(Config::default().with_window(window)));
    let mut out = [0; 1024];
    let op = engine.submit(now, Command::Open(b"/file"));
    engine.poll_transmit(now, &mut out);
    feed(&mut engine, now, VERSION);
    let len = engine.poll_transmit(now, &mut out);
    let mut handle = [0, 0, 0, 10, 102, 0, 0, 0, 0, 0, 0, 0, 1, b'h'];
    handle[5..9].copy_from_slice(&out[5..9]);
    feed(&mut engine, now, &handle);
    assert!(len > 0, "OPEN has left");
    let opened = op.ok().and_then(|op| engine.take(op));
    let Some(Ok(Outcome::Handle(handle))) = opened else {
        unreachable!("the handle has just been given")
    };
    let begun = engine.download(now, handle, DownloadConfig::default());
    assert!(begun.is_ok(), "there is room for a download");
    engine.poll_transmit(now, &mut out);
    (engine, out)
}

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    let read_len = 32_768;
    group.throughput(Throughput::Bytes(read_len.into()));
    group.bench_function("read and reply", |bencher| {
        let now = Instant::ZERO;
        let (mut engine, mut request) = downloading(now, read_len);
        let mut reply = data([0; 4], read_len);
        bencher.iter(|| {
            reply[5..9].copy_from_slice(&request[5..9]);
            feed(&mut engine, now, &reply);
            let len = engine.poll_transmit(now, &mut request);
            assert!(len > 0, "the next READ leaves");
        });
    });
    group.finish();
}

criterion_group!(benches, decode, engine);
criterion_main!(benches);
