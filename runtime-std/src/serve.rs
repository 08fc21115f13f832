//! Serves a folder by SFTP, for reading: the other end of a demo, without a network or an account.

mod directory;
#[cfg(unix)]
#[cfg(test)]
mod tests;

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use longhaul_core::ProtocolError;
use longhaul_core::server::{REPLY_LEN_MAX, Responder, Storage};
use smol::future;
use smol::io::{AsyncRead, AsyncWrite};

pub(crate) use self::directory::DirectoryStorage;

/// Room for requests, in bytes: two thousand READs, so that a client's whole window can wait here.
const INPUT_LEN: usize = 64 << 10;

/// Room for replies, in bytes: two of the longest, so that the next is made while the last is still leaving.
const OUTPUT_LEN: usize = 2 * REPLY_LEN_MAX;

/// Turns of reading, answering and writing before other tasks get theirs: about 4 MiB.
const TURN_COUNT_MAX: u32 = 8;

/// Files that one client may have open: far below what a process may.
const HANDLES: usize = 64;

/// Answers the requests that come from `reader` until they end, then closes `writer`.
///
/// Both directions go on by themselves: while replies can't leave, requests are read up to 64 KiB, and the other way round.
/// Calls of the storage block the executor for as long as they last.
///
/// # Errors
///
/// Those of `reader` and `writer`, and `InvalidData` with a [`ProtocolError`] inside if the client broke the protocol.
pub(crate) async fn serve<R, W, S>(reader: R, writer: W, storage: S) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
    S: Storage,
{
    let mut server = Server::new(reader, writer, storage);
    future::poll_fn(|cx| server.poll(cx)).await
}

/// A responder between its two streams.
struct Server<R, W, S: Storage> {
    reader: R,
    writer: W,
    responder: Responder<S, HANDLES>,
    input: Buffer,
    output: Buffer,
    is_input_over: bool,
    is_flushed: bool,
}

impl<R, W, S> Server<R, W, S>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
    S: Storage,
{
    fn new(reader: R, writer: W, storage: S) -> Self {
        Self {
            reader,
            writer,
            responder: Responder::new(storage),
            input: Buffer::new(INPUT_LEN),
            output: Buffer::new(OUTPUT_LEN),
            is_input_over: false,
            is_flushed: true,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..TURN_COUNT_MAX {
            let has_read = self.poll_read(cx)?;
            let has_answered = self.answer().map_err(invalid_data)?;
            let has_written = self.poll_write(cx)?;
            if self.is_drained() {
                self.responder.handle_eof().map_err(invalid_data)?;
                ready!(Pin::new(&mut self.writer).poll_close(cx))?;
                return Poll::Ready(Ok(()));
            }
            if !(has_read || has_answered || has_written) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_drained(&self) -> bool {
        self.is_input_over
            && self.input.is_empty()
            && self.responder.transmit_len() == 0
            && self.output.is_empty()
            && self.is_flushed
    }

    /// Reads what has come, and tells whether there was anything.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let room = self.input.room();
        if self.is_input_over || room.is_empty() {
            return Ok(false);
        }
        match Pin::new(&mut self.reader).poll_read(cx, room) {
            Poll::Ready(Ok(len)) => {
                self.input.commit(len);
                self.is_input_over = len == 0;
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Ok(false),
        }
    }

    /// Answers requests until there are none or the replies have no room, and tells whether there were any.
    fn answer(&mut self) -> Result<bool, ProtocolError> {
        let mut has_answered = false;
        loop {
            let mut input = self.input.bytes();
            let before = input.len();
            self.responder.handle_input(&mut input)?;
            let taken = before - input.len();
            self.input.consume(taken);
            let len = self.responder.poll_transmit(self.output.room());
            self.output.commit(len);
            if taken == 0 && len == 0 {
                return Ok(has_answered);
            }
            has_answered = true;
        }
    }

    /// Writes what can leave, and tells whether anything could.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut has_written = false;
        while !self.output.is_empty() {
            self.is_flushed = false;
            match Pin::new(&mut self.writer).poll_write(cx, self.output.bytes()) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(len)) => self.output.consume(len),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(has_written),
            }
            has_written = true;
        }
        if !self.is_flushed {
            match Pin::new(&mut self.writer).poll_flush(cx) {
                Poll::Ready(flushed) => {
                    flushed?;
                    self.is_flushed = true;
                }
                Poll::Pending => {}
            }
        }
        Ok(has_written)
    }
}

fn invalid_data(error: ProtocolError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Bytes that go in at the end and out at the start. Space comes back when all are out, so that nothing is ever moved.
struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn new(len: usize) -> Self {
        Self {
            bytes: vec![0; len].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn commit(&mut self, len: usize) {
        self.end = self.end.saturating_add(len).min(self.bytes.len());
    }

    fn consume(&mut self, len: usize) {
        self.start = self.start.saturating_add(len).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }
}
