//! The part file and its state. Everything here blocks: it is called off the executor.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::name::{part_path, with_suffix};
use super::state::{self, State};
use super::{LocalError, LocalErrorKind, Source};

/// How much before the mark is compared with the server before a download goes on from there.
const TAIL_LEN_MAX: u64 = 64 << 10;

/// An open, locked part file.
#[derive(Debug)]
pub(crate) struct Part {
    file: File,
    target: PathBuf,
    path: PathBuf,
    source: Source,
    mark: u64,
}

/// Where a download starts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At zero.
    Fresh(Fresh),
    /// At the mark, provided that the server has `tail` right before it. If not, [`Part::restart`].
    Resume { mark: u64, tail: Vec<u8> },
}

/// Why a download starts at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fresh {
    /// Nobody asked for more.
    Asked,
    /// The source has another size or modification time than the part's had, or does not tell them.
    Changed,
    /// There is no part of this file.
    NoPart,
    /// The machine was restarted since, and the part had not been synced.
    Restarted,
}

impl Part {
    /// Opens the part file for `target`, and finds out where to start.
    pub(crate) fn open(
        target: &Path,
        source: Source,
        is_resume: bool,
    ) -> Result<(Self, Start), LocalError> {
        let path = part_path(target);
        let file = open_locked(&path)?;
        let mut part = Self {
            file,
            target: target.to_owned(),
            path,
            source,
            mark: 0,
        };
        let start = if is_resume {
            part.judge()
        } else {
            Start::Fresh(Fresh::Asked)
        };
        match &start {
            Start::Fresh(_) => part.restart()?,
            Start::Resume { mark, .. } => part.mark = *mark,
        }
        Ok((part, start))
    }

    /// Compares what the state says with the source and the file.
    fn judge(&self) -> Start {
        let text = fs::read_to_string(self.state_path()).unwrap_or_default();
        let Some(state) = State::parse(&text).filter(|state| state.source.url == self.source.url)
        else {
            return Start::Fresh(Fresh::NoPart);
        };
        let same = state.source == self.source
            && self.source.mtime.is_some()
            && self.source.size.is_some_and(|size| state.mark <= size);
        if !same {
            return Start::Fresh(Fresh::Changed);
        }
        let is_same_boot = state.boot.is_some() && state.boot == state::boot();
        if !state.is_synced && !is_same_boot {
            return Start::Fresh(Fresh::Restarted);
        }
        match self.read_tail(state.mark) {
            Ok(tail) if !tail.is_empty() => Start::Resume {
                mark: state.mark,
                tail,
            },
            _ => Start::Fresh(Fresh::NoPart),
        }
    }

    fn read_tail(&self, mark: u64) -> io::Result<Vec<u8>> {
        let len = mark.min(TAIL_LEN_MAX);
        let mut tail = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        read_exact_at(&self.file, &mut tail, mark - len)?;
        Ok(tail)
    }

    /// Throws away what the part holds.
    pub(crate) fn restart(&mut self) -> Result<(), LocalError> {
        self.mark = 0;
        self.remove_state()?;
        self.file
            .set_len(0)
            .map_err(|error| LocalError::io("empty it", &self.path, error))
    }

    pub(super) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), LocalError> {
        write_all_at(&self.file, bytes, offset)
            .map_err(|error| LocalError::io("write", &self.path, error))
    }

    /// Records that all bytes below `mark` have been written.
    pub(super) fn record(&mut self, mark: u64, is_synced: bool) -> Result<(), LocalError> {
        let boot = state::boot();
        let state = State {
            source: self.source.clone(),
            mark,
            boot,
            is_synced,
        };
        let path = self.state_path();
        let new = with_suffix(&path, "~");
        fs::write(&new, state.to_string())
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| {
                // On a full disk what could be written of it is in the way. The old state stays.
                let _ = fs::remove_file(&new);
                LocalError::io("record progress", &path, error)
            })?;
        self.mark = mark;
        Ok(())
    }

    /// Syncs the part, and records that.
    pub(super) fn record_synced(&mut self) -> Result<(), LocalError> {
        self.file
            .sync_data()
            .map_err(|error| LocalError::io("sync", &self.path, error))?;
        self.record(self.mark, true)
    }

    /// Gives the part, of which all `size` bytes have been written, its final name.
    pub(super) fn finish(&mut self, size: u64) -> Result<(), LocalError> {
        let failed = |error| LocalError::io("finish", &self.path, error);
        let found = self.file.metadata().map_err(failed)?.len();
        if found < size {
            let message = format!("only {found} of {size} bytes are left; somebody cut it");
            return Err(LocalError::new(LocalErrorKind::System, &self.path, message));
        }
        self.file.set_len(size).map_err(failed)?;
        // If only the name is refused, a resume has nothing left to fetch.
        self.mark = size;
        if let Ok(old) = fs::metadata(&self.target) {
            // As if the old file had been written anew. Where that is not permitted, the usual permissions do.
            let _ = self.file.set_permissions(old.permissions());
        }
        fs::rename(&self.path, &self.target)
            .map_err(|error| LocalError::io("rename the finished part", &self.target, error))?;
        // The file is whole and has its name; a state without a part means nothing.
        let _ = self.remove_state();
        Ok(())
    }

    /// Removes the part and its state.
    pub(super) fn discard(&self) -> Result<(), LocalError> {
        self.remove_state()?;
        fs::remove_file(&self.path).map_err(|error| LocalError::io("remove it", &self.path, error))
    }

    fn remove_state(&self) -> Result<(), LocalError> {
        let path = self.state_path();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LocalError::io("remove it", &path, error))
            }
            _ => Ok(()),
        }
    }

    fn state_path(&self) -> PathBuf {
        with_suffix(&self.path, ".state")
    }

    #[cfg(test)]
    pub(super) fn with_file(self, file: File) -> Self {
        Self { file, ..self }
    }

    /// The part file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Offset below which all bytes are known to be written.
    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }
}

/// Opens or creates the file, and locks it.
fn open_locked(path: &Path) -> Result<File, LocalError> {
    let failed = |error: io::Error| match path.parent() {
        // The part's name would only distract from what is missing.
        Some(parent) if error.kind() == io::ErrorKind::NotFound && parent != Path::new("") => {
            LocalError::io("write into it", parent, error)
        }
        _ => LocalError::io("create it", path, error),
    };
    let busy = || {
        let message = "another process is downloading to the same name";
        LocalError::new(LocalErrorKind::Busy, path, message)
    };
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed)?;
    match file.try_lock() {
        // File systems without locks exist; there the user has to take care.
        Ok(()) | Err(TryLockError::Error(_)) => {}
        Err(TryLockError::WouldBlock) => return Err(busy()),
    }
    // Between opening and locking, its owner may have given it the final name.
    match is_at(&file, path) {
        Ok(true) => Ok(file),
        Ok(false) => Err(busy()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(busy()),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (ours, found) = (file.metadata()?, fs::symlink_metadata(path)?);
    if !found.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    Ok((ours.dev(), ours.ino()) == (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    fs::metadata(path).map(|found| found.is_file())
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let len = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = bytes
            .get(len..)
            .filter(|_| len > 0)
            .ok_or(io::ErrorKind::WriteZero)?;
        offset += len as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let len = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        bytes = bytes
            .get_mut(len..)
            .filter(|_| len > 0)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        offset += len as u64;
    }
    Ok(())
}
