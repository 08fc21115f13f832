#![no_std]
#![forbid(unsafe_code)]
//! The protocol core of longhaul: SFTP read windows as pure state transitions.
//!
//! Nothing here does I/O, reads a clock, allocates, or starts a thread. A driver hands bytes and the time in, and
//! takes bytes, deadlines and news out. The same code runs in native programs, in browsers, in WASI hosts and in
//! a simulator with a virtual clock.
//!
//! # The run loop
//!
//! 1. `now` comes first in every call, and never goes back. Its epoch is the driver's choice.
//! 2. After one mutation (`handle_*`, a command) drain every output: [`Engine::handle_input`] until `None`,
//!    [`Engine::poll_transmit`] until 0, [`Engine::poll_event`] until `None`. Then ask
//!    [`Engine::poll_timeout`], and call [`Engine::handle_timeout`] at that time. Output left undrained counts as a
//!    deadline that is due now.
//! 3. Go on reading while writing is blocked, and the reverse: waiting for one direction only can stop both sides
//!    for good.
//! 4. The same inputs at the same times give the same outputs, bit for bit.
//! 5. Dropping the engine is always safe. Ending well is [`Engine::close`], then draining until
//!    [`Engine::is_drained`].
//!
//! [`Engine::handle_input`]: engine::Engine::handle_input
//! [`Engine::poll_transmit`]: engine::Engine::poll_transmit
//! [`Engine::poll_event`]: engine::Engine::poll_event
//! [`Engine::poll_timeout`]: engine::Engine::poll_timeout
//! [`Engine::handle_timeout`]: engine::Engine::handle_timeout
//! [`Engine::close`]: engine::Engine::close
//! [`Engine::is_drained`]: engine::Engine::is_drained
//!
//! # Example
//!
//! A whole session by hand, against a server that is a few bytes written out:
//!
//! ```
//! use longhaul_core::Instant;
//! use longhaul_core::engine::{Command, Config, Engine, OpEvent, Outcome};
//!
//! let mut engine: Box<Engine> = Box::new(Engine::new(Config::default()));
//! let mut now = Instant::ZERO;
//! let mut out = [0; 1024];
//!
//! // A command may come at any time; it leaves once the server has said VERSION.
//! let op = engine.submit(now, Command::Stat(b"/etc/motd"))?;
//! let len = engine.poll_transmit(now, &mut out);
//! assert_eq!(out[..len], [0, 0, 0, 5, 1, 0, 0, 0, 3], "INIT, version 3");
//!
//! // 60 ms later VERSION arrives, and STAT leaves.
//! now = Instant::from_nanos(60_000_000);
//! let mut input: &[u8] = &[0, 0, 0, 5, 2, 0, 0, 0, 3];
//! while engine.handle_input(now, &mut input)?.is_some() {}
//! let len = engine.poll_transmit(now, &mut out);
//! let id: [u8; 4] = out[5..9].try_into()?;
//! assert_eq!((out[4], &out[13..len]), (17, b"/etc/motd".as_slice()));
//!
//! // Another 60 ms later the attributes are there: 286 bytes.
//! now = Instant::from_nanos(120_000_000);
//! let reply = [[0, 0, 0, 17, 105].as_slice(), &id, &[0, 0, 0, 1], &286_u64.to_be_bytes()].concat();
//! let mut input = reply.as_slice();
//! while engine.handle_input(now, &mut input)?.is_some() {}
//! assert_eq!(engine.poll_event(), Some(OpEvent::Ready));
//! assert_eq!(engine.poll_event(), Some(OpEvent::Finished(op)));
//! let Some(Ok(Outcome::Attrs(attrs))) = engine.take(op) else { panic!("STAT has succeeded") };
//! assert_eq!(attrs.size, Some(286));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
extern crate std;

pub mod download;
#[cfg(feature = "driver")]
pub mod driver;
pub mod engine;
mod error;
#[cfg(feature = "server")]
pub mod server;
pub mod sftp;
mod time;
pub mod window;

pub use error::{MESSAGE_LEN_MAX, OpError, ProtocolError, StatusError, SubmitError};
pub use time::{Cause, Deadline, Instant};
