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
//!   [`NodeDependencies::retry_first`] = 1 s).
//! - [`Node::submit`] validates a change and queues it. The control thread carries out changes one
//!   after another (order of steps: `order.rs` of `suimon-node-core`).
//! - One driver thread per VM starts and stops the VM and adopts it after a restart of the daemon
//!   (`vms.rs`).
//! - Separate threads drive teams: link changes and LACPDUs are processed independently of the
//!   control thread (`teams.rs`).
//! - The status of other nodes is queried on demand, one thread per query
//!   (`remote_nodes/status.rs`).
//! - Separate threads handle the division of shared stores between the nodes of a cluster
//!   (`cluster.rs`).
//! - The control thread polls adapters with SR-IOV and restores their desired settings
//!   (`adapters.rs`).
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
//!   can be (`deferring_store.rs` of `suimon-node-core`).
//! - Resources that clients or guests can allocate are bounded: stored events ([`EVENTS_MAX`]),
//!   operations ([`OPERATIONS_MAX`], [`RUNNING_MAX`]), captures ([`CAPTURES_MAX`]) and events
//!   caused by guests (`events/rate_limiter.rs` of `suimon-node-core`).
#![forbid(unsafe_code)]

mod adapters;
mod captures;
mod change;
mod cluster;
mod command;
mod control;
mod device_notices;
mod disks;
mod drain;
mod host;
mod images;
mod migration;
mod node;
mod offloads;
mod ports;
mod power;
mod remote_nodes;
mod shared;
mod start_up;
mod teams;
mod virtual_functions;
mod vmq;
mod vms;

use suimon_node_core::{errors, events, operations, retry, state, transaction};

pub use captures::{CAPTURES_MAX, Capture};
pub use change::{ChangeOptions, ClusterEdit, Edit, PowerEdit, ResourceEdit};
pub use cluster::{CLUSTER_TIMEOUT, ClusterStoreConnector, cluster_prefix};
pub use disks::{DiskDependencies, DiskFileJob, DiskMirror, DiskPlane, ServedDisk};
pub use host::{ConfinementReader, DeniedCall, RefusedAccess};
pub use node::{Node, NodeDependencies, stored_host};
pub use ports::{FrameCapture, PortKey, QueueSide, SwitchPlane, placements};
pub use power::{PowerRestoration, restore_power};
pub use remote_nodes::{PeerError, PeerNode, PeerNodes, PeerStream};
pub use start_up::NodeError;
pub use suimon_node_core::events::{EVENTS_MAX, EventPage};
pub use suimon_node_core::operations::{OPERATIONS_MAX, RUNNING_MAX};
pub use suimon_node_core::{NoListener, NodeListener, RandomSource, UnixClock};
pub use vms::{VmAction, VmDependencies};

#[cfg(test)]
mod testing;
