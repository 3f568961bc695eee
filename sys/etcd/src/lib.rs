//! The store of a cluster, which is etcd, version 3.4 or later.
//!
//! [`EtcdStore::connect`] makes a [`suimon_ports::ClusterStore`] of an [`EtcdSpec`]. It has a thread of its own on
//! which connections, watches and leases live; calls wait on the thread that makes them, for
//! [`EtcdSpec::patience`] at most.
//!
//! One member is talked to at a time, and the next when it does not answer or knows no leader. Reads
//! are linearizable and tried again; a transaction is sent once, because nobody knows what became of one
//! that was not answered.
//!
//! What it asks of etcd besides what it is asked: for each lease a message in a third of its span; for
//! each watch one a second, which no member writes down.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod explain;
mod lease;
mod members;
mod spec;
mod store;
mod watch;

pub use spec::{EtcdSpec, EtcdTls};
pub use store::EtcdStore;
