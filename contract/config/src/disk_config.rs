//! Desired state of stores and disks.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::disk_format::{DiskFormat, DiskKind};
use crate::{ByteSize, DiskNbd, Name, QosLimits, SocketMode, StoreCapacity, StoreFile};

/// Largest length of a serial number in bytes: `VIRTIO_BLK_T_GET_ID` returns 20 bytes (virtio 1.2,
/// 5.2.6.2).
pub(crate) const SERIAL_BYTES_MAX: usize = 20;

/// `[[store]]`: a backing store of disks, with one request queue for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// Name of the store, unique among stores.
    pub name: Name,
    /// Absolute path of a directory that contains disks as files, or of a block device that one
    /// disk uses as a whole.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// Capacity in normalised IOPS, or `measure` for the result of the last `suimon store measure`.
    /// The sum of the minimums of disks is limited to 90 % of it. If absent or not yet measured,
    /// the capacity is unknown, and minimums are accepted only with `--force`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_iops: Option<StoreCapacity>,
    /// Size of one normalised operation in bytes, a power of two. A read or write counts as its
    /// size divided by this size, rounded up; its offset does not matter.
    #[serde(default = "default_normalization_bytes")]
    pub normalization_bytes: ByteSize,
    /// Largest number of requests in flight at the device.
    #[serde(default = "default_depth_max")]
    #[serde(rename = "depth_max")]
    pub queue_depth_max: u32,
    /// True if other nodes use the same directory as a store of this name through a shared file
    /// system. Disks in it are handed over instead of copied when their VM migrates, after a check
    /// that both nodes see the same directory. The file system must support locks between nodes. On
    /// a node of a cluster, the disks in the store are limited to what the cluster grants as soon
    /// as the value is true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Limit of all disks of this host in the store, in normalised IOPS (see
    /// `normalization_bytes`), while the host has no contact with the cluster. The limit is in
    /// effect after 30 s without contact, if it is above the reservation of the host (the sum of
    /// its minimums plus 64 IOPS). Otherwise, and if absent, the reservation is the limit. The
    /// cluster keeps this rate free for the host. If 90 % of the capacity does not suffice for this
    /// rate and the rates reserved for other hosts, the key has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_iops: Option<u64>,
    /// Used space in percent of the size of the store above which the store is reported as nearly
    /// full (event 6152); 90 if absent.
    #[serde(
        default = "default_full_warning_percent",
        skip_serializing_if = "is_default_full_warning"
    )]
    pub full_warning_percent: u8,
}

/// Handling of requests for which the store has no space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskOnFull {
    /// Requests are queued until space is available.
    #[default]
    Wait,
    /// Requests fail immediately with an error.
    Error,
}

impl DiskOnFull {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
    const fn is_default(&self) -> bool {
        matches!(self, Self::Wait)
    }
}

/// Controller that the VM sees the disk on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskController {
    /// virtio-blk device, for guests with virtio drivers.
    #[default]
    Virtio,
    /// IDE controller emulated by QEMU, for guests without virtio drivers.
    Ide,
    /// SATA controller (AHCI) emulated by QEMU, for guests without virtio drivers.
    Sata,
}

impl DiskController {
    /// Returns true if QEMU emulates the controller and accesses the disk as an NBD client.
    pub const fn is_emulated(self) -> bool {
        match self {
            Self::Virtio => false,
            Self::Ide | Self::Sata => true,
        }
    }

    /// Returns the largest number of disks on the controller; `None` if only the VM's slots limit
    /// it.
    pub const fn disks_max(self) -> Option<usize> {
        match self {
            Self::Virtio => None,
            // Two channels with two disks each.
            Self::Ide => Some(4),
            // The machine has six ports, one of which is used by the CD drive.
            Self::Sata => Some(5),
        }
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
    const fn is_default(&self) -> bool {
        matches!(self, Self::Virtio)
    }
}

impl core::fmt::Display for DiskController {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Virtio => "virtio",
            Self::Ide => "IDE",
            Self::Sata => "SATA",
        })
    }
}

/// `[[disk]]`: a virtual disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// Name of the disk, unique among disks.
    pub name: Name,
    /// Store that contains the disk.
    pub store: Name,
    /// Image file, relative to the path of the store; the name of the disk with `.raw`, `.vhd` or
    /// `.vhdx` if absent. A missing file is created when the disk is added, or by
    /// `suimon disk set --create-image`; otherwise, the disk has the state `failed`. The file is
    /// kept when the disk is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<StoreFile>,
    /// Image format of the file. `pass-through` uses the whole block device of the store.
    pub format: DiskFormat,
    /// Allocation of the file: `fixed` (whole size), `dynamic` (written blocks; a sparse file with
    /// format `raw`) or `differencing` (written blocks, others are read from a parent). If absent,
    /// an existing VHD or VHDX keeps its kind; a new file is `differencing` with `parent`,
    /// `dynamic` with format `vhd` or `vhdx`, else `fixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DiskKind>,
    /// Size of the disk in bytes, or with a unit, such as `"10 GiB"`. Required for a new file; the
    /// size of the existing file if absent. It can be raised, not lowered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<ByteSize>,
    /// Kind `differencing`: parent file, relative to the path of the store, which no disk may write
    /// to. Required for a new file. If absent, the parent recorded in the existing image is used,
    /// or a file of the same name in the directory of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<StoreFile>,
    /// True if the guest cannot write to the disk.
    #[serde(default)]
    pub read_only: bool,
    /// Serial number that the guest sees; the first 20 characters of the name of the disk if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Logical sector size in bytes.
    #[serde(default = "default_logical_sector")]
    #[serde(rename = "logical_sector")]
    pub logical_sector_bytes: u32,
    /// Physical sector size in bytes that is reported to the guest.
    #[serde(default = "default_physical_sector")]
    #[serde(rename = "physical_sector")]
    pub physical_sector_bytes: u32,
    /// Block size of a new file in bytes, a power of two: 512 KiB to 2 MiB for a VHD (2 MiB if
    /// absent), 1 MiB to 256 MiB for a VHDX (32 MiB if absent). No effect on an existing file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<ByteSize>,
    /// QoS policy whose limits the disk has. Not permitted together with limits in `qos`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos_policy: Option<Name>,
    /// Limits of this disk.
    #[serde(default, skip_serializing_if = "QosLimits::is_default")]
    pub qos: QosLimits,
    /// Treatment of requests for which the store has no space. `wait`: they are queued until space
    /// is available, without time limit on a virtio disk and for up to `full_wait_s` from NBD
    /// clients; a VM with an IDE or SATA disk is paused meanwhile. `error`: they fail at once. An
    /// IDE or SATA disk of a running VM keeps the former value until the next start of the VM.
    #[serde(default, skip_serializing_if = "DiskOnFull::is_default")]
    pub on_full: DiskOnFull,
    /// Time in seconds for which requests of NBD clients are queued while the store is full; 30 if
    /// absent. They then fail with `NBD_ENOSPC`.
    #[serde(default = "default_full_wait_s", skip_serializing_if = "is_default_full_wait")]
    pub full_wait_s: u32,
    /// Controller that the VM sees the disk on: `virtio` (virtio-blk), or `ide` or `sata`, which
    /// QEMU emulates for guests without virtio drivers. IDE and SATA disks are attached when the VM
    /// starts, and need no keys of `vhost_user` or `nbd`.
    #[serde(default, skip_serializing_if = "DiskController::is_default")]
    pub controller: DiskController,
    /// vhost-user socket by which a VM of another program uses the disk; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost_user: Option<DiskVhostUser>,
    /// NBD export of the disk under its name; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd: Option<DiskNbd>,
}

impl DiskConfig {
    /// Returns a disk with the given keys and defaults for all others.
    pub const fn new(name: Name, store: Name, format: DiskFormat) -> Self {
        Self {
            name,
            store,
            file: None,
            format,
            kind: None,
            size_bytes: None,
            parent: None,
            read_only: false,
            serial: None,
            logical_sector_bytes: default_logical_sector(),
            physical_sector_bytes: default_physical_sector(),
            block_bytes: None,
            qos_policy: None,
            qos: QosLimits::NONE,
            on_full: DiskOnFull::Wait,
            full_wait_s: default_full_wait_s(),
            controller: DiskController::Virtio,
            vhost_user: None,
            nbd: None,
        }
    }

    /// Returns the kind of a file created for the disk. An existing image may have another kind,
    /// unless [`Self::required_kind`] returns one.
    pub fn kind_of_new_file(&self) -> DiskKind {
        self.required_kind().unwrap_or(self.format.default_kind())
    }

    /// Returns the kind that an existing image must have; `None` if any is accepted. A `parent`
    /// implies `differencing`.
    pub fn required_kind(&self) -> Option<DiskKind> {
        let by_format = match self.format {
            DiskFormat::Raw | DiskFormat::PassThrough => Some(self.format.default_kind()),
            DiskFormat::Vhd | DiskFormat::Vhdx => {
                self.parent.as_ref().map(|_| DiskKind::Differencing)
            }
        };
        self.kind.or(by_format)
    }

    /// Returns the disk's file relative to the store's path; `None` for a pass-through disk.
    pub fn effective_file(&self) -> Option<StoreFile> {
        let default = StoreFile::default_for_disk(&self.name, self.format)?;
        Some(self.file.clone().unwrap_or(default))
    }

    /// Returns the absolute path of the disk's file, or of the store's block device.
    pub fn path_in(&self, store: &StoreConfig) -> PathBuf {
        match self.effective_file() {
            Some(file) => store.path.join(file),
            None => store.path.clone(),
        }
    }

    /// Returns the serial number that the guest sees.
    pub fn effective_serial(&self) -> String {
        let from_name = || self.name.as_str().chars().take(SERIAL_BYTES_MAX).collect();
        self.serial.clone().unwrap_or_else(from_name)
    }
}

/// `[disk.vhost_user]`: attaches the disk to a VM as a virtio disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskVhostUser {
    /// Absolute path of the vhost-user socket for a VM that another program starts. A disk that
    /// only a VM of this host uses needs neither the key nor its table `[disk.vhost_user]`.
    #[schema(value_type = String)]
    pub socket: PathBuf,
    /// Role of the daemon on the socket: `server` (the daemon listens) or `client` (QEMU listens,
    /// and the daemon connects).
    #[serde(default = "default_mode")]
    pub mode: SocketMode,
    /// Largest number of request queues that the guest may use.
    #[serde(default = "default_queues")]
    pub queues: u16,
}

const fn default_normalization_bytes() -> ByteSize {
    ByteSize::new(8192)
}

const fn default_depth_max() -> u32 {
    256
}

const fn default_full_warning_percent() -> u8 {
    90
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
const fn is_default_full_warning(percent: &u8) -> bool {
    *percent == default_full_warning_percent()
}

const fn default_full_wait_s() -> u32 {
    30
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
const fn is_default_full_wait(seconds: &u32) -> bool {
    *seconds == default_full_wait_s()
}

const fn default_logical_sector() -> u32 {
    512
}

const fn default_physical_sector() -> u32 {
    4096
}

const fn default_mode() -> SocketMode {
    SocketMode::Server
}

const fn default_queues() -> u16 {
    1
}
