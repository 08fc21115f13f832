//! `longhaul demo`: what distance does to a download, with nothing to set up.

mod link;

use core::time::Duration;

use self::link::{Shape, link};
use crate::cli::{Console, Exit, Failure};

/// A link across a continent: 60 ms there and back, 1 Gbit/s.
const SHAPE: Shape = Shape {
    delay: Duration::from_millis(30),
    bytes_per_second: 125_000_000,
};

pub(crate) async fn run(_console: &Console) -> Result<(), Failure> {
    let (_near, _far) = link(SHAPE);
    Err(Failure::new(Exit::Failed, "demo: not built yet"))
}
