//! Any command whose standard input and output speak SFTP.

use std::ffi::{OsStr, OsString};

use super::child;
use super::error::Program;
use super::{ConnectError, Connection, Stderr};

/// A command whose standard input and output speak SFTP, such as `sftp-server`, or that program in a container.
///
/// It is started as it stands, without a shell.
///
/// # Examples
///
/// ```no_run
/// # fn main() -> Result<(), longhaul::transport::ConnectError> {
/// let connection = longhaul::transport::Command::new("docker")
///     .with_args(["exec", "-i", "web", "/usr/lib/openssh/sftp-server"])
///     .connect()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    stderr: Stderr,
}

impl Command {
    /// Names the program: a path, or a name that is looked up in `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            stderr: Stderr::default(),
        }
    }

    /// Adds arguments.
    pub fn with_args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets what becomes of the command's standard error.
    pub fn with_stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Starts the command.
    ///
    /// # Errors
    ///
    /// If the program cannot be started; that it speaks no SFTP shows only later.
    pub fn connect(&self) -> Result<Connection, ConnectError> {
        let mut command = child::command(&self.program);
        command.args(&self.args);
        child::spawn(command, Program::Command(self.program.clone()), self.stderr)
    }
}
