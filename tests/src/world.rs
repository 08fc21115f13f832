//! One client, one server and the link between them, in virtual time.
//!
//! Aim: drive the engine by its run-loop contract through everything that can happen at one moment,
//! in any order. Method: a step does one thing that is ready now, picked at random: the server reads
//! or answers, the client reads a bite or writes, the application takes news, a timer is due. If
//! nothing is ready, the clock jumps to the next moment at which something can be. Invariants are
//! checked after each step ([`Checker`]); steps and virtual time are bounded, and to reach a bound is
//! a failure.

use alloc::collections::BTreeMap;

use longhaul_core::engine::{Config, Engine, Event, OpEvent, OpId};
use longhaul_core::{Cause, Instant, ProtocolError};

use crate::check::Checker;
use crate::file::FileHistory;
use crate::job::{Job, JobId, JobState};
use crate::link::{Link, LinkConfig, Piece};
use crate::model::{ModelServer, Node, Quirks};
use crate::rng::Rng;
use crate::tap::Tap;
use crate::trace::Trace;
use crate::{SECOND, job};

/// Everything that makes a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The test file, for the line that replays a failure.
    pub test: &'static str,
    /// The seed.
    pub seed: u64,
    /// The link.
    pub link: LinkConfig,
    /// The server.
    pub quirks: Quirks,
    /// What the server serves.
    pub nodes: Vec<(String, Node)>,
    /// The client.
    pub config: Config,
    /// Pauses of the link: moment and length.
    pub stalls: Vec<(u64, u64)>,
    /// The client reads bites and offers buffers of random size; without it, all there is and 64 KiB.
    pub is_ragged: bool,
    /// The server breaks the protocol: what it says cannot be held against the client's books.
    pub is_hostile: bool,
    /// Steps after which the run has failed.
    pub steps_max: u64,
    /// Virtual nanoseconds after which the run has failed.
    pub time_max: u64,
}

impl Setup {
    /// A calm world with a link of `rtt_ms` and `rate` bits a second, without files.
    #[must_use]
    pub fn new(test: &'static str, seed: u64, rtt_ms: u64, rate: u64) -> Self {
        Self {
            test,
            seed,
            link: LinkConfig::new(rtt_ms, rate),
            quirks: Quirks::default(),
            nodes: Vec::new(),
            config: Config::default(),
            stalls: Vec::new(),
            is_ragged: false,
            is_hostile: false,
            steps_max: 4_000_000,
            time_max: 3_600 * SECOND,
        }
    }

    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, path: &str, file: FileHistory) -> Self {
        self.nodes.push((path.into(), Node::File(file)));
        self
    }

    /// Sets the server.
    #[must_use]
    pub fn with_quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = quirks;
        self
    }

    /// Sets the client.
    #[must_use]
    pub fn with_config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }
}

/// A run that goes on.
#[derive(Debug)]
pub struct World<const OPS: usize = 8, const REQUESTS: usize = 1024, const HANDLES: usize = 16> {
    /// The client's engine.
    pub engine: Box<Engine<OPS, REQUESTS, HANDLES>>,
    /// The server.
    pub server: ModelServer,
    /// The link.
    pub link: Link,
    /// What stands on the wire.
    pub tap: Tap,
    /// What happened.
    pub trace: Trace,
    /// News that no job was concerned with: the test's own operations.
    pub news: Vec<OpEvent>,
    /// Why the engine ended the session, as `handle_input` or `handle_eof` said it.
    pub error: Option<ProtocolError>,
    pub(crate) now: u64,
    pub(crate) jobs: Vec<JobState>,
    pub(crate) checker: Checker,
    /// Bytes to consume: moment and order to operation and count.
    pub(crate) consumes: BTreeMap<(u64, u64), (OpId, u64)>,
    pub(crate) consumes_count: u64,
    stalls: Vec<(u64, u64)>,
    rng: Rng,
    inbox: Option<Piece>,
    outbox: Vec<u8>,
    out: Vec<u8>,
    is_ragged: bool,
    is_closing: bool,
    client_saw_end: bool,
    client_has_ended: bool,
    server_saw_end: bool,
    server_has_ended: bool,
    steps: u64,
    steps_max: u64,
    time_max: u64,
}

/// Bytes of the largest buffer that a client transmits into.
const OUT_LEN: usize = 64 * 1024;

impl<const OPS: usize, const REQUESTS: usize, const HANDLES: usize> World<OPS, REQUESTS, HANDLES> {
    /// Makes the world of `setup` at the beginning of time.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let rng = Rng::new(setup.seed);
        let mut server = ModelServer::new(setup.quirks, rng.child("server"));
        for (path, node) in setup.nodes {
            server = server.with(&path, node);
        }
        let mut stalls = setup.stalls;
        stalls.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            engine: Box::new(Engine::new(setup.config)),
            server,
            link: Link::new(&setup.link, &rng.child("link")),
            tap: Tap::new(),
            trace: Trace::new(setup.test, setup.seed),
            news: Vec::new(),
            error: None,
            now: 0,
            jobs: Vec::new(),
            checker: Checker::new(&setup.config.window, setup.is_hostile),
            consumes: BTreeMap::new(),
            consumes_count: 0,
            stalls,
            rng: rng.child("scheduler"),
            inbox: None,
            outbox: Vec::new(),
            out: vec![0; OUT_LEN],
            is_ragged: setup.is_ragged,
            is_closing: false,
            client_saw_end: false,
            client_has_ended: false,
            server_saw_end: false,
            server_has_ended: false,
            steps: 0,
            steps_max: setup.steps_max,
            time_max: setup.time_max,
        }
    }

    /// Returns virtual nanoseconds since the beginning.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Returns the time as the engine takes it.
    #[must_use]
    pub const fn instant(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    /// Returns the count of steps so far.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Adds a job, which begins by itself when its time has come.
    pub fn start(&mut self, job: Job) -> JobId {
        self.jobs.push(JobState::new(job));
        JobId(self.jobs.len() - 1)
    }

    /// Returns the state of a job.
    #[must_use]
    pub fn job(&self, id: JobId) -> &JobState {
        &self.jobs[id.0]
    }

    /// Runs until all jobs are done and the session is closed and drained; then judges the whole.
    pub fn run(&mut self) {
        self.run_until(|world| world.jobs.iter().all(JobState::is_done));
        self.close();
    }

    /// Closes the session, runs until it is drained, and judges the whole.
    pub fn close(&mut self) {
        self.is_closing = true;
        let now = self.instant();
        self.engine.close(now);
        self.run_until(|world| world.engine.is_drained() && world.outbox.is_empty());
        let was_cut = self.engine.ended().is_some();
        self.end_client();
        self.checker.at_end(&self.engine, &self.tap);
        if !was_cut {
            // What the client has sent is still on its way.
            self.run_until(|world| world.server_saw_end);
        }
        self.checker.at_end_of_server(self.server.record(), was_cut);
    }

    /// Runs until `done` says so, looking after each step and each jump of the clock.
    ///
    /// # Panics
    /// If a bound is reached, or nothing can happen any more.
    pub fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            if !self.step() {
                let Some(next) = self.next_moment() else {
                    if self.checker.is_hostile() && self.give_up_waiting() {
                        continue;
                    }
                    panic!("nothing can happen any more, {}", self.describe());
                };
                assert!(next > self.now, "stuck at {next}, {}", self.describe());
                assert!(
                    next <= self.time_max,
                    "{next} is beyond the bound of virtual time, {}",
                    self.describe()
                );
                self.now = next;
            }
        }
    }

    /// Runs up to the moment `at`.
    pub fn run_to(&mut self, at: u64) {
        loop {
            while self.step() {}
            match self.next_moment().filter(|next| *next <= at) {
                Some(next) => self.now = next,
                None => break,
            }
        }
        self.now = self.now.max(at);
    }

    /// Does one thing that is ready; `false` if nothing is.
    pub fn step(&mut self) -> bool {
        let mut actions = [0, 1, 2, 3, 4, 5];
        self.rng.shuffle(&mut actions);
        let acted = actions.into_iter().any(|action| match action {
            0 => self.server_reads(),
            1 => self.server_writes(),
            2 => self.client_reads(),
            3 => self.client_writes(),
            4 => self.app_acts(),
            _ => self.timer_fires(),
        });
        if acted {
            self.steps += 1;
            assert!(
                self.steps < self.steps_max,
                "too many steps, {}",
                self.describe()
            );
            self.check();
        }
        acted
    }

    fn check(&mut self) {
        let jobs = self.jobs.iter().filter_map(JobState::running);
        self.checker
            .after_step(&self.engine, &self.tap, self.steps, jobs);
    }

    fn describe(&self) -> String {
        let jobs: Vec<String> = self.jobs.iter().map(JobState::describe).collect();
        format!(
            "at {} ns after {} steps; engine: {} outstanding, window {} / {} + {}, ended {:?}, due {:?}; jobs {jobs:?}",
            self.now,
            self.steps,
            self.engine.outstanding(),
            self.engine.window().bytes(),
            self.engine.window().in_flight(),
            self.engine.window().unconsumed(),
            self.engine.ended(),
            self.engine.poll_timeout(),
        )
    }

    fn server_reads(&mut self) -> bool {
        if !self.server_saw_end && self.link.server_at_end(self.now) {
            self.server_saw_end = true;
            self.server.handle_eof();
            return true;
        }
        let due = self.link.up.next_arrival().is_some_and(|at| at <= self.now);
        if self.server_saw_end || !due || !self.server.takes_input(self.link.server_is_blocked()) {
            return false;
        }
        let Some(piece) = self.link.server_receive(self.now) else {
            // It was credit for the channel.
            return true;
        };
        self.server.handle_input(self.now, piece.bytes());
        self.trace
            .note(self.now, "server read", [piece.len() as u64, 0, 0]);
        true
    }

    fn server_writes(&mut self) -> bool {
        if self.link.server_is_blocked() {
            return false;
        }
        let Some(packet) = self.server.poll_output(self.now) else {
            // To ask for output may be what ends it.
            let is_first =
                self.server.has_ended() && !core::mem::replace(&mut self.server_has_ended, true);
            if is_first {
                self.link.down.end(self.now);
            }
            return is_first;
        };
        let len = packet.iter().map(Piece::len).sum::<usize>();
        for piece in packet {
            self.link.server_send(self.now, piece);
        }
        self.trace
            .note(self.now, "server wrote", [len as u64, 0, 0]);
        true
    }

    fn client_reads(&mut self) -> bool {
        if self.client_has_ended {
            return false;
        }
        if self.inbox.as_ref().is_none_or(Piece::is_empty) {
            self.inbox = self.link.client_receive(self.now);
            if let Some(piece) = &self.inbox {
                self.link.client_consumed(self.now, piece.len() as u64);
            }
        }
        let Some(piece) = &mut self.inbox else {
            if self.client_saw_end || !self.link.client_at_end(self.now) {
                return false;
            }
            self.client_saw_end = true;
            self.trace.note(self.now, "client end", [0; 3]);
            self.error = self.engine.handle_eof(self.instant()).err().or(self.error);
            return true;
        };
        let len = if self.is_ragged {
            self.rng.magnitude_index(1, piece.len())
        } else {
            piece.len()
        };
        let bite = piece.split_to(len);
        if piece.is_empty() {
            self.inbox = None;
        }
        self.trace.note(self.now, "client read", [len as u64, 0, 0]);
        self.tap.received(bite.bytes());
        self.feed(bite.bytes());
        true
    }

    /// Gives bytes to the engine, and what it makes of them to the jobs.
    fn feed(&mut self, bytes: &[u8]) {
        let now = self.instant();
        let mut input = bytes;
        loop {
            match self.engine.handle_input(now, &mut input) {
                Ok(None) => break,
                Ok(Some(Event::Data { op, offset, bytes })) => {
                    self.trace.note(
                        self.now,
                        "data",
                        [op.index() as u64, offset, bytes.len() as u64],
                    );
                    self.checker.data(op, bytes.len());
                    job::place(self.now, &mut self.jobs, op, offset, bytes);
                    self.plan_consume(op, bytes.len() as u64);
                }
                Ok(Some(_)) => {}
                Err(error) => {
                    assert!(
                        self.engine.ended().is_some(),
                        "an error of the protocol ends the session"
                    );
                    self.error = Some(error);
                    break;
                }
            }
        }
        assert!(
            input.is_empty() || self.engine.ended().is_some(),
            "handle_input takes all of it"
        );
    }

    fn client_writes(&mut self) -> bool {
        if self.client_has_ended {
            return false;
        }
        if self.outbox.is_empty() {
            let len = if self.is_ragged {
                self.rng.magnitude_index(1024, OUT_LEN)
            } else {
                OUT_LEN
            };
            let waits = self
                .engine
                .poll_timeout()
                .is_some_and(|deadline| deadline.cause == Cause::Transmit);
            let before = (
                self.engine.window().in_flight(),
                Checker::used(&self.engine),
            );
            let now = self.instant();
            let written = self.engine.poll_transmit(now, &mut self.out[..len]);
            assert_eq!(
                written > 0,
                waits,
                "poll_timeout is due now exactly while output waits, {}",
                self.describe()
            );
            self.outbox.extend(&self.out[..written]);
            self.tap.sent(&self.outbox);
            self.checker.sent(&self.engine, before);
            if written > 0 {
                self.trace
                    .note(self.now, "client wrote", [written as u64, 0, 0]);
                return true;
            }
        }
        let len = self.link.client_room(self.now).min(self.outbox.len());
        if len == 0 {
            return false;
        }
        self.link.client_send(self.now, &self.outbox[..len]);
        self.outbox.drain(..len);
        true
    }

    fn timer_fires(&mut self) -> bool {
        if let Some((_, pause)) = self.stalls.pop_if(|(at, _)| *at <= self.now) {
            self.trace.note(self.now, "stall", [pause, 0, 0]);
            self.link.stall(self.now, pause);
            return true;
        }
        let deadline = self
            .engine
            .deadline()
            .filter(|deadline| deadline.at.as_nanos() <= self.now);
        let Some(deadline) = deadline else {
            return false;
        };
        self.trace
            .note(self.now, "timeout", [deadline.cause as u64, 0, 0]);
        self.engine.handle_timeout(self.instant());
        let again = self
            .engine
            .deadline()
            .filter(|deadline| deadline.at.as_nanos() <= self.now);
        assert_eq!(again, None, "handle_timeout deals with what is due");
        true
    }

    fn end_client(&mut self) {
        if !core::mem::replace(&mut self.client_has_ended, true) {
            self.link.up.end(self.now);
        }
    }

    /// The next moment at which something can be ready.
    fn next_moment(&self) -> Option<u64> {
        let up = self.link.up.next_arrival().filter(|_| {
            !self.server_saw_end
                && (self.link.server_at_end(u64::MAX)
                    || self.server.takes_input(self.link.server_is_blocked()))
        });
        let down = self
            .link
            .down
            .next_arrival()
            .filter(|_| !self.client_saw_end && !self.client_has_ended);
        let serves = self
            .server
            .poll_timeout()
            .filter(|_| !self.link.server_is_blocked());
        let room = (!self.outbox.is_empty() && !self.client_has_ended)
            .then(|| self.link.room_at(self.now, self.outbox.len()));
        let stall = self.stalls.last().map(|(at, _)| *at);
        let deadline = self
            .engine
            .deadline()
            .map(|deadline| deadline.at.as_nanos());
        let moments = [up, down, serves, room, stall, deadline, self.app_moment()];
        moments.into_iter().flatten().min()
    }
}
