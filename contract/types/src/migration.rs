//! Messages about the live migration of a VM from one node to another.
//!
//! The source node drives the migration. It requests the destination to prepare an incoming
//! migration (`/1.0/arrivals`), copies disks and memory over connections upgraded from HTTP, and
//! hands over the VM. The source owns the VM until the destination activates the incoming
//! migration; the destination owns it afterwards. An abandoned migration is never activated, and an
//! active one is never abandoned, so that at most one node ever runs the VM.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ByteSize, DiskConfig, Name, NicConfig, QosPolicyConfig, SwitchKind, VmConfig};

/// Version of the protocol between nodes. Nodes with different versions do not migrate VMs.
pub const MIGRATION_PROTOCOL: u32 = 2;

/// Default of the longest downtime at the end of a migration, in ms.
pub const DOWNTIME_MS_DEFAULT: u32 = 300;
/// Upper limit of the longest downtime, in ms.
pub const DOWNTIME_MS_MAX: u32 = 60_000;

/// Body of `POST /1.0/vms/{name}/migrate`: live migration to another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrateVmRequest {
    /// Destination, one of the host's `[[node]]`s.
    #[serde(rename = "to")]
    pub destination: Name,
    /// Target downtime in ms, 1 to 60 000. The VM is stopped and handed over once the remaining
    /// memory can be sent in this time.
    #[serde(default = "default_downtime_ms")]
    #[schema(minimum = 1, maximum = 60_000)]
    pub downtime_ms: u32,
    /// Limit of memory transfer in bytes per second; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "bandwidth")]
    pub bandwidth_max_bytes_per_s: Option<ByteSize>,
    /// True if the files of the VM's disks are deleted on this node after the migration. Otherwise
    /// they are kept, like those of a deleted disk.
    #[serde(default)]
    #[serde(rename = "with_files")]
    pub deletes_source_files: bool,
}

pub(crate) const fn default_downtime_ms() -> u32 {
    DOWNTIME_MS_DEFAULT
}

/// Phase of a migration, in chronological order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationPhase {
    /// The destination prepares the VM's resources.
    Preparing,
    /// Disks are copied, including writes of the guest in the meantime.
    CopyingDisks,
    /// Memory is copied, including writes of the guest to memory and disks in the meantime.
    CopyingMemory,
    /// The VM is stopped; the remaining state is copied.
    #[serde(rename = "switching")]
    StopAndCopy,
    /// The destination has all state and was requested to run the VM.
    HandedOver,
}

/// VM that migrates from or to this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmMigration {
    /// Id of the migration on both nodes.
    pub id: String,
    /// True on the source node, false on the destination.
    pub is_outgoing: bool,
    /// Name of the other node in this host's configuration; its host name if it is not configured
    /// here.
    #[serde(rename = "node")]
    pub peer_node: String,
    /// Phase, as far as known to this node.
    pub phase: MigrationPhase,
    /// Bytes of disks copied, including repeated copies. 0 on the destination.
    pub disk_bytes_copied: u64,
    /// Bytes of disks left to copy.
    #[serde(rename = "disk_bytes_left")]
    pub disk_bytes_remaining: u64,
    /// Bytes of memory sent, including repeated copies. 0 on the destination.
    pub memory_bytes_copied: u64,
    /// Bytes of memory left to copy.
    #[serde(rename = "memory_bytes_left")]
    pub memory_bytes_remaining: u64,
    /// Names of disks that are copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks_copied: Vec<Name>,
    /// Disks that are handed over, because both nodes access their files in a shared store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks_handed_over: Vec<Name>,
}

/// PCI port of a device of a running VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "ArrivingPort")]
#[schema(as = ArrivingPort)]
pub struct DevicePciPort {
    /// Device of the VM: `nic/NAME` or `disk/NAME`.
    pub device: String,
    /// Number of the PCI port on the machine, from 0.
    #[schema(minimum = 0, maximum = 255)]
    pub port: u8,
}

/// Guest-visible geometry of a disk in a shared store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "DiskHandedOver")]
#[schema(as = DiskHandedOver)]
pub struct HandedOverDisk {
    /// Name of the disk.
    pub name: Name,
    /// Size of the disk in bytes.
    #[schema(minimum = 0, maximum = 9_223_372_036_854_775_807usize)]
    pub size_bytes: u64,
    /// Logical sector size in bytes.
    #[schema(minimum = 0, maximum = 4_294_967_295usize)]
    #[serde(rename = "logical_sector")]
    pub logical_sector_bytes: u32,
    /// Physical sector size in bytes.
    #[schema(minimum = 0, maximum = 4_294_967_295usize)]
    #[serde(rename = "physical_sector")]
    pub physical_sector_bytes: u32,
}

/// Disk whose contents are copied to the destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "DiskCopied")]
#[schema(as = DiskCopied)]
pub struct CopiedDisk {
    /// Name of the disk.
    pub name: Name,
    /// Space in bytes that the disk occupies on the source node; with several image files, the
    /// space of the largest one.
    #[schema(minimum = 0, maximum = 9_223_372_036_854_775_807usize)]
    pub allocated_bytes: u64,
}

/// Switch of a NIC on the source node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceSwitch {
    /// Name of the switch.
    pub name: Name,
    /// Kind of the switch.
    pub kind: SwitchKind,
}

/// File that the source node created in a shared store and keeps open. A destination that finds the
/// file in its store of the same name accesses the same directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreToken {
    /// Name of the store.
    pub store: Name,
    /// Random part of the file's name, 32 hexadecimal digits.
    pub token: String,
}

/// Part of an [`IncomingMigrationRequest`] that all versions of the migration protocol have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MigrationHeader {
    /// Version of the migration protocol of the source node.
    pub protocol: u64,
    /// Host name of the source node.
    #[serde(default)]
    #[serde(rename = "from")]
    pub source_node: Option<String>,
}

impl MigrationHeader {
    /// Parses the header of a request of any version; `None` if the body has none.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}

/// Body of `POST /1.0/arrivals`: request of a source node to prepare a migration to this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[serde(rename = "ArrivalRequest")]
#[schema(as = ArrivalRequest)]
pub struct IncomingMigrationRequest {
    /// Version of the migration protocol of the source node.
    #[schema(minimum = 0, maximum = 4_294_967_295usize)]
    pub protocol: u32,
    /// Id of the migration, 32 hexadecimal digits, chosen at random by the source node.
    pub id: String,
    /// Host name of the source node.
    #[serde(rename = "from")]
    pub source_node: String,
    /// Current configuration of the VM.
    pub vm: VmConfig,
    /// Configuration at the VM's start, in effect while it runs.
    #[serde(rename = "as_started")]
    pub vm_at_start: VmConfig,
    /// True if the VM's CPUs are paused and remain paused.
    pub is_paused: bool,
    /// UUID of the machine as the guest sees it, 32 hexadecimal digits.
    pub uuid: String,
    /// NICs of the VM as configured.
    pub nics: Vec<NicConfig>,
    /// Disks of the VM. Copied disks are given as they are to be created: without parent and with
    /// their size. Disks handed over are given as configured.
    pub disks: Vec<DiskConfig>,
    /// Disks handed over. They are opened when the VM becomes active.
    #[serde(default)]
    #[serde(rename = "handed_over")]
    pub handed_over_disks: Vec<HandedOverDisk>,
    /// Disks that are copied, with the space that they need. Disks whose space is unknown are left
    /// out.
    #[serde(default)]
    #[serde(rename = "copied")]
    pub copied_disks: Vec<CopiedDisk>,
    /// Switches of the NICs on the source node. Those of this node must have the same kinds.
    #[serde(default)]
    pub switches: Vec<SourceSwitch>,
    /// Files that prove that both nodes access the same stores, one for each store.
    #[serde(default)]
    pub stores: Vec<StoreToken>,
    /// QoS policies that the disks refer to.
    pub qos_policies: Vec<QosPolicyConfig>,
    /// True if KVM runs the VM, false if QEMU emulates the CPU.
    #[serde(rename = "is_kvm")]
    pub uses_kvm: bool,
    /// Current number of virtual CPUs.
    #[schema(minimum = 0, maximum = 65_535)]
    #[serde(rename = "cpus_now")]
    pub current_cpus: u16,
    /// Version of QEMU, such as `7.2.22`.
    pub qemu_version: String,
    /// Machine type that QEMU emulates, such as `pc-q35-7.2`.
    #[serde(rename = "machine")]
    pub machine_type: String,
    /// PCI ports of the virtio devices.
    pub ports: Vec<DevicePciPort>,
    /// CPU features of the source, as named by the kernel (`flags` in `/proc/cpuinfo`). Used with
    /// KVM only.
    pub cpu_flags: Vec<String>,
}

/// State of an incoming migration on the destination node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ArrivalState)]
pub enum IncomingMigrationState {
    /// In preparation, or receiving disks and memory.
    #[serde(rename = "waiting")]
    InProgress,
    /// This node owns the VM, which runs or is paused as before.
    Active,
    /// Abandoned: this node will never own the VM. Also reported for unknown migration ids.
    Abandoned,
}

/// Response of `GET /1.0/arrivals/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "Arrival")]
#[schema(as = Arrival)]
pub struct IncomingMigration {
    /// Id of the migration.
    pub id: String,
    /// Current state of the incoming migration.
    pub state: IncomingMigrationState,
}
