//! The client against this crate's own server, over a socket in this process.

use std::fs;
use std::io::SeekFrom;

use longhaul_core::server::{MemoryFile, MemoryStorage, Storage};
use longhaul_core::sftp::StatusCode;
use smol::block_on;
use smol::future::{or, pending, zip};
use smol::io::{AsyncReadExt as _, AsyncSeekExt as _};
use smol::net::unix::UnixStream;

use super::*;
use crate::Target;
use crate::local::Scratch;
use crate::serve::{DirectoryStorage, serve};

fn content(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[5])
        .collect()
}

/// Runs `work` with a client of a server for `storage`.
fn with_server<T, F: Future<Output = T>>(
    storage: impl Storage,
    config: Config,
    work: impl FnOnce(Client) -> F,
) -> T {
    block_on(async {
        let (near, far) = UnixStream::pair().expect("a socket");
        let client = Client::connect(Connection::new(near.clone(), near), config);
        let served = async {
            let _ = serve(far.clone(), far, storage).await;
            pending().await
        };
        or(work(client), served).await
    })
}

/// Answers READs with less than was asked, and not always with the same.
struct Short<S>(S, usize);

impl<S: Storage> Storage for Short<S> {
    type File = S::File;

    fn open(&mut self, path: &[u8]) -> Result<Self::File, StatusCode> {
        self.0.open(path)
    }

    fn close(&mut self, file: Self::File) -> Result<(), StatusCode> {
        self.0.close(file)
    }

    fn read(
        &mut self,
        file: &mut Self::File,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize, StatusCode> {
        self.1 = (self.1 * 5 + 1) % 16;
        let len = buf.len() * (self.1 + 1) / 17;
        self.0
            .read(file, offset, buf.get_mut(..len.max(1)).unwrap_or_default())
    }

    fn stat(&mut self, path: &[u8], follow: bool) -> Result<Attrs, StatusCode> {
        self.0.stat(path, follow)
    }

    fn fstat(&mut self, file: &mut Self::File) -> Result<Attrs, StatusCode> {
        self.0.fstat(file)
    }

    fn realpath(&mut self, path: &[u8], out: &mut [u8]) -> Result<usize, StatusCode> {
        self.0.realpath(path, out)
    }
}

#[test]
fn a_stream_goes_on_over_gaps_when_memory_is_scarce() {
    let data = content(700_000);
    let files = [MemoryFile::new(b"/f", &data)];
    for memory_max in [1, 10_000, 100_000] {
        let config = Config::default().with_memory_max(memory_max);
        let storage = Short(MemoryStorage::new(&files), 0);
        let read = with_server(storage, config, async |client: Client| {
            let mut file = client.read("/f").await.expect("a file");
            let mut read = Vec::new();
            file.read_to_end(&mut read).await.expect("its content");
            read
        });
        assert!(read == data, "{memory_max}");
    }
}

#[test]
fn seeking_starts_over_and_an_end_is_kept() {
    let data = content(3_000_000);
    let files = [MemoryFile::new(b"/f", &data)];
    with_server(
        MemoryStorage::new(&files),
        Config::default(),
        async |client: Client| {
            let mut file = client.read("/f").await.expect("a file");
            let mut head = [0; 1000];
            for to in [
                SeekFrom::Start(2_000_000),
                SeekFrom::Current(-500),
                SeekFrom::End(-1000),
                SeekFrom::Start(0),
            ] {
                let at = usize::try_from(file.seek(to).await.expect("a position")).expect("small");
                file.read_exact(&mut head).await.expect("bytes");
                assert_eq!(head[..], data[at..at + 1000], "{to:?}");
            }
            file.seek(SeekFrom::Start(5_000_000))
                .await
                .expect("beyond the end");
            assert_eq!(file.read(&mut head).await.expect("nothing"), 0);
            assert!(file.seek(SeekFrom::Current(-6_000_000)).await.is_err());
            let mut file = client.read("/f").await.expect("a file").with_end(70_000);
            let mut read = Vec::new();
            file.read_to_end(&mut read).await.expect("its content");
            assert!(read == data[..70_000]);
        },
    );
}

#[test]
fn a_download_is_whole_and_can_be_paused() {
    let data = content(20_000_000);
    let files = [MemoryFile::new(b"/f", &data)];
    let scratch = Scratch::new("client");
    let local = scratch.path().join("f");
    with_server(
        MemoryStorage::new(&files),
        Config::default(),
        async |client: Client| {
            let options = DownloadOptions::default();
            let begun = client
                .begin_download(&Target::from_path("/f"), &local, options)
                .await;
            let mut download = begun.expect("a download");
            assert_eq!(download.size(), Some(20_000_000));
            for _ in 0..100 {
                let turn = async {
                    smol::future::yield_now().await;
                    None
                };
                let ran = async { Some(download.run(|_| ()).await) };
                if or(ran, turn).await.is_some() {
                    break;
                }
            }
            assert_eq!(download.run(|_| ()).await.ok(), Some(20_000_000));
        },
    );
    assert!(fs::read(&local).expect("a file") == data);
}

#[test]
fn what_cannot_be_fetched_leaves_nothing() {
    let (there, here) = (Scratch::new("client-there"), Scratch::new("client-here"));
    fs::create_dir(there.path().join("folder")).expect("a folder");
    let storage = DirectoryStorage::new(there.path()).expect("a folder");
    with_server(storage, Config::default(), async |client: Client| {
        for path in ["folder", "none"] {
            let local = here.path().join("local");
            let error = client.download(&Target::from_path(path), local).await;
            match (path, error.expect_err("not fetched")) {
                ("folder", Error::Directory { path }) => assert_eq!(path, "folder"),
                ("none", Error::Declined { path, error }) => {
                    assert_eq!(
                        (path.as_str(), error.code),
                        ("none", StatusCode::NO_SUCH_FILE)
                    );
                }
                (_, error) => panic!("{error}"),
            }
        }
    });
    assert_eq!(fs::read_dir(here.path()).expect("a folder").count(), 0);
}

#[test]
fn many_operations_wait_for_each_other() {
    let data = content(300_000);
    let files = [MemoryFile::new(b"/f", &data)];
    with_server(
        MemoryStorage::new(&files),
        Config::default(),
        async |client: Client| {
            let tasks: Vec<_> = (0..20)
                .map(|_| {
                    let (client, data) = (client.clone(), data.clone());
                    smol::spawn(async move {
                        let (file, attrs) = zip(client.read("/f"), client.stat("/f")).await;
                        assert_eq!(attrs.expect("attributes").size, Some(300_000));
                        let mut read = Vec::new();
                        file.expect("a file")
                            .read_to_end(&mut read)
                            .await
                            .expect("its content");
                        assert!(read == data);
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
        },
    );
}

#[test]
fn an_operation_may_have_a_time_limit() {
    let (near, _far) = UnixStream::pair().expect("a socket");
    let config = Config::default().with_operation_max(Some(Duration::from_millis(50)));
    let client = Client::connect(Connection::new(near.clone(), near), config);
    let error = block_on(client.stat("/x")).expect_err("nobody answers");
    assert_eq!(error.to_string(), "/x: no answer for 0.05 s");
}

#[test]
fn a_stream_that_ends_fails_what_goes_on() {
    let (near, far) = UnixStream::pair().expect("a socket");
    let client = Client::connect(Connection::new(near.clone(), near), Config::default());
    drop(far);
    let error = block_on(client.stat("/x")).expect_err("nobody is there");
    assert!(matches!(error, Error::Disconnected { .. }), "{error}");
    assert!(block_on(client.ready()).is_err());
}
