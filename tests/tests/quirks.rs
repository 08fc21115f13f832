//! Every odd server that users have met, one named test each.
//!
//! Aim: handle the whole kind of a fault, not the one input that was reported. Method: the model server gets the
//! oddity, a download runs in virtual time, and bytes, errors and counts of requests are judged. The number in the
//! comment on a test is that of the fault in the team's log; `docs/servers.md` has them in a table.
//!
//! Not here: faults of listings (Q47, Q54), of writing (Q36, Q41), and those that only a real server shows.
//! A peer that tops its channel up too late (Q32) is the SSH client's affair, and is held to here as far as the
//! engine can see it.

#[path = "quirks/scene.rs"]
mod scene;
#[path = "quirks/sessions.rs"]
mod sessions;
#[path = "quirks/sizes_and_ends.rs"]
mod sizes_and_ends;
#[path = "quirks/windows.rs"]
mod windows;
#[path = "quirks/wire.rs"]
mod wire;
