//! The swarm: seeded faults, and never wrong bytes.
//!
//! Aim: find what nobody thought of. Method: each seed draws a plan of faults, a link, one to three
//! downloads and a client's configuration; invariants are checked after each step. Bytes are exact or
//! there is an error; a plan that a download must survive succeeds; some seeds run twice and must leave
//! the same trace.

use core::time::Duration;

use longhaul_core::OpError;
use longhaul_core::download::Shrink;
use longhaul_core::engine::Config;
use longhaul_core::window::WindowConfig;
use longhaul_tests::env::for_each_seed;
use longhaul_tests::fault::FaultPlan;
use longhaul_tests::file::FileHistory;
use longhaul_tests::job::{Consume, Job, JobState, SizeFrom};
use longhaul_tests::model::{Quirks, SizeAttr};
use longhaul_tests::reference::Wanted;
use longhaul_tests::rng::Rng;
use longhaul_tests::world::{Setup, World};
use longhaul_tests::{MS, SECOND};

/// Every how-many-th seed runs twice.
const TWICE_IN: u64 = 50;

#[test]
fn swarm_gives_exact_bytes_or_an_error() {
    for_each_seed("safety", 2_000, |seed| {
        let hash = run(seed);
        if seed.is_multiple_of(TWICE_IN) {
            assert_eq!(run(seed), hash, "the same seed leaves the same trace");
        }
    });
}

fn run(seed: u64) -> u64 {
    // A table so small that it is full most of the time, or one as it ships.
    if Rng::new(seed).child("size").one_in(4) {
        swarm::<8, 1024, 16>(seed)
    } else {
        swarm::<5, 64, 2>(seed)
    }
}

fn swarm<const OPS: usize, const REQUESTS: usize, const HANDLES: usize>(seed: u64) -> u64 {
    let root = Rng::new(seed);
    let plan = FaultPlan::any(&root);
    let _shown = ShownOnPanic(&plan);
    let mut rng = root.child("client");
    let mut setup = Setup {
        link: plan.link.clone(),
        stalls: plan.stalls.clone(),
        is_ragged: true,
        is_hostile: plan.may_fail,
        config: config(&mut rng),
        ..Setup::new("safety", seed, 0, 0)
    }
    .with_quirks(plan.quirks.clone())
    .with_file("f0", plan.file.clone());
    let mut jobs = vec![job(&mut rng, "f0", plan.file.clone(), plan.wanted)];
    for name in ["f1", "f2"] {
        if rng.one_in(4) {
            let file = FileHistory::new(rng.draw(), rng.magnitude(0, 64 << 10));
            setup = setup.with_file(name, file.clone());
            jobs.push(job(&mut rng, name, file, Wanted::ALL));
        }
    }
    let mut world = World::<OPS, REQUESTS, HANDLES>::new(setup);
    let ids: Vec<_> = jobs.into_iter().map(|job| world.start(job)).collect();
    let was_cancelled = |state: &JobState| state.job.cancel_at.is_some();
    let cancels = ids.iter().any(|id| was_cancelled(world.job(*id)));
    world.run();
    for id in &ids {
        judge(&plan, world.job(*id), cancels || ids.len() > 1);
    }
    world.trace.hash()
}

/// Shows the plan of a run that fails.
struct ShownOnPanic<'a>(&'a FaultPlan);

impl Drop for ShownOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}", self.0);
        }
    }
}

/// Draws how the client is set up.
fn config(rng: &mut Rng) -> Config {
    let mut window = WindowConfig::default();
    if rng.one_in(3) {
        window = window.with_fixed(rng.magnitude(1, 4 << 20));
    }
    if rng.one_in(3) {
        window = window.with_window_bytes_max(rng.magnitude(1, 1 << 20));
    }
    if rng.one_in(4) {
        let len = rng.magnitude(512, 1 << 20);
        window = window.with_read_len_max(u32::try_from(len).expect("small"));
    }
    if rng.one_in(4) {
        window = window.with_requests_max(rng.magnitude_index(1, 100));
    }
    Config::default()
        .with_window(window)
        .with_stall_after(Duration::from_millis(rng.between(5_000, 20_000)))
        .with_no_progress_max(Duration::from_millis(rng.between(60_000, 100_000)))
}

/// Draws what the application does with a file.
fn job(rng: &mut Rng, path: &str, file: FileHistory, wanted: Wanted) -> Job {
    let size = file.at(0).size;
    Job {
        wanted,
        size_from: match rng.below(4) {
            0 => SizeFrom::Fstat,
            1 => SizeFrom::Given(rng.one_in(2).then_some(size)),
            _ => SizeFrom::Stat,
        },
        shrink: *rng.pick(&[Shrink::Accept, Shrink::Fail]),
        serial: rng.one_in(8) && size < 32 << 10,
        consume: if rng.one_in(3) {
            Consume::After(rng.magnitude(0, SECOND))
        } else {
            Consume::AtOnce
        },
        begin_at: if rng.one_in(2) {
            0
        } else {
            rng.magnitude(0, SECOND)
        },
        cancel_at: rng.one_in(8).then(|| rng.magnitude(MS, 4 * SECOND)),
        ..Job::new(path, file)
    }
}

/// Says whether the download was told the size that the file has.
fn knows_size(quirks: &Quirks, job: &Job) -> bool {
    let refused = match job.size_from {
        SizeFrom::Given(size) => return size.is_some() && job.file.is_stable(),
        SizeFrom::Stat => quirks.stat_refused,
        SizeFrom::Fstat => quirks.fstat_refused,
    };
    quirks.size_attr == SizeAttr::Right
        && refused.is_none()
        && !quirks.stat_refused_while_open
        && job.file.is_stable()
}

fn judge(plan: &FaultPlan, state: &JobState, has_company: bool) {
    let job = &state.job;
    match state.outcome.as_ref().expect("every job ends") {
        Ok(end) => {
            assert_eq!(*end, state.sink.contiguous(), "{:?}", plan.names);
            // An EOF that lies cannot be told from a true one without a size to hold against it, and a
            // file cut short behind the reader's back ends where the reader is.
            let eof_lies = plan.quirks.early_eof.is_some() && !knows_size(&plan.quirks, job);
            if !eof_lies && job.file.is_stable() {
                assert_eq!(state.sink.judge(state.ended), Ok(()), "{:?}", plan.names);
            }
        }
        Err(OpError::Cancelled) => {
            assert!(has_company, "cancelled by nobody");
        }
        Err(OpError::Shrunk { size, end })
            if matches!(plan.quirks.size_attr, SizeAttr::Wrong(_)) =>
        {
            assert_eq!(job.shrink, Shrink::Fail);
            assert!(size > end);
        }
        // The others took the only handle.
        Err(OpError::Status(_)) if plan.quirks.handles_max.is_some() && has_company => {}
        Err(error) => assert!(plan.may_fail, "{error:?} with {:?}", plan.names),
    }
}
