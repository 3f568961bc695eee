//! Desired state of VMs, and what their NICs and disks take from them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    ByteSize, DiskConfig, DiskVhostUser, HostConfig, HostSection, Name, NicConfig, SocketMode,
};

/// Where folders of VMs are unless told otherwise.
pub const VM_FOLDER_DEFAULT: &str = "/run/suimon/vms";

/// NICs and disks of one VM at most: each has a slot of the machine that firmware and guest
/// look at.
pub const VM_DEVICES_MAX: usize = 16;

/// What a VM starts with where it has no kernel of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VmFirmware {
    /// A BIOS.
    #[default]
    Bios,
    /// UEFI.
    Uefi,
}

/// What runs a VM's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VmAccelerator {
    /// KVM where a guest really runs with it, otherwise `tcg`.
    #[default]
    Auto,
    /// The CPU, by way of KVM.
    Kvm,
    /// QEMU, which translates them.
    Tcg,
}

/// `[[vm]]`: a VM that the daemon starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VmConfig {
    /// Unique among VMs.
    pub name: Name,
    /// Virtual CPUs, 1 to 255.
    #[serde(default = "default_cpus")]
    pub cpus: u16,
    /// Virtual CPUs that it can have when some are added while it runs; `cpus` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_max: Option<u16>,
    /// Its memory, like `"2 GiB"`, a multiple of 1 MiB from 16 MiB on.
    pub memory_bytes: ByteSize,
    /// Whether its memory is of huge pages, which the host has to have set aside.
    #[serde(default, skip_serializing_if = "is_false")]
    pub huge_pages: bool,
    /// What it starts with where it has no `kernel`.
    #[serde(default)]
    pub firmware: VmFirmware,
    /// Absolute path of a kernel that it starts with, without firmware's help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub kernel: Option<PathBuf>,
    /// The kernel's initramfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub initrd: Option<PathBuf>,
    /// The kernel's command line; `console=ttyS0` lets it use the serial console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// Its NICs, in the order in which the guest finds them. Each is of one VM, and needs no
    /// socket of its own then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<Name>,
    /// Its disks, in the order in which firmware tries to start from them. Each is of one VM,
    /// and needs no socket of its own then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Name>,
    /// Absolute path of the image in its CD drive; it has no drive if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cdrom: Option<PathBuf>,
    /// What runs its instructions.
    #[serde(default)]
    pub accelerator: VmAccelerator,
    /// Whether it is started when the host is, that is with the first daemon after that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub autostart: bool,
}

impl VmConfig {
    /// A VM of which nothing is written but this.
    pub const fn new(name: Name, memory_bytes: ByteSize) -> Self {
        Self {
            name,
            cpus: default_cpus(),
            cpus_max: None,
            memory_bytes,
            huge_pages: false,
            firmware: VmFirmware::Bios,
            kernel: None,
            initrd: None,
            command_line: None,
            nics: Vec::new(),
            disks: Vec::new(),
            cdrom: None,
            accelerator: VmAccelerator::Auto,
            autostart: false,
        }
    }

    /// Virtual CPUs that it can have at most while it runs.
    pub fn effective_cpus_max(&self) -> u16 {
        self.cpus_max.unwrap_or(self.cpus)
    }

    /// The socket of one of its NICs that names none.
    fn nic_socket(&self, host: &HostSection, nic: &Name) -> PathBuf {
        host.folder_of(&self.name).join(format!("n-{nic}"))
    }

    /// The socket of one of its disks that names none.
    fn disk_socket(&self, host: &HostSection, disk: &Name) -> PathBuf {
        host.folder_of(&self.name).join(format!("d-{disk}"))
    }
}

impl HostSection {
    /// Where folders of VMs are.
    pub fn effective_vm_folder(&self) -> &Path {
        self.vm_folder.as_deref().unwrap_or_else(|| Path::new(VM_FOLDER_DEFAULT))
    }

    /// The folder that a VM has for itself.
    pub fn folder_of(&self, vm: &Name) -> PathBuf {
        self.effective_vm_folder().join(vm.as_str())
    }
}

impl HostConfig {
    /// The VM of this name.
    pub fn vm(&self, name: &str) -> Option<&VmConfig> {
        self.vms.iter().find(|vm| vm.name.as_str() == name)
    }

    /// The VM that has this NIC.
    pub fn vm_of_nic(&self, nic: &Name) -> Option<&VmConfig> {
        self.vms.iter().find(|vm| vm.nics.contains(nic))
    }

    /// The VM that has this disk.
    pub fn vm_of_disk(&self, disk: &Name) -> Option<&VmConfig> {
        self.vms.iter().find(|vm| vm.disks.contains(disk))
    }

    /// Where the socket of a NIC is that stands on one: where it says, or in the folder of its
    /// VM.
    pub fn socket_of_nic(&self, nic: &NicConfig) -> Option<PathBuf> {
        if !nic.has_socket() {
            return None;
        }
        let of_vm = || Some(self.vm_of_nic(&nic.name)?.nic_socket(&self.host, &nic.name));
        nic.socket.clone().or_else(of_vm)
    }

    /// Whether a NIC has anything that it stands on: a TAP device, a socket, or a VM.
    pub fn is_connected(&self, nic: &NicConfig) -> bool {
        !nic.has_socket() || self.socket_of_nic(nic).is_some()
    }

    /// By what a VM has a disk over vhost-user: what it says, or a socket in the folder of its
    /// VM.
    pub fn vhost_user_of_disk(&self, disk: &DiskConfig) -> Option<DiskVhostUser> {
        let of_vm = || {
            if disk.controller.is_emulated() {
                return None;
            }
            let socket = self.vm_of_disk(&disk.name)?.disk_socket(&self.host, &disk.name);
            Some(DiskVhostUser { socket, mode: SocketMode::Server, queues: 1 })
        };
        disk.vhost_user.clone().or_else(of_vm)
    }

    /// The socket in the folder of its VM by which the VM's QEMU has a disk whose controller it
    /// emulates, as an NBD client.
    pub fn emulated_disk_socket(&self, disk: &DiskConfig) -> Option<PathBuf> {
        let vm = self.vm_of_disk(&disk.name).filter(|_| disk.controller.is_emulated())?;
        Some(vm.disk_socket(&self.host, &disk.name))
    }

    /// The same with everything written that NICs and disks take from their VMs.
    pub fn with_sockets_of_vms(&self) -> Self {
        let mut full = self.clone();
        for nic in &mut full.nics {
            nic.socket = self.socket_of_nic(nic).or(nic.socket.take());
        }
        for disk in &mut full.disks {
            disk.vhost_user = self.vhost_user_of_disk(disk);
        }
        full
    }
}

const fn default_cpus() -> u16 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
