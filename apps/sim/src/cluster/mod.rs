//! Nodes that share stores: leadership, limits, messages and faults.
//!
//! - [`keyspace`] is the content of etcd, [`etcd`] its members, [`network`] the network between
//!   members and nodes. These modules document equations and sources of parameters.
//! - [`host`] is a node's connection to etcd, [`seat`] its participation in a store, [`office`] the
//!   leadership of a store. They call the `Member` and the `Allocator` of `policy/cluster_qos` like
//!   production code; no part of the policy is reimplemented. The owner of the disks implements
//!   [`Plant`].
//! - [`faults`] injects faults; [`checks`] and [`owed`] compare facts with guarantees.
//!
//! Not modelled: policies with disks on several nodes; nodes that join and leave; sizes of
//! messages. Keep-alives of watches are not sent as messages, and changes missed on a connection
//! are reported as the final state instead of individually.

mod checks;
mod clock;
mod control;
mod etcd;
mod facts;
mod faults;
mod host;
mod keyspace;
mod machines;
mod network;
mod office;
mod owed;
mod seat;
mod spec;

pub(crate) use checks::{Caps, Leases};
pub(crate) use clock::Clock;
pub(crate) use control::{Cast, Control, ControlEvent, Plant, TICK_NS};
pub(crate) use facts::{ClusterFact, HeldTo, OfCluster, StoreWord};
pub(crate) use faults::{Fault, draw};
#[cfg(test)]
pub(crate) use machines::{AllocatorMachine, MemberMachine};
pub(crate) use machines::{Machines, Production};
pub(crate) use owed::{Minimums, OfDisk, OfDisks, Place, Spare};
pub(crate) use spec::ClusterSpec;
