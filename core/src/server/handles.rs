//! Open files under handles that are never valid twice.

use crate::sftp::Full;

/// A handle as it goes over the wire: the slot, and which of its files is meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Handle {
    slot: u32,
    generation: u32,
}

impl Handle {
    /// Bytes of a handle on the wire.
    pub(super) const LEN: usize = 8;

    pub(super) fn encode(self) -> [u8; Self::LEN] {
        let [a, b, c, d] = self.slot.to_be_bytes();
        let [e, f, g, h] = self.generation.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// Reads what should be a handle of this responder; `None` if it cannot be one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h] = bytes else {
            return None;
        };
        Some(Self {
            slot: u32::from_be_bytes([a, b, c, d]),
            generation: u32::from_be_bytes([e, f, g, h]),
        })
    }
}

/// The open files.
#[derive(Debug)]
pub(super) struct Handles<F, const HANDLES: usize> {
    slots: [Slot<F>; HANDLES],
}

#[derive(Debug)]
struct Slot<F> {
    /// Counts the files that were closed here. It wraps after 4 billion, by when no handle is still under way.
    generation: u32,
    file: Option<F>,
}

impl<F, const HANDLES: usize> Handles<F, HANDLES> {
    pub(super) const fn new() -> Self {
        Self {
            slots: [const {
                Slot {
                    generation: 0,
                    file: None,
                }
            }; HANDLES],
        }
    }

    pub(super) fn open_count(&self) -> usize {
        let open = self.slots.iter().filter(|slot| slot.file.is_some());
        open.count()
    }

    /// Keeps `file`; gives up if every slot is taken.
    pub(super) fn insert(&mut self, file: F) -> Result<Handle, Full> {
        let free = self.slots.iter_mut().zip(0..);
        let (slot, index) = free
            .into_iter()
            .find(|(slot, _)| slot.file.is_none())
            .ok_or(Full)?;
        slot.file = Some(file);
        Ok(Handle {
            slot: index,
            generation: slot.generation,
        })
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut F> {
        self.slot_mut(handle)?.file.as_mut()
    }

    pub(super) fn remove(&mut self, handle: Handle) -> Option<F> {
        self.slot_mut(handle)?.take()
    }

    /// Removes any one of the files.
    pub(super) fn pop(&mut self) -> Option<F> {
        self.slots.iter_mut().find_map(Slot::take)
    }

    fn slot_mut(&mut self, handle: Handle) -> Option<&mut Slot<F>> {
        let slot = self.slots.get_mut(usize::try_from(handle.slot).ok()?)?;
        (slot.generation == handle.generation).then_some(slot)
    }
}

impl<F> Slot<F> {
    fn take(&mut self) -> Option<F> {
        let file = self.file.take()?;
        self.generation = self.generation.wrapping_add(1);
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_handle_stays_closed_when_its_slot_is_used_again() {
        let mut handles = Handles::<char, 2>::new();
        let a = handles.insert('a').unwrap();
        let b = handles.insert('b').unwrap();
        assert_eq!(handles.insert('c'), Err(Full));
        assert_eq!(handles.remove(a), Some('a'));
        assert_eq!(handles.remove(a), None);
        let c = handles.insert('c').unwrap();
        assert_eq!(c.slot, a.slot);
        assert_eq!(handles.get_mut(a), None);
        assert_eq!(handles.get_mut(c), Some(&mut 'c'));
        assert_eq!(handles.get_mut(b), Some(&mut 'b'));
        assert_eq!(handles.open_count(), 2);
        assert!(handles.pop().is_some() && handles.pop().is_some());
        assert_eq!((handles.pop(), handles.get_mut(b)), (None, None));
    }

    #[test]
    fn bytes_that_are_no_handle_are_told_apart() {
        let mut handles = Handles::<(), 1>::new();
        let handle = handles.insert(()).unwrap();
        let bytes = handle.encode();
        assert_eq!(Handle::decode(&bytes), Some(handle));
        assert_eq!(Handle::decode(&bytes[1..]), None);
        assert_eq!(Handle::decode(&[]), None);
        let other = Handle::decode(&[0xff; Handle::LEN]).unwrap();
        assert_eq!(handles.get_mut(other), None);
        assert_eq!(Handles::<(), 0>::new().insert(()), Err(Full));
    }
}
