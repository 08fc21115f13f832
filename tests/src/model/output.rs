//! How replies leave the model: VERSION, STATUS, and the knobs that lose, double or break a reply.

use super::wire::{Reply, kind, status};
use super::{Malform, ModelServer, StatusForm};
use crate::link::{Piece, flatten, pieces_len};

/// A length that no packet holds.
const LYING_LEN: u32 = 0x7fff_ffff;

impl ModelServer {
    /// Puts the banner and VERSION out.
    pub(super) fn put_version(&mut self) {
        if self.quirks.close_after == Some(0) {
            return self.handle_eof();
        }
        if !self.quirks.banner.is_empty() {
            self.put(vec![self.quirks.banner.clone().into()]);
        }
        let mut reply = Reply::new(kind::VERSION, self.quirks.version);
        for (name, data) in &self.quirks.extensions {
            reply = reply.string(name).string(data);
        }
        self.put(reply.into_pieces());
    }

    /// Makes a STATUS reply.
    pub(super) fn status(&self, id: u32, code: u32) -> Reply {
        let message = message(code).as_bytes();
        let reply = Reply::new(kind::STATUS, id).u32(code);
        match self.quirks.status_form {
            StatusForm::Full => reply.string(message).string(b"en"),
            StatusForm::LyingLanguage => reply.string(message).u32(LYING_LEN),
            StatusForm::LyingMessage => reply.u32(LYING_LEN),
            StatusForm::NoLanguage => reply.string(message),
            StatusForm::NoMessage => reply,
        }
    }

    /// Puts a reply out, unless a knob loses, doubles or breaks it.
    pub(super) fn put_reply(&mut self, id: u32, reply: Reply) {
        self.record.replies += 1;
        let nth = self.record.replies;
        let is_handle = reply.kind == kind::HANDLE;
        if self.quirks.swallow == Some(nth) {
            self.record.handle_lost |= is_handle;
            return;
        }
        let packet = reply.into_pieces();
        if let Some((_, how)) = self.quirks.malform.filter(|(at, _)| *at == nth) {
            self.record.handle_lost |= is_handle;
            return self.put_malformed(&packet, how);
        }
        self.record.answered(id);
        if self.quirks.duplicate == Some(nth) {
            self.put(packet.clone());
        }
        self.put(packet);
        if self.quirks.unasked == Some(nth) {
            let reply = self.status(self.record.free_id(), status::OK);
            self.put(reply.into_pieces());
        }
        if self.quirks.close_after == Some(nth) {
            self.handle_eof();
        }
    }

    fn put_malformed(&mut self, packet: &[Piece], how: Malform) {
        let mut bytes = flatten(packet);
        let body_at = if bytes[4] == kind::STATUS { 13 } else { 9 };
        match how {
            Malform::BodyLengthHuge => overwrite(&mut bytes, body_at, |_| u32::MAX),
            Malform::BodyLengthLong => overwrite(&mut bytes, body_at, |len| len.wrapping_add(1)),
            Malform::BodyLengthShort => overwrite(&mut bytes, body_at, |len| len.wrapping_sub(1)),
            Malform::Garbage => self.rng.fill(&mut bytes),
            Malform::IdUnknown => {
                let id = self.record.free_id();
                overwrite(&mut bytes, 5, |_| id);
            }
            Malform::PacketLengthHuge => overwrite(&mut bytes, 0, |_| u32::MAX),
            Malform::PacketLengthLong => overwrite(&mut bytes, 0, |len| len.wrapping_add(7)),
            Malform::PacketLengthShort => overwrite(&mut bytes, 0, |_| 3),
            Malform::PacketLengthZero => overwrite(&mut bytes, 0, |_| 0),
            Malform::RandomBit => {
                let was = bytes[4];
                let places: Vec<usize> = (0..5).chain(body_at..body_at + 4).collect();
                let at = (*self.rng.pick(&places)).min(bytes.len() - 1);
                bytes[at] ^= 1 << self.rng.index(8);
                if was == kind::STATUS && bytes[4] == kind::DATA {
                    bytes[4] = 250;
                }
            }
            Malform::Truncated => bytes.truncate(bytes.len() / 2),
            Malform::TypeUnknown => bytes[4] = 250,
            Malform::TypeWrong if matches!(bytes[4], kind::DATA | kind::STATUS) => {
                bytes[4] = kind::HANDLE;
            }
            Malform::TypeWrong => bytes[4] = kind::DATA,
        }
        self.put(vec![bytes.into()]);
        if how == Malform::Truncated {
            self.handle_eof();
        }
    }

    fn put(&mut self, packet: Vec<Piece>) {
        self.record.bytes_sent += pieces_len(&packet) as u64;
        self.out.push_back(packet);
    }
}

/// Changes the number at `at`, if the packet reaches that far.
fn overwrite(bytes: &mut [u8], at: usize, change: impl FnOnce(u32) -> u32) {
    if let Some(field) = bytes.get_mut(at..at + 4) {
        let old = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
        field.copy_from_slice(&change(old).to_be_bytes());
    }
}

/// OpenSSH's words for a code.
const fn message(code: u32) -> &'static str {
    match code {
        status::OK => "Success",
        status::EOF => "End of file",
        status::NO_SUCH_FILE => "No such file",
        status::PERMISSION_DENIED => "Permission denied",
        status::FAILURE => "Failure",
        status::BAD_MESSAGE => "Bad message",
        status::OP_UNSUPPORTED => "Operation unsupported",
        _ => "Unknown error",
    }
}

/// Returns `count` extensions that nobody knows, of about `len` bytes each.
#[must_use]
pub fn giant_extensions(count: usize, len: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let name = |index: usize| format!("extension-{index}@example.com").into_bytes();
    (0..count)
        .map(|index| (name(index), vec![b'x'; len]))
        .collect()
}
