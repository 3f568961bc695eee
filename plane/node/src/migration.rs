//! Live migration of VMs between nodes.
//!
//! The source node drives the migration (`vms/outgoing.rs`); the destination node responds
//! (`vms/incoming.rs`). The destination decides, once and durably, which node owns the VM:
//!
//! ```text
//! source:       leaving ── all copied ──► handed over ── active ─────► left, deleted
//!                  │                          └───────── abandoned ──► continues to run
//!                  └── any failure ──► continues to run
//! destination:  arriving ── activate ──► active (recorded, then started)
//!                  └── abandon, or timeout ──► abandoned, deleted
//! ```
//!
//! After the handover, the source keeps the VM paused and repeats its request until the destination
//! has answered. Therefore at most one of the two nodes runs the VM, even if nodes crash. The VM
//! may be paused on both until the answer arrives.

mod control;
mod incoming;
mod log_limit;
mod node;
mod outgoing_request;
mod versions;

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod space_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vf_tests;

pub(crate) use self::incoming::{
    AbandonedMigrations, IncomingRequest, IncomingRequestMessage, IncomingResponse,
    incoming_vm_spec, parse_vm_uuid,
};
pub(crate) use self::log_limit::LogLimit;
pub(crate) use self::outgoing_request::{disks_to_hand_over, incoming_migration_request};
