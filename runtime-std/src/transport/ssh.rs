//! The system's `ssh`, which brings the user's agent, keys, configuration, known hosts and jump hosts.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::child;
use super::error::Program;
use super::{ConnectError, Connection, Stderr};

/// Receive window that OpenSSH gives a session channel: `CHAN_SES_WINDOW_DEFAULT` in its `channels.h`.
const CHANNEL_WINDOW_BYTES: u64 = 2 << 20;

/// Names the `ssh` program when it is not the first of that name in `PATH`.
const PROGRAM_VARIABLE: &str = "LONGHAUL_SSH";

/// What OpenSSH's own `sftp` and `scp` set as well. `ssh` takes the first value it meets, so options of the caller,
/// which stand before these, win; what the configuration file says comes after.
const OPTIONS: [&str; 6] = [
    "-oForwardX11=no",
    "-oForwardAgent=no",
    "-oPermitLocalCommand=no",
    "-oClearAllForwardings=yes",
    "-oRemoteCommand=none",
    "-oRequestTTY=no",
];

/// A connection by the system's `ssh`, asking the server for its `sftp` subsystem.
///
/// Whatever the user's `ssh_config` says of the host holds. The program is `ssh`, or what the environment variable
/// `LONGHAUL_SSH` names.
///
/// # Examples
///
/// ```no_run
/// # fn main() -> Result<(), longhaul::transport::ConnectError> {
/// let connection = longhaul::transport::Ssh::new("files.example.org")
///     .with_user("ada")
///     .with_option("ConnectTimeout=10")
///     .connect()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Ssh {
    host: OsString,
    user: Option<OsString>,
    port: Option<u16>,
    config: Option<PathBuf>,
    identities: Vec<PathBuf>,
    options: Vec<OsString>,
    program: Option<OsString>,
    stderr: Stderr,
}

impl Ssh {
    /// Names the host: a name, an address (IPv6 without brackets), or an alias of the user's configuration.
    pub fn new(host: impl Into<OsString>) -> Self {
        Self {
            host: host.into(),
            user: None,
            port: None,
            config: None,
            identities: Vec::new(),
            options: Vec::new(),
            program: None,
            stderr: Stderr::default(),
        }
    }

    /// Sets the name to log in with (`ssh -l`).
    pub fn with_user(mut self, user: impl Into<OsString>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the port (`ssh -p`).
    pub fn with_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets the configuration file, in place of the user's and the system's (`ssh -F`).
    pub fn with_config(mut self, file: impl Into<PathBuf>) -> Self {
        self.config = Some(file.into());
        self
    }

    /// Adds a private key file (`ssh -i`).
    pub fn with_identity(mut self, file: impl Into<PathBuf>) -> Self {
        self.identities.push(file.into());
        self
    }

    /// Adds an option in the form of the configuration file (`ssh -o`).
    pub fn with_option(mut self, option: impl Into<OsString>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Sets the program to run, in place of `ssh` and of the environment variable `LONGHAUL_SSH`.
    pub fn with_program(mut self, program: impl Into<OsString>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Sets what becomes of the standard error of `ssh`.
    pub fn with_stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Starts `ssh`.
    ///
    /// The child stays in this process's group, since `ssh` could not ask for a password on the terminal otherwise;
    /// so an interrupt from the keyboard reaches it too and ends the connection.
    ///
    /// # Errors
    ///
    /// If the program cannot be started. That the host is unknown, its key has changed or the login fails
    /// shows only once the stream ends.
    pub fn connect(&self) -> Result<Connection, ConnectError> {
        let program = self.program();
        let mut command = child::command(&program);
        command.args(self.args());
        let program = Program::Ssh {
            program,
            host: self.host.to_string_lossy().into_owned(),
        };
        Ok(child::spawn(command, program, self.stderr)?.with_window_bytes(CHANNEL_WINDOW_BYTES))
    }

    fn program(&self) -> OsString {
        let from_environment = || env::var_os(PROGRAM_VARIABLE).filter(|value| !value.is_empty());
        self.program
            .clone()
            .or_else(from_environment)
            .unwrap_or_else(|| OsString::from("ssh"))
    }

    fn args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        let mut option = |flag: &str, value: &OsStr| {
            args.push(OsString::from(flag));
            args.push(value.to_owned());
        };
        if let Some(port) = self.port {
            option("-p", OsStr::new(&port.to_string()));
        }
        if let Some(config) = &self.config {
            option("-F", config.as_os_str());
        }
        for identity in &self.identities {
            option("-i", identity.as_os_str());
        }
        for value in &self.options {
            option("-o", value);
        }
        if let Some(user) = &self.user {
            option("-l", user);
        }
        args.extend(OPTIONS.map(OsString::from));
        // A host that starts with a dash must not become an option.
        args.extend(["-s", "--"].map(OsString::from));
        args.push(self.host.clone());
        args.push(OsString::from("sftp"));
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_caller_come_before_ours_and_the_host_last() {
        let ssh = Ssh::new("-oProxyCommand=evil")
            .with_user("ada")
            .with_port(2222)
            .with_identity("key file")
            .with_option("ForwardAgent=yes");
        let args = ssh.args();
        let args: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
        assert_eq!(
            args,
            [
                "-p",
                "2222",
                "-i",
                "key file",
                "-o",
                "ForwardAgent=yes",
                "-l",
                "ada",
                "-oForwardX11=no",
                "-oForwardAgent=no",
                "-oPermitLocalCommand=no",
                "-oClearAllForwardings=yes",
                "-oRemoteCommand=none",
                "-oRequestTTY=no",
                "-s",
                "--",
                "-oProxyCommand=evil",
                "sftp",
            ]
        );
    }
}
