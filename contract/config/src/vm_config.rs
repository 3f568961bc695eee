//! Desired state of VMs, and the settings that their NICs and disks derive from them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ByteSize, HostSection, Name};

/// Default folder of VM folders.
pub const VM_FOLDER_DEFAULT: &str = "/run/suimon/vms";

/// Largest number of NICs and disks of one VM; each occupies a PCI slot of the machine.
pub const VM_DEVICES_MAX: usize = 16;

/// Firmware of a VM without a direct kernel boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VmFirmware {
    /// BIOS (SeaBIOS of QEMU).
    #[default]
    Bios,
    /// UEFI (OVMF).
    Uefi,
}

/// Execution of a VM's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VmAccelerator {
    /// KVM if guests run with it on this host, else `tcg`.
    #[default]
    Auto,
    /// Hardware virtualization by KVM.
    Kvm,
    /// Emulation by QEMU (Tiny Code Generator).
    Tcg,
}

/// `[[vm]]`: a VM that the daemon starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VmConfig {
    /// Name of the VM, unique among VMs.
    pub name: Name,
    /// Number of virtual CPUs. A running VM gets more at once, up to `cpus_max`; fewer take effect
    /// at its next start.
    #[serde(default = "default_cpus")]
    pub cpus: u16,
    /// Largest number of virtual CPUs that `cpus` can be raised to while the VM runs; `cpus` if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_max: Option<u16>,
    /// Memory of the guest in bytes, or with a unit, such as `"2 GiB"`.
    pub memory_bytes: ByteSize,
    /// True if memory is allocated from huge pages, which must be reserved on the host.
    #[serde(default, skip_serializing_if = "is_false")]
    pub huge_pages: bool,
    /// Firmware that boots the VM: `bios` (SeaBIOS) or `uefi` (OVMF). Not used with `kernel`.
    #[serde(default)]
    pub firmware: VmFirmware,
    /// Absolute path of a Linux kernel that is booted directly, without firmware; the firmware
    /// boots the VM if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub kernel: Option<PathBuf>,
    /// Absolute path of the initramfs of `kernel`; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub initrd: Option<PathBuf>,
    /// Command line of `kernel`; empty if absent. `console=ttyS0` selects the serial console, which
    /// `suimon vm console` connects to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// NICs in the order of their PCI slots; none if absent. A NIC belongs to at most one VM, and
    /// needs no `socket` of its own then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<Name>,
    /// Disks in boot order; none if absent. A disk belongs to at most one VM, and needs no
    /// `vhost_user` socket of its own then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Name>,
    /// Absolute path of the image in the CD drive; no CD drive if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cdrom: Option<PathBuf>,
    /// Execution of the guest: `kvm` (hardware virtualization), `tcg` (emulation by QEMU) or `auto`
    /// (`kvm` if this host supports it, else `tcg`).
    #[serde(default)]
    pub accelerator: VmAccelerator,
    /// True if the VM is started after each boot of the host, when its disks are in service. A host
    /// file that was changed before the boot is applied first. A VM that is added while the host
    /// runs, or by the first start of the daemon, is started from the next boot on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub autostart: bool,
}

impl VmConfig {
    /// Returns a VM with the given keys and defaults for all others.
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

    /// Returns the largest number of virtual CPUs.
    pub fn effective_cpus_max(&self) -> u16 {
        self.cpus_max.unwrap_or(self.cpus)
    }

    /// Returns the default socket of one of the VM's NICs.
    pub(crate) fn nic_socket(&self, host: &HostSection, nic: &Name) -> PathBuf {
        host.vm_folder_path(&self.name).join(format!("n-{nic}"))
    }

    /// Returns the default socket of one of the VM's disks.
    pub(crate) fn disk_socket(&self, host: &HostSection, disk: &Name) -> PathBuf {
        host.vm_folder_path(&self.name).join(format!("d-{disk}"))
    }
}

impl HostSection {
    /// Returns the folder of VM folders.
    pub fn effective_vm_folder(&self) -> &Path {
        self.vm_folder.as_deref().unwrap_or_else(|| Path::new(VM_FOLDER_DEFAULT))
    }

    /// Returns the folder of a VM.
    pub fn vm_folder_path(&self, vm: &Name) -> PathBuf {
        self.effective_vm_folder().join(vm.as_str())
    }
}

const fn default_cpus() -> u16 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
