//! Nodes that share stores: who leads, what each may do, and what comes between them.
//!
//! - [`keyspace`] is what etcd keeps, [`etcd`] its members, [`network`] what is between them and nodes. The
//!   equations and where parameters come from are told there.
//! - [`host`] is a node at etcd, [`seat`] its side of a store and [`office`] the leading of one. They drive the
//!   `Member` and the `Allocator` of `policy/cluster_qos` by the calls of production; nothing of the
//!   policy is written again. What is done for disks is the business of whoever owns them ([`Plant`]).
//! - [`faults`] is what goes wrong; [`checks`] and [`owed`] hold what happens against what was promised.
//!
//! What is not there: policies whose disks are on several nodes; nodes that join and leave; the bytes of
//! messages. What keeps a watch alive is not sent as messages, and what was missed on a connection is told as
//! it is at the end, not as each change.

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
