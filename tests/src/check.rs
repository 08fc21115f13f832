//! Invariants that hold after each step, and at the end.
//!
//! Aim: catch a wrong state when it comes into being, not when bytes go wrong a thousand steps later.
//! Method: the engine's books are held against those of the tap, the sinks and the server's record,
//! which count for themselves. Each message names the rule.

use std::collections::HashMap;

use longhaul_core::engine::{Engine, OpId};
use longhaul_core::window::WindowConfig;

use crate::model::Record;
use crate::reference::Sink;
use crate::tap::Tap;

/// Steps between two looks at what takes long to look at, when much is outstanding.
const RARELY: u64 = 64;

/// What is remembered of one operation.
#[derive(Clone, Copy, Debug, Default)]
struct OpBook {
    contiguous: u64,
    unconsumed: u64,
    is_finished: bool,
    is_taken: bool,
}

/// What the invariants remember from step to step.
#[derive(Clone, Debug)]
pub struct Checker {
    window_bytes_max: u64,
    is_hostile: bool,
    ops: HashMap<OpId, OpBook>,
    unconsumed: u64,
    /// The most bytes that were in flight or unconsumed.
    pub used_max: u64,
    /// The most bytes that had arrived and were not consumed.
    pub unconsumed_max: u64,
}

impl Checker {
    /// Starts to check. A hostile server's replies are not held against the client's books.
    #[must_use]
    pub fn new(config: &WindowConfig, is_hostile: bool) -> Self {
        Self {
            window_bytes_max: config.window_bytes_max,
            is_hostile,
            ops: HashMap::new(),
            unconsumed: 0,
            used_max: 0,
            unconsumed_max: 0,
        }
    }

    /// Returns the bytes that count against the window.
    pub(crate) fn used<const O: usize, const R: usize, const H: usize>(
        engine: &Engine<O, R, H>,
    ) -> u64 {
        engine.window().in_flight() + engine.window().unconsumed()
    }

    /// Says whether the server breaks the protocol.
    pub(crate) const fn is_hostile(&self) -> bool {
        self.is_hostile
    }

    fn book(&mut self, op: OpId) -> &mut OpBook {
        self.ops.entry(op).or_default()
    }

    /// A download begins at `start`.
    pub(crate) fn began(&mut self, op: OpId, start: u64) {
        let book = self.book(op);
        assert!(!book.is_finished, "an id never comes twice: {op:?}");
        book.contiguous = start;
    }

    /// Bytes were handed on.
    pub(crate) fn data(&mut self, op: OpId, len: usize) {
        assert!(len > 0, "data is never empty");
        let book = self.book(op);
        assert!(!book.is_finished, "nothing comes after the end: {op:?}");
        book.unconsumed += len as u64;
        self.unconsumed += len as u64;
        self.unconsumed_max = self.unconsumed_max.max(self.unconsumed);
    }

    /// The application consumed bytes.
    pub(crate) fn consumed(&mut self, op: OpId, bytes: u64) {
        let book = self.book(op);
        let bytes = bytes.min(book.unconsumed);
        book.unconsumed -= bytes;
        self.unconsumed -= bytes;
    }

    /// An operation has finished.
    pub(crate) fn finished(&mut self, op: OpId) {
        let book = self.book(op);
        assert!(!book.is_finished, "each operation finishes once: {op:?}");
        assert!(!book.is_taken, "and not after it was taken: {op:?}");
        book.is_finished = true;
    }

    /// The outcome was taken: what was not consumed counts no longer.
    pub(crate) fn taken(&mut self, op: OpId) {
        let book = self.book(op);
        assert!(book.is_finished, "taken before it finished: {op:?}");
        book.is_taken = true;
        let rest = core::mem::take(&mut book.unconsumed);
        self.unconsumed -= rest;
    }

    /// An operation was cancelled and taken before it was told of.
    pub(crate) fn dropped(&mut self, op: OpId) {
        let book = self.book(op);
        book.is_finished = true;
        book.is_taken = true;
    }

    /// Requests have left, with `in_flight` and `used` bytes in the window before.
    ///
    /// One READ may exceed a window in which nothing is in flight: the first of all, or one that fills a gap.
    pub(crate) fn sent<const O: usize, const R: usize, const H: usize>(
        &mut self,
        engine: &Engine<O, R, H>,
        (in_flight, used): (u64, u64),
    ) {
        let after = Self::used(engine);
        self.used_max = self.used_max.max(after);
        let allowed = engine.window().bytes();
        let one_read = u64::from(longhaul_core::sftp::READ_LEN_MAX);
        let is_alone = in_flight == 0 && after - used <= one_read;
        assert!(
            after == used || after <= allowed || is_alone,
            "READs leave only while the window has room: {used} and then {after} of {allowed}"
        );
    }

    /// Looks at everything that can be looked at in passing.
    pub(crate) fn after_step<'a, const O: usize, const R: usize, const H: usize>(
        &mut self,
        engine: &Engine<O, R, H>,
        tap: &Tap,
        steps: u64,
        jobs: impl Iterator<Item = (OpId, &'a Sink)>,
    ) {
        let window = engine.window();
        assert_eq!(
            window.unconsumed(),
            self.unconsumed,
            "unconsumed is what was handed on and not consumed"
        );
        assert!(
            window.bytes() <= self.window_bytes_max,
            "the window stays below its maximum"
        );
        assert!(
            engine.outstanding() <= R && engine.handles_open() <= H,
            "tables stay within their bounds"
        );
        if !self.is_hostile {
            self.against_tap(engine, tap);
        }
        if tap.requests() > 128 && !steps.is_multiple_of(RARELY) {
            return;
        }
        for (op, sink) in jobs {
            let Some(progress) = engine.progress(op) else {
                panic!("a download that goes on has progress: {op:?}");
            };
            let book = self.ops.entry(op).or_default();
            assert!(
                progress.contiguous >= book.contiguous,
                "the contiguous mark never falls: {} to {}",
                book.contiguous,
                progress.contiguous
            );
            book.contiguous = progress.contiguous;
            assert!(
                progress.contiguous <= sink.contiguous(),
                "every byte below the contiguous mark has come: {} of {}",
                progress.contiguous,
                sink.contiguous()
            );
            assert_eq!(
                progress.arrived,
                sink.len(),
                "arrived counts each byte once"
            );
        }
    }

    /// A client's books against what stands on the wire.
    fn against_tap<const O: usize, const R: usize, const H: usize>(
        &self,
        engine: &Engine<O, R, H>,
        tap: &Tap,
    ) {
        assert_eq!(tap.violations, Vec::<String>::new(), "rules of the wire");
        assert_eq!(tap.strays, 0, "the server answers what was asked");
        if engine.ended().is_some() {
            return;
        }
        let (known, on_wire) = (engine.outstanding(), tap.requests());
        assert!(
            on_wire <= known && known <= on_wire + O,
            "the engine knows what is outstanding: {known}, on the wire {on_wire}"
        );
        assert!(
            engine.window().in_flight() <= tap.bytes(),
            "bytes in flight are asked for: {} of {}",
            engine.window().in_flight(),
            tap.bytes()
        );
    }

    /// The engine is drained.
    pub(crate) fn at_end<const O: usize, const R: usize, const H: usize>(
        &self,
        engine: &Engine<O, R, H>,
        tap: &Tap,
    ) {
        assert_eq!(engine.handles_open(), 0, "every handle is closed");
        assert_eq!(engine.poll_timeout(), None, "nothing is due after the end");
        if !self.is_hostile && engine.ended().is_none() {
            assert_eq!(tap.requests(), 0, "drained: nothing is owed");
            assert_eq!(engine.window().in_flight(), 0, "drained: nothing in flight");
        }
    }

    /// The server has seen the end, by the client's will unless the session `was_cut`.
    pub(crate) fn at_end_of_server(&self, record: &Record, was_cut: bool) {
        // A client believes the handle that a broken reply gave it.
        let believed = |text: &&String| !(self.is_hostile && text.ends_with("isn't open"));
        let violation = record.violations.iter().find(believed);
        assert_eq!(violation, None, "the server's view");
        if !was_cut {
            assert_eq!(record.handles_leaked(), 0, "handles opened = closed");
        }
    }
}
