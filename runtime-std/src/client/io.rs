//! What the core's loop asks of its host: the shared state, a stream, a clock.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_core::Instant;
use longhaul_core::driver::{Clock, Shared, State, Transport};
use longhaul_core::engine::Config;
use smol::Timer;
use smol::io::{AsyncRead as _, AsyncWrite as _};

use crate::clock;
use crate::transport::{Reader, Writer};

/// The state of a session, behind a lock that is held for short turns only.
#[derive(Clone)]
pub(super) struct Hub(Arc<Mutex<State>>);

impl Hub {
    pub(super) fn new(config: Config) -> Self {
        Self(Arc::new(Mutex::new(State::new(config))))
    }
}

impl Shared for Hub {
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        // The engine's state is sound after any call, so a panic elsewhere is no reason to stop.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(clock::now().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The two halves of a connection.
pub(super) struct Stream {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
}

impl Transport for Stream {
    type Error = io::Error;

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.reader).poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let len = ready!(Pin::new(&mut self.writer).poll_write(cx, buf))?;
        if len == 0 && !buf.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        // Sockets and pipes have nothing to flush; for other streams it is begun, and goes on with the next write.
        if let Poll::Ready(flushed) = Pin::new(&mut self.writer).poll_flush(cx) {
            flushed?;
        }
        Poll::Ready(Ok(len))
    }
}

/// Wakes the loop at its deadlines, which move with every byte that comes: the timer is set anew only once it has
/// gone off, or if it would be late.
pub(super) struct Alarm {
    timer: Timer,
    set_for: Option<Instant>,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self {
            timer: Timer::never(),
            set_for: None,
        }
    }
}

impl Clock for Alarm {
    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
        loop {
            let now = clock::now();
            let left = u128::from(until.as_nanos()).saturating_sub(now.as_nanos());
            if left == 0 {
                return Poll::Ready(());
            }
            if self.set_for.is_none_or(|at| at > until) {
                let left =
                    core::time::Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
                self.timer = Timer::after(left);
                self.set_for = Some(until);
            }
            ready!(Pin::new(&mut self.timer).poll(cx));
            self.set_for = None;
        }
    }
}
