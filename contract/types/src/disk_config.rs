//! Desired state of stores and disks.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ByteSize, DiskNbd, DiskQos, Name, SocketMode, StoreCapability, StoreFile};

/// `virtio_blk` tells 20 bytes of a serial number (virtio 1.2, 5.2.6.2,
/// `VIRTIO_BLK_T_GET_ID`).
pub(crate) const SERIAL_BYTES_MAX: usize = 20;

/// `[[store]]`: where disks are, with one queue for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// Unique among stores.
    pub name: Name,
    /// Absolute path of a directory, in which disks are files, or of a block device, which
    /// one disk has all of.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// Normalised operations per second that it can do, 1 to 1 000 000 000, or `measure`:
    /// what `suimon store measure` found out last. If absent, and before it was measured,
    /// that is not known, and minimums are promised only with force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_iops: Option<StoreCapability>,
    /// Bytes that count as one operation, a power of two from 512 B to 1 MiB.
    #[serde(default = "default_normalization_bytes")]
    pub normalization_bytes: ByteSize,
    /// Requests that the device gets at a time at most, 1 to 1024.
    #[serde(default = "default_depth_max")]
    pub depth_max: u32,
    /// Whether other nodes have the same directory as a store of this name, by a file system
    /// that all of them see. Disks in it are handed over with their VM and not copied; that it is
    /// the same is proved before. It takes locks on files that hold between nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Normalised operations per second that this host's disks in it may do together when the
    /// cluster was not heard of for half a minute, 1 to 1 000 000 000; what is reserved for the host
    /// if absent or less. It counts as a promise, and where it does not fit it is not in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_iops: Option<u64>,
    /// Used part of the store, in percent, from which on a warning says that it is nearly full (event
    /// 6152), 1 to 100.
    #[serde(
        default = "default_full_warning_percent",
        skip_serializing_if = "is_default_full_warning"
    )]
    pub full_warning_percent: u8,
}

/// What requests of a disk do that its store has no space for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskOnFull {
    /// They are queued until there is space.
    #[default]
    Wait,
    /// They fail at once.
    Error,
}

impl DiskOnFull {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
    const fn is_default(&self) -> bool {
        matches!(self, Self::Wait)
    }
}

/// How a disk is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskFormat {
    /// A file that is the disk, byte for byte.
    Raw,
    /// A VHD file.
    Vhd,
    /// A VHDX file.
    Vhdx,
    /// No file: the disk is all of its store's block device.
    PassThrough,
}

impl DiskFormat {
    /// How names of such files end; `None` if there is no file.
    pub const fn extension(self) -> Option<&'static str> {
        match self {
            Self::Raw => Some("raw"),
            Self::Vhd => Some("vhd"),
            Self::Vhdx => Some("vhdx"),
            Self::PassThrough => None,
        }
    }

    /// The kind of disk that is made where none is named.
    pub const fn default_kind(self) -> DiskKind {
        match self {
            Self::Raw | Self::PassThrough => DiskKind::Fixed,
            Self::Vhd | Self::Vhdx => DiskKind::Dynamic,
        }
    }

    /// Bytes of a block that are usual; `None` if there are no blocks.
    const fn default_block_bytes(self) -> Option<u64> {
        match self {
            Self::Raw | Self::PassThrough => None,
            Self::Vhd => Some(2 << 20),
            Self::Vhdx => Some(32 << 20),
        }
    }
}

/// What of a disk is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskKind {
    /// All of it.
    Fixed,
    /// What was written.
    Dynamic,
    /// What was written; the rest is in a parent.
    Differencing,
}

/// On what a VM finds a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskController {
    /// A virtio disk.
    #[default]
    Virtio,
    /// An IDE controller that QEMU emulates, for guests without drivers for virtio.
    Ide,
    /// A SATA controller (AHCI) that QEMU emulates, likewise.
    Sata,
}

impl DiskController {
    /// Whether QEMU emulates it, and has the disk as an NBD client.
    pub const fn is_emulated(self) -> bool {
        match self {
            Self::Virtio => false,
            Self::Ide | Self::Sata => true,
        }
    }

    /// Disks that one VM can have on it; `None` if only the VM's slots bound them.
    pub const fn disks_max(self) -> Option<usize> {
        match self {
            Self::Virtio => None,
            // Two channels with two disks each.
            Self::Ide => Some(4),
            // Of the machine's six ports one has the CD drive.
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

/// `[[disk]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// Unique among disks.
    pub name: Name,
    /// The store it is in.
    pub store: Name,
    /// Its file, relative to the store's path; the disk's name with `.raw`, `.vhd` or
    /// `.vhdx` if absent. It is made if it is not there, and stays when the disk is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<StoreFile>,
    /// How it is kept; with `pass-through` the disk is all of its store's block device.
    pub format: DiskFormat,
    /// What of it is in its file: all (`fixed`), what was written (`dynamic`; a raw file
    /// is sparse then), or what was written beside a parent (`differencing`). If absent, an
    /// existing VHD or VHDX is opened as the kind that it is; a new file is `differencing` with
    /// `parent`, `dynamic` as `vhd` or `vhdx`, else `fixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DiskKind>,
    /// Bytes of the disk, like `"10 GiB"`; needed where its file is not there yet. It can
    /// grow and never shrinks. As large as its file says if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<ByteSize>,
    /// differencing: the file that has what was not written here, relative to the store's
    /// path. Nothing may write to it. If absent, the parent that the image records is searched:
    /// at the recorded path, then under the same name in the image's directory. A new
    /// differencing file needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<StoreFile>,
    /// Whether nothing can be written.
    #[serde(default)]
    pub read_only: bool,
    /// Serial number that the guest sees, to 20 printable ASCII characters; the beginning of
    /// the disk's name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Bytes of a sector as the guest addresses it, 512 or 4096.
    #[serde(default = "default_logical_sector")]
    pub logical_sector: u32,
    /// Bytes that are written best at a time, as the guest sees it, 512 or 4096.
    #[serde(default = "default_physical_sector")]
    pub physical_sector: u32,
    /// Bytes of a block, a power of two: 512 KiB to 2 MiB in a VHD, 2 MiB if absent; 1 to
    /// 256 MiB in a VHDX, 32 MiB if absent. Read when the file is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<ByteSize>,
    /// The QoS policy whose limits it has. Not together with limits of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos_policy: Option<Name>,
    /// Limits of its own.
    #[serde(default, skip_serializing_if = "DiskQos::is_default")]
    pub qos: DiskQos,
    /// What requests do that the store has no space for. `wait`: they are queued until there is space,
    /// those of a VM's virtio disk for as long as it takes, those of NBD clients for `full_wait_s`; a VM
    /// with an IDE or SATA disk is paused and goes on when there is space. `error`: they fail at once.
    #[serde(default, skip_serializing_if = "DiskOnFull::is_default")]
    pub on_full: DiskOnFull,
    /// Seconds that requests of NBD clients are queued at most while the store is full, 0 to 86 400.
    /// After that they fail with `NBD_ENOSPC`.
    #[serde(default = "default_full_wait_s", skip_serializing_if = "is_default_full_wait")]
    pub full_wait_s: u32,
    /// On what its VM finds it. An IDE or SATA disk is there from a start of the VM on, and
    /// needs neither `vhost_user` nor `nbd` for it.
    #[serde(default, skip_serializing_if = "DiskController::is_default")]
    pub controller: DiskController,
    /// The VM that it is attached to as a virtio disk; not attached so if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost_user: Option<DiskVhostUser>,
    /// Where NBD clients find it, by its name; nowhere if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd: Option<DiskNbd>,
}

impl DiskConfig {
    /// A disk of which nothing is written but this.
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
            logical_sector: default_logical_sector(),
            physical_sector: default_physical_sector(),
            block_bytes: None,
            qos_policy: None,
            qos: DiskQos::NONE,
            on_full: DiskOnFull::Wait,
            full_wait_s: default_full_wait_s(),
            controller: DiskController::Virtio,
            vhost_user: None,
            nbd: None,
        }
    }

    /// Kind of a file that is made for the disk. An existing image may be of another one, unless
    /// [`Self::named_kind`] names it.
    pub fn effective_kind(&self) -> DiskKind {
        self.named_kind().unwrap_or(self.format.default_kind())
    }

    /// Kind that an existing image must have; `None` if the image decides. A `parent` implies
    /// `differencing`.
    pub fn named_kind(&self) -> Option<DiskKind> {
        let by_format = match self.format {
            DiskFormat::Raw | DiskFormat::PassThrough => Some(self.format.default_kind()),
            DiskFormat::Vhd | DiskFormat::Vhdx => {
                self.parent.as_ref().map(|_| DiskKind::Differencing)
            }
        };
        self.kind.or(by_format)
    }

    /// Its file below the store's path; `None` for a pass-through disk.
    pub fn effective_file(&self) -> Option<StoreFile> {
        let default = StoreFile::of_disk(&self.name, self.format)?;
        Some(self.file.clone().unwrap_or(default))
    }

    /// The absolute path of what it is kept in: its file, or the store's block device.
    pub fn path_in(&self, store: &StoreConfig) -> PathBuf {
        match self.effective_file() {
            Some(file) => store.path.join(file),
            None => store.path.clone(),
        }
    }

    /// The serial number that the guest sees.
    pub fn effective_serial(&self) -> String {
        let from_name = || self.name.as_str().chars().take(SERIAL_BYTES_MAX).collect();
        self.serial.clone().unwrap_or_else(from_name)
    }

    /// Bytes of a block of a new file; `None` for formats without blocks.
    pub fn effective_block_bytes(&self) -> Option<u64> {
        self.block_bytes.map(ByteSize::bytes).or(self.format.default_block_bytes())
    }
}

/// `[disk.vhost_user]`: the disk as a virtio disk of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskVhostUser {
    /// Path of the Unix socket.
    #[schema(value_type = String)]
    pub socket: PathBuf,
    /// Who listens on it.
    #[serde(default = "default_mode")]
    pub mode: SocketMode,
    /// Queues that the guest may use, 1 to 64.
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
