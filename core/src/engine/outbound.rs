//! Bytes out, in fair turns, and what passing time does.

use super::{Ended, Engine, Op, Work};
use crate::error::OpError;
use crate::sftp::{HANDLE_LEN_MAX, To};
use crate::time::{Cause, Deadline, Instant};

/// Bytes of the longest READ request: length, type, id, handle, offset, length.
const READ_REQUEST_LEN: usize = 9 + 4 + HANDLE_LEN_MAX + 12;

/// Stalls after which no more is asked anew until something comes.
const STALLS_MAX: u32 = 2;

impl<const OPS: usize, const REQUESTS: usize, const HANDLES: usize> Engine<OPS, REQUESTS, HANDLES> {
    /// Writes as many requests as are due and fit into `out`; returns the bytes written, 0 if none is due.
    ///
    /// Give it 1 KiB or more: a request that does not fit waits.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut [u8]) -> usize {
        self.set_now(now);
        if self.ended.is_some() {
            return 0;
        }
        let is_first = self.started_at.is_none();
        let mut written = self.session.poll_transmit(now, out);
        if is_first && written > 0 {
            self.started_at = Some(now);
        }
        while out.len() - written >= READ_REQUEST_LEN {
            let len = self.transmit_read(now, out.get_mut(written..).unwrap_or_default());
            if len == 0 {
                break;
            }
            written += len;
        }
        written
    }

    /// Writes one READ of the download that has least in flight, and of several such of the one that asked least.
    fn transmit_read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let Some((index, len_max)) = self.next_download() else {
            return 0;
        };
        let is_first = self.session.live() == 0;
        let Some(op) = self.ops.get_mut(usize::from(index)) else {
            return 0;
        };
        let Work::Download { handle, machine } = &mut op.work else {
            return 0;
        };
        let Some(ask) = machine.poll_request(len_max) else {
            return 0;
        };
        if op.in_flight == 0 {
            op.asked_at = now;
            if !op.is_given_up {
                op.progress_at = now;
            }
        }
        if is_first {
            self.input_at = now;
        }
        op.in_flight += u64::from(ask.len);
        op.asked += u64::from(ask.len);
        let to = To {
            op: index,
            tag: ask.offset,
            asked: ask.len,
        };
        let sample = self.window.handle_sent(now, ask.len);
        let written = self.session.transmit_read(out, *handle, to, sample);
        debug_assert!(
            written.is_some(),
            "room, slot and handle were checked before asking"
        );
        written.unwrap_or_default()
    }

    /// The download whose READ is due next and how long that may be, if the window, the table and the requests'
    /// bound have room for one.
    fn next_download(&self) -> Option<(u16, u32)> {
        // An eighth of the table is for asking anew: a server that drops requests never frees their slots.
        let reserve = if self.window.has_stalled() {
            0
        } else {
            REQUESTS / 4
        };
        if !self.session.is_ready()
            || self.session.outstanding() + reserve >= REQUESTS
            || self.session.live() >= self.window.requests_max()
        {
            return None;
        }
        let mut least: Option<((u64, u64), usize, u32)> = None;
        for (index, op) in self.ops.iter().enumerate() {
            if let Work::Download { machine, .. } = &op.work
                && least.is_none_or(|(least, ..)| (op.in_flight, op.asked) < least)
            {
                let held = op.in_flight + op.unconsumed;
                let len = match self.window.read_len(held, machine.is_serial()) {
                    0 if op.in_flight == 0 && machine.has_gap() => self.window.gap_len(),
                    len => len,
                };
                if machine.has_request(len) {
                    least = Some(((op.in_flight, op.asked), index, len));
                }
            }
        }
        least.and_then(|(_, index, len)| Some((u16::try_from(index).ok()?, len)))
    }

    /// When the driver must call again at the latest: output that waits is due now, and then [`Self::deadline`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        if self.ended.is_none() && (self.session.has_output() || self.next_download().is_some()) {
            return Some(Deadline {
                at: self.now,
                cause: Cause::Transmit,
            });
        }
        self.deadline()
    }

    /// When `handle_timeout` is due, for a driver that cannot transmit now.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        if self.ended.is_some() {
            return None;
        }
        let mut earliest = None;
        if self.is_closing && self.session.outstanding() > 0 {
            let at = self.input_at + self.config.no_progress_max;
            earliest = Some(Deadline {
                at,
                cause: Cause::NoProgress,
            });
        }
        if let Some(started_at) = self.started_at
            && !self.session.is_ready()
            && !self.is_closing
        {
            let at = started_at + self.config.handshake_max;
            earliest = Some(Deadline {
                at,
                cause: Cause::Handshake,
            });
        }
        for op in self.ops.iter().filter(|op| self.is_waiting(op)) {
            let at = op.progress_at + self.config.no_progress_max;
            let no_progress = Deadline {
                at,
                cause: Cause::NoProgress,
            };
            earliest = Deadline::earliest(earliest, Some(no_progress));
        }
        Deadline::earliest(earliest, self.stall_deadline())
    }

    /// Time has passed: what is overdue fails, or is asked anew.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.set_now(now);
        if self.ended.is_some() {
            return;
        }
        if let Some(started_at) = self.started_at
            && !self.session.is_ready()
            && now >= started_at + self.config.handshake_max
        {
            self.end(Ended::HandshakeTimeout);
            return;
        }
        if self.is_closing && now >= self.input_at + self.config.no_progress_max {
            // Replies to what nobody waits for, and to CLOSE, are not worth more.
            self.end(Ended::Eof);
            return;
        }
        if self
            .stall_deadline()
            .is_some_and(|deadline| now >= deadline.at)
        {
            let is_silent = now >= self.input_at + self.config.stall_after;
            if is_silent {
                self.stalls += 1;
                self.input_at = now;
            }
            self.window.handle_stall();
            self.window
                .handle_discarded(self.session.give_up_cancelled());
            for index in 0..OPS {
                if is_silent || self.silent_at(index).is_some_and(|at| now >= at) {
                    self.give_up(index);
                }
            }
        }
        for index in 0..OPS {
            let Some(op) = self.ops.get(index) else {
                continue;
            };
            if self.is_waiting(op) && now >= op.progress_at + self.config.no_progress_max {
                let Ok(index) = u16::try_from(index) else {
                    continue;
                };
                self.finish(index, Err(OpError::NoProgress));
            }
        }
    }

    /// True if the server owes the operation something. A download whose bytes are not consumed waits for
    /// its own side.
    fn is_waiting(&self, op: &Op<REQUESTS>) -> bool {
        match &op.work {
            Work::Request => self.session.is_ready(),
            // With nothing but tombstones in a full table, it cannot even ask.
            Work::Download { machine, .. } => {
                machine.outstanding() > 0
                    || (machine.has_request(u32::MAX)
                        && self.session.is_full()
                        && self.session.live() == 0)
            }
            Work::Free | Work::Done { .. } => false,
        }
    }

    fn stall_deadline(&self) -> Option<Deadline> {
        // What was cancelled and never answered can fill the window, too.
        let is_full = self.window.in_flight() > 0;
        let downloads = self.ops.iter().any(|op| {
            matches!(&op.work, Work::Download { machine, .. }
                if machine.outstanding() > 0 || (is_full && machine.has_request(u32::MAX)))
        });
        let due = downloads && self.stalls < STALLS_MAX;
        let all = due.then(|| self.input_at + self.config.stall_after);
        let of_ops = (0..OPS).filter_map(|index| self.silent_at(index)).min();
        let at = all.into_iter().chain(of_ops).min()?;
        Some(Deadline {
            at,
            cause: Cause::Stall,
        })
    }

    /// When a download has waited so long that its requests must be lost, though others get answers. Twice the time: it
    /// may have to wait for those.
    fn silent_at(&self, index: usize) -> Option<Instant> {
        let op = self.ops.get(index)?;
        let is_asking =
            matches!(&op.work, Work::Download { machine, .. } if machine.outstanding() > 0);
        is_asking.then(|| op.asked_at + self.config.stall_after * 2)
    }

    /// Gives up what a download has outstanding, so that it is asked anew under new ids.
    fn give_up(&mut self, index: usize) {
        let Some(op) = self.ops.get_mut(index) else {
            return;
        };
        let (Work::Download { machine, .. }, Ok(index)) = (&mut op.work, u16::try_from(index))
        else {
            return;
        };
        let lost = |offset, len| machine.handle_lost(offset, len);
        self.window
            .handle_discarded(self.session.give_up(index, lost));
        op.in_flight = 0;
        op.asked_at = self.now;
        op.is_given_up = true;
        // What was outstanding may all lie behind an end or an error: then nothing more is asked.
        self.settle(index);
    }
}
