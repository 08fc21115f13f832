//! A model of an SFTP server, with a knob for each oddity.
//!
//! Aim: be every server that users have met, in virtual time. Method: naive on purpose. Requests
//! become jobs with a moment at which they are due; one job after the other becomes a reply; knobs
//! ([`Quirks`]) bend single steps. The wire code is the model's own ([`wire`]), and everything that
//! was seen is kept ([`Record`]) for the invariants to judge.
//!
//! It answers INIT, OPEN, CLOSE, READ, STAT, LSTAT, FSTAT, REALPATH and `limits@openssh.com`, and
//! OP_UNSUPPORTED to everything else. Its files can only be read.

mod output;
mod quirks;
mod read;
mod record;
pub mod wire;

use alloc::collections::{BTreeMap, VecDeque};

pub use output::giant_extensions;
pub use quirks::{
    DeleteOn, HandleForm, Malform, OPENSSH_EXTENSIONS, OPENSSH_LIMITS, Quirks, ReadCap, SizeAttr,
    StatusForm,
};
pub use record::{Record, Seen};
use wire::{Reply, Request, kind, status};

use crate::file::FileHistory;
use crate::link::Piece;
use crate::rng::Rng;

/// The largest packet that OpenSSH's server takes; a longer one ends the connection.
const PACKET_LEN_MAX: usize = 262_144;

/// What stands at a path.
#[derive(Clone, Debug)]
pub enum Node {
    /// A file whose OPEN is refused.
    Denied(FileHistory),
    /// A directory.
    Directory,
    /// A file.
    File(FileHistory),
}

/// An open handle.
#[derive(Clone, Debug)]
struct Open {
    number: u32,
    path: Vec<u8>,
    file: FileHistory,
}

/// A request on its way to its reply.
#[derive(Clone, Debug)]
struct Job {
    id: u32,
    request: Request,
    /// Which READ of the connection it is, from 1; 0 for anything else.
    nth_read: u64,
}

/// The server.
#[derive(Clone, Debug)]
pub struct ModelServer {
    quirks: Quirks,
    record: Record,
    nodes: BTreeMap<Vec<u8>, Node>,
    handles: BTreeMap<Vec<u8>, Open>,
    /// What has come and isn't a whole packet yet, or waits because the server is blocking.
    input: VecDeque<u8>,
    /// Jobs by the moment they are due and their order of arrival.
    jobs: BTreeMap<(u64, u64), Job>,
    jobs_count: u64,
    /// Jobs that the test answers, in order of arrival.
    held: VecDeque<Job>,
    /// When the last job is due: servers that answer in order finish no job before it.
    due_last: u64,
    attrs_sent: u64,
    out: VecDeque<Vec<Piece>>,
    greeted: bool,
    ending: bool,
    rng: Rng,
}

impl ModelServer {
    /// Makes a server without files.
    #[must_use]
    pub fn new(quirks: Quirks, rng: Rng) -> Self {
        Self {
            quirks,
            record: Record::default(),
            nodes: BTreeMap::new(),
            handles: BTreeMap::new(),
            input: VecDeque::new(),
            jobs: BTreeMap::new(),
            jobs_count: 0,
            held: VecDeque::new(),
            due_last: 0,
            attrs_sent: 0,
            out: VecDeque::new(),
            greeted: false,
            ending: false,
            rng,
        }
    }

    /// Puts a node at a path.
    #[must_use]
    pub fn with(mut self, path: &str, node: Node) -> Self {
        self.nodes.insert(path.into(), node);
        self
    }

    /// Puts a file at a path.
    #[must_use]
    pub fn with_file(self, path: &str, file: FileHistory) -> Self {
        self.with(path, Node::File(file))
    }

    /// Returns what was seen and done.
    #[must_use]
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// Returns the knobs, to turn them in the middle of a run.
    pub const fn quirks_mut(&mut self) -> &mut Quirks {
        &mut self.quirks
    }

    /// Says whether the server takes input, given whether its output waits for channel credit.
    /// A blocking server takes none while a reply or a request is in its hands.
    #[must_use]
    pub fn takes_input(&self, output_is_blocked: bool) -> bool {
        let busy = output_is_blocked || !self.out.is_empty() || !self.jobs.is_empty();
        !(self.quirks.blocking && (busy || self.has_packet()))
    }

    /// Takes bytes that have reached the server.
    pub fn handle_input(&mut self, now: u64, bytes: &[u8]) {
        self.input.extend(bytes);
        while !self.quirks.blocking && self.accept_packet(now) {}
    }

    /// Returns the next packet that is ready at `now`.
    pub fn poll_output(&mut self, now: u64) -> Option<Vec<Piece>> {
        loop {
            if let Some(packet) = self.out.pop_front() {
                return Some(packet);
            }
            if self.ending {
                return None;
            }
            if self.quirks.blocking && self.jobs.is_empty() {
                self.accept_packet(now);
            }
            let job = self.next_job(now)?;
            self.finish(now, &job, None);
        }
    }

    /// Returns the moment at which the next reply is ready.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.jobs.keys().next().map(|&(due, _)| due)
    }

    /// Says whether the server has ended the connection: no output comes any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ending && self.out.is_empty()
    }

    /// Takes the end of the client's stream: handles close by themselves, as on a real server.
    pub fn handle_eof(&mut self) {
        self.ending = true;
        self.jobs.clear();
        self.held.clear();
    }

    /// Returns id and request of all held jobs, in order of arrival.
    pub fn waiting(&self) -> impl Iterator<Item = (u32, &Request)> {
        self.held.iter().map(|job| (job.id, &job.request))
    }

    /// Answers the held job at `index`; a READ with at most `cap` bytes.
    ///
    /// # Panics
    /// If there is no such job.
    pub fn answer(&mut self, now: u64, index: usize, cap: Option<u32>) {
        let job = self.held.remove(index).expect("a waiting job");
        self.finish(now, &job, cap);
    }

    /// Returns the length of the first packet in the input, if that much has come.
    fn packet_len(&self) -> Option<usize> {
        let mut field = [0; 4];
        for (index, place) in field.iter_mut().enumerate() {
            *place = *self.input.get(index)?;
        }
        Some(u32::from_be_bytes(field) as usize)
    }

    fn has_packet(&self) -> bool {
        self.packet_len()
            .is_some_and(|len| len > PACKET_LEN_MAX || self.input.len() >= 4 + len)
    }

    /// Turns the next whole packet into a job; `false` if there is none.
    fn accept_packet(&mut self, now: u64) -> bool {
        let Some(len) = self
            .packet_len()
            .filter(|_| !self.ending && self.has_packet())
        else {
            return false;
        };
        if len > PACKET_LEN_MAX {
            self.violation(format!("packet of {len} bytes"));
            return false;
        }
        let packet: Vec<u8> = self.input.drain(..4 + len).skip(4).collect();
        match wire::parse(&packet) {
            Ok((kind, id, request)) => self.accept(now, kind, id, request),
            Err(wire::Malformed) => self.violation(format!("malformed request {packet:?}")),
        }
        true
    }

    /// Notes what no client may do, and ends the connection as a server would.
    fn violation(&mut self, text: String) {
        self.record.violations.push(text);
        self.handle_eof();
    }

    fn accept(&mut self, now: u64, kind: u8, id: u32, request: Request) {
        let mut seen = Seen {
            at: now,
            kind,
            id,
            handle: 0,
            offset: 0,
            len: 0,
        };
        match &request {
            Request::Init(_) if self.greeted => return self.violation("second INIT".into()),
            Request::Init(_) => self.greeted = true,
            _ if !self.greeted => return self.violation("request before INIT".into()),
            Request::Close(handle) => {
                seen.handle = self.number(handle);
                self.record.closes_before_reads_done += u64::from(self.is_being_read(handle));
            }
            Request::Fstat(handle) => seen.handle = self.number(handle),
            Request::Read {
                handle,
                offset,
                len,
            } => {
                seen = Seen {
                    handle: self.number(handle),
                    offset: *offset,
                    len: *len,
                    ..seen
                };
            }
            Request::Open(..) | Request::Stat(_) | Request::Lstat(_) | Request::Realpath(_) => (),
            Request::Extended(_) | Request::Other(_) => (),
        }
        self.record.arrived(seen);
        let nth_read = if kind == kind::READ {
            self.record.reads
        } else {
            0
        };
        if nth_read > 0 {
            if self
                .quirks
                .close_above_read_len
                .is_some_and(|max| seen.len > max)
            {
                return self.handle_eof();
            }
            let serving = self.jobs.values().filter(|job| job.nth_read > 0);
            if self
                .quirks
                .reads_outstanding_max
                .is_some_and(|max| serving.count() >= max)
            {
                return;
            }
        }
        let job = Job {
            id,
            request,
            nth_read,
        };
        if self.quirks.manual && kind != kind::INIT {
            return self.held.push_back(job);
        }
        let due = self.due(now, &job);
        self.jobs_count += 1;
        self.jobs.insert((due, self.jobs_count), job);
    }

    fn is_being_read(&self, handle: &[u8]) -> bool {
        let mut jobs = self.jobs.values().chain(&self.held);
        jobs.any(
            |job| matches!(&job.request, Request::Read { handle: other, .. } if other == handle),
        )
    }

    /// Decides when a job is due.
    fn due(&mut self, now: u64, job: &Job) -> u64 {
        let (low, high) = self.quirks.service;
        let mut due = now + self.rng.between(low, high);
        if let Some((nth, delay)) = self.quirks.slow_request
            && nth == self.record.seen.len() as u64
        {
            due += delay;
        }
        if self.is_past_end(now, &job.request) {
            if self.quirks.eof_overtakes {
                return now;
            }
            due += self.quirks.past_eof_delay;
        }
        if self.quirks.reorder == 0 {
            due = due.max(self.due_last);
            self.due_last = due;
        }
        due
    }

    /// Takes a job that is due: the first, or any of the first few when replies come in any order.
    fn next_job(&mut self, now: u64) -> Option<Job> {
        let ready = self
            .jobs
            .range(..=(now, u64::MAX))
            .take(self.quirks.reorder.max(1));
        let index = match ready.count() {
            0 => return None,
            1 => 0,
            count => self.rng.index(count),
        };
        let key = *self.jobs.keys().nth(index)?;
        self.jobs.remove(&key)
    }

    fn number(&self, handle: &[u8]) -> u32 {
        self.handles.get(handle).map_or(0, |open| open.number)
    }

    /// Makes the reply to a job and puts it out.
    fn finish(&mut self, now: u64, job: &Job, cap: Option<u32>) {
        let id = job.id;
        let reply = match &job.request {
            Request::Init(_) => return self.put_version(),
            Request::Open(path, flags) => self.open(id, path, *flags),
            Request::Close(handle) => self.close(id, handle),
            Request::Read {
                handle,
                offset,
                len,
            } => self.read(now, job, handle, (*offset, *len), cap),
            Request::Stat(path) => self.stat(now, id, path, self.quirks.stat_refused),
            Request::Lstat(path) => self.stat(now, id, path, self.quirks.lstat_refused),
            Request::Fstat(handle) => self.fstat(now, id, handle),
            Request::Realpath(path) => {
                let path = if path == b"." {
                    b"/home/model"
                } else {
                    path.as_slice()
                };
                Reply::new(kind::NAME, id)
                    .u32(1)
                    .string(path)
                    .string(path)
                    .u32(0)
            }
            Request::Extended(name) => match self.quirks.limits {
                Some(limits) if name == b"limits@openssh.com" => {
                    let reply = Reply::new(kind::EXTENDED_REPLY, id);
                    limits.into_iter().fold(reply, Reply::u64)
                }
                _ => self.status(id, status::OP_UNSUPPORTED),
            },
            Request::Other(_) => self.status(id, status::OP_UNSUPPORTED),
        };
        self.put_reply(id, reply);
    }
}

#[cfg(test)]
mod tests;
