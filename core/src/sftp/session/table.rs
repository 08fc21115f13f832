//! What is outstanding: one slot a request, with its id, and tombstones for those that nobody waits for.

use super::OP_SESSION;
use super::handles::HandleKey;
use crate::sftp::wire::RequestKind;
use crate::window::Sample;

/// Bits of an id that are the slot's index; the rest counts the slot's uses, so that no id comes twice while a
/// reply to it can be owed.
const INDEX_BITS: u32 = 12;

/// Whom a reply is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct To {
    /// The operation's slot.
    pub op: u16,
    /// The operation's own mark; for READ, the offset asked.
    pub tag: u64,
    /// Bytes asked by READ; 0 for others.
    pub asked: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Free,
    /// Somebody waits for the reply.
    Live,
    /// Nobody does: what comes is dropped.
    Tombstone,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    generation: u32,
    pub(super) kind: RequestKind,
    pub(super) to: To,
    pub(super) handle: Option<HandleKey>,
    /// Bytes of DATA announced by the reply, and passed on so far.
    pub(super) announced: u32,
    pub(super) received: u32,
    /// Counted in the window: asked bytes that have not arrived. Zero once given up.
    pub(super) in_flight: u32,
    pub(super) sample: Sample,
}

/// All requests of a session whose reply is owed.
#[derive(Debug)]
pub(super) struct Table<const REQUESTS: usize> {
    slots: heapless::Vec<Slot, REQUESTS>,
    free: heapless::Vec<u16, REQUESTS>,
    live: usize,
}

impl<const REQUESTS: usize> Table<REQUESTS> {
    pub(super) const fn new() -> Self {
        const {
            assert!(
                REQUESTS <= 1 << INDEX_BITS,
                "an id has 12 bits for the slot"
            )
        };
        Self {
            slots: heapless::Vec::new(),
            free: heapless::Vec::new(),
            live: 0,
        }
    }

    /// Requests whose reply is owed, tombstones included.
    pub(super) fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Requests whose reply an operation waits for.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn is_full(&self) -> bool {
        self.outstanding() == REQUESTS
    }

    /// Claims a slot; the id to send, or `None` if all are taken.
    pub(super) fn claim(
        &mut self,
        kind: RequestKind,
        to: To,
        handle: Option<HandleKey>,
        sample: Sample,
    ) -> Option<u32> {
        let fresh = Slot {
            state: State::Live,
            generation: 0,
            kind,
            to,
            handle,
            announced: 0,
            received: 0,
            in_flight: to.asked,
            sample,
        };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots
                    .push(Slot {
                        state: State::Free,
                        ..fresh
                    })
                    .ok()?;
                u16::try_from(self.slots.len() - 1).ok()?
            }
        };
        let slot = self.slots.get_mut(usize::from(index))?;
        let generation = slot.generation.wrapping_add(1);
        *slot = Slot {
            generation,
            ..fresh
        };
        if to.op != OP_SESSION {
            self.live += 1;
        }
        Some(generation << INDEX_BITS | u32::from(index))
    }

    /// The slot of a request that is outstanding under `id`.
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Slot> {
        let index = usize::try_from(id & ((1 << INDEX_BITS) - 1)).ok()?;
        let slot = self.slots.get_mut(index)?;
        let current = slot.generation << INDEX_BITS == id & !((1 << INDEX_BITS) - 1);
        (current && slot.state != State::Free).then_some(slot)
    }

    /// Frees the slot: its reply is complete.
    pub(super) fn free(&mut self, id: u32) -> Option<Slot> {
        let slot = self.get(id)?;
        let freed = *slot;
        slot.state = State::Free;
        if freed.state == State::Live && freed.to.op != OP_SESSION {
            self.live -= 1;
        }
        // As many places as slots, so it cannot be full.
        let _ = self
            .free
            .push(u16::try_from(id & ((1 << INDEX_BITS) - 1)).unwrap_or_default());
        Some(freed)
    }

    /// Turns live requests of `op` into tombstones, calling `each` with each slot.
    pub(super) fn bury(&mut self, op: u16, mut each: impl FnMut(&mut Slot)) {
        for slot in &mut self.slots {
            if slot.state == State::Live && slot.to.op == op {
                slot.state = State::Tombstone;
                self.live -= 1;
                each(slot);
            }
        }
    }

    /// Requests whose reply nobody waits for.
    pub(super) fn tombstones(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots
            .iter_mut()
            .filter(|slot| slot.state == State::Tombstone)
    }

    pub(super) fn live_of(&self, op: u16) -> impl Iterator<Item = &Slot> {
        self.slots
            .iter()
            .filter(move |slot| slot.state == State::Live && slot.to.op == op)
    }
}
