//! What names a remote file: `sftp://` URLs, and `host:path` as `scp` takes it.

use core::fmt::{self, Write as _};
use core::str::FromStr;

use crate::text::escaped;

/// A remote file and the server that has it.
///
/// Two forms are understood:
///
/// - `sftp://[user@]host[:port]/path`, where `%XX` stands for a byte and the path is absolute; `/~/path` is relative to
///   the home directory, as with `curl` and `lftp`. `?` and `#` are ordinary characters.
/// - `[user@]host:path`, where the path is taken as it is, and is relative to the home directory unless it starts with
///   `/`. A `/` before the first `:` makes it a local path, which is an error here. An IPv6 address stands in brackets.
///
/// # Examples
///
/// ```
/// use longhaul::Target;
///
/// let target: Target = "sftp://ada@[::1]:2222/~/a%20b".parse()?;
/// assert_eq!((target.user(), target.host(), target.port()), (Some("ada"), "::1", Some(2222)));
/// assert_eq!(target.path(), b"a b");
/// assert_eq!(Target::parse(b"ada@host:a b")?.path(), b"a b");
/// # Ok::<(), longhaul::TargetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    path: Vec<u8>,
}

impl Target {
    /// Takes either form apart. Paths are bytes: whatever the server calls its files can be named.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says which part is wrong.
    pub fn parse(text: &[u8]) -> Result<Self, TargetError> {
        if text.contains(&0) {
            return Err(TargetError::Nul);
        }
        match split_scheme(text) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"sftp") => parse_url(rest),
            Some((scheme, _)) => Err(TargetError::Scheme(escaped(scheme))),
            None => parse_scp(text),
        }
    }

    /// A path on a server that needs no name, such as a command's.
    #[must_use]
    pub fn from_path(path: impl Into<Vec<u8>>) -> Self {
        let path = path.into();
        let path = if path.is_empty() { b".".to_vec() } else { path };
        Self {
            user: None,
            host: String::new(),
            port: None,
            path,
        }
    }

    /// Name to log in with.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Name or address of the server, without brackets; empty for [`Self::from_path`].
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port of the server.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Path on the server, never empty. Relative ones start in the home directory.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Last part of the path, if it is one that can name a file: not empty, `.` or `..`.
    #[must_use]
    pub fn file_name(&self) -> Option<&[u8]> {
        let name = self.path.rsplit(|&b| b == b'/').next()?;
        (!matches!(name, b"" | b"." | b"..")).then_some(name)
    }
}

/// As a URL, which parses to the same target again; a path alone for a server without a name.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.is_empty() {
            return f.write_str(&escaped(&self.path));
        }
        f.write_str("sftp://")?;
        if let Some(user) = &self.user {
            encode(f, user.as_bytes(), false)?;
            f.write_char('@')?;
        }
        if self.host.contains(':') {
            // A zone id (`%eth0`) stands as it is, and is read so again.
            write!(f, "[{}]", self.host)?;
        } else {
            encode(f, self.host.as_bytes(), false)?;
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        match self.path.as_slice() {
            b"." => Ok(()),
            // An absolute path that would read as one relative to the home directory.
            [b'/', b'~', rest @ ..] if matches!(rest, [] | [b'/', ..]) => {
                f.write_str("/%7E")?;
                encode(f, rest, true)
            }
            path @ [b'/', ..] => encode(f, path, true),
            path => {
                f.write_str("/~/")?;
                encode(f, path, true)
            }
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        Self::parse(text.as_bytes())
    }
}

/// A text names no remote file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// A `%` in a URL is not followed by two hexadecimal digits.
    #[error("a % in a URL stands before two hexadecimal digits (%25 is the character itself)")]
    Escape,
    /// The host is missing or contains what no host has.
    #[error("no valid host before the path")]
    Host,
    /// The text has no `:`, or a `/` before it, so it names a local file.
    #[error("a local path; a remote file is sftp://[user@]host/path or [user@]host:path")]
    Local,
    /// The text has a zero byte.
    #[error("a zero byte cannot stand in a path")]
    Nul,
    /// The user part of a URL has a password or other parameters.
    #[error(
        "passwords and parameters cannot stand in a URL; ssh asks for a password, or use a key"
    )]
    Password,
    /// The port is no number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// The URL has another scheme than `sftp`.
    #[error("{0}:// is not supported; only sftp://")]
    Scheme(String),
    /// The user's name is empty or not UTF-8.
    #[error("no valid user name before the @")]
    User,
}

/// Splits `scheme://rest`.
fn split_scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = text.iter().position(|&b| b == b':')?;
    let (scheme, rest) = (text.get(..colon)?, text.get(colon..)?);
    let rest = rest.strip_prefix(b"://")?;
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    (scheme.first()?.is_ascii_alphabetic() && scheme.iter().all(plain)).then_some((scheme, rest))
}

/// Parses what stands behind `sftp://`.
fn parse_url(rest: &[u8]) -> Result<Target, TargetError> {
    let slash = rest.iter().position(|&b| b == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    let (user, address) = match authority.iter().rposition(|&b| b == b'@') {
        Some(at) => {
            let user = authority.get(..at).unwrap_or_default();
            if user.iter().any(|b| matches!(b, b':' | b';')) {
                return Err(TargetError::Password);
            }
            (
                Some(checked_user(decode(user)?)?),
                authority.get(at + 1..).unwrap_or_default(),
            )
        }
        None => (None, authority),
    };
    let (host, port) = match address.strip_prefix(b"[") {
        Some(inner) => {
            let end = inner
                .iter()
                .position(|&b| b == b']')
                .ok_or(TargetError::Host)?;
            let (host, after) = inner.split_at(end);
            let port = match after {
                [b']'] => None,
                [b']', b':', port @ ..] => parse_port(port)?,
                _ => return Err(TargetError::Host),
            };
            (checked_ipv6(host)?, port)
        }
        None => match address.iter().position(|&b| b == b':') {
            Some(colon) => {
                let (host, port) = address.split_at(colon);
                (
                    checked_host(decode(host)?)?,
                    parse_port(port.get(1..).unwrap_or_default())?,
                )
            }
            None => (checked_host(decode(address)?)?, None),
        },
    };
    let path = match path {
        b"" | b"/~" => b".".to_vec(),
        [b'/', b'~', b'/', relative @ ..] => home_path(decode(relative)?),
        absolute => decode(absolute)?,
    };
    if path.contains(&0) {
        return Err(TargetError::Nul);
    }
    Ok(Target {
        user,
        host,
        port,
        path,
    })
}

/// Parses `[user@]host:path` by the rules of OpenSSH's `colon()` in `misc.c`.
fn parse_scp(text: &[u8]) -> Result<Target, TargetError> {
    let colon = scp_colon(text).ok_or(TargetError::Local)?;
    let (address, path) = (text.get(..colon), text.get(colon + 1..));
    let (address, path) = (address.unwrap_or_default(), path.unwrap_or_default());
    let (user, host) = match address.iter().rposition(|&b| b == b'@') {
        Some(at) => {
            let user = address.get(..at).unwrap_or_default().to_vec();
            (
                Some(checked_user(user)?),
                address.get(at + 1..).unwrap_or_default(),
            )
        }
        None => (None, address),
    };
    let host = match host {
        [b'[', inner @ .., b']'] if inner.contains(&b':') => checked_ipv6(inner)?,
        [b'[', inner @ .., b']'] => checked_host(inner.to_vec())?,
        host => checked_host(host.to_vec())?,
    };
    let path = match path {
        b"~" => b".".to_vec(),
        [b'~', b'/', relative @ ..] => home_path(relative.to_vec()),
        path => home_path(path.to_vec()),
    };
    Ok(Target {
        user,
        host,
        port: None,
        path,
    })
}

/// Where the host ends, or `None` for a local path.
fn scp_colon(text: &[u8]) -> Option<usize> {
    if text.first() == Some(&b':') {
        return None;
    }
    // A drive letter, on the system that has them.
    if cfg!(windows) && text.get(1) == Some(&b':') {
        return None;
    }
    let start = text.iter().position(|&b| b == b'@').map_or(0, |at| at + 1);
    let bracketed = text.first() == Some(&b'[') || text.get(start) == Some(&b'[');
    let mut previous = 0;
    for (index, &byte) in text.iter().enumerate() {
        match byte {
            b'/' => return None,
            b':' if !bracketed || previous == b']' => return Some(index),
            _ => previous = byte,
        }
    }
    None
}

/// A path relative to the home directory; the directory itself is `.`.
fn home_path(path: Vec<u8>) -> Vec<u8> {
    if path.is_empty() { b".".to_vec() } else { path }
}

fn checked_user(user: Vec<u8>) -> Result<String, TargetError> {
    let user = String::from_utf8(user).map_err(|_| TargetError::User)?;
    // A leading dash would be taken for an option by other programs on the way.
    let bad = user.is_empty() || user.starts_with('-') || user.chars().any(char::is_control);
    if bad {
        Err(TargetError::User)
    } else {
        Ok(user)
    }
}

fn checked_host(host: Vec<u8>) -> Result<String, TargetError> {
    let host = String::from_utf8(host).map_err(|_| TargetError::Host)?;
    let odd = |c: char| c.is_control() || c.is_whitespace() || "/@:[]".contains(c);
    let bad = host.is_empty() || host.starts_with('-') || host.chars().any(odd);
    if bad {
        Err(TargetError::Host)
    } else {
        Ok(host)
    }
}

/// An address between brackets, with or without a zone (`%eth0`).
fn checked_ipv6(host: &[u8]) -> Result<String, TargetError> {
    let text = core::str::from_utf8(host).map_err(|_| TargetError::Host)?;
    let (address, zone) = text.split_once('%').unwrap_or((text, "1"));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
    if address.parse::<core::net::Ipv6Addr>().is_err()
        || zone.is_empty()
        || !zone.chars().all(plain)
    {
        return Err(TargetError::Host);
    }
    Ok(text.to_owned())
}

/// No digits at all mean the usual port, as RFC 3986 section 3.2.3 has it.
fn parse_port(digits: &[u8]) -> Result<Option<u16>, TargetError> {
    if digits.is_empty() {
        return Ok(None);
    }
    let text = core::str::from_utf8(digits).map_err(|_| TargetError::Port)?;
    match text.parse() {
        Ok(port @ 1..) if digits.iter().all(u8::is_ascii_digit) => Ok(Some(port)),
        _ => Err(TargetError::Port),
    }
}

fn decode(text: &[u8]) -> Result<Vec<u8>, TargetError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            let [high, low, tail @ ..] = tail else {
                return Err(TargetError::Escape);
            };
            bytes.push(hex(*high)? << 4 | hex(*low)?);
            rest = tail;
        } else {
            bytes.push(byte);
        }
    }
    Ok(bytes)
}

fn hex(digit: u8) -> Result<u8, TargetError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(TargetError::Escape),
    }
}

/// Encodes all but the unreserved characters (RFC 3986 section 2.3), so that any program takes the URL.
fn encode(f: &mut fmt::Formatter<'_>, bytes: &[u8], is_path: bool) -> fmt::Result {
    for &byte in bytes {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if plain || (is_path && byte == b'/') {
            f.write_char(char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
