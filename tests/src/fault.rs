//! A plan of faults drawn from a seed.
//!
//! Aim: meet combinations that nobody would write down. Method: swarm testing. Each plan switches
//! a random few of all faults on and leaves the rest alone, so that one frequent fault doesn't
//! hide what the others do; some plans have none. Each fault says whether a download must survive
//! it.

use crate::file::FileHistory;
use crate::link::{Chunking, LinkConfig};
use crate::model::{
    DeleteOn, HandleForm, Malform, Quirks, ReadCap, SizeAttr, StatusForm, giant_extensions,
};
use crate::reference::Wanted;
use crate::rng::Rng;
use crate::{MS, SECOND};

/// What goes wrong in one run, and on which link and file.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// The link.
    pub link: LinkConfig,
    /// The server.
    pub quirks: Quirks,
    /// The file.
    pub file: FileHistory,
    /// The range that is downloaded.
    pub wanted: Wanted,
    /// Pauses of the link: moment and length.
    pub stalls: Vec<(u64, u64)>,
    /// The faults that are on.
    pub names: Vec<&'static str>,
    /// An error is as good as success; without it only success will do.
    pub may_fail: bool,
}

/// How a plan takes a fault in.
type Apply = fn(&mut FaultPlan, &mut Rng);

/// Faults that a download must survive.
const TOLERABLE: [(&str, Apply); 24] = [
    ("read cap", |plan, rng| {
        let caps = [32_768, 64_512, 65_536, 102_400];
        plan.quirks.read_cap = ReadCap::Fixed(*rng.pick(&caps));
    }),
    ("small read cap", |plan, rng| {
        plan.quirks.read_cap = ReadCap::Fixed(small_cap(plan, rng))
    }),
    ("random read cap", |plan, rng| {
        let low = small_cap(plan, rng);
        plan.quirks.read_cap = ReadCap::Random(low, low.saturating_mul(8));
    }),
    ("tiny read", |plan, rng| {
        plan.quirks.tiny_read = Some((rng.magnitude(1, 20), 1))
    }),
    ("bool behind data", |plan, _| {
        plan.quirks.data_ends_with_bool = true
    }),
    ("early eof", |plan, rng| {
        plan.quirks.early_eof = Some(rng.magnitude(1, 20))
    }),
    ("eof overtakes", |plan, rng| {
        plan.quirks.eof_overtakes = true;
        plan.quirks.service.1 += rng.magnitude(1, 100 * MS);
    }),
    ("slow eof", |plan, rng| {
        plan.quirks.past_eof_delay = rng.magnitude(MS, SECOND)
    }),
    ("slow server", |plan, rng| {
        plan.quirks.service = (0, rng.magnitude(1, 20 * MS))
    }),
    ("slow request", |plan, rng| {
        plan.quirks.slow_request = Some((rng.magnitude(1, 20), rng.magnitude(MS, 2 * SECOND)));
    }),
    ("reordered replies", |plan, rng| {
        plan.quirks.reorder = rng.magnitude_index(2, 64);
        plan.quirks.service.1 += rng.magnitude(1, 50 * MS);
    }),
    ("drops reads", |plan, rng| {
        plan.quirks.reads_outstanding_max = Some(rng.magnitude_index(1, 16));
        plan.quirks.service.1 += rng.magnitude(1, 5 * MS);
    }),
    ("one handle", |plan, _| plan.quirks.handles_max = Some(1)),
    ("stat refused", |plan, rng| {
        let code = Some(*rng.pick(&[3, 4, 8, 31]));
        let quirks = &mut plan.quirks;
        (
            quirks.stat_refused,
            quirks.lstat_refused,
            quirks.fstat_refused,
        ) = (code, code, code);
    }),
    ("stat refused while open", |plan, _| {
        plan.quirks.stat_refused_while_open = true
    }),
    ("no size", |plan, _| {
        plan.quirks.size_attr = SizeAttr::Absent
    }),
    ("wrong size", |plan, rng| {
        let size = if rng.one_in(2) {
            0
        } else {
            rng.magnitude(0, 1 << 20)
        };
        plan.quirks.size_attr = SizeAttr::Wrong(size);
    }),
    ("status cut short", |plan, rng| {
        plan.quirks.status_form = *rng.pick(&[StatusForm::NoMessage, StatusForm::NoLanguage]);
    }),
    ("deleted when read", |plan, rng| {
        plan.quirks.delete_on = *rng.pick(&[DeleteOn::Close, DeleteOn::Eof]);
    }),
    ("no extensions", |plan, _| {
        plan.quirks = plan.quirks.clone().without_extensions()
    }),
    ("odd limits", |plan, rng| {
        plan.quirks.limits = Some([(); 4].map(|()| *rng.pick(&[0, 64, 32_768, 1 << 32, u64::MAX])));
    }),
    ("limits refused", |plan, _| plan.quirks.limits = None),
    ("long handles", |plan, rng| {
        plan.quirks.handle_form = HandleForm::Len(rng.magnitude_index(4, 256));
    }),
    ("stall", |plan, rng| {
        plan.stalls
            .push((rng.magnitude(1, 2 * SECOND), rng.magnitude(MS, 4 * SECOND)));
    }),
];

/// Faults after which an error is right.
const FATAL: [(&str, Apply); 18] = [
    ("empty reads", |plan, rng| {
        plan.quirks.empty_reads = Some((rng.magnitude(1, 20), rng.magnitude(1, 20)));
    }),
    ("long read", |plan, rng| {
        plan.quirks.long_read =
            Some((rng.magnitude(1, 20), *rng.pick(&[41_084, 262_144, 600_000])));
    }),
    ("read error", |plan, rng| {
        plan.quirks.read_error = Some((rng.magnitude(1, 20), *rng.pick(&[2, 3, 4, 9, 99])));
    }),
    ("changing size", |plan, _| {
        plan.quirks.size_attr = SizeAttr::Changing
    }),
    ("lying status", |plan, rng| {
        plan.quirks.status_form = *rng.pick(&[StatusForm::LyingLanguage, StatusForm::LyingMessage]);
    }),
    ("empty handle", |plan, _| {
        plan.quirks.handle_form = HandleForm::Empty
    }),
    ("handle too long", |plan, rng| {
        plan.quirks.handle_form = HandleForm::Len(rng.magnitude_index(257, 2_000));
    }),
    ("no handles", |plan, _| plan.quirks.handles_max = Some(0)),
    ("swallowed reply", |plan, rng| {
        plan.quirks.swallow = Some(rng.magnitude(1, 30))
    }),
    ("duplicate reply", |plan, rng| {
        plan.quirks.duplicate = Some(rng.magnitude(1, 30))
    }),
    ("unasked reply", |plan, rng| {
        plan.quirks.unasked = Some(rng.magnitude(1, 30))
    }),
    ("malformed reply", |plan, rng| {
        // A length that is one too many takes the bool for content, and nobody can tell.
        plan.quirks.data_ends_with_bool = false;
        plan.quirks.malform = Some((rng.magnitude(1, 30), *rng.pick(&Malform::ALL)));
    }),
    ("closed by server", |plan, rng| {
        plan.quirks.close_after = Some(rng.magnitude(0, 30))
    }),
    ("cut", |plan, rng| {
        let at = Some(rng.magnitude(0, plan.file.at(0).size + 1_000));
        let link = &mut plan.link;
        *(if rng.one_in(2) {
            &mut link.cut_down
        } else {
            &mut link.cut_up
        }) = at;
    }),
    ("odd version", |plan, rng| {
        plan.quirks.version = *rng.pick(&[0, 1, 2, 4, 6, u32::MAX])
    }),
    ("banner", |plan, _| {
        plan.quirks.banner = b"This system is for authorised users.\r\n".into()
    }),
    ("many extensions", |plan, rng| {
        plan.quirks.extensions = giant_extensions(rng.magnitude_index(1, 200), 200);
    }),
    ("file changes", |plan, rng| {
        let (at, size) = (rng.magnitude(1, 2 * SECOND), rng.magnitude(0, 200_000));
        let file = plan.file.clone();
        plan.file = if rng.one_in(3) {
            file.rewritten(at)
        } else {
            file.resized(at, size)
        };
    }),
];

impl FaultPlan {
    /// Draws the link, the file and no faults.
    #[must_use]
    pub fn calm(rng: &Rng) -> Self {
        let mut rng = rng.child("calm");
        let size = rng.magnitude(0, 256 << 10);
        let offset = if rng.one_in(4) {
            rng.magnitude(0, size + 10)
        } else {
            0
        };
        let len = rng.one_in(4).then(|| rng.magnitude(1, size + 10));
        // A chunk of every size down to one byte, as long as that doesn't take all the time.
        let chunk = rng.magnitude(1 + size / 1_000, 1 << 18);
        let chunk = usize::try_from(chunk).expect("small");
        let random = rng.one_in(2);
        let channel_window = rng.one_in(3).then(|| rng.magnitude(32 << 10, 2 << 20));
        let link = LinkConfig {
            latency: rng.magnitude(0, 200 * MS),
            jitter: if rng.one_in(3) {
                rng.magnitude(1, 20 * MS)
            } else {
                0
            },
            rate: if rng.one_in(3) {
                0
            } else {
                rng.magnitude(1_000_000, 10_000_000_000)
            },
            chunking: if random {
                Chunking::Random(chunk)
            } else {
                Chunking::UpTo(chunk)
            },
            send_buffer: rng.magnitude_index(64, 1 << 20),
            channel_window,
            // Credit for less than the window, or none would ever come.
            credit_step: channel_window.map_or(1, |window| (window / 4).min(3 * 32_768)),
            ..LinkConfig::default()
        };
        Self {
            link,
            quirks: Quirks::default(),
            file: FileHistory::new(rng.draw(), size),
            wanted: Wanted { offset, len },
            stalls: Vec::new(),
            names: Vec::new(),
            may_fail: false,
        }
    }

    /// Draws a plan that a download must survive.
    #[must_use]
    pub fn tolerable(rng: &Rng) -> Self {
        let (mut plan, mut rng) = (Self::calm(rng), rng.child("tolerable"));
        plan.switch_on(&TOLERABLE, &mut rng);
        plan
    }

    /// Draws any plan.
    #[must_use]
    pub fn any(rng: &Rng) -> Self {
        let (mut plan, mut rng) = (Self::tolerable(rng), rng.child("fatal"));
        if rng.one_in(2) {
            plan.switch_on(&FATAL, &mut rng);
            plan.may_fail = plan
                .names
                .iter()
                .any(|on| FATAL.iter().any(|(name, _)| name == on));
        }
        plan
    }

    /// Switches faults on: none, a few, or many.
    fn switch_on(&mut self, faults: &[(&'static str, Apply)], rng: &mut Rng) {
        let rarity = *rng.pick(&[2, 6, 12, 1_000]);
        for (name, apply) in faults {
            if rng.one_in(rarity) {
                self.names.push(name);
                apply(self, rng);
            }
        }
    }
}

/// Draws a cap that lets a run take at most some hundred READs.
fn small_cap(plan: &FaultPlan, rng: &mut Rng) -> u32 {
    let least = plan.file.at(0).size / 200 + 1;
    u32::try_from(rng.magnitude(least, 32_768)).expect("small")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_plans() {
        for seed in 0..100 {
            assert_eq!(
                FaultPlan::any(&Rng::new(seed)),
                FaultPlan::any(&Rng::new(seed))
            );
        }
    }

    #[test]
    fn every_fault_comes_up_and_some_plans_have_none() {
        let plans: Vec<FaultPlan> = (0..1_000)
            .map(|seed| FaultPlan::any(&Rng::new(seed)))
            .collect();
        for (name, _) in TOLERABLE.iter().chain(&FATAL) {
            let count = plans
                .iter()
                .filter(|plan| plan.names.contains(name))
                .count();
            assert!((20..600).contains(&count), "{name}: {count} of 1,000");
        }
        assert!(plans.iter().filter(|plan| plan.names.is_empty()).count() > 50);
        assert!(plans.iter().filter(|plan| !plan.may_fail).count() > 300);
    }

    #[test]
    fn tolerable_plans_have_no_fatal_fault() {
        for seed in 0..300 {
            let plan = FaultPlan::tolerable(&Rng::new(seed));
            assert!(!plan.may_fail);
            assert!(
                plan.names
                    .iter()
                    .all(|on| TOLERABLE.iter().any(|(name, _)| name == on))
            );
        }
    }
}
