//! Writing downloads so that the final name only ever holds a whole file.
//!
//! Bytes go to a part file beside the target (`.NAME.longhaul-part`), which is renamed over the target at the end. A
//! small state file beside that (`.NAME.longhaul-part.state`) says what the part is a part of, and up to which
//! offset it is complete, the *mark*. What keeps that safe when the process is killed at any moment:
//!
//! - One worker carries out writes and marks in the order they were given, so a mark is recorded only after the
//!   bytes below it were handed to the system. The state file is replaced by a rename, never edited.
//! - A fresh start removes the state before it touches the part; the end renames the part before it removes the state.
//! - The part is locked while somebody writes to it.
//! - Bytes handed to the system survive the process, but not a power cut. A stop in good order syncs the part first
//!   and says so in the state; without that, a state from before the last boot is not believed.
//!
//! Nothing is synced otherwise and nothing is preallocated: the size is the server's claim, some file systems fill
//! preallocated space with zeros, and writes at nearly ascending offsets do not fragment.

mod error;
mod name;
mod part;
#[cfg(test)]
mod scratch;
mod state;
mod writer;

pub use self::error::{LocalError, LocalErrorKind};

pub(crate) use self::name::resolve;
pub use self::part::Fresh;
pub(crate) use self::part::{Part, Start};
#[cfg(test)]
pub(crate) use self::scratch::Scratch;
pub(crate) use self::state::Source;
pub use self::writer::Kept;
pub(crate) use self::writer::{PartWriter, Stopped};
