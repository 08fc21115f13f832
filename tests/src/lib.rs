//! The simulator of longhaul and what its tests share.
//!
//! Aim: drive the very core that ships through every odd server and link that users have met, in
//! virtual time, from one seed. Method: each part here is naive on purpose and shares no code with
//! the core, so that a fault in the core cannot hide behind the same fault in its judge.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`rng`] | one seed, with named child streams |
//! | [`content`], [`file`](mod@file) | bytes as a function of the offset, and files that change |
//! | [`fuzz`] | what the fuzz targets call |
//! | [`link`] | a byte stream with latency, rate, chunking, stalls, cuts and a channel window |
//! | [`model`] | an SFTP server with a knob for each quirk |
//! | [`tap`] | what stands on the wire, as the client's end sees it |
//! | [`fault`] | a plan of faults drawn from a seed |
//! | [`reference`](mod@reference) | what a download must produce, and a sink that checks it |
//! | [`odometer`] | every combination of a handful of choices, one run each |
//! | [`world`], [`job`] | one client, server and link in virtual time, and what the application does |
//! | [`check`] | invariants after each step |
//! | [`trace`], [`env`](mod@env) | the last lines and the hash of a run, and the replay command |
#![expect(
    clippy::exhaustive_enums,
    reason = "the package is never published, and its tests match on every variant"
)]

extern crate alloc;

pub mod check;
pub mod content;
pub mod env;
pub mod fault;
pub mod file;
pub mod fuzz;
pub mod job;
pub mod link;
pub mod model;
pub mod odometer;
pub mod reference;
pub mod rng;
#[cfg(test)]
mod selftest;
pub mod tap;
pub mod trace;
pub mod world;

/// Nanoseconds of virtual time in one millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds of virtual time in one second.
pub const SECOND: u64 = 1_000 * MS;
