//! What all models of processors have in common.
//!
//! - [`sharing`]: what processors take from each other; the equation is told there.
//! - [`placement`]: the placement of queues (`policy/vmq`), driven by the calls of `plane/node`.

mod placement;
mod sharing;

pub(crate) use placement::{Busy, Moves, PERIOD_NS, Placement};
pub(crate) use sharing::Sharing;
