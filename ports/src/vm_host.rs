//! VMs: specification, start, adoption, commands and notices.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use suimon_quantity::PciAddress;
use thiserror::Error;

use crate::{MigrationRequirements, MigrationSpec, MigrationStatus, VmDevice, VmHardware};

/// Accelerator that executes a VM's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmAccelerator {
    /// KVM: hardware virtualization of the host's CPU.
    Kvm,
    /// TCG: binary translation by QEMU.
    Tcg,
}

/// Boot method of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmBoot {
    /// BIOS (SeaBIOS), which boots from the VM's disks and CD.
    Bios,
    /// UEFI (OVMF), which boots from the VM's disks and CD. `code` is shared; the variable store is
    /// kept in the VM's folder.
    Uefi {
        /// File with the firmware code, mapped read-only.
        code: PathBuf,
        /// Template of the variable store, copied at first start.
        variables: PathBuf,
    },
    /// Direct kernel boot, without firmware.
    Direct {
        /// Kernel image that QEMU loads.
        kernel: PathBuf,
        /// Initramfs image that QEMU loads.
        initrd: Option<PathBuf>,
        /// Command line of the kernel.
        command_line: String,
    },
}

/// Model of a NIC in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmNicKind {
    /// virtio-net over a vhost-user socket of the daemon.
    Virtio,
    /// Intel 82574L (e1000e) emulated by QEMU, for guests without virtio drivers. Frames are
    /// transferred over a stream socket of the daemon, each following its length (4 bytes,
    /// big-endian).
    Legacy,
}

/// Specification of a VM's NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmNicSpec {
    /// Name, unique among the VM's NICs.
    pub name: String,
    /// Model of the NIC in the guest.
    pub kind: VmNicKind,
    /// Socket on which the daemon listens.
    pub socket: PathBuf,
    /// Queue pairs; 1 for an emulated NIC.
    pub queue_pairs: u16,
    /// MAC address; `None`: chosen by QEMU.
    pub mac: Option<MacAddr>,
    /// True to offer `VIRTIO_NET_F_STANDBY` (VIRTIO 1.2, section 5.1.3): the NIC is the standby of
    /// a virtual function with the same MAC address, which may be plugged and unplugged.
    #[serde(default)]
    pub is_standby: bool,
    /// PCIe root port that the NIC is plugged into, 0 to 15; `None`: the next free one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "port")]
    pub root_port: Option<u8>,
}

/// Controller and transport of a disk in the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmDiskKind {
    /// virtio-blk over a vhost-user socket on which the daemon listens.
    Virtio {
        /// Path of the vhost-user socket.
        socket: PathBuf,
        /// Number of request queues offered.
        queues: u16,
    },
    /// IDE disk emulated by QEMU, which accesses the disk as an NBD client.
    Ide {
        /// Path of the daemon's NBD socket.
        socket: PathBuf,
    },
    /// SATA disk emulated by QEMU, which accesses the disk as an NBD client.
    Sata {
        /// Path of the daemon's NBD socket.
        socket: PathBuf,
    },
}

/// Specification of a VM's disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmDiskSpec {
    /// Name, unique among the VM's disks; also the NBD export name.
    pub name: String,
    /// Controller and transport of the disk.
    pub kind: VmDiskKind,
    /// True if the disk is read-only.
    pub is_read_only: bool,
    /// Serial number, at most 20 bytes of ASCII.
    pub serial: String,
    /// True if the guest gets an error for a write to an emulated disk that finds no space. False:
    /// the VM is paused, and the write is repeated when it is resumed.
    #[serde(default)]
    #[serde(rename = "reports_full")]
    pub reports_full_to_guest: bool,
    /// PCIe root port that a virtio disk is plugged into, 0 to 15; `None`: the next free one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "port")]
    pub root_port: Option<u8>,
}

/// Specification of a VM to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmSpec {
    /// Name: letters, digits, `-`, `_` and `.`, at most 63 bytes; unique on the host.
    pub name: String,
    /// UUID of the machine (SMBIOS), visible to the guest.
    pub uuid: [u8; 16],
    /// Folder of the VM for sockets, log and firmware variables. Created when the VM is started.
    pub folder: PathBuf,
    /// User id of the VM's process, and group id of the same number. Not used by any other process
    /// on the host.
    #[serde(rename = "user")]
    pub uid: u32,
    /// Virtual CPUs at start, at least 1.
    pub cpus: u16,
    /// Maximum number of virtual CPUs after hot-plug; at least `cpus`.
    pub cpus_max: u16,
    /// Memory in bytes, a multiple of 1 MiB.
    pub memory_bytes: u64,
    /// True to allocate the memory from huge pages.
    pub huge_pages: bool,
    /// Accelerator; `None`: KVM if it works on this host, otherwise TCG.
    pub accelerator: Option<VmAccelerator>,
    /// Boot method and its files.
    pub boot: VmBoot,
    /// NICs, in the order in which the guest enumerates them.
    pub nics: Vec<VmNicSpec>,
    /// Disks, in the boot order of the firmware.
    pub disks: Vec<VmDiskSpec>,
    /// Image in the CD drive; `None`: no CD drive.
    pub cdrom: Option<PathBuf>,
    /// Source of an incoming migration; `None`: the VM boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "arrival")]
    pub migration_requirements: Option<MigrationRequirements>,
}

/// Information with which another daemon adopts a running VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmIdentity {
    /// Name of the running VM.
    pub name: String,
    /// Folder of the running VM.
    pub folder: PathBuf,
    /// Process id of the VM's QEMU.
    #[serde(rename = "process")]
    pub pid: u32,
    /// Start time of the process in clock ticks since boot (`proc(5)`, field 22 of `stat`), because
    /// process ids are reused.
    #[serde(rename = "started")]
    pub started_ticks: u64,
}

/// Run state of a VM, condensed from QMP's `RunState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmRunState {
    /// The VM's CPUs are running.
    Running,
    /// The VM's CPUs are stopped.
    Paused,
    /// The guest reported a panic; its CPUs are stopped.
    Panicked,
    /// The guest powered off; the process is exiting.
    Off,
}

/// Observed properties of a running VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningVmStatus {
    /// Run state of the VM's CPUs.
    pub state: VmRunState,
    /// True if the VM is paused because a write to an emulated disk found no space.
    pub waits_for_space: bool,
    /// Accelerator that the VM uses.
    pub accelerator: VmAccelerator,
    /// Current number of virtual CPUs.
    pub cpus: u16,
    /// QEMU version, such as `7.2.22`.
    pub qemu_version: String,
    /// True if emulated NICs reconnect to a socket that was closed (QEMU's `reconnect`). NICs of
    /// older versions stay disconnected until they are unplugged and plugged again.
    pub reconnects_streams: bool,
    /// True if a guest agent has opened its virtio console port.
    pub has_agent: bool,
    /// User id of the process: that of the specification, or the launcher's own if the launcher
    /// cannot change users. `None` if the process cannot be inspected.
    pub uid: Option<u32>,
}

/// Guest properties reported by the guest agent. Untrusted: for display only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestInfo {
    /// Version of the guest agent.
    pub agent_version: Option<String>,
    /// Host name of the guest.
    pub host_name: Option<String>,
    /// Operating system of the guest.
    pub system: GuestSystem,
    /// Network interfaces of the guest.
    pub interfaces: Vec<GuestInterface>,
    /// True if the guest's file systems are frozen.
    pub is_frozen: bool,
}

/// Operating system of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestSystem {
    /// Name, such as `Debian GNU/Linux 12 (bookworm)`.
    pub name: Option<String>,
    /// Kernel release, such as `6.1.0-28-amd64`.
    pub kernel: Option<String>,
    /// CPU architecture, such as `x86_64`.
    pub architecture: Option<String>,
}

/// Network interface of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestInterface {
    /// Interface name in the guest.
    pub name: String,
    /// MAC address of the interface.
    pub mac: Option<MacAddr>,
    /// IP addresses with prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// State of a NIC as the standby of a virtual function (net_failover).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicStandbyState {
    /// True if the guest's driver supports the failover: it negotiated `VIRTIO_NET_F_STANDBY`.
    pub is_negotiated: bool,
    /// True if a driver of the guest has initialized the NIC (`DRIVER_OK`), so that `is_negotiated`
    /// is final until the next reset.
    pub is_driver_ready: bool,
    /// True if the virtual function is plugged into the VM.
    pub has_vf: bool,
}

/// Notice of a running VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmNotice {
    /// The run state changed to this one.
    StateChanged(VmRunState),
    /// The VM was reset, by the guest or by [`VmCommand::Reset`].
    Reset,
    /// The guest released a device after a hot-unplug request.
    Unplugged(VmDevice),
    /// The process has ended, or was killed because it did not respond.
    Ended {
        /// True for an orderly end: the guest powered off, or the VM received the quit command.
        is_orderly: bool,
        /// Reason, as text, with the end of the log if relevant.
        reason: String,
    },
}

/// Receiver of VM notices. Must not block.
pub trait VmObserver: Send + Sync {
    /// Handles a notice of the observed VM.
    fn handle_notice(&self, notice: VmNotice);
}

/// Command to a running VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmCommand {
    /// Stops the CPUs of the VM.
    Pause,
    /// Resumes the CPUs of the VM.
    Resume,
    /// Resets the machine of the VM.
    Reset,
    /// Presses the ACPI power button.
    PowerButton,
    /// Shuts the guest down through the guest agent.
    ShutDown,
    /// Flushes and freezes the guest's file systems through the guest agent.
    Freeze,
    /// Thaws the guest's file systems through the guest agent.
    Thaw,
    /// Terminates the process immediately, like a loss of power.
    Quit,
    /// Hot-plugs a NIC into the VM.
    PlugNic(VmNicSpec),
    /// Hot-plugs a disk into the VM.
    PlugDisk(VmDiskSpec),
    /// Hot-plugs a virtual function as the primary of a standby NIC. Requires [`VmHost::assign_vf`]
    /// first.
    PlugVf {
        /// Name of the standby NIC.
        nic: String,
        /// PCI address of the virtual function.
        address: PciAddress,
    },
    /// Requests the hot-unplug of a device. [`VmNotice::Unplugged`] reports when the guest has
    /// released it.
    Unplug(VmDevice),
    /// Hot-plugs virtual CPUs up to this total.
    SetCpus(u16),
    /// Completes a migration started by [`Vm::migrate_out`]: transfers the remaining state.
    FinishMigration,
    /// Cancels a migration. The VM continues unless its state was already transferred completely.
    CancelMigration,
    /// Announces the addresses of its NICs to their networks (gratuitous ARP or RARP).
    AnnounceAddresses,
}

/// Kind of a VM error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmErrorKind {
    /// The host cannot run the VM: no QEMU, no KVM, not enough memory, a missing file.
    Host,
    /// The VM is already running.
    #[serde(rename = "Running")]
    AlreadyRunning,
    /// The VM is not running (any more).
    #[serde(rename = "Gone")]
    NotRunning,
    /// The VM rejected the command; the text gives the reason.
    Refused,
    /// The VM did not respond in time.
    #[serde(rename = "Silent")]
    Timeout,
    /// Another process still uses the resource; the operation succeeds when that has ended.
    Busy,
}

/// Failure of an operation on a VM.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct VmError {
    /// Kind of the failure, on which the reaction of callers depends.
    pub kind: VmErrorKind,
    /// Failure and what to do next, as text.
    pub text: String,
}

impl VmError {
    /// Returns an error of this kind.
    pub fn new(kind: VmErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// Handle of a running VM. Dropping it leaves the VM running.
pub trait Vm: Send + Sync {
    /// Returns the information with which the VM can be adopted.
    fn identity(&self) -> VmIdentity;

    /// Returns the current observed properties.
    fn status(&self) -> RunningVmStatus;

    /// Returns the time since the process of the VM was started, which steps of the wall clock do
    /// not change. Time in which the host is suspended counts.
    fn uptime(&self) -> Duration;

    /// Executes a command and blocks until it is done, some seconds at most.
    ///
    /// # Errors
    /// Fails if the VM rejects the command, does not respond or has ended.
    fn execute(&self, command: &VmCommand) -> Result<(), VmError>;

    /// Returns the states of NICs as the standbys of virtual functions, by NIC name. Blocks for a
    /// few seconds at most, for all NICs together. Omits NICs whose state is unknown, because the
    /// VM has no such NIC or does not respond.
    fn standbys(&self, nics: &[&str]) -> BTreeMap<String, NicStandbyState>;

    /// Queries the guest agent; blocks for some seconds at most.
    ///
    /// # Errors
    /// Fails if no agent is running or it does not respond.
    fn guest_info(&self) -> Result<GuestInfo, VmError>;

    /// Opens a bidirectional connection to the serial console of the VM. One connection at a time.
    ///
    /// # Errors
    /// Fails if the VM has ended or the console is in use.
    fn open_console(&self) -> Result<OwnedFd, VmError>;

    /// Returns the machine type and the ports of plugged devices, which a migration target must
    /// reproduce.
    ///
    /// # Errors
    /// Fails if the VM does not respond or has ended.
    fn hardware(&self) -> Result<VmHardware, VmError>;

    /// Starts a migration: sends memory and device state over the stream socket `line` to the
    /// peer's [`Vm::migrate_in`]. The VM keeps running meanwhile. Once it is stopped for the final
    /// phase, it waits for [`VmCommand::FinishMigration`].
    ///
    /// # Errors
    /// Fails if the VM rejects the command, does not respond or has ended.
    fn migrate_out(&self, line: OwnedFd, spec: &MigrationSpec) -> Result<(), VmError>;

    /// Receives the state of a migrated VM in a VM started with a [`MigrationRequirements`]. When
    /// the state is complete the VM stays paused until it is resumed. If the stream ends early the
    /// process exits. Returns the end of a connection to which the caller writes the stream.
    ///
    /// # Errors
    /// Fails if the VM rejects the command, does not respond or has ended.
    fn migrate_in(&self) -> Result<OwnedFd, VmError>;

    /// Returns the progress of a migration, on the source or the target.
    ///
    /// # Errors
    /// Fails if the VM does not respond or has ended.
    fn migration_status(&self) -> Result<MigrationStatus, VmError>;
}

/// Starts VMs and adopts running ones.
pub trait VmHost: Send + Sync {
    /// Returns UEFI firmware installed on the host; `None` if there is none.
    fn uefi_firmware(&self) -> Option<VmBoot>;

    /// Returns the host's CPU flags (`flags` in `/proc/cpuinfo`), which bound the features of a VM
    /// with KVM.
    fn cpu_flags(&self) -> Vec<String>;

    /// Returns the VMs that run on the host, including those started by earlier daemons.
    ///
    /// # Errors
    /// Fails if they cannot be determined.
    fn running_vms(&self) -> Result<Vec<VmIdentity>, VmError>;

    /// Checks whether [`VmHost::start`] can succeed, without side effects: QEMU is installed, files
    /// are readable by the VM's user, memory is free, the requested accelerator works.
    ///
    /// # Errors
    /// Returns the error that `start` would return.
    fn probe(&self, spec: &VmSpec) -> Result<(), VmError>;

    /// Kills a VM's process and blocks until it has ended.
    ///
    /// # Errors
    /// [`VmErrorKind::NotRunning`] if there is no such process; other kinds if it cannot be killed.
    fn kill(&self, identity: &VmIdentity) -> Result<(), VmError>;

    /// Deletes the folder of a VM that is not running, including firmware variables. A missing
    /// folder counts as success.
    ///
    /// # Errors
    /// Fails if the VM is running or the folder is not a VM's.
    fn remove_folder(&self, folder: &Path) -> Result<(), VmError>;

    /// Creates the folder of a VM, accessible to the VM's group, which also owns the sockets in it.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    fn create_folder(&self, folder: &Path, user: u32) -> Result<(), VmError>;

    /// Starts a VM that is not running and blocks until its CPUs run or, with a
    /// [`MigrationRequirements`], until [`Vm::migrate_in`] can be called. The sockets of its
    /// devices must already be listening.
    ///
    /// # Errors
    /// Fails if the VM cannot be started, quoting the end of its log if relevant; no process or
    /// resource remains.
    fn start(&self, spec: &VmSpec, observer: Arc<dyn VmObserver>) -> Result<Box<dyn Vm>, VmError>;

    /// Prepares a virtual function for exclusive passthrough to a running VM: binds `vfio-pci`,
    /// grants the VM's user access to the IOMMU group, and permits the process to lock the VM's
    /// memory of `memory_bytes` bytes.
    ///
    /// # Errors
    /// Fails if the device is not a virtual function, cannot be isolated or the host lacks VFIO;
    /// the device is unchanged.
    fn assign_vf(
        &self,
        identity: &VmIdentity,
        vf: PciAddress,
        memory_bytes: u64,
    ) -> Result<(), VmError>;

    /// Takes a virtual function back after it was unplugged from the VM `vm`: revokes access to the
    /// IOMMU group and binds the host's driver. A missing function counts as success. Does not wait
    /// for processes that keep the function open.
    ///
    /// # Errors
    /// [`VmErrorKind::Busy`] while a process keeps it open; other kinds if it cannot be taken back.
    fn reclaim_vf(&self, vm: &str, vf: PciAddress) -> Result<(), VmError>;

    /// Adopts a running VM that another daemon started.
    ///
    /// # Errors
    /// [`VmErrorKind::NotRunning`] if its process has ended; other kinds if the process exists but
    /// does not respond.
    fn adopt(
        &self,
        identity: &VmIdentity,
        observer: Arc<dyn VmObserver>,
    ) -> Result<Box<dyn Vm>, VmError>;
}
