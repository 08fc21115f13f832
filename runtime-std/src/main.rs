//! The `longhaul` command.

#![expect(
    clippy::std_instead_of_alloc,
    reason = "this crate is for hosts that have std"
)]

mod cli;
mod clock;
mod demo;
mod serve;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
