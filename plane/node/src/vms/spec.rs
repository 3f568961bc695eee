//! Specification of a VM to start, derived from desired state.

use std::collections::{BTreeMap, BTreeSet};

use suimon_contract::{
    ApiError, ByteSize, DiskConfig, DiskController, DiskOnFull, ErrorCode, HostConfig, Name,
    NicBackend, NicConfig, VmAccelerator, VmConfig, VmFirmware,
};
use suimon_frame::MacAddr;
use suimon_ports::{
    self as ports, VmBoot, VmDiskKind, VmDiskSpec, VmHost, VmNicKind, VmNicSpec, VmSpec,
};

use super::VmEntry;
use crate::shared::Shared;

impl Shared {
    /// Returns the specification with which a VM is started.
    ///
    /// # Errors
    /// [`ErrorCode::DeviceMissing`] if the VM boots by UEFI and the host has no firmware for it.
    pub(crate) fn vm_spec(
        &self,
        config: &HostConfig,
        vm: &VmConfig,
        entry: &VmEntry,
    ) -> Result<VmSpec, ApiError> {
        let Some(boot) = boot(vm, self.vms.dependencies.host.as_ref()) else {
            let text = "the host has no UEFI firmware for VMs; install it (Debian: package ovmf), \
                        or set firmware = \"bios\"";
            let error = ApiError::new(ErrorCode::DeviceMissing, text);
            return Err(error.with_resource(entry.label()).with_field("firmware"));
        };
        Ok(spec_with(config, vm, entry, boot))
    }
}

fn spec_with(config: &HostConfig, vm: &VmConfig, entry: &VmEntry, boot: VmBoot) -> VmSpec {
    VmSpec {
        name: vm.name.to_string(),
        uuid: entry.uuid,
        folder: config.host.vm_folder_path(&vm.name),
        uid: entry.user_id,
        cpus: vm.cpus,
        cpus_max: vm.effective_cpus_max(),
        memory_bytes: ByteSize::bytes(vm.memory_bytes),
        huge_pages: vm.huge_pages,
        accelerator: match vm.accelerator {
            VmAccelerator::Auto => None,
            VmAccelerator::Kvm => Some(ports::VmAccelerator::Kvm),
            VmAccelerator::Tcg => Some(ports::VmAccelerator::Tcg),
        },
        boot,
        nics: vm.nics.iter().filter_map(|nic| nic_spec(config, nic)).collect(),
        disks: vm.disks.iter().filter_map(|disk| disk_spec(config, disk)).collect(),
        cdrom: vm.cdrom.clone(),
        migration_requirements: None,
    }
}

/// Returns the NICs that are plugged as standbys of virtual functions.
pub(super) fn standbys(spec: &VmSpec) -> BTreeSet<Name> {
    let standbys = spec.nics.iter().filter(|nic| nic.is_standby);
    standbys.filter_map(|nic| nic.name.parse().ok()).collect()
}

/// Returns the MAC addresses with which NICs are plugged.
pub(super) fn macs(spec: &VmSpec) -> BTreeMap<Name, MacAddr> {
    let macs = spec.nics.iter().filter_map(|nic| Some((nic.name.parse::<Name>().ok()?, nic.mac?)));
    macs.collect()
}

/// Returns the boot method; `None` for UEFI on a host without UEFI firmware.
fn boot(vm: &VmConfig, host: &dyn VmHost) -> Option<VmBoot> {
    if let Some(kernel) = &vm.kernel {
        return Some(VmBoot::Direct {
            kernel: kernel.clone(),
            initrd: vm.initrd.clone(),
            command_line: vm.command_line.clone().unwrap_or_default(),
        });
    }
    match vm.firmware {
        VmFirmware::Bios => Some(VmBoot::Bios),
        VmFirmware::Uefi => host.uefi_firmware(),
    }
}

/// Returns the specification of a NIC; `None` if the NIC does not exist or has no socket.
pub(super) fn nic_spec(config: &HostConfig, name: &Name) -> Option<VmNicSpec> {
    let nic: &NicConfig = config.nics.iter().find(|nic| nic.name == *name)?;
    Some(VmNicSpec {
        name: nic.name.to_string(),
        kind: match nic.backend {
            NicBackend::Legacy => VmNicKind::Legacy,
            NicBackend::VhostUser | NicBackend::Tap => VmNicKind::Virtio,
        },
        socket: config.socket_of_nic(nic)?,
        queue_pairs: nic.queues,
        mac: nic.mac,
        is_standby: nic.iov_weight > 0,
        root_port: None,
    })
}

/// Returns the specification of a disk; `None` if the disk does not exist or has no socket.
pub(super) fn disk_spec(config: &HostConfig, name: &Name) -> Option<VmDiskSpec> {
    let disk: &DiskConfig = config.disks.iter().find(|disk| disk.name == *name)?;
    let kind = match disk.controller {
        DiskController::Virtio => {
            let vhost_user = config.vhost_user_of_disk(disk)?;
            VmDiskKind::Virtio { socket: vhost_user.socket, queues: vhost_user.queues }
        }
        DiskController::Ide => VmDiskKind::Ide { socket: config.emulated_disk_socket(disk)? },
        DiskController::Sata => VmDiskKind::Sata { socket: config.emulated_disk_socket(disk)? },
    };
    Some(VmDiskSpec {
        name: disk.name.to_string(),
        kind,
        is_read_only: disk.read_only,
        serial: disk.effective_serial(),
        reports_full_to_guest: disk.on_full == DiskOnFull::Error,
        root_port: None,
    })
}
