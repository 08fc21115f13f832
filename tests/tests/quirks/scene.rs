//! What the tests of quirks share: a world with one file, and what stood on its wire.

use longhaul_core::engine::Config;
use longhaul_core::window::WindowConfig;
use longhaul_tests::file::FileHistory;
use longhaul_tests::job::{Job, JobId, JobState};
use longhaul_tests::model::wire::kind;
use longhaul_tests::model::{Quirks, Record};
use longhaul_tests::world::{Setup, World};

/// The path of the file.
pub(crate) const PATH: &str = "file";
/// 100 Mbit/s.
pub(crate) const RATE: u64 = 100_000_000;

/// A client as it ships.
pub(crate) type Scene = World;

/// A file of `size` bytes that never changes.
pub(crate) fn file(size: u64) -> FileHistory {
    FileHistory::new(7, size)
}

/// A server that says nothing of its limits.
pub(crate) fn old_server() -> Quirks {
    Quirks::default().without_extensions()
}

/// A client that keeps `count` READs of `len` bytes in flight.
pub(crate) fn fixed(count: u64, len: u32) -> Config {
    let window = WindowConfig::default()
        .with_fixed(count * u64::from(len))
        .with_read_len_max(len);
    Config::default().with_window(window)
}

/// A round trip of 20 ms to a server that has `file`.
pub(crate) fn setup(quirks: Quirks, config: Config, file: &FileHistory) -> Setup {
    Setup::new("quirks", 1, 20, RATE)
        .with_quirks(quirks)
        .with_config(config)
        .with_file(PATH, file.clone())
}

/// How a run with one job ended.
pub(crate) struct Ran {
    pub(crate) world: Scene,
    id: JobId,
}

impl Ran {
    pub(crate) fn job(&self) -> &JobState {
        self.world.job(self.id)
    }

    pub(crate) fn record(&self) -> &Record {
        self.world.server.record()
    }

    /// READs that begin below `end`.
    pub(crate) fn reads_below(&self, end: u64) -> usize {
        self.record()
            .of(kind::READ)
            .filter(|seen| seen.offset < end)
            .count()
    }

    /// READs that begin at `end` or after it.
    pub(crate) fn reads_from(&self, end: u64) -> usize {
        self.record().count(kind::READ) - self.reads_below(end)
    }

    /// All of `size` bytes have come, and the server sent none of them twice.
    pub(crate) fn came_once(&self, size: u64) {
        assert_eq!(self.job().success(), size);
        assert_eq!(
            self.record().payload_sent,
            size,
            "no byte crosses the link twice"
        );
    }
}

/// Runs one job to its end, and the session to its.
pub(crate) fn run(setup: Setup, job: Job) -> Ran {
    let mut world = Scene::new(setup);
    let id = world.start(job);
    world.run();
    Ran { world, id }
}

/// Downloads all of `file` from a server with `quirks`.
pub(crate) fn fetch(quirks: Quirks, config: Config, file: &FileHistory) -> Ran {
    run(setup(quirks, config, file), Job::new(PATH, file.clone()))
}

/// The same with a server that may break the protocol.
pub(crate) fn fetch_hostile(quirks: Quirks, config: Config, file: &FileHistory) -> Ran {
    let setup = Setup {
        is_hostile: true,
        ..setup(quirks, config, file)
    };
    run(setup, Job::new(PATH, file.clone()))
}
