//! Status codes: kept raw as well as named.

use core::fmt;

/// The code of a STATUS reply, as the server sent it.
///
/// Servers send codes of later protocol versions to clients of version 3, so every value is kept.
/// Source: draft-ietf-secsh-filexfer-02 §7, and -13 §9.1 for codes above 8.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct StatusCode(pub u32);

impl StatusCode {
    /// Success.
    pub const OK: Self = Self(0);
    /// End of file or directory.
    pub const EOF: Self = Self(1);
    /// The path does not exist.
    pub const NO_SUCH_FILE: Self = Self(2);
    /// The user may not do that.
    pub const PERMISSION_DENIED: Self = Self(3);
    /// Any other failure.
    pub const FAILURE: Self = Self(4);
    /// The request was malformed, or a name too long.
    pub const BAD_MESSAGE: Self = Self(5);
    /// The server does not know the request.
    pub const OP_UNSUPPORTED: Self = Self(8);
    /// The handle is not open.
    pub const INVALID_HANDLE: Self = Self(9);
    /// A directory on the path does not exist.
    pub const NO_SUCH_PATH: Self = Self(10);
    /// The path is a directory.
    pub const FILE_IS_A_DIRECTORY: Self = Self(24);

    /// The code's name in its specification, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "ok",
            1 => "end of file",
            2 => "no such file",
            3 => "permission denied",
            4 => "failure",
            5 => "bad message",
            6 => "no connection",
            7 => "connection lost",
            8 => "operation unsupported",
            9 => "invalid handle",
            10 => "no such path",
            11 => "file already exists",
            12 => "write protected",
            13 => "no media",
            14 => "no space on filesystem",
            15 => "quota exceeded",
            16 => "unknown principal",
            17 => "lock conflict",
            18 => "directory not empty",
            19 => "not a directory",
            20 => "invalid filename",
            21 => "link loop",
            22 => "cannot delete",
            23 => "invalid parameter",
            24 => "file is a directory",
            25 => "byte range lock conflict",
            26 => "byte range lock refused",
            27 => "delete pending",
            28 => "file corrupt",
            29 => "owner invalid",
            30 => "group invalid",
            31 => "no matching byte range lock",
            _ => "unknown status",
        }
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.name(), self.0)
    }
}
