//! What the subcommands do.

use core::future::Future;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use longhaul::Target;

use super::args::Command;
use super::cat::cat;
use super::console::Console;
use super::exit::Failure;
use super::get::get;
use super::options::Options;
use super::sessions::Sessions;
use super::signals::Interrupt;
use super::stat::stat;
use crate::demo;
use crate::text::escaped;

pub(super) async fn run(
    command: Command,
    options: &Options,
    console: &Console,
    interrupt: &mut Interrupt,
) -> Result<(), Failure> {
    let mut sessions = Sessions::new(options, console);
    match command {
        Command::Get { paths, resume, .. } => {
            let plan = Plan::new(&paths, options)?;
            get(&plan, resume, &mut sessions, interrupt).await
        }
        Command::Stat { urls, .. } => {
            let targets = targets(&urls, options)?;
            guarded(stat(&targets, &mut sessions), interrupt).await
        }
        Command::Cat { urls, .. } => {
            let targets = targets(&urls, options)?;
            guarded(cat(&targets, &mut sessions), interrupt).await
        }
        Command::Demo => guarded(demo::run(console), interrupt).await,
    }
}

/// Carries on what a signal may simply stop.
async fn guarded(
    work: impl Future<Output = Result<(), Failure>>,
    interrupt: &mut Interrupt,
) -> Result<(), Failure> {
    match interrupt.guard(work).await {
        Ok(Err(failure)) => Err(interrupt.instead_of(failure).await),
        Ok(result) => result,
        Err(stopped) => Err(Failure::new(stopped, "interrupted")),
    }
}

fn targets(urls: &[OsString], options: &Options) -> Result<Vec<Target>, Failure> {
    urls.iter().map(|url| options.target(url)).collect()
}

/// What `get` is to fetch, and where to.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) targets: Vec<Target>,
    pub(super) local: PathBuf,
}

impl Plan {
    fn new(paths: &[OsString], options: &Options) -> Result<Self, Failure> {
        let Some((local, urls)) = paths.split_last().filter(|(_, urls)| !urls.is_empty()) else {
            let message = "get needs a URL and a local file or directory";
            return Err(Failure::usage(
                message,
                "to fetch it into this directory: longhaul get URL .",
            ));
        };
        let targets = targets(urls, options)?;
        let path = Path::new(local);
        check_local(local, path)?;
        if targets.len() > 1 && !is_directory(local, path) {
            let failure = Failure::usage(
                "is no directory",
                "several files need a directory to go into",
            );
            return Err(failure.about(escaped(local.as_encoded_bytes())));
        }
        for (index, target) in targets.iter().enumerate() {
            let same = |other: &&Target| other.file_name() == target.file_name();
            if let Some(first) = targets.iter().take(index).find(same) {
                let message = format!("{first} and {target} would have the same local name");
                return Err(Failure::usage(message, "fetch them one by one"));
            }
        }
        Ok(Self {
            targets,
            local: path.to_owned(),
        })
    }
}

/// Catches what was surely meant otherwise.
fn check_local(local: &OsStr, path: &Path) -> Result<(), Failure> {
    let failure = if local.is_empty() {
        Failure::usage(
            "the local name is empty",
            "name a file or directory, such as .",
        )
    } else if local == "-" {
        Failure::usage(
            "get writes to files",
            "for standard output: longhaul cat URL",
        )
    } else if Target::parse(local.as_encoded_bytes()).is_ok() && !path.exists() {
        let hint = "the last argument is where to put the files, such as . (or ./name:with:colons)";
        Failure::usage("is no local path", hint).about(escaped(local.as_encoded_bytes()))
    } else {
        return Ok(());
    };
    Err(failure)
}

fn is_directory(local: &OsStr, path: &Path) -> bool {
    path.is_dir() || local.as_encoded_bytes().ends_with(b"/")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::Args;
    use crate::cli::exit::Exit;

    fn plan(line: &str) -> Result<Plan, Failure> {
        let args = Args::try_parse_from(line.split(' ')).expect("arguments");
        let options = Options::new(&args)?;
        let Command::Get { paths, .. } = args.command else {
            panic!("not get")
        };
        Plan::new(&paths, &options)
    }

    #[test]
    fn mistakes_in_get_are_told_before_anything_happens() {
        for (line, part) in [
            ("longhaul get h:x", "longhaul get URL ."),
            ("longhaul get h:x -", "longhaul cat"),
            ("longhaul get h:x h:y", "is no local path"),
            ("longhaul get h:x sftp://h/y", "is no local path"),
            (
                "longhaul get h:x h:y ./no-such-directory",
                "several files need a directory",
            ),
            ("longhaul get h:a/x i:b/x .", "the same local name"),
            ("longhaul get x .", "a local path"),
        ] {
            let failure = plan(line).expect_err(line);
            assert_eq!(failure.exit, Exit::Usage, "{line}");
            assert!(failure.to_string().contains(part), "{line}: {failure}");
        }
        assert!(plan("longhaul get h:x h:y .").is_ok());
        assert!(plan("longhaul get h:x ./a:b").is_ok());
        assert!(plan("longhaul get h:x new/").is_ok());
    }
}
