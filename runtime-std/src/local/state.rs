//! The state file: what a part is a part of, and how far it is complete.

use core::fmt;

/// First line of the file; another number means that another version wrote it.
const HEADER: &str = "longhaul-part 1";

/// What identifies the file that is being downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// URL of the file, one line of ASCII.
    pub(crate) url: String,
    /// Size in bytes when the download began, if the server told.
    pub(crate) size: Option<u64>,
    /// Modification time in seconds since 1970, if the server told.
    pub(crate) mtime: Option<u64>,
}

/// Everything that the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) source: Source,
    /// All bytes of the part below this offset have been written.
    pub(super) mark: u64,
    /// Names the boot of this machine in which that was so, where the system tells.
    pub(super) boot: Option<String>,
    /// The bytes below the mark are on the disk, not only in the system's memory.
    pub(super) is_synced: bool,
}

impl State {
    /// Reads a whole file; anything odd at all makes it `None`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return None;
        }
        let mut field = |name: &str| {
            let value = lines.next()?.strip_prefix(name)?.strip_prefix(' ')?;
            Some(value.to_owned())
        };
        let number = |value: String| -> Option<Option<u64>> {
            if value == "-" {
                Some(None)
            } else {
                value.parse().ok().map(Some)
            }
        };
        let state = Self {
            source: Source {
                url: field("url")?,
                size: number(field("size")?)?,
                mtime: number(field("mtime")?)?,
            },
            mark: field("mark")?.parse().ok()?,
            boot: field("boot").map(|boot| (boot != "-").then_some(boot))?,
            is_synced: field("synced")? == "yes",
        };
        (field("end")? == "." && lines.next().is_none()).then_some(state)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |n| n.to_string());
        writeln!(f, "{HEADER}")?;
        writeln!(f, "url {}", self.source.url)?;
        writeln!(f, "size {}", number(self.source.size))?;
        writeln!(f, "mtime {}", number(self.source.mtime))?;
        writeln!(f, "mark {}", self.mark)?;
        writeln!(f, "boot {}", self.boot.as_deref().unwrap_or("-"))?;
        writeln!(f, "synced {}", if self.is_synced { "yes" } else { "no" })?;
        // Its presence shows that the file is whole.
        writeln!(f, "end .")
    }
}

/// Names this boot of the machine.
pub(super) fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = id.trim();
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_graphic())).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let source = Source {
            url: "sftp://h/a%20b".into(),
            size: Some(7),
            mtime: None,
        };
        State {
            source,
            mark: 5,
            boot: None,
            is_synced: true,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut state = state();
        assert_eq!(State::parse(&state.to_string()), Some(state.clone()));
        state.source.mtime = Some(u64::MAX);
        state.source.size = None;
        state.boot = Some("b".into());
        state.is_synced = false;
        assert_eq!(State::parse(&state.to_string()), Some(state));
    }

    #[test]
    fn anything_cut_or_changed_is_refused() {
        let text = state().to_string();
        for end in 0..text.len() - 1 {
            assert_eq!(State::parse(&text[..end]), None, "{end}");
        }
        for (from, to) in [
            ("part 1", "part 2"),
            ("mark 5", "mark -5"),
            ("size", "sise"),
            ("end .", "end .\nx"),
        ] {
            assert_eq!(State::parse(&text.replace(from, to)), None, "{to}");
        }
    }
}
