//! A long link inside this process: two byte pipes with latency, bandwidth and a bounded queue, in real time.
//!
//! What is written leaves at the rate of the link, packet by packet, and can be read one delay later. A pipe holds
//! what is on the way plus 10 ms of queue, as a router would; then writing waits. There is no loss and no jitter.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smol::Timer;
use smol::future::FutureExt as _;
use smol::io::{AsyncRead, AsyncWrite};

use crate::clock;

/// Bytes that travel as one. At 1 Gbit/s one takes 131 us, well below the queue's 10 ms.
const PACKET_LEN_MAX: usize = 16 << 10;

/// What the queue in front of the link holds, in time.
const QUEUE: Duration = Duration::from_millis(10);

/// Shortest pause between two reads of a stream that keeps arriving: it saves timers, and is well below the queue.
const READ_INTERVAL: Duration = Duration::from_micros(500);

/// Shape of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Time from one end to the other.
    pub(super) delay: Duration,
    /// Rate of each direction.
    pub(super) bytes_per_second: u64,
}

/// One end of a link.
#[derive(Debug)]
pub(super) struct End {
    pub(super) reader: PipeReader,
    pub(super) writer: PipeWriter,
}

/// Makes a link.
pub(super) fn link(shape: Shape) -> (End, End) {
    let (there, back) = (pipe(shape), pipe(shape));
    (
        End {
            reader: back.1,
            writer: there.0,
        },
        End {
            reader: there.1,
            writer: back.0,
        },
    )
}

fn pipe(shape: Shape) -> (PipeWriter, PipeReader) {
    let pipe = Arc::new(Mutex::new(Pipe::new(shape)));
    let reader = PipeReader {
        pipe: Arc::clone(&pipe),
        timer: None,
        not_before: Duration::ZERO,
    };
    (PipeWriter { pipe }, reader)
}

fn lock(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of a pipe that bytes go into.
#[derive(Debug)]
pub(super) struct PipeWriter {
    pipe: Arc<Mutex<Pipe>>,
}

/// The end of a pipe that bytes come out of.
#[derive(Debug)]
pub(super) struct PipeReader {
    pipe: Arc<Mutex<Pipe>>,
    timer: Option<Timer>,
    not_before: Duration,
}

/// One direction of a link.
#[derive(Debug)]
struct Pipe {
    wire: Wire,
    is_read_closed: bool,
    is_write_closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    fn new(shape: Shape) -> Self {
        let wire = Wire::new(shape);
        Self {
            wire,
            is_read_closed: false,
            is_write_closed: false,
            reader: None,
            writer: None,
        }
    }

    fn close_writing(&mut self) {
        self.is_write_closed = true;
        wake(&mut self.reader);
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

impl AsyncWrite for PipeWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut pipe = lock(&self.pipe);
        if pipe.is_read_closed || pipe.is_write_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let len = pipe.wire.accept(clock::now(), bytes);
        if len == 0 && !bytes.is_empty() {
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        wake(&mut pipe.reader);
        Poll::Ready(Ok(len))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.pipe).close_writing();
        Poll::Ready(Ok(()))
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        lock(&self.pipe).close_writing();
    }
}

impl AsyncRead for PipeReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        loop {
            let now = clock::now();
            let mut pipe = lock(&this.pipe);
            let due = match pipe.wire.next_arrival() {
                Some(arrival) => arrival.max(this.not_before),
                None if pipe.is_write_closed || bytes.is_empty() => return Poll::Ready(Ok(0)),
                None => {
                    pipe.reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            };
            if due <= now {
                let len = pipe.wire.take(now, bytes);
                wake(&mut pipe.writer);
                drop(pipe);
                this.timer = None;
                if len < bytes.len() {
                    this.not_before = now.saturating_add(READ_INTERVAL);
                }
                return Poll::Ready(Ok(len));
            }
            drop(pipe);
            // Bytes written meanwhile arrive later than those waited for, so a timer set once stays right.
            let timer = this
                .timer
                .get_or_insert_with(|| Timer::after(due.saturating_sub(now)));
            if timer.poll(cx).is_pending() {
                return Poll::Pending;
            }
            this.timer = None;
        }
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        let mut pipe = lock(&self.pipe);
        pipe.is_read_closed = true;
        wake(&mut pipe.writer);
    }
}

/// Bytes on their way, as a matter of arithmetic: time is what the caller says.
#[derive(Debug)]
struct Wire {
    shape: Shape,
    bytes_max: usize,
    bytes: VecDeque<u8>,
    /// When each packet arrives, and how much of it is still to be read.
    packets: VecDeque<(Duration, usize)>,
    /// When the last packet will have left.
    free_at: Duration,
}

impl Wire {
    fn new(shape: Shape) -> Self {
        let held =
            (shape.delay + QUEUE).as_nanos() * u128::from(shape.bytes_per_second) / 1_000_000_000;
        let bytes_max = usize::try_from(held)
            .unwrap_or(usize::MAX)
            .max(PACKET_LEN_MAX);
        Self {
            shape,
            bytes_max,
            bytes: VecDeque::new(),
            packets: VecDeque::new(),
            free_at: Duration::ZERO,
        }
    }

    /// Takes as much of `bytes` as there is room for, and returns the length.
    fn accept(&mut self, now: Duration, bytes: &[u8]) -> usize {
        let room = self.bytes_max.saturating_sub(self.bytes.len());
        let accepted = bytes.get(..room).unwrap_or(bytes);
        for packet in accepted.chunks(PACKET_LEN_MAX) {
            let nanos = packet.len() as u64 * 1_000_000_000 / self.shape.bytes_per_second.max(1);
            self.free_at = self
                .free_at
                .max(now)
                .saturating_add(Duration::from_nanos(nanos));
            let arrival = self.free_at.saturating_add(self.shape.delay);
            self.packets.push_back((arrival, packet.len()));
            self.bytes.extend(packet);
        }
        accepted.len()
    }

    /// When the next byte can be read, or could have been.
    fn next_arrival(&self) -> Option<Duration> {
        self.packets.front().map(|&(arrival, _)| arrival)
    }

    /// Fills `bytes` with what has arrived, and returns the length.
    fn take(&mut self, now: Duration, bytes: &mut [u8]) -> usize {
        let mut len = 0;
        while let Some((arrival, left)) = self.packets.front_mut() {
            let taken = (*left).min(bytes.len() - len);
            if *arrival > now || taken == 0 {
                break;
            }
            len += taken;
            *left -= taken;
            if *left == 0 {
                self.packets.pop_front();
            }
        }
        // In two turns at most: the ring may wrap once. Reading from memory does not fail.
        let mut target = bytes.get_mut(..len).unwrap_or_default();
        while let Ok(copied @ 1..) = self.bytes.read(target) {
            target = target.get_mut(copied..).unwrap_or_default();
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use smol::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use smol::future;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SHAPE: Shape = Shape {
        delay: Duration::from_millis(30),
        bytes_per_second: 125_000_000,
    };

    #[test]
    fn bytes_arrive_after_the_delay_and_at_the_rate() {
        let mut wire = Wire::new(SHAPE);
        let sent = vec![7; 1_250_000];
        assert_eq!(wire.accept(MS * 5, &sent), sent.len());
        let first = wire.next_arrival().expect("a packet");
        assert!(first > MS * 35 && first < MS * 36, "{first:?}");
        let mut buffer = vec![0; 2_000_000];
        assert_eq!(wire.take(first - Duration::from_nanos(1), &mut buffer), 0);
        assert_eq!(wire.take(first, &mut buffer), PACKET_LEN_MAX);
        // 10 ms of sending in all, so half of it has arrived after 5.
        let half = wire.take(MS * 40, &mut buffer) + PACKET_LEN_MAX;
        assert!(half.abs_diff(625_000) < PACKET_LEN_MAX, "{half}");
        let rest = wire.take(MS * 45, &mut buffer);
        assert!(
            sent.len() - half - rest < 100,
            "all but what rounding leaves"
        );
    }

    #[test]
    fn a_steady_sender_reaches_the_rate_and_a_full_wire_takes_no_more() {
        let mut wire = Wire::new(SHAPE);
        let chunk = vec![1; 60_000];
        let mut buffer = vec![0; 4 << 20];
        let mut received = 0;
        for now in 0..1000 {
            while wire.accept(MS * now, &chunk) > 0 {}
            received += wire.take(MS * now, &mut buffer);
        }
        let bound = 125_000 * (1000 - 30);
        assert!(
            received <= bound && received > bound * 99 / 100,
            "{received} of {bound}"
        );
        while wire.accept(MS * 1000, &chunk) > 0 {}
        assert_eq!(wire.bytes.len(), 125_000 * 40, "delay and queue");
    }

    #[test]
    fn content_survives_any_split() {
        let shape = Shape {
            delay: Duration::from_micros(200),
            bytes_per_second: 1 << 30,
        };
        let (near, far) = link(shape);
        let data: Vec<u8> = (0..3_000_000_u32)
            .map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[1])
            .collect();
        let End {
            mut reader,
            mut writer,
        } = near;
        let received = smol::block_on(async {
            let send = async {
                for piece in data.chunks(77_777) {
                    writer.write_all(piece).await.expect("sent");
                }
                writer.close().await.expect("closed");
            };
            let echo = smol::io::copy(far.reader, far.writer);
            let mut received = Vec::new();
            let receive = reader.read_to_end(&mut received);
            let (_, rest) = future::zip(send, future::zip(echo, receive)).await;
            rest.0.expect("echoed");
            rest.1.expect("received");
            received
        });
        assert!(received == data);
    }

    #[test]
    fn a_closed_end_is_noticed() {
        let (near, far) = link(SHAPE);
        smol::block_on(async {
            let End {
                mut reader,
                mut writer,
            } = near;
            drop(far);
            assert_eq!(reader.read(&mut [0; 9]).await.ok(), Some(0));
            let error = writer.write(b"x").await.expect_err("nobody reads");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        });
    }
}
