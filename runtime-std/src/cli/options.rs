//! Arguments that have been checked against each other.

use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use longhaul::Target;
use longhaul::client::Config;
use longhaul::transport::{self, Connection, Stderr};

use super::args::{Args, Command, Transport};
use super::exit::Failure;
use super::size::Window;
use crate::text::escaped;

/// What `--timeout` is if it is not given.
const TIMEOUT_SECONDS: u32 = 60;

/// What holds for every file of one run.
#[derive(Debug)]
pub(super) struct Options {
    route: Route,
    login: Option<String>,
    port: Option<u16>,
    window: Window,
    memory_max: Option<u64>,
    is_serial: bool,
    /// Longest time without progress.
    timeout: Option<Duration>,
    /// Longest time for the login and what follows it, if `--timeout` was given.
    handshake: Option<Duration>,
}

/// How servers are reached.
#[derive(Debug)]
enum Route {
    Command {
        program: OsString,
        args: Vec<OsString>,
        stderr: Stderr,
    },
    Ssh {
        config: Option<PathBuf>,
        identities: Vec<PathBuf>,
        options: Vec<OsString>,
        stderr: Stderr,
    },
    Tcp,
}

impl Options {
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        check_output(args)?;
        let transfer = &args.transfer;
        if transfer.serial && transfer.window.is_some() {
            let message = "--serial has one request in flight, whatever --window says";
            return Err(Failure::usage(message, "leave one of the two out"));
        }
        if let (Some(Window::Fixed(window)), Some(max)) = (transfer.window, transfer.memory_max)
            && window > max
        {
            let message = "--window is larger than --memory-max";
            return Err(Failure::usage(
                message,
                "what is in flight must have room in memory",
            ));
        }
        let timeout = Duration::from_secs(transfer.timeout.unwrap_or(TIMEOUT_SECONDS).into());
        Ok(Self {
            route: Route::new(args)?,
            login: args.connection.login.clone(),
            port: args.connection.port,
            window: transfer.window.unwrap_or(Window::Auto),
            memory_max: transfer.memory_max,
            is_serial: transfer.serial,
            timeout: (!timeout.is_zero()).then_some(timeout),
            handshake: transfer
                .timeout
                .filter(|&seconds| seconds > 0)
                .map(|_| timeout),
        })
    }

    /// Takes a URL apart. For a command, which has no host, it may be a path alone.
    pub(super) fn target(&self, text: &OsStr) -> Result<Target, Failure> {
        let bytes = path_bytes(text)?;
        match (Target::parse(&bytes), &self.route) {
            (Ok(target), Route::Tcp) if target.port().or(self.port).is_none() => {
                let failure = Failure::usage(
                    "no port",
                    "SFTP over plain TCP has no usual port: sftp://host:PORT/path",
                );
                Err(failure.about(target))
            }
            (Ok(target), _) => Ok(target),
            (Err(longhaul::TargetError::Local), Route::Command { .. }) => {
                Ok(Target::from_path(bytes))
            }
            // The password is not told again: messages end up in logs.
            (Err(error @ longhaul::TargetError::Password), _) => Err(error.into()),
            (Err(error), _) => {
                let shown = escaped(text.as_encoded_bytes());
                Err(Failure::from(error).about(shown))
            }
        }
    }

    /// How sessions behave.
    pub(super) fn config(&self) -> Config {
        let config = Config::default()
            .with_serial(self.is_serial)
            .with_no_progress_max(self.timeout)
            .with_handshake_max(self.handshake);
        let config = match self.window {
            Window::Auto => config,
            Window::Fixed(bytes) => config.with_window_bytes(Some(bytes)),
        };
        match self.memory_max {
            Some(bytes) => config.with_memory_max(bytes),
            None => config,
        }
    }

    /// Whether `ssh` makes the connection.
    pub(super) fn is_ssh(&self) -> bool {
        matches!(self.route, Route::Ssh { .. })
    }

    /// Opens a connection to the server of `target`.
    pub(super) async fn connect(&self, target: &Target) -> Result<Connection, Failure> {
        let user = target.user().or(self.login.as_deref());
        let port = target.port().or(self.port);
        match &self.route {
            Route::Command {
                program,
                args,
                stderr,
            } => {
                let command = transport::Command::new(program)
                    .with_args(args)
                    .with_stderr(*stderr);
                Ok(command.connect()?)
            }
            Route::Ssh {
                config,
                identities,
                options,
                stderr,
            } => {
                let mut ssh = transport::Ssh::new(target.host()).with_stderr(*stderr);
                if let Some(user) = user {
                    ssh = ssh.with_user(user);
                }
                if let Some(port) = port {
                    ssh = ssh.with_port(port);
                }
                if let Some(config) = config {
                    ssh = ssh.with_config(config);
                }
                for identity in identities {
                    ssh = ssh.with_identity(identity);
                }
                for option in options {
                    ssh = ssh.with_option(option);
                }
                Ok(ssh.connect()?)
            }
            // `target` has seen to the port.
            Route::Tcp => Ok(transport::Tcp::new(target.host(), port.unwrap_or(0))
                .connect()
                .await?),
        }
    }
}

impl Route {
    fn new(args: &Args) -> Result<Self, Failure> {
        let connection = &args.connection;
        let trailing = args.command.trailing();
        let transport = match connection.transport {
            Some(transport) => transport,
            None if trailing.is_empty() => Transport::Ssh,
            None => Transport::Command,
        };
        if transport != Transport::Command && !trailing.is_empty() {
            let message = "a command after -- goes with --transport command";
            return Err(Failure::usage(
                message,
                "leave out --transport or the command",
            ));
        }
        let of_ssh = connection.config.is_some()
            || !connection.identity.is_empty()
            || !connection.option.is_empty();
        if transport != Transport::Ssh && (of_ssh || connection.login.is_some()) {
            let message = "-i, -o and -l are for ssh, and another transport was asked for";
            return Err(Failure::usage(message, "leave them out"));
        }
        if transport == Transport::Command && connection.port.is_some() {
            return Err(Failure::usage("a command has no port", "leave out -p"));
        }
        let stderr = if args.output.verbose > 0 {
            Stderr::Inherit
        } else {
            Stderr::Keep
        };
        Ok(match transport {
            Transport::Command => {
                let Some((program, rest)) = trailing.split_first() else {
                    let hint = "put it at the end after --: longhaul get ... -- sftp-server";
                    return Err(Failure::usage("--transport command has no command", hint));
                };
                Self::Command {
                    program: program.clone(),
                    args: rest.to_vec(),
                    stderr,
                }
            }
            Transport::Ssh => {
                let mut options = connection.option.clone();
                if args.output.verbose > 1 {
                    options.push("LogLevel=DEBUG1".into());
                }
                // What the user's configuration says holds unless this was asked for.
                if let Some(seconds @ 1..) = args.transfer.timeout {
                    options.push(format!("ConnectTimeout={seconds}").into());
                }
                Self::Ssh {
                    config: connection.config.clone(),
                    identities: connection.identity.clone(),
                    options,
                    stderr,
                }
            }
            Transport::Tcp => Self::Tcp,
        })
    }
}

fn check_output(args: &Args) -> Result<(), Failure> {
    let output = args.output;
    if output.quiet && output.verbose > 0 {
        return Err(Failure::usage(
            "-q and -v contradict each other",
            "leave one of the two out",
        ));
    }
    if output.json && matches!(args.command, Command::Cat { .. }) {
        let message = "cat writes the files to standard output, where --json would write too";
        return Err(Failure::usage(message, "use longhaul get --json"));
    }
    Ok(())
}

/// The bytes of an argument, as the server shall see them.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn path_bytes(text: &OsStr) -> Result<Vec<u8>, Failure> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(text.as_bytes().to_vec())
}

#[cfg(not(unix))]
fn path_bytes(text: &OsStr) -> Result<Vec<u8>, Failure> {
    let hint = "write odd bytes as %XX in a URL";
    let text = text
        .to_str()
        .ok_or_else(|| Failure::usage("a path is no Unicode", hint))?;
    Ok(text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Exit;

    fn options(line: &str) -> Result<Options, Failure> {
        Options::new(&Args::try_parse_from(line.split(' ')).expect("arguments"))
    }

    #[test]
    fn arguments_that_make_no_sense_together_are_refused_with_a_hint() {
        for line in [
            "longhaul stat h:x -q -v",
            "longhaul cat h:x --json",
            "longhaul stat h:x --serial --window 1m",
            "longhaul stat h:x --window 2m --memory-max 1m",
            "longhaul stat h:x --transport ssh -- sftp-server",
            "longhaul stat h:x --transport tcp -- sftp-server",
            "longhaul stat h:x --transport command",
            "longhaul stat h:x --transport tcp -i key",
            "longhaul stat h:x -o A=b -- sftp-server",
            "longhaul stat h:x -l ada -- sftp-server",
            "longhaul stat h:x -p 22 -- sftp-server",
        ] {
            let failure = options(line).expect_err(line);
            assert_eq!(failure.exit, Exit::Usage, "{line}");
            assert!(failure.hint.is_some(), "{line}");
        }
    }

    #[test]
    fn a_given_timeout_also_limits_ssh_and_the_default_leaves_it_alone() {
        for (line, expected) in [
            ("longhaul stat h:x", &[][..]),
            ("longhaul stat h:x --timeout 0", &[]),
            ("longhaul stat h:x --timeout 5", &["ConnectTimeout=5"]),
            (
                "longhaul stat h:x --timeout 5 -o ConnectTimeout=9",
                // ssh takes the first.
                &["ConnectTimeout=9", "ConnectTimeout=5"],
            ),
        ] {
            let Route::Ssh { options, .. } = options(line).expect(line).route else {
                panic!("not ssh: {line}")
            };
            assert_eq!(options, expected, "{line}");
        }
    }

    #[test]
    fn the_transport_decides_what_a_path_may_look_like() {
        let ssh = options("longhaul stat h:x").expect("options");
        assert!(ssh.target(OsStr::new("/x")).is_err());
        assert!(ssh.target(OsStr::new("h:x")).is_ok());
        let secret = ssh.target(OsStr::new("sftp://u:secret@h/x"));
        let failure = secret.expect_err("a password");
        assert!(!failure.to_string().contains("secret"), "{failure}");
        let odd = ssh.target(OsStr::new("x\u{1b}[2J\n"));
        let failure = odd.expect_err("a local path");
        assert!(!failure.to_string().contains(char::is_control), "{failure}");
        let command = options("longhaul stat x -- sftp-server").expect("options");
        let target = command.target(OsStr::new("/x")).expect("a path");
        assert_eq!((target.host(), target.path()), ("", &b"/x"[..]));
        let tcp = options("longhaul stat x --transport tcp").expect("options");
        assert!(tcp.target(OsStr::new("sftp://h/x")).is_err());
        assert!(tcp.target(OsStr::new("sftp://h:1/x")).is_ok());
        let tcp = options("longhaul stat x --transport tcp -p 1").expect("options");
        assert!(tcp.target(OsStr::new("h:x")).is_ok());
    }
}
