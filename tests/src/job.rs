//! What the application does with a file: open and stat it in one breath, download, release.
//!
//! Aim: use the engine as its drivers do, with every habit that an application may have. Method: one
//! small script a job, moved on by the engine's news; a sink judges the bytes.

use longhaul_core::download::{DownloadConfig, Shrink};
use longhaul_core::engine::{Command, OpEvent, OpId, Outcome};
use longhaul_core::sftp::HandleKey;
use longhaul_core::{OpError, SubmitError};

use crate::file::FileHistory;
use crate::reference::{Sink, Wanted};
use crate::world::World;

/// How a job learns the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeFrom {
    /// FSTAT of the open file.
    Fstat,
    /// The caller says it, if it knows.
    Given(Option<u64>),
    /// STAT in the same breath as OPEN.
    Stat,
}

/// When a job consumes bytes that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consume {
    /// So many nanoseconds after they came.
    After(u64),
    /// At once.
    AtOnce,
    /// Never.
    Never,
}

/// One download.
#[derive(Clone, Debug)]
pub struct Job {
    /// Where the file is.
    pub path: Vec<u8>,
    /// What the file is.
    pub file: FileHistory,
    /// The range.
    pub wanted: Wanted,
    /// How the size becomes known.
    pub size_from: SizeFrom,
    /// What an early end means.
    pub shrink: Shrink,
    /// One request at a time.
    pub serial: bool,
    /// When bytes are consumed.
    pub consume: Consume,
    /// The moment at which the job begins.
    pub begin_at: u64,
    /// The moment at which it is cancelled, if it still goes on.
    pub cancel_at: Option<u64>,
}

impl Job {
    /// A plain download of all of `file` at `path`.
    #[must_use]
    pub fn new(path: &str, file: FileHistory) -> Self {
        Self {
            path: path.into(),
            file,
            wanted: Wanted::ALL,
            size_from: SizeFrom::Stat,
            shrink: Shrink::Fail,
            serial: false,
            consume: Consume::AtOnce,
            begin_at: 0,
            cancel_at: None,
        }
    }
}

/// Names a job of one world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId(pub(crate) usize);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// `open` and `stat` are `None` once they are answered.
    Opening {
        open: Option<OpId>,
        stat: Option<OpId>,
        handle: Option<HandleKey>,
        size: Option<u64>,
    },
    /// The file is open and the size known, as far as it ever will be.
    Opened(HandleKey, Option<u64>),
    Downloading(HandleKey, OpId),
    Done,
}

/// A job and how far it is.
#[derive(Clone, Debug)]
pub struct JobState {
    /// What was asked for.
    pub job: Job,
    /// What has come.
    pub sink: Sink,
    /// How it ended; `None` while it goes on.
    pub outcome: Option<Result<u64, OpError>>,
    /// The moment at which the download began.
    pub began: u64,
    /// The moment at which it ended.
    pub ended: u64,
    /// Bytes that came.
    pub arrived: u64,
    stage: Stage,
}

impl JobState {
    pub(crate) fn new(job: Job) -> Self {
        Self {
            sink: Sink::new(job.file.clone(), job.wanted, job.begin_at),
            job,
            outcome: None,
            began: 0,
            ended: 0,
            arrived: 0,
            stage: Stage::Waiting,
        }
    }

    /// Says whether the job has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Returns the download's operation while it goes on.
    #[must_use]
    pub fn op(&self) -> Option<OpId> {
        match self.stage {
            Stage::Downloading(_, op) => Some(op),
            Stage::Waiting | Stage::Opening { .. } | Stage::Opened(..) | Stage::Done => None,
        }
    }

    /// Returns the file's handle while it is open.
    #[must_use]
    pub fn handle(&self) -> Option<HandleKey> {
        match self.stage {
            Stage::Downloading(handle, _) | Stage::Opened(handle, _) => Some(handle),
            Stage::Opening { handle, .. } => handle,
            Stage::Waiting | Stage::Done => None,
        }
    }

    /// Returns the number of bytes of a success.
    ///
    /// # Panics
    /// If it was none, or its bytes are wrong.
    pub fn success(&self) -> u64 {
        match &self.outcome {
            Some(Ok(end)) => {
                assert_eq!(self.sink.judge(self.ended), Ok(()));
                assert_eq!(*end, self.sink.contiguous().max(self.job.wanted.offset));
                self.sink.len()
            }
            other => panic!("no success: {other:?}"),
        }
    }

    /// Returns the error of a failure.
    ///
    /// # Panics
    /// If it was none.
    pub fn failure(&self) -> &OpError {
        match &self.outcome {
            Some(Err(error)) => error,
            other => panic!("no failure: {other:?}"),
        }
    }

    pub(crate) fn running(&self) -> Option<(OpId, &Sink)> {
        self.op().map(|op| (op, &self.sink))
    }

    pub(crate) fn describe(&self) -> String {
        format!(
            "{:?} {} bytes, contiguous {}, outcome {:?}",
            self.stage,
            self.sink.len(),
            self.sink.contiguous(),
            self.outcome
        )
    }
}

/// Puts bytes where their job wants them.
///
/// # Panics
/// If no job waits for them, or they are wrong, or were there already.
pub(crate) fn place(now: u64, jobs: &mut [JobState], op: OpId, offset: u64, bytes: &[u8]) {
    let Some(state) = jobs.iter_mut().find(|state| state.op() == Some(op)) else {
        panic!("bytes for {op:?}, which no job waits for");
    };
    state.arrived += bytes.len() as u64;
    state.sink.place(now, offset, bytes);
    assert_eq!(state.sink.wrong(), None);
    assert_eq!(state.sink.placed_twice(), 0, "each byte comes once");
}

impl<const OPS: usize, const REQUESTS: usize, const HANDLES: usize> World<OPS, REQUESTS, HANDLES> {
    /// The application takes one piece of news, consumes, begins or cancels.
    pub(crate) fn app_acts(&mut self) -> bool {
        if let Some(event) = self.engine.poll_event() {
            self.handle_news(event);
            return true;
        }
        if let Some(entry) = self.consumes.first_entry()
            && entry.key().0 <= self.now
        {
            let (op, bytes) = entry.remove();
            self.engine.consume(self.instant(), op, bytes);
            self.checker.consumed(op, bytes);
            return true;
        }
        (0..self.jobs.len()).any(|index| self.cancel_if_due(index) || self.advance(index))
    }

    /// The next moment at which the application does something by itself.
    pub(crate) fn app_moment(&self) -> Option<u64> {
        let consume = self.consumes.first_key_value().map(|(key, _)| key.0);
        let begin = |state: &JobState| {
            let later = state.stage == Stage::Waiting && state.job.begin_at > self.now;
            later.then_some(state.job.begin_at)
        };
        let cancel = |state: &JobState| state.job.cancel_at.filter(|_| !state.is_done());
        let jobs = self.jobs.iter();
        let moments = jobs.flat_map(|state| [begin(state), cancel(state)]);
        moments.flatten().chain(consume).min()
    }

    /// Plans to consume bytes as their job does.
    pub(crate) fn plan_consume(&mut self, op: OpId, bytes: u64) {
        let Some(state) = self.jobs.iter().find(|state| state.op() == Some(op)) else {
            return;
        };
        let at = match state.job.consume {
            Consume::AtOnce => self.now,
            Consume::After(wait) => self.now + wait,
            Consume::Never => return,
        };
        self.consumes_count += 1;
        self.consumes.insert((at, self.consumes_count), (op, bytes));
    }

    fn handle_news(&mut self, event: OpEvent) {
        let OpEvent::Finished(op) = event else {
            self.trace.note(self.now, "ready", [0; 3]);
            self.news.push(event);
            return;
        };
        self.trace
            .note(self.now, "finished", [op.index() as u64, 0, 0]);
        self.checker.finished(op);
        let waits_for = |state: &JobState| match &state.stage {
            Stage::Opening { open, stat, .. } => *open == Some(op) || *stat == Some(op),
            Stage::Downloading(_, of) => *of == op,
            Stage::Waiting | Stage::Opened(..) | Stage::Done => false,
        };
        match self.jobs.iter().position(waits_for) {
            Some(index) => self.handle_finished(index, op),
            None => self.news.push(event),
        }
    }

    fn handle_finished(&mut self, index: usize, finished: OpId) {
        let Some(outcome) = self.engine.take(finished) else {
            panic!("{finished:?} has finished and nothing came of it");
        };
        self.checker.taken(finished);
        match &mut self.jobs[index].stage {
            Stage::Opening {
                open, stat, handle, ..
            } if *open == Some(finished) => {
                *open = None;
                match outcome {
                    Ok(Outcome::Handle(key)) => *handle = Some(key),
                    Ok(other) => panic!("OPEN brought {other:?}"),
                    Err(error) => {
                        if let Some(stat) = stat.take() {
                            self.drop_op(stat);
                        }
                        self.end_job(index, Err(error));
                    }
                }
            }
            Stage::Opening { stat, size, .. } => {
                *stat = None;
                match outcome {
                    Ok(Outcome::Attrs(attrs)) => *size = attrs.size,
                    Ok(other) => panic!("STAT brought {other:?}"),
                    // A refused STAT only leaves the size unknown (Q45).
                    Err(_) => *size = None,
                }
            }
            Stage::Downloading(handle, _) => {
                let handle = *handle;
                self.engine.release(self.instant(), handle);
                let outcome = outcome.map(|outcome| {
                    let Outcome::Fetched(end) = outcome else {
                        panic!("a download brought {outcome:?}");
                    };
                    end
                });
                self.end_job(index, outcome);
            }
            Stage::Waiting | Stage::Opened(..) | Stage::Done => unreachable!("waits for nothing"),
        }
    }

    /// Cancels an operation that nobody waits for any more.
    fn drop_op(&mut self, op: OpId) {
        self.engine.cancel(self.instant(), op);
        let _ = self.engine.take(op);
        self.checker.dropped(op);
    }

    fn end_job(&mut self, index: usize, outcome: Result<u64, OpError>) {
        let state = &mut self.jobs[index];
        self.trace.note(
            self.now,
            if outcome.is_ok() { "done" } else { "failed" },
            [index as u64, state.sink.len(), 0],
        );
        state.stage = Stage::Done;
        state.ended = self.now;
        state.outcome = Some(outcome);
    }

    fn cancel_if_due(&mut self, index: usize) -> bool {
        if self.jobs[index]
            .job
            .cancel_at
            .is_none_or(|at| at > self.now)
        {
            return false;
        }
        self.jobs[index].job.cancel_at = None;
        self.trace.note(self.now, "cancel", [index as u64, 0, 0]);
        match self.jobs[index].stage.clone() {
            Stage::Downloading(_, op) => self.engine.cancel(self.instant(), op),
            Stage::Opening {
                open, stat, handle, ..
            } => {
                for op in open.into_iter().chain(stat) {
                    self.drop_op(op);
                }
                if let Some(handle) = handle {
                    self.engine.release(self.instant(), handle);
                }
                self.end_job(index, Err(OpError::Cancelled));
            }
            Stage::Opened(handle, _) => {
                self.engine.release(self.instant(), handle);
                self.end_job(index, Err(OpError::Cancelled));
            }
            Stage::Waiting => self.end_job(index, Err(OpError::Cancelled)),
            Stage::Done => return false,
        }
        true
    }

    /// Moves a job on that waits for no reply.
    fn advance(&mut self, index: usize) -> bool {
        let now = self.instant();
        let state = &mut self.jobs[index];
        match state.stage.clone() {
            Stage::Waiting if state.job.begin_at <= self.now => self.begin(index),
            Stage::Opening {
                open: None,
                stat: None,
                handle: Some(handle),
                size,
            } => {
                if state.job.size_from == SizeFrom::Fstat {
                    match self.engine.submit(now, Command::Fstat(handle)) {
                        Ok(op) => {
                            state.job.size_from = SizeFrom::Given(None);
                            state.stage = Stage::Opening {
                                open: None,
                                stat: Some(op),
                                handle: Some(handle),
                                size,
                            };
                            return true;
                        }
                        Err(SubmitError::Full) => return false,
                        Err(error) => self.refused(index, error),
                    }
                } else {
                    state.stage = Stage::Opened(handle, size);
                }
                true
            }
            Stage::Opened(handle, size) => {
                let job = &state.job;
                let end = job
                    .wanted
                    .len
                    .map(|len| job.wanted.offset.saturating_add(len));
                let config = DownloadConfig::default()
                    .with_start(job.wanted.offset)
                    .with_end(end)
                    .with_size(size)
                    .with_shrink(job.shrink)
                    .with_serial(job.serial);
                match self.engine.download(now, handle, config) {
                    Ok(op) => {
                        state.began = self.now;
                        state.stage = Stage::Downloading(handle, op);
                        self.trace.note(self.now, "download", [index as u64, 0, 0]);
                        self.checker.began(op, self.jobs[index].job.wanted.offset);
                    }
                    Err(SubmitError::Full) => return false,
                    Err(error) => self.refused(index, error),
                }
                true
            }
            Stage::Waiting | Stage::Opening { .. } | Stage::Downloading(..) | Stage::Done => false,
        }
    }

    /// Ends jobs that could not begin: a server that never answers keeps every slot and handle taken.
    pub(crate) fn give_up_waiting(&mut self) -> bool {
        let waits = |state: &JobState| matches!(state.stage, Stage::Waiting | Stage::Opened(..));
        let index = self.jobs.iter().position(waits);
        if let Some(index) = index {
            if let Some(handle) = self.jobs[index].handle() {
                self.engine.release(self.instant(), handle);
            }
            self.end_job(index, Err(OpError::NoProgress));
        }
        index.is_some()
    }

    fn begin(&mut self, index: usize) -> bool {
        let now = self.instant();
        let state = &mut self.jobs[index];
        let open = match self.engine.submit(now, Command::Open(&state.job.path)) {
            Ok(op) => op,
            Err(SubmitError::Full) => return false,
            Err(error) => {
                self.refused(index, error);
                return true;
            }
        };
        let mut size = None;
        let stat = match state.job.size_from {
            SizeFrom::Stat => self.engine.submit(now, Command::Stat(&state.job.path)).ok(),
            SizeFrom::Given(given) => {
                size = given;
                None
            }
            SizeFrom::Fstat => None,
        };
        self.trace.note(self.now, "open", [index as u64, 0, 0]);
        state.stage = Stage::Opening {
            open: Some(open),
            stat,
            handle: None,
            size,
        };
        true
    }

    fn refused(&mut self, index: usize, error: SubmitError) {
        let expected = self.engine.ended().is_some()
            && matches!(error, SubmitError::Closed | SubmitError::HandleUnknown);
        assert!(expected, "refused with {error:?} while the session lives");
        self.end_job(index, Err(OpError::Closed));
    }
}
