//! Fetches a file by ssh: `fetch [user@]host:path LOCAL`.

use core::error::Error;
use std::env;

use longhaul::Target;
use longhaul::client::{Client, Config};
use longhaul::transport::Ssh;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [remote, local] = args.as_slice() else {
        return Err("usage: fetch [user@]host:path LOCAL".into());
    };
    let target: Target = remote.parse()?;
    let mut ssh = Ssh::new(target.host());
    if let Some(user) = target.user() {
        ssh = ssh.with_user(user);
    }
    if let Some(port) = target.port() {
        ssh = ssh.with_port(port);
    }
    smol::block_on(async {
        let client = Client::connect(ssh.connect()?, Config::default());
        let bytes = client.download(&target, local).await?;
        eprintln!("{target}: {bytes} bytes");
        Ok(())
    })
}
