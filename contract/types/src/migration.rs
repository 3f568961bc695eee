//! What is said about a VM that moves from one node to another while it runs.
//!
//! The node that it leaves drives: it asks the other whether the VM can come, has it prepare an
//! *arrival*, copies disks and memory over connections that are upgraded from HTTP, and hands the
//! VM over. Until the arrival is active, the VM is the first node's; from then on it is the
//! other's. An arrival that was abandoned never becomes active, and one that is active is never
//! abandoned, so that at most one of both ever runs the VM.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ByteSize, DiskConfig, Name, NicConfig, QosPolicyConfig, VmConfig};

/// The version of what nodes say to each other about VMs that move. Nodes of different versions
/// move none.
pub const MIGRATION_PROTOCOL: u32 = 2;

/// Milliseconds for which a VM may stand still at the end of a migration unless told otherwise.
pub const DOWNTIME_MS_DEFAULT: u32 = 300;
/// And at most.
pub const DOWNTIME_MS_MAX: u32 = 60_000;

/// `POST /1.0/vms/{name}/migrate`: the VM goes to another node while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrateVmRequest {
    /// The node, one of the host's `[[node]]`s.
    pub to: Name,
    /// Milliseconds for which it may stand still at the end, 1 to 60 000: the last of its memory
    /// is sent then. Once what is left takes no longer, it is handed over.
    #[serde(default = "downtime_default")]
    #[schema(minimum = 1, maximum = 60_000)]
    pub downtime_ms: u32,
    /// Bytes of memory sent in a second at most; as many as the connection carries if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<ByteSize>,
    /// Whether the files of its disks are deleted here once it runs there. Otherwise they stay,
    /// as those of a disk that is deleted.
    #[serde(default)]
    pub with_files: bool,
}

pub(crate) const fn downtime_default() -> u32 {
    DOWNTIME_MS_DEFAULT
}

/// Where a migration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationPhase {
    /// The other node makes what the VM needs.
    Preparing,
    /// Disks are copied, and what the guest writes meanwhile.
    CopyingDisks,
    /// Memory is copied, and what the guest writes meanwhile, disks too.
    CopyingMemory,
    /// The VM stands still; what is left is copied.
    Switching,
    /// Everything is there, and the other node was told to run it.
    HandedOver,
}

/// A VM that leaves this node, or comes to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmMigration {
    /// Names it on both nodes.
    pub id: String,
    /// Whether it leaves; otherwise it comes.
    pub leaves: bool,
    /// The other node, as this one calls it; the host's name if that is not known here.
    pub node: String,
    /// Where it is, as far as this node knows.
    pub phase: MigrationPhase,
    /// Bytes of disks copied so far, what was copied again included. 0 where it comes to.
    pub disk_bytes_copied: u64,
    /// Bytes of disks that are left.
    pub disk_bytes_left: u64,
    /// Bytes of memory sent so far, what was sent again included. 0 where it comes to.
    pub memory_bytes_copied: u64,
    /// Bytes of memory that are left.
    pub memory_bytes_left: u64,
    /// Its disks that are copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks_copied: Vec<Name>,
    /// Its disks that are handed over: both nodes see their files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks_handed_over: Vec<Name>,
}

/// Where a device of a VM that runs is plugged in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrivingPort {
    /// `nic/NAME` or `disk/NAME`.
    pub device: String,
    /// The machine's port, from 0 on.
    #[schema(minimum = 0, maximum = 255)]
    pub port: u8,
}

/// A disk in a store that both nodes see, as its guest knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskHandedOver {
    /// The disk.
    pub name: Name,
    /// Its bytes.
    #[schema(minimum = 0, maximum = 9_223_372_036_854_775_807usize)]
    pub size_bytes: u64,
    /// Bytes of a sector.
    #[schema(minimum = 0, maximum = 4_294_967_295usize)]
    pub logical_sector: u32,
    /// Bytes that are written at a time without being read before.
    #[schema(minimum = 0, maximum = 4_294_967_295usize)]
    pub physical_sector: u32,
}

/// A file that the node which a VM leaves has made in a store, and has open: the node that finds
/// it in its own store of that name sees the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreToken {
    /// The store.
    pub store: Name,
    /// What the file's name is made of, 32 hexadecimal digits; drawn at random.
    pub token: String,
}

/// `POST /1.0/arrivals`: a VM that runs on another node wants to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrivalRequest {
    /// [`MIGRATION_PROTOCOL`] of the node that it leaves.
    #[schema(minimum = 0, maximum = 4_294_967_295usize)]
    pub protocol: u32,
    /// Names the migration, 32 hexadecimal digits; chosen by the node that it leaves, at random.
    pub id: String,
    /// The name of the host that it leaves.
    pub from: String,
    /// The VM.
    pub vm: VmConfig,
    /// How it was started, which holds as long as it runs.
    pub as_started: VmConfig,
    /// Whether its CPUs stand still, and stay so.
    pub is_paused: bool,
    /// What the guest sees as the machine's identity, 32 hexadecimal digits.
    pub uuid: String,
    /// Its NICs.
    pub nics: Vec<NicConfig>,
    /// Its disks: those that are copied as they are to be made, without parents and with their
    /// size; those that are handed over as they are.
    pub disks: Vec<DiskConfig>,
    /// Which of them are handed over. They are opened when the VM becomes active.
    #[serde(default)]
    pub handed_over: Vec<DiskHandedOver>,
    /// By what their stores are known to be the same on both nodes, one for each.
    #[serde(default)]
    pub stores: Vec<StoreToken>,
    /// The QoS policies that they name.
    pub qos_policies: Vec<QosPolicyConfig>,
    /// Whether KVM runs it; otherwise QEMU translates.
    pub is_kvm: bool,
    /// Virtual CPUs that it has now.
    #[schema(minimum = 0, maximum = 65_535)]
    pub cpus_now: u16,
    /// QEMU's version, like `7.2.22`.
    pub qemu_version: String,
    /// The machine that QEMU emulates, like `pc-q35-7.2`.
    pub machine: String,
    /// Where virtio devices are plugged in.
    pub ports: Vec<ArrivingPort>,
    /// What the CPU can do that it leaves, as the host's kernel names it (`flags` in
    /// `/proc/cpuinfo`). Matters with KVM only.
    pub cpu_flags: Vec<String>,
}

/// What becomes of a VM that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalState {
    /// It is being prepared, or waits for its disks and memory.
    Waiting,
    /// It is this node's, and runs as it did.
    Active,
    /// It will never be this node's. An arrival that is not known is told to be so too.
    Abandoned,
}

/// `GET /1.0/arrivals/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Arrival {
    /// Names the migration.
    pub id: String,
    /// What becomes of it.
    pub state: ArrivalState,
}
