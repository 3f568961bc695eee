//! Components common to all models of CPUs.
//!
//! - [`sharing`]: contention between CPUs, with its equation.
//! - [`placement`]: placement of queues (`policy/vmq`), called as by `plane/node`.

mod placement;
mod sharing;

pub(crate) use placement::{BusyTimes, Moves, PERIOD_NS, Placement};
pub(crate) use sharing::CpuSharingModel;
