//! Downloads remote files by SFTP at the speed of the link, on `smol`.
//!
//! The protocol lives in `longhaul-core`, which does no I/O; this crate carries its bytes: [`transport`] has the ways to a
//! server, [`Target`] the names of remote files.

#![expect(
    clippy::std_instead_of_alloc,
    reason = "this crate is for hosts that have std"
)]

mod local;
mod target;
mod text;
pub mod transport;

pub use self::local::{LocalError, LocalErrorKind};
pub use self::target::{Target, TargetError};
