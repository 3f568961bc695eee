//! Control plane of one host: desired state, reconciliation with the host, events and operations.
//!
//! A change of the desired state is an [`Edit`]. Every change is an operation: the node validates
//! the change as a whole, a single control thread carries it out, and a failure rolls back all of
//! its steps. Reports of devices and of the switching plane become health states and events.
//!
//! Out of scope: the node opens no socket of the API, contains no HTTP code and forwards no frames.
//! All access to the host goes through the traits of `suimon-ports`.
//!
//! Lifecycle
//! - [`Node::open`] reads the state store, brings the host to the stored desired state and starts
//!   the control thread. Devices that cannot be opened are retried after 1, 2, 4 … 30 s (with
//!   [`NodeParts::retry_first`] = 1 s).
//! - [`Node::submit`] validates a change and queues it. The control thread carries out changes one
//!   after another (order of steps: `apply.rs`).
//! - One driver thread per VM starts and stops the VM and adopts it after a restart of the daemon
//!   (`vms.rs`).
//! - Separate threads drive teams: link changes and LACPDUs are processed independently of the
//!   control thread (`teams.rs`).
//! - The status of other nodes is queried on demand, one thread per query (`node_status.rs`).
//! - Separate threads handle the division of shared stores between the nodes of a cluster
//!   (`cluster.rs`).
//! - The control thread polls adapters with SR-IOV and restores their desired settings
//!   (`sriov.rs`).
//! - [`Node::stop`], or dropping the node, closes the devices. TAPs remain, so that namespace
//!   guests keep their addresses. VMs continue to run.
//!
//! Invariants
//! - An acknowledged change (its operation succeeded) is durable.
//! - After a crash at any time, the next process starts with the desired state from before or after
//!   the change in progress, never with a part of it.
//! - A change interrupts only the ports it concerns. Other ports only receive a new set of
//!   forwarding tables.
//! - A TAP or socket file that did not exist before is recorded before it is created, and deleted
//!   when no configuration needs it. A TAP or file that existed before is never deleted. If the
//!   state store cannot be written while a node starts, such records are kept in memory until it
//!   can be (`deferring_store.rs`).
//! - Resources that clients or guests can allocate are bounded: stored events ([`EVENTS_MAX`]),
//!   operations ([`OPERATIONS_MAX`], [`RUNNING_MAX`]), captures ([`CAPTURES_MAX`]) and events
//!   caused by guests (`events/repeats.rs`).
#![forbid(unsafe_code)]

mod apply;
mod belongings;
mod bound_addresses;
mod capture;
mod checks;
mod cluster;
mod confinement;
mod control;
mod deferring_store;
mod device_notices;
mod devices;
mod disks;
mod drain;
mod edit;
mod event_texts;
mod events;
mod failing;
mod far_node;
mod iov;
mod kernel_path;
mod leading;
mod moving;
mod needed;
mod nic_addresses;
mod node;
mod node_status;
mod notices;
mod offloads;
mod operations;
mod plane;
mod port_key;
mod port_table;
mod power;
mod processors;
mod queue_names;
mod records;
mod refused_access;
mod shared;
mod sriov;
mod start_up;
mod state_store;
mod status;
mod steering;
mod teams;
mod topology;
mod vmq;
mod vms;
mod wanted;

pub use capture::{CAPTURES_MAX, Capture};
pub use cluster::{CLUSTER_PATIENCE, ClusterStores, cluster_prefix};
pub use confinement::{ConfinementReader, RefusedCall};
pub use disks::{DiskMirror, DiskParts, DiskPlane, DiskWork, RandomSource, ServedDisk};
pub use edit::{ChangeOptions, ClusterEdit, Edit, PowerEdit, ResourceEdit};
pub use events::{EVENTS_MAX, EventPage};
pub use far_node::{FarError, FarLine, FarNode, FarNodes};
pub use node::{NoListener, Node, NodeListener, NodeParts, stored_host};
pub use operations::{OPERATIONS_MAX, RUNNING_MAX};
pub use plane::{FrameCapture, SwitchPlane, placements};
pub use port_key::PortKey;
pub use power::{PowerRestoration, restore_power};
pub use queue_names::QueueSide;
pub use refused_access::RefusedAccess;
pub use shared::UnixClock;
pub use start_up::NodeError;
pub use vms::{VmParts, VmWork};

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod testing;
