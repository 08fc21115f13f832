//! A child process as a byte stream.
//!
//! On Unix its standard input and output are one socket rather than two pipes: a pipe moves 64 KiB a turn, a socket
//! with large buffers a whole window, which measured 1.7 times as fast at half the CPU time.

use core::time::Duration;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use smol::future::FutureExt as _;
use smol::io::AsyncReadExt as _;
use smol::process::{Child, ChildStderr, Command};
use smol::{Task, Timer};

use super::error::Program;
use super::{ConnectError, Connection, Guard, Reader, Stderr, Writer};

/// How much of the end of a child's standard error is kept.
const STDERR_KEPT_MAX: usize = 4096;

/// Size asked for the buffers of the socket to the child. Half an SSH channel's window of 2 MiB: larger ones
/// measured no faster. The system may grant less and says nothing then.
#[cfg(unix)]
const SOCKET_BUFFER_BYTES: usize = 1 << 20;

pub(super) struct ChildGuard {
    child: Child,
    program: Program,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: Option<Task<()>>,
}

/// Starts `command` with its standard input and output as the stream.
pub(super) fn spawn(
    mut command: Command,
    program: Program,
    stderr: Stderr,
) -> Result<Connection, ConnectError> {
    command.stderr(match stderr {
        Stderr::Keep => Stdio::piped(),
        Stderr::Inherit => Stdio::inherit(),
    });
    let (reader, writer, mut child) =
        start(&mut command).map_err(|error| ConnectError::start(&program, &error))?;
    drop(command);
    let kept = Arc::new(Mutex::new(VecDeque::new()));
    let stderr_reader = child
        .stderr
        .take()
        .map(|pipe| smol::spawn(keep_end(pipe, Arc::clone(&kept))));
    let child = ChildGuard {
        child,
        program,
        stderr: kept,
        stderr_reader,
    };
    Ok(Connection {
        reader,
        writer,
        guard: Guard { child: Some(child) },
        window_bytes: None,
    })
}

#[cfg(unix)]
fn start(command: &mut Command) -> io::Result<(Reader, Writer, Child)> {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
    use smol::Async;

    let (ours, theirs) = UnixStream::pair()?;
    for socket in [&ours, &theirs] {
        // Best effort: a smaller buffer costs speed only.
        let _ = set_socket_send_buffer_size(socket, SOCKET_BUFFER_BYTES);
        let _ = set_socket_recv_buffer_size(socket, SOCKET_BUFFER_BYTES);
    }
    let child = command
        .stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    let stream = smol::net::unix::UnixStream::from(Async::new(ours)?);
    Ok((Box::new(stream.clone()), Box::new(stream), child))
}

#[cfg(not(unix))]
fn start(command: &mut Command) -> io::Result<(Reader, Writer, Child)> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    match (child.stdout.take(), child.stdin.take()) {
        (Some(reader), Some(writer)) => Ok((Box::new(reader), Box::new(writer), child)),
        _ => Err(io::Error::other("the child process has no pipes")),
    }
}

/// Reads to the end, so that the child never blocks on it, and keeps the last part.
async fn keep_end(mut pipe: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(len @ 1..) = pipe.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(buffer.iter().take(len));
        let excess = kept.len().saturating_sub(STDERR_KEPT_MAX);
        kept.drain(..excess);
    }
}

impl ChildGuard {
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) async fn explain(&mut self, grace: Duration) -> Option<ConnectError> {
        let child = &mut self.child;
        let reader = self.stderr_reader.take();
        let ended = async {
            let status = child.status().await.ok();
            // A grandchild (a shared connection's master, say) may hold the pipe open: hence the limit.
            let after = async {
                Timer::after(Duration::from_millis(200)).await;
            };
            if let Some(reader) = reader {
                reader.or(after).await;
            }
            status
        };
        let limit = async {
            Timer::after(grace).await;
            None
        };
        let status = ended.or(limit).await;
        let stderr = {
            let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
            kept.iter().copied().collect::<Vec<u8>>()
        };
        ConnectError::ended(&self.program, status, &stderr)
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Detached, it goes on reading: a child that still says goodbye must not get SIGPIPE for it.
        if let Some(reader) = self.stderr_reader.take() {
            reader.detach();
        }
    }
}

/// A command for `program` that leaves the child alone when the handle is dropped.
pub(super) fn command(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(false);
    command
}

#[cfg(all(test, unix))]
mod tests {
    use smol::block_on;
    use smol::future::zip;
    use smol::io::AsyncWriteExt as _;

    use super::super::Command as Transport;
    use super::super::ConnectErrorKind;
    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> Connection {
        Transport::new("sh")
            .with_args(["-c", script])
            .connect()
            .expect("a shell")
    }

    #[test]
    fn bytes_pass_both_ways_and_closing_ends_the_child() {
        let (mut reader, mut writer, mut guard) = shell("exec cat").into_parts();
        let data = vec![b'x'; 8 << 20];
        let mut back = Vec::new();
        block_on(async {
            let send = async {
                writer.write_all(&data).await.expect("sent");
                writer.close().await.expect("closed");
            };
            zip(send, reader.read_to_end(&mut back))
                .await
                .1
                .expect("received");
            assert!(guard.explain(GRACE).await.is_none());
        });
        assert!(back == data);
    }

    #[test]
    fn a_child_that_fails_is_quoted() {
        let (mut reader, _writer, mut guard) =
            shell("yes noise | head -n 20000 >&2; echo 'no such luck' >&2; exit 3").into_parts();
        block_on(async {
            assert_eq!(reader.read(&mut [0; 1]).await.expect("the end"), 0);
            let error = guard.explain(GRACE).await.expect("an error");
            assert_eq!(error.kind(), ConnectErrorKind::Closed);
            assert_eq!(
                error.to_string(),
                "sh ended (exit status: 3) and said: no such luck"
            );
        });
    }

    #[test]
    fn explaining_does_not_wait_for_a_child_that_goes_on() {
        let (_reader, mut writer, mut guard) = shell("echo warning >&2; exec cat").into_parts();
        let error = block_on(guard.explain(Duration::from_millis(500)));
        assert_eq!(
            error.map(|e| e.to_string()),
            Some("sh closed its output and said: warning".into())
        );
        block_on(writer.close()).expect("closed");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Transport::new("/no/such/program")
            .connect()
            .expect_err("no program");
        assert_eq!(error.kind(), ConnectErrorKind::Program);
        assert!(
            error
                .to_string()
                .starts_with("cannot start /no/such/program: no such file"),
            "{error}"
        );
    }
}
