//! Simulated environment of a node: in-memory implementations of the port traits with injected
//! failures.

mod bare_node;
mod fake_cluster;
mod fake_devices;
mod fake_disks;
mod fake_members;
mod fake_peer_nodes;
mod fake_plane;
mod fake_power;
mod fake_sriov;
mod fake_vms;
mod harness;
mod hollow_disk;

pub(crate) use bare_node::shared_only_node;
pub(crate) use fake_cluster::{FakeCluster, Faults};
pub(crate) use fake_devices::{BoundSockets, FakeDevices, LINK, device_error, mac_of};
pub(crate) use fake_disks::FakeDisks;
pub(crate) use fake_members::FakeMembers;
pub(crate) use fake_peer_nodes::FakePeerNodes;
pub(crate) use fake_plane::FakePlane;
pub(crate) use fake_power::FakePower;
pub(crate) use fake_sriov::FakeSriov;
pub(crate) use fake_vms::FakeVms;
pub(crate) use harness::{DEADLINE, DISK_STORE, Harness, cpu_places, host, name, wait_until};
pub(crate) use hollow_disk::HollowDisk;
pub(crate) use suimon_node_core::testing::{MemoryStore, StoreFailure};
