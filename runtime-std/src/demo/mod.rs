//! `longhaul demo`: what distance does to a download, with nothing to set up.
//!
//! A folder with a real file is served in this process over an emulated link, and fetched three ways. Each fetch is checked
//! by SHA-256; the slow ways fetch only the beginning, since nobody wants to wait for the whole.

mod file;
mod link;
mod report;

use core::time::Duration;

use longhaul::Client;
use longhaul::client::Config;
use longhaul::transport::Connection;
use sha2::{Digest as _, Sha256};
use smol::io::AsyncReadExt as _;
use smol::unblock;

use self::file::Sample;
use self::link::{Shape, link};
use self::report::{Report, Run};
use crate::cli::{Console, Exit, Failure};
use crate::clock;
use crate::serve::{DirectoryStorage, serve};

/// A link across a continent: 60 ms there and back, 1 Gbit/s.
const SHAPE: Shape = Shape {
    delay: Duration::from_millis(30),
    bytes_per_second: 125_000_000,
};

/// What all clients ask for that know of no larger READ.
const READ_LEN: u32 = 32 << 10;

/// Bytes of one turn of reading and hashing.
const BUFFER_LEN: usize = 256 << 10;

/// The file, in bytes: the window's growth at the start weighs little in it.
const FILE_LEN: u64 = 768 << 20;

/// How much of it each of the slow ways fetches: about four seconds' worth.
const LENS: [u64; 3] = [2 << 20, 128 << 20, FILE_LEN];

/// The three ways, slowest first.
fn ways() -> [(&'static str, Config); 3] {
    let config = Config::default();
    [
        (
            "one request at a time",
            config
                .with_window_bytes(Some(READ_LEN.into()))
                .with_read_len_max(READ_LEN)
                .with_requests_max(1),
        ),
        (
            "64 requests, fixed",
            config
                .with_window_bytes(Some(64 * u64::from(READ_LEN)))
                .with_read_len_max(READ_LEN)
                .with_requests_max(64),
        ),
        ("window that adapts", config),
    ]
}

pub(crate) async fn run(console: &Console) -> Result<(), Failure> {
    console.notice("makes a file of 768 MiB in the temporary folder, and removes it afterwards");
    let failed = |error| Failure::new(Exit::Local, format!("cannot make the file: {error}"));
    let sample = unblock(|| Sample::new(&LENS)).await.map_err(failed)?;
    let mut report = Report::new(SHAPE);
    for (index, (name, config)) in ways().into_iter().enumerate() {
        console.notice(&format!("fetches with {name} ..."));
        let (Some(len), Some(sum)) = (LENS.get(index), sample.sum(index)) else {
            continue;
        };
        let run = fetch(name, config, &sample, *len).await?;
        run.check(sum)?;
        report.add(run);
    }
    if report.verdict().is_err()
        && let (Some((name, config)), Some(sum)) = (ways().into_iter().last(), sample.sum(2))
    {
        console.notice("another program may have been in the way: fetches once more ...");
        let run = fetch(name, config, &sample, FILE_LEN).await?;
        run.check(sum)?;
        report.improve(run);
    }
    drop(sample);
    report.show(console)?;
    report.verdict()
}

async fn fetch(
    name: &'static str,
    config: Config,
    sample: &Sample,
    len: u64,
) -> Result<Run, Failure> {
    let (near, far) = link(SHAPE);
    let failed = |error| Failure::new(Exit::Local, format!("cannot serve the folder: {error}"));
    let storage = DirectoryStorage::new(sample.folder()).map_err(failed)?;
    // A thread of its own, as another machine would be.
    let server = unblock(move || smol::block_on(serve(far.reader, far.writer, storage)));
    let started = clock::now();
    let client = Client::connect(Connection::new(near.reader, near.writer), config);
    let file = client.read(sample.name()).await?;
    let mut file = if len < FILE_LEN {
        file.with_end(len)
    } else {
        file
    };
    let mut hash = Sha256::new();
    let mut buffer = vec![0; BUFFER_LEN];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer).await;
        let read = read.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        if read == 0 {
            break;
        }
        hash.update(buffer.get(..read).unwrap_or_default());
        bytes += read as u64;
    }
    let took = clock::now().saturating_sub(started);
    drop((file, client));
    let served = server.await;
    served.map_err(|error| Failure::new(Exit::Failed, format!("the server failed: {error}")))?;
    Ok(Run {
        name,
        bytes,
        took,
        sum: hash.finalize().into(),
    })
}
