//! Paths as text: no storage is asked.

use crate::sftp::StatusCode;

/// Writes the absolute form of `path` into `out` and returns its length: it begins with `/`, and has no empty, `.` or `..`
/// parts and no `/` at its end, the root `/` apart. The root is where relative paths begin, and its own parent.
///
/// This is done by the text alone: `link/..` is the folder that holds `link`, wherever that points.
///
/// # Errors
///
/// `BAD_MESSAGE` if `out` has too little room; [`PATH_LEN_MAX`](crate::sftp::PATH_LEN_MAX) bytes and one more are enough
/// for every path of that length.
pub fn resolve(path: &[u8], out: &mut [u8]) -> Result<usize, StatusCode> {
    let mut len = 0;
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                let before = out.get(..len).unwrap_or_default();
                len = before.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            }
            part => {
                len = append(out, len, b"/")?;
                len = append(out, len, part)?;
            }
        }
    }
    if len == 0 {
        return append(out, 0, b"/");
    }
    Ok(len)
}

fn append(out: &mut [u8], len: usize, bytes: &[u8]) -> Result<usize, StatusCode> {
    let end = len
        .checked_add(bytes.len())
        .ok_or(StatusCode::BAD_MESSAGE)?;
    let place = out.get_mut(len..end).ok_or(StatusCode::BAD_MESSAGE)?;
    place.copy_from_slice(bytes);
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute_and_never_climb_above_the_root() {
        let cases: [(&[u8], &[u8]); 14] = [
            (b"", b"/"),
            (b".", b"/"),
            (b"/", b"/"),
            (b"..", b"/"),
            (b"../../etc/passwd", b"/etc/passwd"),
            (b"a", b"/a"),
            (b"/a/b/", b"/a/b"),
            (b"a//./b", b"/a/b"),
            (b"a/../b", b"/b"),
            (b"a/b/../..", b"/"),
            (b"a/b/../../..", b"/"),
            (b"/a/.../..b", b"/a/.../..b"),
            (b"a/..\0", b"/a/..\0"),
            (b"\xff/../\xfe", b"/\xfe"),
        ];
        for (path, expected) in cases {
            let mut out = [0; 64];
            let len = resolve(path, &mut out).unwrap();
            assert_eq!(&out[..len], expected, "{}", path.escape_ascii());
        }
    }

    #[test]
    fn too_little_room_is_an_error() {
        assert_eq!(resolve(b"", &mut []), Err(StatusCode::BAD_MESSAGE));
        assert_eq!(resolve(b"ab", &mut [0; 2]), Err(StatusCode::BAD_MESSAGE));
        assert_eq!(resolve(b"ab", &mut [0; 3]), Ok(3));
    }
}
