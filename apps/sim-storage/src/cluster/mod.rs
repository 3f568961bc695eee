//! Nodes that share stores: leadership, limits, messages and faults.
//!
//! - [`keyspace`] is the content of etcd, [`etcd`] its members, [`network`] the network between
//!   members and nodes. These modules document equations and sources of parameters.
//! - [`cluster_model`] passes events on. [`connection`] is a node's connection to etcd, [`member`]
//!   its participation in a store, [`leadership`] the leadership of a store; [`node_state`] and
//!   [`participant`] are their state. They call the `Member` and the `Allocator` of
//!   `policy/cluster_qos` like production code; no part of the policy is reimplemented. The owner
//!   of the disks implements [`DiskModel`].
//! - [`faults`] injects faults; [`safety_checkers`] and [`liveness_checkers`] compare facts
//!   with guarantees.
//!
//! Not modelled: policies with disks on several nodes; nodes that join and leave; sizes of
//! messages. Keep-alives of watches are not sent as messages, and changes missed on a connection
//! are reported as the final state instead of individually.

mod clock;
mod cluster_model;
mod connection;
mod etcd;
mod event;
mod facts;
mod faults;
mod keyspace;
mod leadership;
mod liveness_checkers;
mod machines;
mod member;
mod network;
mod node_state;
mod participant;
mod safety_checkers;
mod spec;

#[cfg(test)]
pub(crate) mod broken_machines;

pub(crate) use clock::Clock;
pub(crate) use cluster_model::{ClusterModel, Topology};
pub(crate) use event::{ControlEvent, DiskModel, TICK_NS};
pub(crate) use facts::{AsClusterFact, ClusterFact, NodeLimit, StoreNotice};
pub(crate) use faults::{Fault, draw_fault};
pub(crate) use liveness_checkers::{
    AsDiskFact, CheckerParameters, ClusterMinimumChecker, DiskFact, UnusedCapacityChecker,
};
pub(crate) use machines::{ProductionFactory, StateMachineFactory};
pub(crate) use safety_checkers::{CapacityChecker, LeaseChecker};
pub(crate) use spec::ClusterSpec;
