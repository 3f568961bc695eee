//! Storage models of the simulator: disks on a shared array, and clusters of nodes.
//!
//! - `storage`: disks of VMs on an array, with the production scheduler between them.
//! - `cluster`: nodes that share stores, with etcd and the network between them.
//! - `fleet`: the cluster policy with up to 100 000 nodes, on a coarse model of disks.
//!
//! Runs call the production policies; their results depend only on scenario and seed.
#![forbid(unsafe_code)]

mod cluster;
mod fleet;
mod storage;

pub use fleet::FleetScenario;
pub use storage::{CalibrationResult, StorageScenario, calibrate};
