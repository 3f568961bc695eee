//! Live migration of VMs between nodes.
//!
//! The source node drives the migration (`vms/leaving.rs`); the destination responds
//! (`vms/arriving.rs`). The destination alone decides which node owns the VM, and its decision is
//! final:
//!
//! ```text
//! source:       leaving ── state complete ──► handed over ── active ─────► left, deleted
//!                  │                               └───────── abandoned ──► continues
//!                  └── any failure ──► continues
//! destination:  arriving ── activate ──► active (recorded, then running)
//!                  └── abandon, or silence ──► abandoned, deleted
//! ```
//!
//! A handed-over VM stays stopped on the source until the destination has responded; the source
//! repeats its request without limit. Therefore at most one node runs the VM, whichever process
//! fails. The VM can be stopped on both nodes while the destination is unreachable.

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
