//! `longhaul cat`.

use std::io::{self, Write as _};

use longhaul::client::RemoteFile;
use longhaul::{Error, Target};
use smol::io::AsyncReadExt as _;
use smol::unblock;

use super::console::output_failed;
use super::exit::{Exit, Failure};
use super::sessions::{Sessions, Tally};

/// Bytes of one write to standard output.
const PIECE_LEN: usize = 1 << 20;

pub(super) async fn cat(targets: &[Target], sessions: &mut Sessions<'_>) -> Result<(), Failure> {
    let mut tally = Tally::new();
    for target in targets {
        let result = write(target, sessions).await;
        tally.add(sessions.console, result)?;
    }
    tally.end()
}

async fn write(target: &Target, sessions: &mut Sessions<'_>) -> Result<(), Failure> {
    let client = sessions.client(target).await?;
    let read = client.read(target.path());
    let file = sessions.patiently(&client, target, read).await;
    let mut file = file.map_err(|error| Failure::of(target, error))?;
    let mut buffer = vec![0; PIECE_LEN];
    loop {
        let len = fill(target, &mut file, &mut buffer).await?;
        if len == 0 {
            return Ok(());
        }
        // The reader may take its time, which nobody else has to wait for.
        buffer = unblock(move || {
            let mut output = io::stdout().lock();
            output.write_all(buffer.get(..len).unwrap_or_default())?;
            output.flush()?;
            Ok(buffer)
        })
        .await
        .map_err(|error| output_failed(&error))?;
    }
}

async fn fill(target: &Target, file: &mut RemoteFile, buffer: &mut [u8]) -> Result<usize, Failure> {
    file.read(buffer)
        .await
        .map_err(|error| match error.downcast::<Error>() {
            Ok(error) => Failure::of(target, error),
            Err(error) => Failure::new(Exit::Failed, error.to_string()),
        })
}
