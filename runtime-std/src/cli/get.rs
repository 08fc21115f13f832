//! `longhaul get`.

use longhaul::client::{Begin, Download, DownloadOptions};
use longhaul::{Fresh, Target};

use super::commands::Plan;
use super::exit::{Exit, Failure};
use super::progress::Progress;
use super::sessions::{Sessions, Tally};
use super::signals::Interrupt;
use super::size::show_bytes;
use crate::text::escaped;

pub(super) async fn get(
    plan: &Plan,
    is_resume: bool,
    sessions: &mut Sessions<'_>,
    interrupt: &mut Interrupt,
) -> Result<(), Failure> {
    let mut tally = Tally::new();
    for target in &plan.targets {
        let result = fetch(plan, target, is_resume, sessions, interrupt).await;
        tally.add(sessions.console, result)?;
    }
    tally.end()
}

async fn fetch(
    plan: &Plan,
    target: &Target,
    is_resume: bool,
    sessions: &mut Sessions<'_>,
    interrupt: &mut Interrupt,
) -> Result<(), Failure> {
    let begin = async {
        let client = sessions.client(target).await?;
        let options = DownloadOptions::default().with_resume(is_resume);
        let begin = client.begin_download(target, &plan.local, options);
        let begun = sessions.patiently(&client, target, begin).await;
        begun.map_err(|error| Failure::of(target, error))
    };
    let mut download = match interrupt.guard(begin).await {
        Ok(Ok(download)) => download,
        Ok(Err(failure)) => return Err(interrupt.instead_of(failure).await),
        Err(stopped) => return Err(Failure::new(stopped, "interrupted")),
    };
    let console = sessions.console;
    let first = match download.begin() {
        Begin::Resumed(mark) => {
            let message = format!("{target}: goes on after {}", show_bytes(mark));
            console.notice(&message);
            mark
        }
        Begin::Fresh(fresh) => {
            if let Some(why) = why(fresh) {
                console.notice(&format!("{target}: {why}, so it starts over"));
            }
            0
        }
        _ => 0,
    };
    let url = target.to_string();
    let name = download.path().file_name().unwrap_or_default();
    let name = escaped(name.as_encoded_bytes());
    let mut progress = Progress::new(console, &url, name, download.size(), first);
    let run = download.run(|bytes| progress.update(bytes));
    let failure = match interrupt.guard(run).await {
        Ok(Ok(bytes)) => {
            progress.finish(bytes);
            return Ok(());
        }
        Ok(Err(error)) => {
            let failure = Failure::of(target, error);
            interrupt.instead_of(failure).await
        }
        Err(stopped) => Failure::new(stopped, "interrupted"),
    };
    progress.stop();
    // A second signal does not wait for a slow disk.
    match interrupt.guard(keep(&mut download, failure)).await {
        Ok(failure) => Err(failure),
        Err(stopped) => Err(Failure::new(stopped, "interrupted twice")),
    }
}

/// Why a resume was asked for and cannot be.
fn why(fresh: Fresh) -> Option<&'static str> {
    match fresh {
        Fresh::Changed => Some("the file on the server has changed"),
        Fresh::NoPart => Some("there is no part to go on with"),
        Fresh::Restarted => Some("the machine was restarted, and the part may be damaged"),
        Fresh::Asked | _ => None,
    }
}

/// Leaves what has arrived for a later resume, and says so.
async fn keep(download: &mut Download, mut failure: Failure) -> Failure {
    let Some(kept) = download.keep().await else {
        return failure;
    };
    if let Some(error) = kept.error
        && failure.exit != Exit::Local
    {
        failure.hint = Some(format!("and what has arrived is lost: {error}"));
    } else if kept.bytes > 0 {
        let bytes = show_bytes(kept.bytes);
        let path = escaped(kept.path.as_os_str().as_encoded_bytes());
        let hint = format!("{bytes} are kept in {path}; --resume goes on");
        failure.hint = Some(match failure.hint {
            Some(before) => format!("{before}; {hint}"),
            None => hint,
        });
    }
    failure
}
