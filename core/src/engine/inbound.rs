//! Bytes in: replies go to their operations, and to the window.

use super::{Ended, Engine, Event, Op, OpId, Outcome, Work};
use crate::download::Ask;
use crate::error::{OpError, ProtocolError, StatusError};
use crate::sftp::{Reply, RequestKind, To};
use crate::time::Instant;
use crate::window::Window;

impl<const OPS: usize, const REQUESTS: usize, const HANDLES: usize> Engine<OPS, REQUESTS, HANDLES> {
    /// Takes a prefix of `input` and returns what it brought; `None` once all of it is taken.
    ///
    /// `input` may split replies anywhere. [`Event::Data`] holds a slice of it: nothing is copied.
    ///
    /// # Errors
    /// The rule that the server broke: the session has ended, and every operation with it.
    pub fn handle_input<'i>(
        &mut self,
        now: Instant,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'i>>, ProtocolError> {
        self.set_now(now);
        if let Some(ended) = self.ended {
            *input = &[];
            return match ended {
                Ended::Protocol(error) => Err(error),
                Ended::Eof | Ended::HandshakeTimeout => Ok(None),
            };
        }
        if !input.is_empty() {
            self.input_at = now;
        }
        let whole = *input;
        let reply = match self.session.handle_input(input) {
            Ok(None) => return Ok(None),
            Ok(Some(reply)) => reply,
            Err(error) => {
                self.end(Ended::Protocol(error));
                return Err(error);
            }
        };
        let taken = apply(now, &mut self.window, &mut self.ops, reply);
        match taken {
            Taken::Nothing => {}
            Taken::Ready => {
                // Announced by OpenSSH's server and those made after it, which serve the channel and the requests
                // apart from each other.
                if self.session.extensions().limits {
                    self.window.lift_channel();
                }
            }
            Taken::Limits => self.window.handle_limit(self.session.limits().read_len_max),
            Taken::Live => self.stalls = 0,
            Taken::Settle(index) => {
                self.stalls = 0;
                self.settle(index);
            }
            Taken::Finish(index, outcome) => self.finish(index, outcome),
            Taken::Data { op, offset, len } => {
                self.stalls = 0;
                // The session took the bytes last, so they end where `input` begins.
                let end = whole.len() - input.len();
                let bytes = whole.get(end - len..end).unwrap_or_default();
                return Ok(Some(Event::Data { op, offset, bytes }));
            }
        }
        Ok(Some(Event::Internal))
    }

    /// The stream has ended: every operation that goes on fails.
    ///
    /// # Errors
    /// The rule that the server broke by ending it there.
    pub fn handle_eof(&mut self, now: Instant) -> Result<(), ProtocolError> {
        self.set_now(now);
        let result = self.session.handle_eof();
        self.end(result.err().map_or(Ended::Eof, Ended::Protocol));
        result
    }
}

/// What a reply asks of the engine, the session's borrow being over.
enum Taken {
    Nothing,
    /// VERSION has told what the server is.
    Ready,
    /// A reply came that somebody waited for.
    Live,
    /// The session may have learned the server's limits.
    Limits,
    /// A download may have come to its end.
    Settle(u16),
    /// A request was answered.
    Finish(u16, Result<Outcome, OpError>),
    Data {
        op: OpId,
        offset: u64,
        len: usize,
    },
}

fn apply<const REQUESTS: usize>(
    now: Instant,
    window: &mut Window,
    ops: &mut [Op<REQUESTS>],
    reply: Reply<'_>,
) -> Taken {
    let op_of = |ops: &mut [Op<REQUESTS>], to: To| -> Option<OpId> {
        let op = ops.get_mut(usize::from(to.op))?;
        op.progress_at = now;
        op.asked_at = now;
        op.is_given_up = false;
        Some(OpId {
            index: to.op,
            generation: op.generation,
        })
    };
    match reply {
        Reply::Ready => {
            // What was submitted before leaves only now.
            for op in ops {
                op.progress_at = now;
                op.asked_at = now;
            }
            Taken::Ready
        }
        // Only the limits change the session by themselves.
        Reply::Internal => Taken::Limits,
        Reply::Status {
            to,
            kind: RequestKind::Read,
            code,
            message,
        } => {
            op_of(ops, to);
            window.handle_discarded(u64::from(to.asked));
            ended_read(ops, to, to.asked, |machine, ask| {
                machine.handle_status(ask, code, message);
            })
        }
        Reply::Status {
            to, code, message, ..
        } => Taken::Finish(to.op, Err(OpError::Status(StatusError::new(code, message)))),
        Reply::Opened { to, handle } => Taken::Finish(to.op, Ok(Outcome::Handle(handle))),
        Reply::Attrs { to, attrs } => Taken::Finish(to.op, Ok(Outcome::Attrs(attrs))),
        Reply::DataStart { to, sample } => {
            op_of(ops, to);
            window.handle_first_byte(now, &sample);
            Taken::Live
        }
        Reply::Data { to, offset, bytes } => {
            let Some(id) = op_of(ops, to) else {
                return Taken::Nothing;
            };
            let len = bytes.len();
            window.handle_data(now, len);
            if let Some(op) = ops.get_mut(usize::from(to.op)) {
                let bytes = u64::try_from(len).unwrap_or(u64::MAX);
                op.arrived += bytes;
                op.unconsumed += bytes;
                op.in_flight = op.in_flight.saturating_sub(bytes);
            }
            Taken::Data {
                op: id,
                offset,
                len,
            }
        }
        Reply::DataEnd {
            to,
            got,
            missing,
            sample,
        } => {
            op_of(ops, to);
            // Short at the end of the file is no evidence of a cap on the server's side.
            let size = match ops.get(usize::from(to.op)).map(|op| &op.work) {
                Some(Work::Download { machine, .. }) => machine.size(),
                _ => None,
            };
            let is_within = size.is_some_and(|size| to.tag + u64::from(to.asked) <= size);
            window.handle_reply(now, &sample, to.asked, got, is_within);
            ended_read(ops, to, missing, |machine, ask| {
                machine.handle_data(ask, got)
            })
        }
        Reply::Discarded { bytes, late } => {
            window.handle_discarded(u64::from(bytes));
            if late {
                window.handle_late_reply();
            }
            Taken::Nothing
        }
    }
}

/// A READ is answered: `missing` of its bytes are in flight no longer.
fn ended_read<const REQUESTS: usize>(
    ops: &mut [Op<REQUESTS>],
    to: To,
    missing: u32,
    tell: impl FnOnce(&mut crate::download::Download<REQUESTS>, Ask),
) -> Taken {
    let Some(op) = ops.get_mut(usize::from(to.op)) else {
        return Taken::Nothing;
    };
    op.in_flight = op.in_flight.saturating_sub(u64::from(missing));
    let Work::Download { machine, .. } = &mut op.work else {
        return Taken::Nothing;
    };
    tell(
        machine,
        Ask {
            offset: to.tag,
            len: to.asked,
        },
    );
    Taken::Settle(to.op)
}
