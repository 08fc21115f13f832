//! Names: where a download goes, and what its part is called.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{LocalError, LocalErrorKind};

/// Longest name in bytes that a part's name repeats. With what is added it stays below the usual limit of 255.
const NAME_LEN_MAX: usize = 200;

/// Finds the file that `local` stands for: itself, or in a directory the one with the remote's name.
///
/// A symbolic link is followed, so that the rename at the end replaces what it points to.
pub(crate) fn resolve(local: &Path, remote_name: Option<&[u8]>) -> Result<PathBuf, LocalError> {
    let target = if is_directory(local) {
        let name = remote_name.ok_or_else(|| {
            LocalError::new(LocalErrorKind::Name, local, "the remote path names no file")
        })?;
        let name = checked_name(name).ok_or_else(|| {
            let shown = crate::text::escaped(name);
            let message = format!("the remote name {shown} cannot be a file name here");
            LocalError::new(LocalErrorKind::Name, local, message)
        })?;
        local.join(name)
    } else {
        local.to_owned()
    };
    match fs::symlink_metadata(&target) {
        Ok(found) if found.is_file() => Ok(target),
        Ok(found) if found.is_symlink() => {
            let followed = fs::canonicalize(&target)
                .map_err(|error| LocalError::io("follow the link", &target, error))?;
            if followed.is_file() {
                Ok(followed)
            } else {
                Err(not_a_file(&target))
            }
        }
        Ok(_) => Err(not_a_file(&target)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(target),
        Err(error) => Err(LocalError::io("write there", &target, error)),
    }
}

fn not_a_file(path: &Path) -> LocalError {
    let what = if path.is_dir() {
        "is a directory"
    } else {
        "is not a regular file"
    };
    LocalError::new(LocalErrorKind::NotAFile, path, what)
}

/// An existing directory, or a path that can be nothing else.
fn is_directory(local: &Path) -> bool {
    let text = local.as_os_str().as_encoded_bytes();
    let separator = text
        .last()
        .is_some_and(|&b| b == b'/' || (cfg!(windows) && b == b'\\'));
    separator || local.file_name().is_none() || local.is_dir()
}

/// The remote name as a local one; `None` if it would lead elsewhere or cannot exist.
fn checked_name(name: &[u8]) -> Option<OsString> {
    if matches!(name, b"" | b"." | b"..") || name.iter().any(|b| matches!(b, 0 | b'/')) {
        return None;
    }
    native_name(name)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems refuse some names")]
fn native_name(name: &[u8]) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt as _;
    Some(OsStr::from_bytes(name).to_owned())
}

#[cfg(not(unix))]
fn native_name(name: &[u8]) -> Option<OsString> {
    const DEVICES: [&str; 6] = ["AUX", "CON", "NUL", "PRN", "COM", "LPT"];
    let name = core::str::from_utf8(name).ok()?;
    let odd = |c: char| c.is_control() || r#"\/:*?"<>|"#.contains(c);
    let stem = name.split('.').next()?.trim_end().to_ascii_uppercase();
    let stem = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let refused = name.chars().any(odd) || name.ends_with(['.', ' ']) || DEVICES.contains(&stem);
    (!refused).then(|| OsString::from(name))
}

/// The part's name for a target: beside it, hidden, and never too long.
pub(super) fn part_path(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_else(|| OsStr::new("download"));
    let bytes = name.as_encoded_bytes();
    let mut part = OsString::from(".");
    if bytes.len() <= NAME_LEN_MAX {
        part.push(name);
    } else {
        // FNV-1a: tells names apart that begin alike. It need not resist anybody who chooses their own names.
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        part.push(format!("{hash:016x}"));
    }
    part.push(".longhaul-part");
    target.with_file_name(part)
}

/// `path` with more at its end.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(suffix);
    PathBuf::from(longer)
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn a_directory_takes_the_remote_name_and_a_file_its_own() {
        let scratch = Scratch::new("resolve");
        let dir = scratch.path();
        assert_eq!(resolve(dir, Some(b"a b")).ok(), Some(dir.join("a b")));
        assert_eq!(
            resolve(&dir.join("x"), Some(b"a")).ok(),
            Some(dir.join("x"))
        );
        assert_eq!(resolve(&dir.join("x"), None).ok(), Some(dir.join("x")));
        let slash = with_suffix(&dir.join("new"), "/");
        assert_eq!(resolve(&slash, Some(b"a")).ok(), Some(slash.join("a")));
        fs::create_dir(dir.join("a")).expect("a directory");
        let error = resolve(dir, Some(b"a")).expect_err("a directory is in the way");
        assert_eq!(error.kind(), LocalErrorKind::NotAFile);
        let error = resolve(dir, None).expect_err("no name");
        assert_eq!(error.kind(), LocalErrorKind::Name);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0b"] {
            assert_eq!(checked_name(name), None, "{name:?}");
        }
        assert_eq!(checked_name(b"..."), native_name(b"..."));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_refused() {
        let scratch = Scratch::new("links");
        let dir = fs::canonicalize(scratch.path()).expect("a path");
        fs::write(dir.join("file"), b"x").expect("a file");
        std::os::unix::fs::symlink("file", dir.join("link")).expect("a link");
        std::os::unix::fs::symlink("nowhere", dir.join("dangling")).expect("a link");
        assert_eq!(
            resolve(&dir.join("link"), None).ok(),
            Some(dir.join("file"))
        );
        assert!(resolve(&dir.join("dangling"), None).is_err());
        let error = resolve(Path::new("/dev/null"), None).expect_err("a device");
        assert_eq!(error.kind(), LocalErrorKind::NotAFile);
        assert_eq!(error.to_string(), "/dev/null: is not a regular file");
    }

    #[test]
    fn part_names_stay_short_and_apart() {
        assert_eq!(part_path(Path::new("d/x")), Path::new("d/.x.longhaul-part"));
        assert_eq!(part_path(Path::new("x")), Path::new(".x.longhaul-part"));
        let long = |last: &str| part_path(Path::new(&format!("d/{}{last}", "n".repeat(250))));
        assert_ne!(long("a"), long("b"));
        assert!(long("a").as_os_str().len() < 100);
    }
}
