//! The command line: arguments, messages, signals, exit codes.

mod args;
mod cat;
mod commands;
mod console;
mod exit;
mod get;
mod options;
mod progress;
mod sessions;
mod signals;
mod size;
mod stat;

use std::process::ExitCode;

use clap::Parser as _;

use self::args::Args;
use self::options::Options;
use self::signals::Interrupt;

pub(crate) use self::console::Console;
pub(crate) use self::exit::{Exit, Failure};
pub(crate) use self::size::show_bytes;

pub(crate) fn main() -> ExitCode {
    let args = Args::parse();
    let console = Console::new(&args.output);
    match run(args, &console) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            console.failure(&failure);
            failure.exit.into()
        }
    }
}

fn run(args: Args, console: &Console) -> Result<(), Failure> {
    let options = Options::new(&args)?;
    let mut interrupt = Interrupt::new()?;
    smol::block_on(commands::run(
        args.command,
        &options,
        console,
        &mut interrupt,
    ))
}
