//! Drives the core without its driver, with blocking calls over the pipes of a child process:
//! `by_hand REMOTE_PATH LOCAL COMMAND...`, such as `by_hand /etc/motd motd ssh -s host sftp`.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use core::error::Error;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};
use std::{env, fs, time};

use longhaul_core::Instant;
use longhaul_core::download::DownloadConfig;
use longhaul_core::engine::{self, Config, Engine, Event, OpEvent, OpId, Outcome};

struct Session<R, W> {
    engine: Box<Engine>,
    reader: R,
    writer: W,
    local: fs::File,
    started: time::Instant,
}

impl<R: Read, W: Write> Session<R, W> {
    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    /// Moves bytes until the operation has ended. Blocking calls leave nobody to look after deadlines.
    fn wait(&mut self, op: OpId) -> Result<Outcome, Box<dyn Error>> {
        let (mut out, mut buffer) = (vec![0; 4096], vec![0; 256 << 10]);
        loop {
            while let len @ 1.. = self.engine.poll_transmit(self.now(), &mut out) {
                self.writer.write_all(&out[..len])?;
            }
            while let Some(event) = self.engine.poll_event() {
                if event == OpEvent::Finished(op) {
                    return Ok(self.engine.take(op).ok_or("taken twice")??);
                }
            }
            let len = self.reader.read(&mut buffer)?;
            if len == 0 {
                self.engine.handle_eof(self.now())?;
            }
            let (now, mut input) = (self.now(), &buffer[..len]);
            while let Some(event) = self.engine.handle_input(now, &mut input)? {
                if let Event::Data { op, offset, bytes } = event {
                    self.local.write_all_at(bytes, offset)?;
                    self.engine.consume(now, op, bytes.len() as u64);
                }
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [path, local, program, args @ ..] = args.as_slice() else {
        return Err("usage: by_hand REMOTE_PATH LOCAL COMMAND...".into());
    };
    let mut child = Command::new(program);
    child.args(args).stdin(Stdio::piped());
    let mut child = child.stdout(Stdio::piped()).spawn()?;
    let mut session = Session {
        engine: Box::new(Engine::new(Config::default())),
        reader: child.stdout.take().ok_or("no output")?,
        writer: child.stdin.take().ok_or("no input")?,
        local: fs::File::create(local)?,
        started: time::Instant::now(),
    };
    let (now, open) = (session.now(), engine::Command::Open(path.as_bytes()));
    let op = session.engine.submit(now, open)?;
    let Outcome::Handle(file) = session.wait(op)? else {
        return Err("OPEN brings a handle".into());
    };
    let (now, whole) = (session.now(), DownloadConfig::default());
    let op = session.engine.download(now, file, whole)?;
    println!("{:?}", session.wait(op)?);
    Ok(())
}
