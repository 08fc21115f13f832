//! A folder as a storage.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use longhaul_core::server::{Storage, resolve};
use longhaul_core::sftp::{Attrs, PATH_LEN_MAX, StatusCode};

/// Serves the files in a folder, and nothing outside of it.
///
/// `/` and every relative path begin at the folder. `..` is resolved by the text alone, and a symbolic link that leads out
/// is refused. Whoever can change the folder's content while it is served can race that check.
#[derive(Debug)]
pub(crate) struct DirectoryStorage {
    root: PathBuf,
}

impl DirectoryStorage {
    /// Serves what is in `root`.
    ///
    /// # Errors
    ///
    /// If `root` is not there, or is no folder.
    pub(crate) fn new(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if !root.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root })
    }

    /// The place of `path` within the folder, by the text alone.
    fn place(&self, path: &[u8]) -> Result<PathBuf, StatusCode> {
        let mut absolute = vec![0; PATH_LEN_MAX + 1];
        let len = resolve(path, &mut absolute)?;
        absolute.truncate(len);
        let mut place = self.root.clone();
        for name in absolute.split(|&byte| byte == b'/') {
            if name.is_empty() {
                continue;
            }
            let name = os_str(name).ok_or(StatusCode::NO_SUCH_FILE)?;
            // On Windows a name can hold a drive or another separator.
            let mut parts = Path::new(name).components();
            let (Some(Component::Normal(_)), None) = (parts.next(), parts.next()) else {
                return Err(StatusCode::NO_SUCH_FILE);
            };
            place.push(name);
        }
        Ok(place)
    }

    /// The file that `place` names, behind all symbolic links: inside of the folder, or refused.
    fn target(&self, place: &Path) -> Result<PathBuf, StatusCode> {
        let target = place.canonicalize().map_err(|error| status(&error))?;
        if !target.starts_with(&self.root) {
            return Err(StatusCode::PERMISSION_DENIED);
        }
        Ok(target)
    }

    /// As [`Self::target`], except that `place` itself may be a symbolic link to anywhere.
    fn link(&self, place: &Path) -> Result<PathBuf, StatusCode> {
        match (place.parent(), place.file_name()) {
            (Some(folder), Some(name)) if place != self.root => Ok(self.target(folder)?.join(name)),
            _ => Ok(self.root.clone()),
        }
    }
}

impl Storage for DirectoryStorage {
    type File = File;

    fn open(&mut self, path: &[u8]) -> Result<File, StatusCode> {
        let target = self.target(&self.place(path)?)?;
        // Opening a pipe would wait for its other end, and opening a device can do anything.
        let metadata = fs::metadata(&target).map_err(|error| status(&error))?;
        if !metadata.is_file() {
            return Err(StatusCode::FAILURE);
        }
        File::open(target).map_err(|error| status(&error))
    }

    fn close(&mut self, _file: File) -> Result<(), StatusCode> {
        Ok(())
    }

    fn read(&mut self, file: &mut File, offset: u64, buf: &mut [u8]) -> Result<usize, StatusCode> {
        // Systems take no larger offset, and no file is longer.
        if i64::try_from(offset).is_err() {
            return Ok(0);
        }
        loop {
            match read_at(file, offset, buf) {
                Ok(len) => return Ok(len),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(status(&error)),
            }
        }
    }

    fn stat(&mut self, path: &[u8], follow: bool) -> Result<Attrs, StatusCode> {
        let place = self.place(path)?;
        let metadata = if follow {
            fs::metadata(self.target(&place)?)
        } else {
            fs::symlink_metadata(self.link(&place)?)
        };
        metadata
            .map(|metadata| attrs(&metadata))
            .map_err(|error| status(&error))
    }

    fn fstat(&mut self, file: &mut File) -> Result<Attrs, StatusCode> {
        let metadata = file.metadata().map_err(|error| status(&error))?;
        Ok(attrs(&metadata))
    }

    /// Resolves symbolic links too where the file is there; a name that isn't there is only made absolute.
    fn realpath(&mut self, path: &[u8], out: &mut [u8]) -> Result<usize, StatusCode> {
        let target = match self.target(&self.place(path)?) {
            Ok(target) => target,
            Err(StatusCode::NO_SUCH_FILE) => return resolve(path, out),
            Err(code) => return Err(code),
        };
        let inside = target
            .strip_prefix(&self.root)
            .map_err(|_| StatusCode::PERMISSION_DENIED)?;
        let names = inside.iter().map(OsStr::as_encoded_bytes);
        resolve(&names.collect::<Vec<_>>().join(&b'/'), out)
    }
}

/// The status that OpenSSH's server has for an error.
fn status(error: &io::Error) -> StatusCode {
    let is = |kinds: &[io::ErrorKind]| kinds.contains(&error.kind());
    if is(&[io::ErrorKind::NotFound, io::ErrorKind::NotADirectory]) {
        StatusCode::NO_SUCH_FILE
    } else if is(&[io::ErrorKind::PermissionDenied]) {
        StatusCode::PERMISSION_DENIED
    } else if is(&[io::ErrorKind::InvalidInput, io::ErrorKind::InvalidFilename]) {
        StatusCode::BAD_MESSAGE
    } else {
        StatusCode::FAILURE
    }
}

#[cfg(unix)]
fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    Some(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

#[cfg(not(unix))]
fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    core::str::from_utf8(bytes).ok().map(OsStr::new)
}

#[cfg(unix)]
fn read_at(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, offset)
}

#[cfg(windows)]
fn read_at(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    // Moves the file's position, which nothing else uses.
    std::os::windows::fs::FileExt::seek_read(file, buf, offset)
}

#[cfg(unix)]
fn attrs(metadata: &Metadata) -> Attrs {
    use std::os::unix::fs::MetadataExt as _;
    let seconds = |time: i64| u32::try_from(time.max(0)).unwrap_or(u32::MAX);
    Attrs {
        size: Some(metadata.len()),
        uid_gid: Some((metadata.uid(), metadata.gid())),
        permissions: Some(metadata.mode()),
        atime_mtime: Some((seconds(metadata.atime()), seconds(metadata.mtime()))),
    }
}

#[cfg(not(unix))]
fn attrs(metadata: &Metadata) -> Attrs {
    let seconds = |time: std::time::SystemTime| {
        let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
        u32::try_from(since.as_secs()).ok()
    };
    let mtime = metadata.modified().ok().and_then(seconds);
    Attrs {
        size: Some(metadata.len()),
        uid_gid: None,
        permissions: Some(if metadata.is_dir() {
            0o040_555
        } else {
            0o100_444
        }),
        atime_mtime: mtime.map(|mtime| (mtime, mtime)),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use longhaul_core::sftp::FileType;

    use super::*;

    /// A folder to serve, with files, links, and a secret beside it; removed at the end.
    struct Scene {
        outer: PathBuf,
        storage: DirectoryStorage,
    }

    impl Scene {
        fn new(name: &str) -> Self {
            let name = format!("longhaul-serve-{name}-{}", std::process::id());
            let outer = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&outer);
            let root = outer.join("root");
            fs::create_dir_all(root.join("sub/folder")).unwrap();
            fs::write(outer.join("secret"), "secret").unwrap();
            fs::write(root.join("sub/file"), "0123456789").unwrap();
            symlink("sub/file", root.join("good")).unwrap();
            symlink("sub", root.join("folder")).unwrap();
            symlink("../secret", root.join("out")).unwrap();
            symlink("..", root.join("up")).unwrap();
            symlink(outer.join("secret"), root.join("absolute")).unwrap();
            symlink("nowhere", root.join("dangling")).unwrap();
            symlink("loop", root.join("loop")).unwrap();
            let storage = DirectoryStorage::new(&root).unwrap();
            Self { outer, storage }
        }

        fn realpath(&mut self, path: &[u8]) -> Result<String, StatusCode> {
            let mut out = [0; PATH_LEN_MAX];
            let len = self.storage.realpath(path, &mut out)?;
            Ok(String::from_utf8_lossy(&out[..len]).into_owned())
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.outer);
        }
    }

    #[test]
    fn files_are_read_from_any_offset_under_any_spelling() {
        let mut scene = Scene::new("read");
        let spellings: [&[u8]; 5] = [
            b"sub/file",
            b"/sub//./file",
            b"../sub/none/../file",
            b"good",
            b"folder/file",
        ];
        for path in spellings {
            let mut file = scene.storage.open(path).unwrap();
            let mut buf = [0; 4];
            let mut read = |offset| {
                scene
                    .storage
                    .read(&mut file, offset, &mut buf)
                    .map(|len| buf[..len].to_vec())
            };
            assert_eq!(read(8), Ok(b"89".to_vec()));
            assert_eq!(read(2), Ok(b"2345".to_vec()));
            for end in [10, 11, 1 << 63, u64::MAX] {
                assert_eq!(read(end), Ok(Vec::new()));
            }
            let attrs = scene.storage.fstat(&mut file).unwrap();
            assert_eq!(
                (attrs.size, attrs.file_type()),
                (Some(10), FileType::Regular)
            );
            assert!(attrs.mtime().is_some_and(|mtime| mtime > 1_700_000_000));
        }
    }

    #[test]
    fn nothing_outside_of_the_folder_can_be_reached() {
        let mut scene = Scene::new("escape");
        let outside: [&[u8]; 5] = [
            b"out",
            b"absolute",
            b"up/secret",
            b"up",
            b"folder/../up/root/sub/file",
        ];
        for path in &outside[..4] {
            let denied = Err(StatusCode::PERMISSION_DENIED);
            assert_eq!(scene.storage.open(path).map(drop), denied);
            assert_eq!(scene.storage.stat(path, true).map(drop), denied);
            assert_eq!(scene.realpath(path).map(drop), denied);
        }
        // Through the outside and back in is still inside.
        assert!(scene.storage.open(outside[4]).is_ok());
        for path in [
            b"../secret".as_slice(),
            b"/../secret",
            b"sub/../../secret",
            b"/etc/passwd",
        ] {
            assert_eq!(
                scene.storage.open(path).map(drop),
                Err(StatusCode::NO_SUCH_FILE)
            );
        }
        let denied = scene.storage.stat(b"up/secret", false).map(drop);
        assert_eq!(denied, Err(StatusCode::PERMISSION_DENIED));
    }

    #[test]
    fn a_link_is_seen_as_such_only_without_following() {
        let mut scene = Scene::new("link");
        let mut kind = |path: &[u8], follow| {
            scene
                .storage
                .stat(path, follow)
                .map(|attrs| attrs.file_type())
        };
        assert_eq!(kind(b"good", false), Ok(FileType::Symlink));
        assert_eq!(kind(b"good", true), Ok(FileType::Regular));
        assert_eq!(kind(b"out", false), Ok(FileType::Symlink));
        assert_eq!(kind(b"dangling", false), Ok(FileType::Symlink));
        assert_eq!(kind(b"dangling", true), Err(StatusCode::NO_SUCH_FILE));
        assert_eq!(kind(b"loop", true), Err(StatusCode::FAILURE));
        assert_eq!(kind(b"", false), Ok(FileType::Directory));
        assert_eq!(kind(b"/..", false), Ok(FileType::Directory));
        assert_eq!(kind(b"sub/folder", true), Ok(FileType::Directory));
    }

    #[test]
    fn real_paths_follow_links_and_begin_at_the_folder() {
        let mut scene = Scene::new("realpath");
        assert_eq!(scene.realpath(b".").as_deref(), Ok("/"));
        assert_eq!(scene.realpath(b"folder/file").as_deref(), Ok("/sub/file"));
        assert_eq!(scene.realpath(b"none/./x").as_deref(), Ok("/none/x"));
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let mut scene = Scene::new("kinds");
        let mut open = |path: &[u8]| scene.storage.open(path).map(drop);
        assert_eq!(open(b"sub"), Err(StatusCode::FAILURE));
        assert_eq!(open(b"/"), Err(StatusCode::FAILURE));
        assert_eq!(open(b"sub/file/x"), Err(StatusCode::NO_SUCH_FILE));
        assert_eq!(open(b"sub/fi\0le"), Err(StatusCode::BAD_MESSAGE));
        assert_eq!(open(&[b'n'; 300]), Err(StatusCode::BAD_MESSAGE));
        assert_eq!(open(b"\xff\xfe"), Err(StatusCode::NO_SUCH_FILE));
        let file = scene.outer.join("secret");
        assert!(DirectoryStorage::new(&file).is_err());
        assert!(DirectoryStorage::new(&scene.outer.join("none")).is_err());
    }
}
