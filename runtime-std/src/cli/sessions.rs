//! One session for each server of a run.

use core::future::{Future, pending};
use core::time::Duration;

use longhaul::{Client, Target};
use smol::Timer;
use smol::future::FutureExt as _;

use super::console::Console;
use super::exit::Failure;
use super::options::Options;

/// Silence at the beginning after which the user is told what is waited for.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// The sessions that have been begun.
pub(super) struct Sessions<'a> {
    options: &'a Options,
    pub(super) console: &'a Console,
    /// By user, host and port.
    clients: Vec<(Key, Client)>,
}

type Key = (Option<String>, String, Option<u16>);

impl<'a> Sessions<'a> {
    pub(super) fn new(options: &'a Options, console: &'a Console) -> Self {
        Self {
            options,
            console,
            clients: Vec::new(),
        }
    }

    /// The session with the server of `target`.
    pub(super) async fn client(&mut self, target: &Target) -> Result<Client, Failure> {
        let key = (
            target.user().map(str::to_owned),
            target.host().to_owned(),
            target.port(),
        );
        if let Some((_, client)) = self.clients.iter().find(|(known, _)| *known == key) {
            return Ok(client.clone());
        }
        self.console.detail(&format!("connects for {target}"));
        let connection = self.options.connect(target).await;
        let connection =
            connection.map_err(|failure| failure.about(target).with_url(target.to_string()))?;
        let client = Client::connect(connection, self.options.config());
        self.clients.push((key, client.clone()));
        Ok(client)
    }

    /// Waits for `work`, and says so if the server keeps silent for long.
    pub(super) async fn patiently<T>(
        &self,
        client: &Client,
        target: &Target,
        work: impl Future<Output = T>,
    ) -> T {
        let notice = async {
            Timer::after(SILENCE_MAX).await;
            if !client.is_ready() {
                let host = target.host();
                self.console.notice(&if self.options.is_ssh() {
                    format!("waiting for {host} (a security key may want a touch; -v shows what ssh says)")
                } else {
                    "waiting for the server".to_owned()
                });
            }
            pending().await
        };
        work.or(notice).await
    }
}

/// Goes on after the failure of one file with the next, if only that one is concerned. All failures are told, and the first
/// decides on the exit code.
pub(super) struct Tally {
    last: Option<Failure>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { last: None }
    }

    /// Takes the result of one file; an error means that the next ones would fail as well.
    pub(super) fn add(
        &mut self,
        console: &Console,
        result: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Err(mut failure) = result else {
            return Ok(());
        };
        let is_of_file = failure.is_of_file;
        if let Some(before) = self.last.take() {
            console.failure(&before);
            failure.exit = before.exit;
        }
        if !is_of_file {
            return Err(failure);
        }
        self.last = Some(failure);
        Ok(())
    }

    pub(super) fn end(self) -> Result<(), Failure> {
        self.last.map_or(Ok(()), Err)
    }
}
