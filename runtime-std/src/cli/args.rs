//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};

use super::size::{Window, parse_bytes, parse_window};

const EXAMPLES: &str = "\
Examples:
  longhaul get far:data/big.iso .            over ssh, with your ssh configuration
  longhaul get sftp://ada@far:2222/data/a sftp://far/b dir/
  longhaul get --resume far:data/big.iso .   go on with what an interrupted get left
  longhaul cat far:log/today | grep error
  longhaul stat far:data/big.iso
  longhaul get x.iso . -- docker exec -i web /usr/lib/openssh/sftp-server
  longhaul demo                              see what it does, with nothing to set up

URL is sftp://[user@]host[:port]/path with %XX for odd bytes and /~/path for
paths relative to the home directory, or [user@]host:path as scp takes it.";

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a transfer failed: the server declined it, or the path is missing
  2  the command line is wrong
  3  no connection: host not found or reached, wrong host key, login refused
  4  a local error: disk full, no permission, not a directory
  5  the server broke the protocol
  6  nothing arrived for the time of --timeout
  130 interrupted (Ctrl-C), 143 terminated, 141 the reader of the output left";

fn after_help() -> String {
    format!("{EXAMPLES}\n\n{EXIT_CODES}")
}

/// Downloads remote files by SFTP at the speed of the link.
///
/// Other clients slow down with distance, since they have a fixed number of requests in flight. longhaul finds out
/// how much the link holds and keeps it full.
#[derive(Debug, Parser)]
#[command(name = "longhaul", version, after_long_help = after_help(), max_term_width = 100, after_help = "See --help for examples and exit codes.")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,

    #[command(flatten)]
    pub(super) transfer: TransferArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct ConnectionArgs {
    /// How to reach the server.
    #[arg(long, global = true, value_name = "HOW")]
    pub(super) transport: Option<Transport>,

    /// Private key file, as in ssh.
    #[arg(short, global = true, value_name = "FILE", action = ArgAction::Append)]
    pub(super) identity: Vec<PathBuf>,

    /// Configuration file for ssh, in place of the usual ones; none reads no file.
    #[arg(short = 'F', global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Port of the server, where the URL names none.
    #[arg(short, global = true, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: Option<u16>,

    /// Option of ssh in the form of its configuration file, such as -o Compression=no.
    #[arg(short, global = true, value_name = "OPTION", action = ArgAction::Append)]
    pub(super) option: Vec<OsString>,

    /// Name to log in with, where the URL names none.
    #[arg(short, global = true, value_name = "USER")]
    pub(super) login: Option<String>,
}

/// How to reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Transport {
    /// The system's ssh (default); $LONGHAUL_SSH names another program.
    Ssh,
    /// The command after --, such as sftp-server, without a network.
    Command,
    /// SFTP over plain TCP, without encryption: for tunnels and tests.
    Tcp,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Transfer")]
pub(super) struct TransferArgs {
    /// Bytes in flight: found out (auto), or fixed, such as 2m.
    #[arg(long, global = true, value_name = "auto|BYTES", value_parser = parse_window)]
    pub(super) window: Option<Window>,

    /// Limit on memory for what is in flight, such as 64m.
    #[arg(long, global = true, value_name = "BYTES", value_parser = parse_bytes)]
    pub(super) memory_max: Option<u64>,

    /// One request at a time, for servers that cannot take more.
    #[arg(long, global = true)]
    pub(super) serial: bool,

    /// Give up when nothing has arrived for this long; 0 never does [default: 60].
    ///
    /// Over ssh it also limits the login, passwords included, but only if it is given.
    #[arg(long, global = true, value_name = "SECONDS")]
    pub(super) timeout: Option<u32>,
}

#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Only errors.
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,

    /// More about what happens, and what ssh says; twice for ssh -v.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(super) verbose: u8,

    /// Events and results as JSON on standard output, one object a line.
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Download files.
    ///
    /// Each goes to a part file beside its target first, and gets its name once it is whole.
    #[command(override_usage = "longhaul get [OPTIONS] <URL>... <LOCAL> [-- <COMMAND>...]")]
    Get {
        /// Files to fetch, and at the end the local file or directory to put them.
        #[arg(required = true, value_name = "URL... LOCAL")]
        paths: Vec<OsString>,

        /// Go on with the part files of an interrupted get, if the source is still the same.
        #[arg(long)]
        resume: bool,

        #[command(flatten)]
        trailing: Trailing,
    },

    /// Show size, time and mode of files.
    Stat {
        /// Files to look at.
        #[arg(required = true, value_name = "URL")]
        urls: Vec<OsString>,

        #[command(flatten)]
        trailing: Trailing,
    },

    /// Write files to standard output.
    Cat {
        /// Files to write, one after the other.
        #[arg(required = true, value_name = "URL")]
        urls: Vec<OsString>,

        #[command(flatten)]
        trailing: Trailing,
    },

    /// Compare one request at a time, 64, and a fitting window over an emulated link.
    ///
    /// Everything happens in this process and a temporary folder.
    Demo,
}

#[derive(Debug, clap::Args)]
pub(super) struct Trailing {
    /// Command that speaks SFTP, for --transport command (implied); URLs may be plain paths then.
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

impl Command {
    /// What stands after `--`.
    pub(super) fn trailing(&self) -> &[OsString] {
        match self {
            Self::Cat { trailing, .. }
            | Self::Get { trailing, .. }
            | Self::Stat { trailing, .. } => &trailing.command,
            Self::Demo => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn options_may_stand_anywhere_and_the_command_after_two_dashes() {
        let args = Args::try_parse_from([
            "longhaul",
            "-p",
            "22",
            "get",
            "-i",
            "k",
            "a:b",
            "--window",
            "2m",
            "c:d",
            ".",
            "-o",
            "X=y",
            "--resume",
            "--",
            "sftp-server",
            "-e",
        ])
        .expect("valid");
        assert_eq!(args.connection.port, Some(22));
        assert_eq!(args.connection.option, ["X=y"]);
        assert_eq!(args.transfer.window, Some(Window::Fixed(2 << 20)));
        assert_eq!(args.command.trailing(), ["sftp-server", "-e"]);
        let Command::Get {
            paths,
            resume: true,
            ..
        } = args.command
        else {
            panic!("not get")
        };
        assert_eq!(paths, ["a:b", "c:d", "."]);
    }

    #[test]
    fn help_fits_a_terminal() {
        let help = Args::command()
            .term_width(80)
            .render_long_help()
            .to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(help.contains("Exit codes:") && help.contains("longhaul get"));
    }
}
