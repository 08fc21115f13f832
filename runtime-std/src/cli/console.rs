//! What the command says: errors and notices on standard error, results on standard output.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::{Value, json};

use super::args::OutputArgs;
use super::exit::{Exit, Failure};
use crate::text::io_text;

/// Where and how much to write.
#[derive(Debug)]
pub(crate) struct Console {
    is_json: bool,
    is_quiet: bool,
    is_terminal: bool,
    verbosity: u8,
}

impl Console {
    pub(super) fn new(output: &OutputArgs) -> Self {
        Self {
            is_json: output.json,
            is_quiet: output.quiet,
            is_terminal: io::stderr().is_terminal(),
            verbosity: output.verbose,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Whether a progress bar can be drawn on standard error.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// The reason why the command fails: one line, and an event with `--json`.
    pub(super) fn failure(&self, failure: &Failure) {
        self.event(&json!({
            "event": "error",
            "message": failure.message,
            "hint": failure.hint,
            "url": failure.url,
            "exit": failure.exit as u8,
        }));
        // As for any filter: whoever stopped to read knows that.
        if failure.exit != Exit::OutputClosed {
            line(&format!("longhaul: {failure}"));
        }
    }

    /// Something that the user should know although all goes well.
    pub(crate) fn notice(&self, text: &str) {
        if !self.is_quiet {
            line(&format!("longhaul: {text}"));
        }
    }

    /// Something for those who asked for more.
    pub(super) fn detail(&self, text: &str) {
        if self.verbosity > 0 {
            line(&format!("longhaul: {text}"));
        }
    }

    /// One object on standard output, with `--json` only.
    pub(crate) fn event(&self, event: &Value) {
        if self.is_json {
            // Whoever stopped to read events does not stop the transfer.
            let _ = self.print(&event.to_string());
        }
    }

    /// One line of a result on standard output.
    #[expect(clippy::unused_self, reason = "all output goes through the console")]
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        writeln!(io::stdout().lock(), "{text}").map_err(|error| output_failed(&error))
    }
}

/// Standard output took no more.
pub(super) fn output_failed(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::new(Exit::OutputClosed, "the reader of the output left")
    } else {
        Failure::new(
            Exit::Local,
            format!("cannot write to standard output: {}", io_text(error)),
        )
    }
}

/// A lost message is no reason to stop.
pub(super) fn line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
