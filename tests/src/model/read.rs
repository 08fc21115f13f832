//! OPEN, CLOSE, READ and the attributes: where most quirks live.

use super::wire::{Reply, Request, kind, status, wire_len};
use super::{DeleteOn, HandleForm, Job, ModelServer, Node, Open, ReadCap, SizeAttr};
use crate::content::{Content, SLICE_LEN_MAX};
use crate::file::FileHistory;

/// The only flag that the model's OPEN accepts.
const PFLAGS_READ: u32 = 1;

impl ModelServer {
    pub(super) fn open(&mut self, id: u32, path: &[u8], flags: u32) -> Reply {
        let file = match self.nodes.get(path) {
            None => return self.status(id, status::NO_SUCH_FILE),
            Some(Node::Directory) => return self.status(id, status::FAILURE),
            Some(Node::Denied(_)) => return self.status(id, status::PERMISSION_DENIED),
            Some(Node::File(_)) if flags != PFLAGS_READ => {
                return self.status(id, status::PERMISSION_DENIED);
            }
            Some(Node::File(file)) => file.clone(),
        };
        if self
            .quirks
            .handles_max
            .is_some_and(|max| self.handles.len() >= max)
        {
            return self.status(id, status::FAILURE);
        }
        self.record.handles_opened += 1;
        let number = u32::try_from(self.record.handles_opened).expect("few handles");
        let mut handle = number.to_be_bytes().to_vec();
        match self.quirks.handle_form {
            HandleForm::Empty => handle.clear(),
            HandleForm::Len(len) => handle.resize(len.max(4), b'h'),
        }
        self.handles.insert(
            handle.clone(),
            Open {
                number,
                path: path.into(),
                file,
            },
        );
        Reply::new(kind::HANDLE, id).string(&handle)
    }

    pub(super) fn close(&mut self, id: u32, handle: &[u8]) -> Reply {
        let Some(open) = self.handles.remove(handle) else {
            self.record
                .violations
                .push("CLOSE of a handle that isn't open".into());
            return self.status(id, status::FAILURE);
        };
        self.record.handles_closed += 1;
        if self.quirks.delete_on == DeleteOn::Close {
            self.nodes.remove(&open.path);
        }
        self.status(id, status::OK)
    }

    /// Answers a READ. The knobs come in the order in which a server would meet them.
    pub(super) fn read(
        &mut self,
        now: u64,
        job: &Job,
        handle: &[u8],
        (offset, len): (u64, u32),
        cap: Option<u32>,
    ) -> Reply {
        let (id, nth) = (job.id, job.nth_read);
        let Some(open) = self.handles.get(handle) else {
            self.record
                .violations
                .push("READ from a handle that isn't open".into());
            return self.status(id, status::FAILURE);
        };
        let version = *open.file.at(now);
        if let Some((_, code)) = self.quirks.read_error.filter(|(at, _)| *at == nth) {
            return self.status(id, code);
        }
        if offset >= version.size {
            if self.quirks.delete_on == DeleteOn::Eof {
                let path = open.path.clone();
                self.nodes.remove(&path);
            }
            return self.status(id, status::EOF);
        }
        if self.quirks.early_eof == Some(nth) {
            return self.status(id, status::EOF);
        }
        let served = match self.quirks.read_cap {
            ReadCap::Fixed(cap) => len.min(cap),
            ReadCap::Random(low, high) => {
                let drawn = self.rng.between(low.into(), high.into());
                len.min(u32::try_from(drawn).expect("between two u32"))
            }
        };
        let served = served.min(cap.unwrap_or(u32::MAX));
        let mut served = u64::from(served).min(version.size - offset);
        if let Some((_, tiny)) = self.quirks.tiny_read.filter(|(at, _)| *at == nth) {
            served = served.min(tiny.into());
        }
        if self
            .quirks
            .empty_reads
            .is_some_and(|(at, count)| nth >= at && nth - at < count)
        {
            served = 0;
        }
        if let Some((_, long)) = self
            .quirks
            .long_read
            .filter(|(every, long)| nth.is_multiple_of(*every) && *long > len)
        {
            served = long.into();
        }
        self.data(id, version.content, offset, served)
    }

    fn data(&mut self, id: u32, content: Content, offset: u64, len: u64) -> Reply {
        let len = usize::try_from(len).expect("a length for the wire");
        let mut reply = Reply::new(kind::DATA, id).u32(wire_len(len));
        let mut at = 0;
        while at < len {
            let part = (len - at).min(SLICE_LEN_MAX);
            reply
                .payload
                .push(content.slice(offset.wrapping_add(at as u64), part));
            at += part;
        }
        if self.quirks.data_ends_with_bool {
            reply.tail.push(0);
        }
        self.record.payload_sent += len as u64;
        reply
    }

    pub(super) fn stat(&mut self, now: u64, id: u32, path: &[u8], refused: Option<u32>) -> Reply {
        if let Some(code) = self.refuses_attrs(refused) {
            return self.status(id, code);
        }
        match self.nodes.get(path).cloned() {
            None => self.status(id, status::NO_SUCH_FILE),
            Some(Node::Directory) => Reply::new(kind::ATTRS, id).u32(4).u32(0o040_755),
            Some(Node::Denied(file) | Node::File(file)) => self.attrs(now, id, &file),
        }
    }

    pub(super) fn fstat(&mut self, now: u64, id: u32, handle: &[u8]) -> Reply {
        let Some(open) = self.handles.get(handle).cloned() else {
            self.record
                .violations
                .push("FSTAT of a handle that isn't open".into());
            return self.status(id, status::FAILURE);
        };
        match self.refuses_attrs(self.quirks.fstat_refused) {
            Some(code) => self.status(id, code),
            None => self.attrs(now, id, &open.file),
        }
    }

    fn refuses_attrs(&self, refused: Option<u32>) -> Option<u32> {
        let while_open = self.quirks.stat_refused_while_open && !self.handles.is_empty();
        refused.or_else(|| while_open.then_some(status::FAILURE))
    }

    fn attrs(&mut self, now: u64, id: u32, file: &FileHistory) -> Reply {
        let version = file.at(now);
        self.attrs_sent += 1;
        let size = match self.quirks.size_attr {
            SizeAttr::Absent => None,
            SizeAttr::Changing => Some(match self.attrs_sent % 3 {
                1 => version.size,
                2 => version.size + 1,
                _ => version.size / 2,
            }),
            SizeAttr::Right => Some(version.size),
            SizeAttr::Wrong(size) => Some(size),
        };
        let reply = Reply::new(kind::ATTRS, id).u32(if size.is_some() { 15 } else { 14 });
        let reply = size.into_iter().fold(reply, Reply::u64);
        let (uid, gid, permissions) = (1_000, 1_000, 0o100_644);
        [uid, gid, permissions, version.mtime, version.mtime]
            .into_iter()
            .fold(reply, Reply::u32)
    }

    /// Says whether a request is a READ at or past the end.
    pub(super) fn is_past_end(&self, now: u64, request: &Request) -> bool {
        let Request::Read { handle, offset, .. } = request else {
            return false;
        };
        self.handles
            .get(handle)
            .is_some_and(|open| *offset >= open.file.at(now).size)
    }
}
