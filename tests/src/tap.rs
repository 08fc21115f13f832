//! What stands on the wire, as the client's end sees it.
//!
//! Aim: know the client's outstanding ids and bytes without asking the client. Method: count
//! frames where the client sends and receives, with code of its own; payload is skipped.

use alloc::collections::BTreeMap;

use crate::model::wire::kind;

/// One direction of the tap.
#[derive(Clone, Debug, Default)]
struct Scanner {
    head: Vec<u8>,
    /// Bytes of the present frame that are still to come, once its length is known.
    left: usize,
}

/// The first bytes of a frame: enough for length, type and id.
const HEAD_LEN: usize = 9;

impl Scanner {
    /// Passes `keep` bytes at most of each frame to `each` once the frame is complete.
    fn push(&mut self, mut bytes: &[u8], keep: usize, mut each: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            if self.head.len() < 4 {
                let len = bytes.len().min(4 - self.head.len());
                self.head.extend(&bytes[..len]);
                bytes = &bytes[len..];
                if self.head.len() < 4 {
                    return;
                }
                self.left = number(&self.head) as usize;
            } else {
                let len = bytes.len().min(self.left);
                let room = keep.saturating_sub(self.head.len());
                self.head.extend(&bytes[..len.min(room)]);
                self.left -= len;
                bytes = &bytes[len..];
            }
            if self.left == 0 {
                each(&self.head);
                self.head.clear();
            }
        }
    }
}

/// Counts what the client has asked and what has been answered.
#[derive(Clone, Debug, Default)]
pub struct Tap {
    up: Scanner,
    down: Scanner,
    greeted: bool,
    /// Request ids without a whole reply: type and bytes asked for.
    outstanding: BTreeMap<u32, (u8, u32)>,
    bytes: u64,
    bytes_max: u64,
    requests_max: usize,
    /// What the client did that no client may do, in words.
    pub violations: Vec<String>,
    /// Replies to nothing that was outstanding: the server's fault.
    pub strays: u64,
}

impl Tap {
    /// Starts to listen.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes bytes that the client sends.
    pub fn sent(&mut self, bytes: &[u8]) {
        let mut frames = Vec::new();
        self.up
            .push(bytes, usize::MAX, |frame| frames.push(frame.to_vec()));
        for frame in frames {
            self.request(&frame);
        }
    }

    fn request(&mut self, frame: &[u8]) {
        if frame.len() < HEAD_LEN || frame[4] == kind::INIT {
            return;
        }
        if !self.greeted {
            self.violations
                .push("request before VERSION has come".into());
        }
        let (kind, id) = (frame[4], number(&frame[5..]));
        // The length of a READ is its last field.
        let len = if kind == kind::READ {
            number(&frame[frame.len() - 4..])
        } else {
            0
        };
        if self.outstanding.insert(id, (kind, len)).is_some() {
            self.violations
                .push(format!("id {id} is outstanding already"));
        }
        self.bytes += u64::from(len);
        self.bytes_max = self.bytes_max.max(self.bytes);
        self.requests_max = self.requests_max.max(self.outstanding.len());
    }

    /// Notes bytes that reach the client.
    pub fn received(&mut self, bytes: &[u8]) {
        let Self {
            down,
            outstanding,
            bytes: total,
            greeted,
            strays,
            ..
        } = self;
        down.push(bytes, HEAD_LEN, |frame| {
            if !*greeted {
                *greeted = true;
            } else if let Some((_, len)) = frame
                .get(5..9)
                .and_then(|id| outstanding.remove(&number(id)))
            {
                *total -= u64::from(len);
            } else {
                *strays += 1;
            }
        });
    }

    /// Returns the bytes that outstanding READs ask for.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the count of outstanding requests.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.outstanding.len()
    }

    /// Returns the most bytes that were outstanding since the last call, and starts anew.
    pub fn take_bytes_max(&mut self) -> u64 {
        core::mem::replace(&mut self.bytes_max, self.bytes)
    }

    /// Returns the most requests that were outstanding.
    #[must_use]
    pub const fn requests_max(&self) -> usize {
        self.requests_max
    }
}

/// Reads the number at the start of `bytes`.
fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(id: u8, len: u8) -> Vec<u8> {
        let body = [
            &[5, 0, 0, 0, id, 0, 0, 0, 1, b'h'],
            [0; 8].as_slice(),
            &[0, 0, 0, len],
        ]
        .concat();
        [&[0, 0, 0, 22], body.as_slice()].concat()
    }

    #[test]
    fn outstanding_bytes_follow_requests_and_replies_at_any_split() {
        let version = [0, 0, 0, 5, 2, 0, 0, 0, 3];
        let data = [0, 0, 0, 12, 103, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3];
        for split in 1..16 {
            let mut tap = Tap::new();
            version.chunks(split).for_each(|part| tap.received(part));
            [read(1, 10), read(2, 20)]
                .concat()
                .chunks(split)
                .for_each(|part| tap.sent(part));
            assert_eq!((tap.bytes(), tap.requests()), (30, 2));
            data.chunks(split).for_each(|part| tap.received(part));
            assert_eq!((tap.bytes(), tap.requests()), (20, 1));
            tap.sent(&read(1, 5));
            assert_eq!((tap.take_bytes_max(), tap.take_bytes_max()), (30, 25));
            assert_eq!((tap.requests_max(), tap.strays), (2, 0));
            assert_eq!(tap.violations, Vec::<String>::new());
        }
    }

    #[test]
    fn early_requests_and_reused_ids_are_violations() {
        let mut tap = Tap::new();
        tap.sent(&read(1, 10));
        tap.sent(&read(1, 10));
        assert_eq!(tap.violations.len(), 3, "{:?}", tap.violations);
    }

    #[test]
    fn replies_to_nothing_are_strays() {
        let mut tap = Tap::new();
        tap.received(&[0, 0, 0, 5, 2, 0, 0, 0, 3]);
        tap.received(&[0, 0, 0, 9, 101, 0, 0, 0, 9, 0, 0, 0, 0]);
        tap.received(&[0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(tap.strays, 3);
    }
}
