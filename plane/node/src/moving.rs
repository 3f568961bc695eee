//! VMs that move from one node to another while they run.
//!
//! The node that the VM leaves drives (`vms/leaving.rs`); the other one answers
//! (`vms/arriving.rs`). Whose the VM is, the latter decides, once and for good:
//!
//! ```text
//! leaves:  leaving ── all is there ──► handed over ── active ─────► left, and gone
//!             │                            └───────── abandoned ──► runs on
//!             └── anything fails ──► runs on
//! comes:   arriving ── activate ──► active (recorded, then it runs)
//!             └── abandon, or silence ──► abandoned, and gone
//! ```
//!
//! A VM that was handed over stands still until the other node has answered, however often it has
//! to be asked. So at most one of both runs it, whoever dies when; if none of both does for a
//! while, that is why.

mod arrival;
mod control;
mod departure;
mod node;

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod space_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vf_tests;

pub(crate) use self::arrival::{
    Abandoned, ArrivalAnswer, ArrivalCall, Asked, arrival_spec, uuid_of,
};
pub(crate) use self::departure::{arrival_request, disks_to_hand_over};
pub(crate) use self::node::far_error;
