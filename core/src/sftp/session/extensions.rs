//! What VERSION announces, and the limits that `limits@openssh.com` tells.

use crate::sftp::wire::{READ_LEN_MAX, READ_LEN_PORTABLE};

/// The extensions of a server that this crate knows, with the version it speaks.
///
/// Source: OpenSSH's `PROTOCOL` §4; an extension counts only in the version given there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Extensions {
    /// `limits@openssh.com` "1".
    pub limits: bool,
    /// Extensions announced, known or not.
    pub count: u32,
}

impl Extensions {
    pub(super) fn add(&mut self, name: &[u8], data: &[u8]) {
        self.count = self.count.saturating_add(1);
        if name == crate::sftp::wire::LIMITS_NAME && data == b"1" {
            self.limits = true;
        }
    }
}

/// What the server accepts, learned from `limits@openssh.com` and clamped to what the protocol allows.
///
/// Source: OpenSSH's `PROTOCOL` §4.8. Zero there means "not enforced" and leaves the default.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Longest READ, in bytes; 1 to [`READ_LEN_MAX`]. 32,768 without the extension.
    pub read_len_max: u32,
    /// Handles open at once; `None` if the server has not said.
    pub handles_max: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            read_len_max: READ_LEN_PORTABLE,
            handles_max: None,
        }
    }
}

impl Limits {
    /// Reads the reply's four 64-bit numbers; `None` if it is too short.
    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let number = |index: usize| {
            let bytes = data.get(index * 8..index * 8 + 8)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        // Order: packet, read, write, handles.
        let (read, handles) = (number(1)?, number(3)?);
        let read_len_max = match u32::try_from(read) {
            Ok(0) => READ_LEN_PORTABLE,
            Ok(read) => read.min(READ_LEN_MAX),
            Err(_) => READ_LEN_MAX,
        };
        Some(Self {
            read_len_max,
            handles_max: (handles != 0).then_some(handles),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(numbers: [u64; 4]) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (slot, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    #[test]
    fn limits_of_zero_leave_the_defaults() {
        assert_eq!(Limits::parse(&reply([0; 4])), Some(Limits::default()));
    }

    #[test]
    fn limits_beyond_the_packet_ceiling_are_clamped() {
        let limits = Limits::parse(&reply([u64::MAX; 4]));
        assert_eq!(limits.map(|limits| limits.read_len_max), Some(READ_LEN_MAX));
    }

    #[test]
    fn tiny_limits_are_kept_and_short_replies_refused() {
        let limits = Limits::parse(&reply([64, 64, 64, 1]));
        assert_eq!(
            limits,
            Some(Limits {
                read_len_max: 64,
                handles_max: Some(1)
            })
        );
        assert_eq!(Limits::parse(&[0; 31]), None);
    }
}
