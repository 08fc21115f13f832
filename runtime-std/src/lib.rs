//! Downloads remote files by SFTP at the speed of the link, on `smol`.
//!
//! The protocol lives in `longhaul-core`, which does no I/O; this crate carries its bytes: [`transport`] has the ways to a
//! server, [`Target`] the names of remote files.

#![expect(
    clippy::std_instead_of_alloc,
    reason = "this crate is for hosts that have std"
)]

pub mod client;
mod clock;
mod local;
#[cfg(test)]
mod serve;
mod target;
mod text;
pub mod transport;

pub use self::client::{Client, Config, Error};
pub use self::local::{Fresh, Kept, LocalError, LocalErrorKind};
pub use self::target::{Target, TargetError};
pub use longhaul_core::sftp::{Attrs, FileType};
