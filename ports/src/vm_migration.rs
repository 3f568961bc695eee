//! Live migration of VMs.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;

use crate::VmDevice;

/// Requirements that the source of a migration imposes on the target, so that the guest's machine
/// is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationRequirements {
    /// QEMU machine type, such as `pc-q35-7.2`.
    #[serde(rename = "machine")]
    pub machine_type: String,
    /// QEMU version of the source, such as `7.2.22`. Older versions cannot receive the VM.
    pub qemu_version: String,
}

/// Machine type and device ports of a running VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmHardware {
    /// QEMU machine type, such as `pc-q35-7.2`.
    pub machine_type: String,
    /// Plugged devices with their ports.
    pub plugged_devices: Vec<PluggedDevice>,
}

/// A plugged device of a running VM, with its guest-visible location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluggedDevice {
    /// Name and type of the device.
    pub device: VmDevice,
    /// PCIe root port of the device, 0 to 15.
    pub root_port: u8,
    /// MAC address of a NIC, configured or chosen by QEMU.
    pub mac: Option<MacAddr>,
}

/// Parameters of an outgoing migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationSpec {
    /// Maximum downtime: the VM is stopped once the remaining state can be transferred within it.
    pub downtime_max: Duration,
    /// Bandwidth limit in bytes per second.
    pub bytes_per_second: Option<u64>,
}

/// Phase of a migration, on the source or the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationTransferPhase {
    /// No migration has been started.
    None,
    /// Memory is copied while the VM runs.
    Copying,
    /// The VM is stopped and waits for
    /// [`VmCommand::FinishMigration`](crate::VmCommand::FinishMigration).
    WaitingForFinish,
    /// The VM is stopped and the remaining state is copied.
    Finishing,
    /// The state is complete; either side could continue.
    Done,
    /// The migration failed, with the reason. The source continues.
    Failed(String),
}

/// Progress of an outgoing or incoming migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationStatus {
    /// Current phase of the migration.
    pub phase: MigrationTransferPhase,
    /// Bytes sent, including retransmissions of dirtied memory.
    pub bytes_sent: u64,
    /// Bytes remaining, as far as known.
    pub remaining_bytes: u64,
}
