//! Writes a part of a remote file to standard output: `read_range host:path OFFSET LENGTH`.

use core::error::Error;
use std::env;
use std::io::{self, SeekFrom, Write as _};

use longhaul::Target;
use longhaul::client::{Client, Config};
use longhaul::transport::Ssh;
use smol::io::{AsyncReadExt as _, AsyncSeekExt as _};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [remote, offset, len] = args.as_slice() else {
        return Err("usage: read_range host:path OFFSET LENGTH".into());
    };
    let (target, offset, len): (Target, u64, u64) =
        (remote.parse()?, offset.parse()?, len.parse()?);
    smol::block_on(async {
        let client = Client::connect(Ssh::new(target.host()).connect()?, Config::default());
        let file = client.read(target.path()).await?;
        // With an end, nothing beyond it is fetched ahead.
        let mut file = file.with_end(offset.saturating_add(len));
        file.seek(SeekFrom::Start(offset)).await?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = file.read(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            io::stdout().write_all(&buffer[..read])?;
        }
    })
}
