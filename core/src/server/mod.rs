//! The responder half of SFTP version 3, for reading: what simulations and demos talk to.
//!
//! A [`Responder`] turns request bytes into reply bytes and asks a [`Storage`] for what it serves;
//! [`MemoryStorage`] serves byte slices. It has no I/O, clock or allocator either. Whoever carries the bytes
//! alternates between the two directions:
//!
//! ```
//! use longhaul_core::server::{MemoryFile, MemoryStorage, REPLY_LEN_MAX, Responder};
//!
//! let files = [MemoryFile::new(b"/hello", b"hello, world\n")];
//! let mut responder: Responder<_, 4> = Responder::new(MemoryStorage::new(&files));
//! let mut out = vec![0; REPLY_LEN_MAX];
//!
//! // INIT of version 3, as it comes from the transport, in pieces of any size.
//! let mut input: &[u8] = &[0, 0, 0, 5, 1, 0, 0, 0, 3];
//! let mut replies = Vec::new();
//! loop {
//!     // Takes at most one request, and nothing while its reply is due.
//!     responder.handle_input(&mut input)?;
//!     match responder.poll_transmit(&mut out) {
//!         0 => break,
//!         len => replies.extend_from_slice(&out[..len]),
//!     }
//! }
//! assert_eq!(replies[4], 2, "VERSION");
//! # Ok::<(), longhaul_core::ProtocolError>(())
//! ```
//!
//! Served are INIT, OPEN for reading, CLOSE, READ, LSTAT, FSTAT, STAT, REALPATH and `limits@openssh.com`. Everything
//! else is answered with `OP_UNSUPPORTED`.

mod handles;
mod inbox;
mod memory;
mod path;
mod reply;
mod request;
mod responder;
mod storage;

pub use self::memory::{MemoryFile, MemoryStorage};
pub use self::path::resolve;
pub use self::reply::REPLY_LEN_MAX;
pub use self::responder::Responder;
pub use self::storage::Storage;
