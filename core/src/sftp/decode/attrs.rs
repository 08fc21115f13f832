//! ATTRS, field by field.

use super::{AttrsField, Decoder, Found, State, Then};
use crate::error::ProtocolError;
use crate::sftp::Attrs;
use crate::sftp::wire::SSH_FXP_NAME;

/// How far a step of ATTRS came.
pub(super) enum Progress {
    /// A field is incomplete: more input.
    Waits,
    /// The next field.
    Goes,
    /// The last field is read.
    Done,
}

impl Decoder {
    pub(super) fn end_attrs(&mut self) -> Option<Found> {
        if self.packet_type == SSH_FXP_NAME {
            self.names_left = self.names_left.saturating_sub(1);
            self.state = self.next_name();
            return Some(Found::Name);
        }
        self.state = State::Rest;
        None
    }

    pub(super) fn advance_attrs(
        &mut self,
        input: &mut &[u8],
        field: AttrsField,
    ) -> Result<Progress, ProtocolError> {
        use AttrsField as F;
        let has = |flags: u32, bit: u32| flags & bit != 0;
        let next = match field {
            F::Flags => {
                let Some(flags) = self.u32(input)? else {
                    return Ok(Progress::Waits);
                };
                self.attrs = Attrs::default();
                self.attrs_flags = flags;
                F::Size
            }
            F::Size => {
                if has(self.attrs_flags, Attrs::SIZE) {
                    let Some(size) = self.u64(input)? else {
                        return Ok(Progress::Waits);
                    };
                    self.attrs.size = Some(size);
                }
                F::UidGid
            }
            F::UidGid => {
                if has(self.attrs_flags, Attrs::UIDGID) {
                    let Some(both) = self.u64(input)? else {
                        return Ok(Progress::Waits);
                    };
                    self.attrs.uid_gid = Some(halves(both));
                }
                F::Permissions
            }
            F::Permissions => {
                if has(self.attrs_flags, Attrs::PERMISSIONS) {
                    let Some(mode) = self.u32(input)? else {
                        return Ok(Progress::Waits);
                    };
                    self.attrs.permissions = Some(mode);
                }
                F::Times
            }
            F::Times => {
                if has(self.attrs_flags, Attrs::ACMODTIME) {
                    let Some(both) = self.u64(input)? else {
                        return Ok(Progress::Waits);
                    };
                    self.attrs.atime_mtime = Some(halves(both));
                }
                F::ExtendedCount
            }
            F::ExtendedCount => {
                if !has(self.attrs_flags, Attrs::EXTENDED) {
                    return Ok(Progress::Done);
                }
                let Some(count) = self.u32(input)? else {
                    return Ok(Progress::Waits);
                };
                // The shortest pair is two empty strings.
                if u64::from(count) * 8 > u64::from(self.left) {
                    return Err(ProtocolError::AttrsExtendedCount(count));
                }
                self.extended_left = count;
                F::ExtendedType
            }
            F::ExtendedType | F::ExtendedData => {
                if self.extended_left == 0 {
                    return Ok(Progress::Done);
                }
                let Some(len) = self.u32(input)? else {
                    return Ok(Progress::Waits);
                };
                self.check_field(len)?;
                let then = if field == F::ExtendedType {
                    F::ExtendedData
                } else {
                    self.extended_left -= 1;
                    F::ExtendedType
                };
                self.state = State::Skip {
                    len,
                    then: Then::Attrs(then),
                };
                return Ok(Progress::Goes);
            }
        };
        self.state = State::Attrs(next);
        Ok(Progress::Goes)
    }
}

fn halves(both: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = both.to_be_bytes();
    (
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    )
}
