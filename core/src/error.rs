//! Errors by blame: the peer broke the protocol, the server declined, the caller broke the contract, or nobody did.

use core::fmt;

use crate::sftp::StatusCode;

/// The peer broke the protocol: the session is over.
///
/// Each variant names the rule; [`ProtocolError::section`] says where it stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// ATTRS announces more extended pairs than its packet can hold.
    AttrsExtendedCount(u32),
    /// Text came where VERSION was due, such as a login banner or a shell's start-up output. The
    /// session's `banner` has what came.
    BannerText,
    /// A second DATA without bytes for one offset: the server makes no progress and reports no end.
    DataEmptyRepeated,
    /// DATA holds more bytes than READ asked for.
    DataTooLong {
        /// Bytes asked for.
        asked: u32,
        /// Bytes announced.
        got: u32,
    },
    /// The stream ended inside a packet.
    EofInsidePacket,
    /// A field reaches beyond its packet.
    FieldBeyondPacket {
        /// Type of the packet.
        packet_type: u8,
    },
    /// A handle is empty or longer than 256 bytes.
    HandleLen(u32),
    /// A reply to no request that is outstanding.
    IdUnknown(u32),
    /// NAME announces more entries than its packet can hold.
    NameCount(u32),
    /// A name is longer than any path may be.
    NameTooLong(u32),
    /// A packet is longer than the protocol allows.
    PacketTooLong(u32),
    /// A packet is too short for its type and id.
    PacketTooShort(u32),
    /// A packet of a type that no server sends, or not at that point.
    PacketTypeUnexpected(u8),
    /// The reply's type does not answer the request.
    ReplyMismatch {
        /// Type of the reply.
        packet_type: u8,
    },
    /// The server speaks a version that was not offered.
    VersionUnsupported(u32),
}

impl ProtocolError {
    /// Where the broken rule stands.
    #[must_use]
    pub const fn section(self) -> &'static str {
        match self {
            Self::BannerText | Self::VersionUnsupported(_) => "draft-ietf-secsh-filexfer-02 §4",
            Self::AttrsExtendedCount(_) => "draft-ietf-secsh-filexfer-02 §5",
            Self::HandleLen(_) => "draft-ietf-secsh-filexfer-02 §6.2",
            Self::DataEmptyRepeated | Self::DataTooLong { .. } => {
                "draft-ietf-secsh-filexfer-02 §6.4"
            }
            Self::IdUnknown(_) => "draft-ietf-secsh-filexfer-02 §6.1",
            Self::NameCount(_) | Self::NameTooLong(_) | Self::ReplyMismatch { .. } => {
                "draft-ietf-secsh-filexfer-02 §7"
            }
            Self::EofInsidePacket
            | Self::FieldBeyondPacket { .. }
            | Self::PacketTooLong(_)
            | Self::PacketTooShort(_)
            | Self::PacketTypeUnexpected(_) => "draft-ietf-secsh-filexfer-02 §3",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AttrsExtendedCount(count) => {
                write!(f, "{count} extended attributes do not fit their packet")
            }
            Self::BannerText => f.write_str("text instead of the server's VERSION packet"),
            Self::DataEmptyRepeated => {
                f.write_str("empty data for one offset twice, and no end of file")
            }
            Self::DataTooLong { asked, got } => {
                write!(f, "{got} bytes of data where {asked} were asked for")
            }
            Self::EofInsidePacket => f.write_str("the stream ended inside a packet"),
            Self::FieldBeyondPacket { packet_type } => {
                write!(f, "a field reaches beyond its packet of type {packet_type}")
            }
            Self::HandleLen(len) => write!(f, "a handle of {len} bytes"),
            Self::IdUnknown(id) => write!(f, "a reply to request {id}, which is not outstanding"),
            Self::NameCount(count) => write!(f, "{count} names do not fit their packet"),
            Self::NameTooLong(len) => write!(f, "a name of {len} bytes"),
            Self::PacketTooLong(len) => write!(f, "a packet of {len} bytes"),
            Self::PacketTooShort(len) => write!(f, "a packet of only {len} bytes"),
            Self::PacketTypeUnexpected(packet_type) => {
                write!(f, "a packet of unexpected type {packet_type}")
            }
            Self::ReplyMismatch { packet_type } => {
                write!(
                    f,
                    "a reply of type {packet_type} does not answer its request"
                )
            }
            Self::VersionUnsupported(version) => {
                write!(f, "the server speaks version {version}, offered was 3")
            }
        }?;
        write!(f, " ({})", self.section())
    }
}

impl core::error::Error for ProtocolError {}

/// Bytes of a server's message that are kept.
pub const MESSAGE_LEN_MAX: usize = 112;

/// The server declined one request: raw code, name, and what it said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatusError {
    /// The code.
    pub code: StatusCode,
    /// The server's own words, cut at [`MESSAGE_LEN_MAX`] bytes; often empty, of any encoding.
    pub message: heapless::Vec<u8, MESSAGE_LEN_MAX, u8>,
}

impl StatusError {
    pub(crate) fn new(code: StatusCode, message: &[u8]) -> Self {
        let kept = message.get(..MESSAGE_LEN_MAX).unwrap_or(message);
        let message = heapless::Vec::from_slice(kept).unwrap_or_default();
        Self { code, message }
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if self.message.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.message.escape_ascii())
    }
}

impl core::error::Error for StatusError {}

/// Why an operation ended without success.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum OpError {
    /// The caller cancelled it.
    Cancelled,
    /// The session ended before the operation did.
    Closed,
    /// Nothing arrived for the operation for as long as `Config::no_progress_max`.
    NoProgress,
    /// The caller's mistake: a path longer than `PATH_LEN_MAX` bytes.
    PathTooLong,
    /// The peer broke the protocol; every operation of the session ends with this.
    Protocol(ProtocolError),
    /// The file ended before the size that the server had given, and did so when asked again.
    Shrunk {
        /// Size that was announced, in bytes.
        size: u64,
        /// Where the file ends, in bytes.
        end: u64,
    },
    /// The server declined.
    Status(StatusError),
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("cancelled"),
            Self::Closed => f.write_str("the connection ended"),
            Self::NoProgress => f.write_str("nothing arrived for too long"),
            Self::PathTooLong => f.write_str("the path is longer than 4096 bytes"),
            Self::Protocol(error) => write!(f, "protocol error by the server: {error}"),
            Self::Shrunk { size, end } => {
                write!(
                    f,
                    "the file ends at byte {end}, before its size of {size} bytes"
                )
            }
            Self::Status(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for OpError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Protocol(error) => Some(error),
            Self::Status(error) => Some(error),
            Self::Cancelled
            | Self::Closed
            | Self::NoProgress
            | Self::PathTooLong
            | Self::Shrunk { .. } => None,
        }
    }
}

/// A command was not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SubmitError {
    /// The session has ended: no request can be sent.
    Closed,
    /// Every slot, handle or byte of space is in use: drain output, finish an operation, try again.
    Full,
    /// The caller's mistake: the handle is not open.
    HandleUnknown,
    /// The caller's mistake: a path longer than `PATH_LEN_MAX` bytes.
    PathTooLong,
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the session has ended",
            Self::Full => "no room for another request now",
            Self::HandleUnknown => "the handle is not open",
            Self::PathTooLong => "the path is longer than 4096 bytes",
        })
    }
}

impl core::error::Error for SubmitError {}

// Errors travel in every return value of the hot path.
const _: () = assert!(size_of::<ProtocolError>() <= 24);
const _: () = assert!(size_of::<SubmitError>() <= 24);
