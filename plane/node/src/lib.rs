//! One host: desired state, its reconciliation, events and operations.
//!
//! Desired state is changed by an [`Edit`]; every change is an operation, checked
//! as a whole, carried out by one control thread, and made or not made as a
//! whole. What devices and the switching plane report becomes health and events.
//!
//! What it does not do: it opens no socket, knows no HTTP, and moves no frame. It
//! talks to the host through the traits of `suimon-ports` only.
//!
//! Lifecycle
//! - [`Node::open`] reads the store, makes the host so, and starts the control
//!   thread. A device that cannot be opened is tried again after 1, 2, 4 … 30 s.
//! - [`Node::submit`] checks a change and queues it; the control thread carries
//!   changes out one after another (see `apply.rs` for the order of steps).
//! - Each VM is driven by a thread of its own, which starts and stops it and finds it again
//!   after a daemon's death (see `vms.rs`).
//! - Teams are driven by a thread of their own, which hears of links and LACPDUs without
//!   waiting for the control thread (see `teams.rs`).
//! - Other nodes are asked how they are when somebody wants to know, by a thread for each
//!   question (see `node_status.rs`).
//! - What nodes of a cluster may ask of stores that they share is settled by threads of its own (see
//!   `cluster.rs`).
//! - Adapters with SR-IOV are looked at by the control thread, which makes them as desired
//!   again (see `sriov.rs`).
//! - [`Node::stop`], or dropping the node, closes the devices. TAPs stay, so that
//!   guests in namespaces keep their addresses, and VMs go on.
//!
//! Invariants
//! - A change that was acknowledged (its operation succeeded) is durable.
//! - Whenever the process dies, the next one starts with the desired state from
//!   before or after the change under way, never with a part of it.
//! - A change touches only the ports it is about; others are affected by nothing
//!   but a new set of forwarding tables.
//! - A TAP or a socket file that did not exist before is recorded before it is made,
//!   and deleted when it is no longer wanted; one that existed before is never
//!   deleted.
//! - Everything that others can make grow is bounded: events kept, operations
//!   remembered and under way, captures, events that a guest can cause.
#![forbid(unsafe_code)]

mod apply;
mod belongings;
mod bound_addresses;
mod capture;
mod checks;
mod cluster;
mod confinement;
mod control;
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
mod queue_names;
mod records;
mod refused_access;
mod shared;
mod sriov;
mod start_up;
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
