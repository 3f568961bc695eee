//! The world around a node, in memory, with failures on demand.

mod fake_devices;
mod fake_members;
mod fake_plane;
mod harness;
mod memory_store;

pub(crate) use fake_devices::{FakeDevices, LINK, mac_of, refused};
pub(crate) use fake_members::FakeMembers;
pub(crate) use fake_plane::FakePlane;
pub(crate) use harness::{Harness, PATIENCE, cpu_places, host, name, wait_until};
pub(crate) use memory_store::{MemoryStore, StoreFailure};
