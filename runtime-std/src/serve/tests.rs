//! The loop, with a client that is written by hand.

use core::sync::atomic::{AtomicUsize, Ordering};

use longhaul_core::server::{MemoryFile, MemoryStorage};
use longhaul_core::sftp::READ_LEN_MAX;
use smol::io::{AsyncReadExt as _, AsyncWriteExt as _};
use smol::net::unix::UnixStream;

use super::*;

const INIT: &[u8] = b"\0\0\0\x05\x01\0\0\0\x03";
const OPEN: &[u8] = b"\0\0\0\x13\x03\0\0\0\x01\0\0\0\x02/f\0\0\0\x01\0\0\0\0";

/// Length of the replies to `INIT` and `OPEN` together.
const GREETING_LEN: usize = 36 + 21;

#[test]
fn a_whole_file_comes_through_while_requests_go_on() {
    let data: Vec<u8> = (0..20_000_000_u32)
        .map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[2])
        .collect();
    let files = [MemoryFile::new(b"/f", &data)];
    let received = smol::block_on(async {
        let (client, server) = UnixStream::pair().unwrap();
        let served = serve(server.clone(), server, MemoryStorage::new(&files));
        let (received, served) = future::zip(fetch(client, data.len()), served).await;
        served.unwrap();
        received
    });
    assert!(received == data);
}

#[test]
fn requests_are_taken_while_replies_cannot_leave() {
    let data = vec![1; 1 << 20];
    let files = [MemoryFile::new(b"/f", &data)];
    let requests = [INIT, OPEN, &read(0).repeat(1000)].concat();
    let reader = Stingy {
        bytes: &requests,
        taken: &AtomicUsize::new(0),
    };
    let taken = reader.taken;
    let served = serve(reader, Blocked, MemoryStorage::new(&files));
    let while_polled = async {
        for _ in 0..requests.len() {
            future::yield_now().await;
        }
        Ok(())
    };
    smol::block_on(future::or(served, while_polled)).unwrap();
    assert_eq!(taken.load(Ordering::Relaxed), requests.len());
}

#[test]
fn a_client_that_breaks_the_protocol_or_leaves_early_ends_the_serving() {
    let serve = |bytes: &[u8]| {
        smol::block_on(serve(
            smol::io::Cursor::new(bytes.to_vec()),
            smol::io::sink(),
            MemoryStorage::new(&[]),
        ))
    };
    assert!(serve(b"").is_ok());
    assert!(serve(&[INIT, OPEN].concat()).is_ok());
    for bytes in [b"GET / HTTP/1.1".as_slice(), &INIT[..8], OPEN] {
        let error = serve(bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(
            error
                .get_ref()
                .is_some_and(|error| error.is::<ProtocolError>())
        );
    }
}

/// Asks for all of the file at once and puts the replies, which come in order, together.
async fn fetch(client: UnixStream, len: usize) -> Vec<u8> {
    let (mut reader, mut writer) = smol::io::split(client);
    let asks = len.div_ceil(READ_LEN_MAX as usize) as u64;
    let ask = async move {
        writer.write_all(INIT).await.unwrap();
        writer.write_all(OPEN).await.unwrap();
        for ask in 0..asks {
            let request = read(ask * u64::from(READ_LEN_MAX));
            writer.write_all(&request).await.unwrap();
        }
        writer.close().await.unwrap();
    };
    let receive = async move {
        let mut greeting = [0; GREETING_LEN];
        reader.read_exact(&mut greeting).await.unwrap();
        let mut data = Vec::new();
        let mut header = [0; 13];
        for _ in 0..asks {
            reader.read_exact(&mut header).await.unwrap();
            assert_eq!(header[4], 103, "DATA");
            let payload_len = u32::from_be_bytes(header[9..].try_into().unwrap());
            let start = data.len();
            data.resize(start + payload_len as usize, 0);
            reader.read_exact(&mut data[start..]).await.unwrap();
        }
        assert_eq!(reader.read(&mut header).await.unwrap(), 0, "closed");
        data
    };
    future::zip(ask, receive).await.1
}

/// A READ of the first file opened.
fn read(offset: u64) -> Vec<u8> {
    let mut request = b"\0\0\0\x1d\x05\0\0\0\x02\0\0\0\x08\0\0\0\0\0\0\0\0".to_vec();
    request.extend_from_slice(&offset.to_be_bytes());
    request.extend_from_slice(&READ_LEN_MAX.to_be_bytes());
    request
}

/// Gives a few bytes at a time and never ends.
struct Stingy<'a> {
    bytes: &'a [u8],
    taken: &'a AtomicUsize,
}

impl AsyncRead for Stingy<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let len = out.len().min(self.bytes.len()).min(7);
        if len == 0 {
            return Poll::Pending;
        }
        out[..len].copy_from_slice(&self.bytes[..len]);
        self.bytes = &self.bytes[len..];
        self.taken.fetch_add(len, Ordering::Relaxed);
        Poll::Ready(Ok(len))
    }
}

/// Takes nothing.
struct Blocked;

impl AsyncWrite for Blocked {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}
