//! SFTP version 3: wire formats and the session.

mod attrs;
mod decode;
mod session;
mod status;
pub(crate) mod wire;

pub use attrs::{Attrs, FileType};
pub use decode::{Decoder, Entry, Item};
pub(crate) use session::Submit;
pub use session::{Extensions, HandleKey, Limits, Reply, Session, To};
pub use status::StatusCode;
pub use wire::{
    DATA_HEADER_LEN, Full, HANDLE_LEN_MAX, NAME_PACKET_LEN_MAX, PACKET_LEN_MAX, PATH_LEN_MAX,
    READ_LEN_MAX, READ_LEN_PORTABLE, RequestKind, VERSION,
};
