//! What the model server has seen and done, for the invariants to judge.

use alloc::collections::BTreeMap;

use super::wire::kind;

/// One request as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The moment of its arrival.
    pub at: u64,
    /// Its type.
    pub kind: u8,
    /// Its id.
    pub id: u32,
    /// The number of the handle it names, from 1; 0 for none or an unknown one.
    pub handle: u32,
    /// Of a READ, bytes from the start of the file.
    pub offset: u64,
    /// Of a READ, bytes asked for.
    pub len: u32,
}

/// The log of one connection.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Every request, INIT included, in order of arrival.
    pub seen: Vec<Seen>,
    /// What the client did that no client may do, in words.
    pub violations: Vec<String>,
    /// Handles handed out.
    pub handles_opened: u64,
    /// Handles closed by the client.
    pub handles_closed: u64,
    /// A HANDLE reply was swallowed or broken: the client cannot close what it never got.
    pub handle_lost: bool,
    /// Replies sent, VERSION not counted.
    pub replies: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Payload bytes sent in DATA.
    pub payload_sent: u64,
    /// READs that arrived, replied or not.
    pub reads: u64,
    /// The most bytes asked for by READs that had no reply yet.
    pub outstanding_bytes_max: u64,
    /// The most READs that had no reply yet.
    pub outstanding_reads_max: usize,
    /// Closes that came while READs on the same handle had no reply.
    pub closes_before_reads_done: u64,
    /// Requests without a reply: id to (type, bytes asked for).
    owed: BTreeMap<u32, (u8, u32)>,
    outstanding_bytes: u64,
    outstanding_reads: usize,
}

impl Record {
    /// Notes a request.
    pub(super) fn arrived(&mut self, seen: Seen) {
        if seen.kind != kind::INIT && self.owed.insert(seen.id, (seen.kind, seen.len)).is_some() {
            self.violations
                .push(format!("id {} reused while its reply is owed", seen.id));
        }
        if seen.kind == kind::READ {
            self.reads += 1;
            self.outstanding_reads += 1;
            self.outstanding_bytes += u64::from(seen.len);
            self.outstanding_reads_max = self.outstanding_reads_max.max(self.outstanding_reads);
            self.outstanding_bytes_max = self.outstanding_bytes_max.max(self.outstanding_bytes);
        }
        self.seen.push(seen);
    }

    /// Notes the reply to `id`.
    pub(super) fn answered(&mut self, id: u32) {
        if let Some((kind::READ, len)) = self.owed.remove(&id) {
            self.outstanding_reads -= 1;
            self.outstanding_bytes -= u64::from(len);
        }
    }

    /// Returns how many READs have no reply.
    #[must_use]
    pub const fn outstanding_reads(&self) -> usize {
        self.outstanding_reads
    }

    /// Returns how many requests have no reply.
    #[must_use]
    pub fn owed(&self) -> usize {
        self.owed.len()
    }

    /// Returns an id that isn't owed.
    #[must_use]
    pub(super) fn free_id(&self) -> u32 {
        (0..=u32::MAX)
            .rev()
            .find(|id| !self.owed.contains_key(id))
            .unwrap_or_default()
    }

    /// Returns the requests of one type.
    pub fn of(&self, kind: u8) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(move |seen| seen.kind == kind)
    }

    /// Returns the count of requests of one type.
    #[must_use]
    pub fn count(&self, kind: u8) -> usize {
        self.of(kind).count()
    }

    /// Returns the bytes that READs asked for more than once below `end`.
    #[must_use]
    pub fn asked_twice(&self, end: u64) -> u64 {
        let mut spans: Vec<(u64, u64)> = self
            .of(kind::READ)
            .map(|seen| {
                (
                    seen.offset,
                    seen.offset.saturating_add(u64::from(seen.len)).min(end),
                )
            })
            .filter(|(from, to)| from < to)
            .collect();
        spans.sort_unstable();
        let (mut reached, mut twice) = (0, 0);
        for (from, to) in spans {
            twice += to.min(reached).saturating_sub(from);
            reached = reached.max(to);
        }
        twice
    }

    /// Returns the handles that the client should have closed and hasn't.
    #[must_use]
    pub const fn handles_leaked(&self) -> u64 {
        if self.handle_lost {
            0
        } else {
            self.handles_opened - self.handles_closed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(id: u32, offset: u64, len: u32) -> Seen {
        Seen {
            at: 0,
            kind: kind::READ,
            id,
            handle: 1,
            offset,
            len,
        }
    }

    #[test]
    fn outstanding_reads_and_bytes_are_counted() {
        let mut record = Record::default();
        record.arrived(read(1, 0, 100));
        record.arrived(read(2, 100, 100));
        record.answered(1);
        record.arrived(read(3, 200, 50));
        assert_eq!(
            (record.outstanding_bytes_max, record.outstanding_reads_max),
            (200, 2)
        );
        assert_eq!((record.outstanding_reads(), record.owed()), (2, 2));
        assert_eq!(record.violations, Vec::<String>::new());
    }

    #[test]
    fn an_id_reused_while_owed_is_a_violation() {
        let mut record = Record::default();
        record.arrived(read(1, 0, 100));
        record.arrived(read(1, 100, 100));
        assert_eq!(record.violations.len(), 1);
    }

    #[test]
    fn bytes_asked_twice_are_summed() {
        let mut record = Record::default();
        for (id, offset, len) in [
            (1, 0, 100),
            (2, 50, 100),
            (3, 150, 10),
            (4, 0, 10),
            (5, 900, 9),
        ] {
            record.arrived(read(id, offset, len));
        }
        record.arrived(read(6, 900, 9));
        assert_eq!(record.asked_twice(500), 60, "past the end doesn't count");
        assert_eq!(record.asked_twice(u64::MAX), 69);
    }
}
