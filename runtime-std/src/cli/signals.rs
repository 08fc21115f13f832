//! Ctrl-C and SIGTERM: the first stops the transfer in good order, the second ends the process.

use core::future::Future;
use core::time::Duration;

use async_signal::{Signal, Signals};
use smol::Timer;
use smol::future::FutureExt as _;
use smol::stream::StreamExt as _;

use super::exit::{Exit, Failure};
use crate::clock;

/// How long a failed connection waits for the signal that may have been its cause.
const SIGNAL_GRACE: Duration = Duration::from_millis(100);

/// A signal this soon after another is the same one: `timeout` sends its own to the process and to the whole group.
const ECHO_MAX: Duration = Duration::from_millis(200);

/// Signals that ask to stop.
pub(super) struct Interrupt {
    signals: Signals,
    /// When the last one came.
    last: Option<Duration>,
}

impl Interrupt {
    /// Takes the signals over from the system's default, which is to die at once.
    pub(super) fn new() -> Result<Self, Failure> {
        #[cfg(unix)]
        let signals = Signals::new([Signal::Int, Signal::Term]);
        #[cfg(not(unix))]
        let signals = Signals::new([Signal::Int]);
        let failed =
            |error| Failure::new(Exit::Local, format!("cannot watch for signals: {error}"));
        Ok(Self {
            signals: signals.map_err(failed)?,
            last: None,
        })
    }

    /// Carries `work` on until it ends or a signal comes; `work` is dropped then.
    pub(super) async fn guard<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Exit> {
        let work = async { Ok(work.await) };
        work.or(async { Err(self.next().await) }).await
    }

    /// What is to be told instead of `failure`, if a signal was its cause: a Ctrl-C also reaches `ssh`, whose end may be
    /// noticed first.
    pub(super) async fn instead_of(&mut self, failure: Failure) -> Failure {
        if failure.exit != Exit::Connection {
            return failure;
        }
        match self.comes_within(SIGNAL_GRACE).await {
            Some(stopped) => Failure::new(stopped, "interrupted"),
            None => failure,
        }
    }

    /// Tells whether a signal has come or comes within the time.
    async fn comes_within(&mut self, time: Duration) -> Option<Exit> {
        let limit = async {
            Timer::after(time).await;
            None
        };
        async { Some(self.next().await) }.or(limit).await
    }

    async fn next(&mut self) -> Exit {
        loop {
            let exit = match self.signals.next().await {
                Some(Ok(Signal::Term)) => Exit::Terminated,
                Some(_) => Exit::Interrupted,
                // The stream does not end; if it did, nothing could be watched any more.
                None => core::future::pending().await,
            };
            let now = clock::now();
            let is_echo = |last: Duration| now.saturating_sub(last) < ECHO_MAX;
            if !self.last.is_some_and(is_echo) {
                self.last = Some(now);
                return exit;
            }
        }
    }
}
