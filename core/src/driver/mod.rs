//! The one async loop that every runtime shares.
//!
//! A runtime brings a [`Transport`], a [`Clock`] and a place for the [`State`] that the loop and its users share
//! ([`Shared`]). [`run`] moves the bytes; [`Remote`] is the other side, on which applications wait.
//! There is no allocator and no executor here: the loop is one future, to be polled by whatever polls futures.

mod remote;

use core::task::{Context, Poll};

use embassy_sync::waitqueue::{MultiWakerRegistration, WakerRegistration};
use futures_lite::future::poll_fn;

use crate::engine::{Config, Ended, Engine, Event, OpEvent, OpId};
use crate::time::Instant;
pub use remote::{File, Opened, Remote, Transfer};

/// Turns after which the loop lets others run, though it could go on.
const TURNS_MAX: usize = 16;

/// Users that can wait for room or for the session at once before they are all woken to look again.
const WAITERS_MAX: usize = 8;

/// A stream of bytes in both directions, ordered and reliable.
///
/// Neither method may lose bytes if it returns `Pending`.
pub trait Transport {
    /// What goes wrong with it.
    type Error;

    /// Reads into `buf`; 0 is the end of the stream.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, Self::Error>>;

    /// Writes a prefix of `buf`; the bytes leave without a flush.
    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize, Self::Error>>;
}

/// Wakes the loop in time.
pub trait Clock {
    /// Ready once `until` has come. A later call with another `until` replaces the wait.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<()>;
}

/// What the loop and its users share: one value behind a lock, and the time.
pub trait Shared: Clone + Unpin {
    /// Runs `f` on the state, which nobody else has meanwhile. `f` calls nothing that locks it again, but it
    /// may ask for the time: read before, it could be older than what another thread has told the engine.
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R;

    /// The time now; it never goes back. Also called within [`Self::with`].
    fn now(&self) -> Instant;
}

/// An engine, and who waits for it.
#[derive(Debug)]
pub struct State {
    engine: Engine,
    driver: WakerRegistration,
    ops: [WakerRegistration; OPS],
    /// Those that wait for room for an operation, or for the session to be up.
    waiters: MultiWakerRegistration<WAITERS_MAX>,
}

const OPS: usize = 8;

impl State {
    /// Makes the state of a session that has yet to begin.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            engine: Engine::new(config),
            driver: WakerRegistration::new(),
            ops: [const { WakerRegistration::new() }; OPS],
            waiters: MultiWakerRegistration::new(),
        }
    }

    /// The engine, to look at.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    fn wake_op(&mut self, op: OpId) {
        if let Some(waker) = self.ops.get_mut(op.index()) {
            waker.wake();
        }
    }

    fn wake_all(&mut self) {
        self.waiters.wake();
        for op in &mut self.ops {
            op.wake();
        }
    }

    /// Hands all of `input` to the engine, and what it brings to `deliver`.
    fn take_input(
        &mut self,
        now: Instant,
        mut input: &[u8],
        deliver: &mut impl FnMut(OpId, u64, &[u8]) -> u64,
    ) {
        // An error ends the session; the next turn sees that.
        while let Ok(Some(event)) = self.engine.handle_input(now, &mut input) {
            if let Event::Data { op, offset, bytes } = event {
                let consumed = deliver(op, offset, bytes);
                self.engine.consume(now, op, consumed);
            }
        }
    }

    /// Tells those concerned what has happened.
    fn tell(&mut self) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                OpEvent::Finished(op) => self.wake_op(op),
                OpEvent::Ready => self.waiters.wake(),
            }
        }
    }
}

/// Why the loop ended before the session was closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RunError<E> {
    /// The session ended by itself.
    Session(Ended),
    /// The transport failed.
    Transport(E),
}

/// Drives one session over `transport` until it is closed ([`Remote::close`]) or ends.
///
/// `deliver` gets the content of files: operation, offset, bytes; it returns how many of them need no memory
/// any more. The rest is told to [`Remote::consume`] later. It is called with the state locked, and must not
/// lock it again. `receive` and `transmit` are the buffers of the two directions; 256 KiB and 16 KiB are good sizes, 1
/// KiB each the least.
///
/// # Errors
/// Why the session ended. Every operation has failed then, and those that wait for one are told.
pub async fn run<T: Transport>(
    shared: &impl Shared,
    transport: &mut T,
    clock: &mut impl Clock,
    receive: &mut [u8],
    transmit: &mut [u8],
    mut deliver: impl FnMut(OpId, u64, &[u8]) -> u64,
) -> Result<(), RunError<T::Error>> {
    let mut waiting = 0..0;
    let result = poll_fn(|cx| {
        for _ in 0..TURNS_MAX {
            let (ended, deadline) = shared.with(|state| {
                let now = shared.now();
                state.driver.register(cx.waker());
                if waiting.is_empty() {
                    waiting = 0..state.engine.poll_transmit(now, transmit);
                    // What has left made room.
                    if !waiting.is_empty() {
                        state.waiters.wake();
                    }
                }
                state.tell();
                let ended = state.engine.ended().map(Err);
                let drained = state.engine.is_drained().then_some(Ok(()));
                (ended.or(drained), state.engine.deadline())
            });
            match ended {
                Some(Err(ended)) => return Poll::Ready(Err(RunError::Session(ended))),
                Some(Ok(())) if waiting.is_empty() => return Poll::Ready(Ok(())),
                _ => {}
            }
            let mut is_idle = true;
            if !waiting.is_empty() {
                let bytes = transmit.get(waiting.clone()).unwrap_or_default();
                match transport.poll_write(cx, bytes) {
                    Poll::Ready(Ok(len)) => {
                        waiting.start += len;
                        is_idle = false;
                    }
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Err(RunError::Transport(error)));
                    }
                    Poll::Pending => {}
                }
            }
            match transport.poll_read(cx, receive) {
                Poll::Ready(Ok(len)) => {
                    let input = receive.get(..len).unwrap_or_default();
                    shared.with(|state| {
                        let now = shared.now();
                        if input.is_empty() {
                            // The error is kept as the session's end.
                            let _ = state.engine.handle_eof(now);
                        }
                        state.take_input(now, input, &mut deliver);
                    });
                    is_idle = false;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(RunError::Transport(error))),
                Poll::Pending => {}
            }
            if let Some(deadline) = deadline
                && clock.poll_sleep(cx, deadline.at).is_ready()
            {
                shared.with(|state| state.engine.handle_timeout(shared.now()));
                is_idle = false;
            }
            if is_idle {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    shared.with(|state| {
        let now = shared.now();
        // The stream is of no use any more, whatever ended it.
        let _ = state.engine.handle_eof(now);
        state.tell();
        state.wake_all();
    });
    result
}
