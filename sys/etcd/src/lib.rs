//! Cluster store in etcd, version 3.4 or later.
//!
//! [`EtcdStore::connect`] creates a [`suimon_ports::ClusterKvStore`] from an [`EtcdSpec`]. A thread
//! of the store runs its connections, watches and leases; calls block the calling thread, for about
//! [`EtcdSpec::timeout`] at most.
//!
//! Requests go to one member, and to the next one if it does not reply or has no leader. Reads are
//! linearizable and repeated on failure. A transaction is sent once, because its outcome is unknown
//! if there was no reply.
//!
//! Names of members are resolved by blocking calls of the store's threads, whose number in the
//! process is limited (`suimon_lookups`) however many connections are created.
//!
//! Additional load on etcd: one message per third of each lease's duration, and one progress
//! request per second for each watch, which etcd does not log.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod channel;
mod errors;
#[cfg(test)]
mod hanging_resolver;
mod lease;
mod members;
mod spec;
mod store;
mod view;
mod watch;

pub use spec::{EtcdSpec, EtcdTls};
pub use store::EtcdStore;
