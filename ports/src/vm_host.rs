//! VMs: how they are started, found again, told things, and heard of.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use suimon_quantity::PciAddress;
use thiserror::Error;

use crate::{SendSpec, SendStatus, VmArrival, VmLayout};

/// What runs a VM's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmAccelerator {
    /// The CPU, by way of KVM.
    Kvm,
    /// QEMU, which translates them (TCG).
    Tcg,
}

/// What a VM starts with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmBoot {
    /// A BIOS, which looks for a system on its disks and CD.
    Bios,
    /// UEFI firmware, likewise. The file has its code; its variables are kept in the VM's folder.
    Uefi {
        /// The firmware's code.
        code: PathBuf,
        /// What its variables are in the beginning.
        variables: PathBuf,
    },
    /// A kernel, without firmware's help.
    Direct {
        /// The kernel.
        kernel: PathBuf,
        /// Its initramfs.
        initrd: Option<PathBuf>,
        /// Its command line.
        command_line: String,
    },
}

/// How a guest sees a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmNicKind {
    /// virtio-net, over a vhost-user socket of ours.
    Virtio,
    /// An Intel 82574L (e1000e) that QEMU emulates, for guests without drivers. Its frames come
    /// over a stream socket of ours, each behind its length in 4 bytes, big-endian.
    Legacy,
}

/// A NIC of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmNicSpec {
    /// Its name, which is unique among the VM's NICs.
    pub name: String,
    /// How the guest sees it.
    pub kind: VmNicKind,
    /// The socket on which we listen.
    pub socket: PathBuf,
    /// Queue pairs; 1 if it is emulated.
    pub queue_pairs: u16,
    /// Its address; one that QEMU chooses if absent.
    pub mac: Option<MacAddr>,
    /// Whether it tells the guest that it is the standby of another NIC with its address
    /// (`VIRTIO_NET_F_STANDBY`; VIRTIO 1.2, section 5.1.3), which may come and go.
    #[serde(default)]
    pub is_standby: bool,
    /// The port of the machine that it is plugged into, 0 to 15; the next that is free if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
}

/// How a guest sees a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmDiskKind {
    /// virtio-blk, over a vhost-user socket on which we listen.
    Virtio {
        /// The socket.
        socket: PathBuf,
        /// Queues.
        queues: u16,
    },
    /// An IDE disk that QEMU emulates; it reaches the disk as an NBD client.
    Ide {
        /// Our socket for NBD clients.
        socket: PathBuf,
    },
    /// A SATA disk that QEMU emulates, likewise.
    Sata {
        /// Our socket for NBD clients.
        socket: PathBuf,
    },
}

/// A disk of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmDiskSpec {
    /// Its name, which is unique among the VM's disks, and the name of its export.
    pub name: String,
    /// How the guest sees it.
    pub kind: VmDiskKind,
    /// Whether it may only be read.
    pub is_read_only: bool,
    /// Its serial number, at most 20 bytes of ASCII.
    pub serial: String,
    /// Whether the guest is told if there is no space for a write to a disk that QEMU emulates. Else the
    /// VM is paused, and the write is repeated when it goes on.
    #[serde(default)]
    pub reports_full: bool,
    /// The port of the machine that a virtio disk is plugged into, 0 to 15; the next that is free
    /// if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
}

/// A VM as it is to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmSpec {
    /// Its name: letters, digits, `-`, `_` and `.`, at most 63 bytes; unique on the host.
    pub name: String,
    /// What the guest sees as the machine's identity.
    pub uuid: [u8; 16],
    /// The folder that it has for itself: sockets, log, firmware's variables. Made when it is
    /// started.
    pub folder: PathBuf,
    /// The user, and the group of the same number, that its process runs as; nobody else on
    /// the host has it.
    pub user: u32,
    /// Virtual CPUs, at least 1.
    pub cpus: u16,
    /// Virtual CPUs that it can have after some are added while it runs, `cpus` or more.
    pub cpus_max: u16,
    /// Bytes of memory, a multiple of 1 MiB.
    pub memory_bytes: u64,
    /// Whether its memory is of huge pages.
    pub huge_pages: bool,
    /// What runs its instructions; `None` takes KVM where a guest really runs with it.
    pub accelerator: Option<VmAccelerator>,
    /// What it starts with.
    pub boot: VmBoot,
    /// NICs, in the order in which the guest finds them.
    pub nics: Vec<VmNicSpec>,
    /// Disks, in the order in which firmware tries to start from them.
    pub disks: Vec<VmDiskSpec>,
    /// What is in its CD drive; it has none if absent.
    pub cdrom: Option<PathBuf>,
    /// Whether it goes on with what it did on another host; it starts anew if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<VmArrival>,
}

/// What another daemon needs to find a VM again that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmIdentity {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its process.
    pub process: u32,
    /// When that was started, in clock ticks since the machine was (`proc(5)`, field 22 of
    /// `stat`): numbers of processes are used again.
    pub started: u64,
}

/// Whether a VM's CPUs run (QMP's `RunState` in the words that matter here).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmRunState {
    /// They run.
    Running,
    /// They were stopped.
    Paused,
    /// The guest has told of its panic and stands still.
    Panicked,
    /// The guest has turned itself off; the process ends.
    Off,
}

/// What is known of a VM that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmFacts {
    /// Whether its CPUs run.
    pub state: VmRunState,
    /// Whether they were stopped because there was no space for a write to an emulated disk.
    pub waits_for_space: bool,
    /// What runs its instructions.
    pub accelerator: VmAccelerator,
    /// Virtual CPUs that it has now.
    pub cpus: u16,
    /// QEMU's version, like `7.2.22`.
    pub qemu_version: String,
    /// Whether its emulated NICs connect again to a socket that was closed. Those of others are
    /// cut off from then on until they are unplugged and plugged in again.
    pub reconnects_streams: bool,
    /// Whether an agent in the guest has opened the line that is kept for it.
    pub has_agent: bool,
    /// The user that its process runs as: that of its description, or the launcher's own if that
    /// may take on no other. `None` if the process cannot be looked at.
    pub user: Option<u32>,
}

/// What the agent in a guest tells of it. It is the guest's word: fit to be shown, not to be relied
/// on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestFacts {
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The guest's name.
    pub host_name: Option<String>,
    /// What it runs.
    pub system: GuestSystem,
    /// Its network interfaces.
    pub interfaces: Vec<GuestInterface>,
    /// Whether writes to its file systems are held.
    pub is_frozen: bool,
}

/// A guest's system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestSystem {
    /// What it calls itself, like `Debian GNU/Linux 12 (bookworm)`.
    pub name: Option<String>,
    /// Its kernel, like `6.1.0-28-amd64`.
    pub kernel: Option<String>,
    /// What the guest takes the CPU for, like `x86_64`.
    pub machine: Option<String>,
}

/// A network interface of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestInterface {
    /// Its name in the guest.
    pub name: String,
    /// Its Ethernet address.
    pub mac: Option<MacAddr>,
    /// Its IP addresses, and the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// A device that is plugged into a VM and taken away, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VmDevice {
    /// A NIC.
    Nic(String),
    /// A disk.
    Disk(String),
    /// The virtual function of a NIC, by the NIC's name.
    Vf(String),
}

impl std::fmt::Display for VmDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nic(name) => write!(f, "nic/{name}"),
            Self::Disk(name) => write!(f, "disk/{name}"),
            Self::Vf(nic) => write!(f, "VF of nic/{nic}"),
        }
    }
}

/// Where a NIC stands as the standby of a virtual function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standby {
    /// Whether the guest's driver takes a function beside it.
    pub is_taken: bool,
    /// Whether the VM has its function.
    pub has_vf: bool,
}

/// What a VM does on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmNotice {
    /// Its CPUs run, stand, or will not run any more.
    State(VmRunState),
    /// It was started anew, by the guest or by [`VmCommand::Reset`].
    Reset,
    /// The guest has let go of a device that was to be taken away.
    Unplugged(VmDevice),
    /// The process is gone, or does not answer any more and was given up.
    Ended {
        /// Whether it ended as it should: the guest turned itself off, or it was told to quit.
        is_orderly: bool,
        /// How it ended, in words, with the end of its log where that tells something.
        reason: String,
    },
}

/// Hears what a VM does. Must not block.
pub trait VmObserver: Send + Sync {
    /// What it did.
    fn handle_notice(&self, notice: VmNotice);
}

/// What a VM that runs is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmCommand {
    /// Stop its CPUs.
    Pause,
    /// Let them run again.
    Resume,
    /// Start it anew, as a reset button does.
    Reset,
    /// Press its power button (ACPI).
    PowerButton,
    /// Have the guest's agent turn it off.
    ShutDown,
    /// Have the guest's agent write what waits, and hold writes to file systems from then on.
    Freeze,
    /// Have the guest's agent let them be written again.
    Thaw,
    /// End at once, as if its plug was pulled.
    Quit,
    /// Give it another NIC.
    PlugNic(VmNicSpec),
    /// Give it another disk.
    PlugDisk(VmDiskSpec),
    /// Give it a virtual function, whose standby a NIC of it is. [`VmHost::give_vf`] goes
    /// before.
    PlugVf {
        /// The NIC.
        nic: String,
        /// The function.
        address: PciAddress,
    },
    /// Take a device away; [`VmNotice::Unplugged`] tells when the guest has let go of it.
    Unplug(VmDevice),
    /// Give it more virtual CPUs, so many in all.
    SetCpus(u16),
    /// Send the rest of what [`Vm::send`] began.
    FinishSending,
    /// Do not send it after all; unless it was sent already, it goes on.
    CancelSending,
    /// Tell the networks of its NICs where their addresses are now.
    Announce,
}

/// What kind of trouble there is with a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VmErrorKind {
    /// The host cannot run it: no QEMU, no KVM, not enough memory, a file that is missing.
    Host,
    /// It runs already.
    Running,
    /// It is not there (any more).
    Gone,
    /// It does not do what it is told, now or never; the text says why.
    Refused,
    /// It did not answer in time.
    Silent,
}

/// Trouble with a VM.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct VmError {
    /// What kind.
    pub kind: VmErrorKind,
    /// What is wrong, and what to do about it.
    pub text: String,
}

impl VmError {
    /// An error of this kind.
    pub fn new(kind: VmErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// A VM that runs. Dropping it leaves the VM alone, which goes on.
pub trait Vm: Send + Sync {
    /// By what it is found again.
    fn identity(&self) -> VmIdentity;

    /// What is known of it now.
    fn facts(&self) -> VmFacts;

    /// Tells it something, and waits until it has done so, which takes some seconds at most.
    ///
    /// # Errors
    /// It refuses, does not answer, or is gone.
    fn tell(&self, command: &VmCommand) -> Result<(), VmError>;

    /// Where a NIC stands as the standby of a virtual function.
    ///
    /// # Errors
    /// It does not answer, or has no such NIC.
    fn standby(&self, nic: &str) -> Result<Standby, VmError>;

    /// Asks the agent in its guest what it tells of it, which takes some seconds at most.
    ///
    /// # Errors
    /// It has none, or that does not answer.
    fn guest(&self) -> Result<GuestFacts, VmError>;

    /// A connection to its serial console: what the guest writes can be read, and what is
    /// written the guest reads. One at a time.
    ///
    /// # Errors
    /// The VM is gone, or somebody has the console.
    fn console(&self) -> Result<OwnedFd, VmError>;

    /// Where it has what its guest finds by its place.
    ///
    /// # Errors
    /// It does not answer, or is gone.
    fn layout(&self) -> Result<VmLayout, VmError>;

    /// Begins to send its memory and devices over a stream to where [`Vm::receive`] has the other
    /// end. It goes on meanwhile; once it stands still for good it waits for
    /// [`VmCommand::FinishSending`].
    ///
    /// # Errors
    /// It refuses, does not answer, or is gone.
    fn send(&self, line: OwnedFd, spec: &SendSpec) -> Result<(), VmError>;

    /// Has a VM that was started with a [`VmArrival`] go on, when all has come over a stream, with
    /// what another did; it stands still until it is told to resume. If the stream ends early, so
    /// does its process.
    ///
    /// # Errors
    /// It refuses, does not answer, or is gone.
    fn receive(&self, line: OwnedFd) -> Result<(), VmError>;

    /// How far that is, on either side.
    ///
    /// # Errors
    /// It does not answer, or is gone.
    fn send_status(&self) -> Result<SendStatus, VmError>;
}

/// Starts VMs and finds them again.
pub trait VmHost: Send + Sync {
    /// UEFI firmware that VMs of the host can start with; `None` if it has none.
    fn uefi(&self) -> Option<VmBoot>;

    /// What the host's CPUs can do, as its kernel names it (`flags` in `/proc/cpuinfo`): what a
    /// VM's may use that KVM runs.
    fn cpu_flags(&self) -> Vec<String>;

    /// The VMs that run on the host, whoever has started them.
    ///
    /// # Errors
    /// That cannot be told.
    fn running(&self) -> Result<Vec<VmIdentity>, VmError>;

    /// Looks whether [`VmHost::start`] could succeed: QEMU is there, files can be read by the
    /// VM's user, memory is free, an accelerator that is asked for works. Changes nothing.
    ///
    /// # Errors
    /// What `start` would say.
    fn probe(&self, spec: &VmSpec) -> Result<(), VmError>;

    /// Ends a VM's process, whatever it does, and waits until that is gone.
    ///
    /// # Errors
    /// [`VmErrorKind::Gone`]: it is not there any more. Others: it cannot be ended.
    fn kill(&self, identity: &VmIdentity) -> Result<(), VmError>;

    /// Removes the folder of a VM that does not run, with all that is in it, firmware's variables
    /// included. One that is not there is fine.
    ///
    /// # Errors
    /// The VM runs, or the folder is none of a VM.
    fn remove(&self, folder: &Path) -> Result<(), VmError>;

    /// Makes the VM's folder, which the VM's group may enter. Sockets in it are for that group.
    ///
    /// # Errors
    /// It cannot be made.
    fn prepare(&self, folder: &Path, user: u32) -> Result<(), VmError>;

    /// Starts a VM, of which no process is there, and returns when its CPUs run, or, with a
    /// [`VmArrival`], when it can [receive](Vm::receive). Devices' sockets are listened on by then.
    ///
    /// # Errors
    /// It cannot be started, with the end of its log where that tells something; nothing is
    /// left of it.
    fn start(&self, spec: &VmSpec, observer: Arc<dyn VmObserver>) -> Result<Box<dyn Vm>, VmError>;

    /// Makes a virtual function ready for a VM that runs, and for nobody else: `vfio-pci`
    /// drives it, the VM's user may open its IOMMU group, and may lock the VM's memory, which
    /// has so many bytes.
    ///
    /// # Errors
    /// It is none, cannot be isolated, or the host lacks what that takes; it is as it was.
    fn give_vf(
        &self,
        identity: &VmIdentity,
        vf: PciAddress,
        memory_bytes: u64,
    ) -> Result<(), VmError>;

    /// Takes a virtual function back, which no VM has any more: nobody but the host may open it,
    /// and the driver drives it that the host has for it. One that is gone is fine.
    ///
    /// # Errors
    /// That cannot be done.
    fn take_vf(&self, vf: PciAddress) -> Result<(), VmError>;

    /// Finds a VM again that another daemon has started.
    ///
    /// # Errors
    /// [`VmErrorKind::Gone`]: its process is not there any more. Others: it is, and does not
    /// answer.
    fn adopt(
        &self,
        identity: &VmIdentity,
        observer: Arc<dyn VmObserver>,
    ) -> Result<Box<dyn Vm>, VmError>;
}
