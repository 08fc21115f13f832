//! The one place where handles are counted: reserved with OPEN, freed with CLOSE's reply.

use crate::sftp::wire::HANDLE_LEN_MAX;

/// Names an open handle of one session. Stale keys are recognised.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct HandleKey {
    index: u8,
    generation: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Free,
    /// OPEN is outstanding.
    Opening,
    Open,
    /// To be closed once nothing is outstanding on it.
    Closing,
    /// CLOSE is outstanding.
    CloseSent,
}

#[derive(Debug)]
struct Slot {
    state: State,
    generation: u32,
    /// Requests on the handle that the server still owes a reply to.
    outstanding: u32,
    bytes: heapless::Vec<u8, HANDLE_LEN_MAX>,
}

/// All handles of a session.
#[derive(Debug)]
pub(super) struct Handles<const HANDLES: usize> {
    slots: heapless::Vec<Slot, HANDLES>,
}

impl<const HANDLES: usize> Handles<HANDLES> {
    pub(super) const fn new() -> Self {
        const { assert!(HANDLES <= 255, "a handle's index is one byte") };
        Self {
            slots: heapless::Vec::new(),
        }
    }

    /// Handles that are open or on their way to or from being so.
    pub(super) fn count(&self) -> usize {
        self.slots
            .iter()
            .filter(|slot| slot.state != State::Free)
            .count()
    }

    /// Reserves a handle for an OPEN.
    pub(super) fn reserve(&mut self, handles_max: Option<u64>) -> Option<HandleKey> {
        if handles_max.is_some_and(|max| u64::try_from(self.count()).is_ok_and(|n| n >= max)) {
            return None;
        }
        let free = self.slots.iter().position(|slot| slot.state == State::Free);
        let index = match free {
            Some(index) => index,
            None => {
                let slot = Slot {
                    state: State::Free,
                    generation: 0,
                    outstanding: 0,
                    bytes: heapless::Vec::new(),
                };
                self.slots.push(slot).ok()?;
                self.slots.len() - 1
            }
        };
        let slot = self.slots.get_mut(index)?;
        slot.state = State::Opening;
        slot.generation = slot.generation.wrapping_add(1);
        slot.outstanding = 0;
        Some(HandleKey {
            index: u8::try_from(index).ok()?,
            generation: slot.generation,
        })
    }

    fn slot(&mut self, key: HandleKey) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(usize::from(key.index))?;
        (slot.generation == key.generation && slot.state != State::Free).then_some(slot)
    }

    /// The handle's bytes, if it is open for requests.
    pub(super) fn bytes(&self, key: HandleKey) -> Option<&[u8]> {
        let slot = self.slots.get(usize::from(key.index))?;
        (slot.generation == key.generation && slot.state == State::Open)
            .then_some(slot.bytes.as_slice())
    }

    /// The server has opened it. `wanted` is false if nobody waits any more: then it is closed.
    pub(super) fn opened(&mut self, key: HandleKey, bytes: &[u8], wanted: bool) {
        if let Some(slot) = self.slot(key) {
            slot.bytes.clear();
            // The decoder has refused longer ones.
            let _ = slot.bytes.extend_from_slice(bytes);
            slot.state = if wanted { State::Open } else { State::Closing };
        }
    }

    /// OPEN was declined, or CLOSE answered.
    pub(super) fn freed(&mut self, key: HandleKey) {
        if let Some(slot) = self.slot(key) {
            slot.state = State::Free;
        }
    }

    pub(super) fn request_sent(&mut self, key: HandleKey) {
        if let Some(slot) = self.slot(key) {
            slot.outstanding += 1;
        }
    }

    /// A request on the handle was answered, or given up.
    pub(super) fn request_ended(&mut self, key: HandleKey) {
        if let Some(slot) = self.slot(key) {
            slot.outstanding = slot.outstanding.saturating_sub(1);
        }
    }

    /// Asks for the handle to be closed as soon as nothing is outstanding on it.
    pub(super) fn release(&mut self, key: HandleKey) {
        if let Some(slot) = self.slot(key)
            && slot.state == State::Open
        {
            slot.state = State::Closing;
        }
    }

    /// Releases every open handle.
    pub(super) fn release_all(&mut self) {
        for slot in self
            .slots
            .iter_mut()
            .filter(|slot| slot.state == State::Open)
        {
            slot.state = State::Closing;
        }
    }

    /// The next handle whose CLOSE is due. Some servers work in parallel, so CLOSE waits for all replies.
    pub(super) fn close_due(&self) -> Option<(HandleKey, &[u8])> {
        let due = |slot: &Slot| slot.state == State::Closing && slot.outstanding == 0;
        let index = self.slots.iter().position(due)?;
        let slot = self.slots.get(index)?;
        let key = HandleKey {
            index: u8::try_from(index).ok()?,
            generation: slot.generation,
        };
        Some((key, &slot.bytes))
    }

    pub(super) fn close_sent(&mut self, key: HandleKey) {
        if let Some(slot) = self.slot(key) {
            slot.state = State::CloseSent;
        }
    }

    /// The channel has ended, and every handle with it.
    pub(super) fn clear(&mut self) {
        for slot in &mut self.slots {
            slot.state = State::Free;
        }
    }
}
