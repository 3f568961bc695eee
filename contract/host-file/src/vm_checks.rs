//! Validation of VMs: each by itself, and together with its NICs and disks.

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::{Finding, FindingLocation};
use crate::{
    DiskConfig, DiskController, ErrorCode, Form, HostConfig, Name, NicBackend, NicConfig,
    ResourceKind, SocketMode, VM_DEVICES_MAX, VmConfig,
};

/// Reports invalid combinations of one VM's keys.
pub(crate) fn check_vm(location: FindingLocation, vm: &VmConfig, findings: &mut Vec<Finding>) {
    if vm.effective_cpus_max() < vm.cpus {
        let text = format!(
            "{} is less than cpus {}; set {} or more, or remove this key",
            vm.effective_cpus_max(),
            vm.cpus,
            vm.cpus
        );
        findings.push(location.finding(ErrorCode::InvalidValue, "cpus_max", text));
    }
    let of_kernels = [("initrd", vm.initrd.is_some()), ("command_line", vm.command_line.is_some())];
    for (key, _) in of_kernels.iter().filter(|(_, present)| *present && vm.kernel.is_none()) {
        let text = "applies only to a VM with `kernel`; set `kernel` or remove this key";
        findings.push(location.finding(ErrorCode::KeyNotApplicable, key, text));
    }
    for (key, names) in [("nics", &vm.nics), ("disks", &vm.disks)] {
        let different: BTreeSet<&Name> = names.iter().collect();
        if different.len() < names.len() {
            let text = "contains a name twice; list each name once";
            findings.push(location.finding(ErrorCode::InvalidValue, key, text));
        }
    }
    if vm.nics.len() + vm.disks.len() > VM_DEVICES_MAX {
        let text = format!(
            "{} NICs and {} disks exceed {VM_DEVICES_MAX}, the number of slots of a VM; remove \
             some",
            vm.nics.len(),
            vm.disks.len()
        );
        findings.push(location.finding(ErrorCode::InvalidValue, "disks", text));
    }
}

/// Reports NICs and disks with settings that a VM's devices cannot have.
pub(crate) fn check_vm_devices(config: &HostConfig, findings: &mut Vec<Finding>) {
    for (index, nic) in config.nics.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Nic, index);
        if let Some(socket) = config.socket_of_nic(nic).filter(|_| nic.socket.is_none()) {
            path_fits(location, "socket", &socket, findings);
        }
    }
    for (index, vm) in config.vms.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Vm, index);
        controllers_fit(location, config, vm, findings);
        for nic in config.nics.iter().filter(|nic| vm.nics.contains(&nic.name)) {
            nic_fits_vm(location, nic, findings);
        }
        for disk in config.disks.iter().filter(|disk| vm.disks.contains(&disk.name)) {
            disk_fits_vm(location, config, disk, findings);
        }
    }
}

fn path_fits(location: FindingLocation, field: &str, socket: &Path, findings: &mut Vec<Finding>) {
    let form = Form::UnixSocketPath;
    if !socket.to_str().is_some_and(|path| form.accepts(&path.into())) {
        let text = format!(
            "missing; the default path in the VM's folder, `{}`, is too long: set this key to {}",
            socket.display(),
            form.describe()
        );
        findings.push(location.finding(ErrorCode::MissingKey, field, text));
    }
}

fn nic_fits_vm(location: FindingLocation, nic: &NicConfig, findings: &mut Vec<Finding>) {
    let name = &nic.name;
    let text = match (nic.backend, nic.socket_mode()) {
        (NicBackend::Tap, _) => format!(
            "`{name}` is a TAP device, which a VM cannot use; set backend = \"vhost-user\" or \
             \"legacy\" of the NIC"
        ),
        (NicBackend::VhostUser, Some(SocketMode::Client)) => format!(
            "`{name}` is in client mode, for a VM started by another program; set vhost_user.mode \
             = \"server\" of the NIC or remove it there"
        ),
        (NicBackend::VhostUser | NicBackend::Legacy, _) => return,
    };
    findings.push(location.finding(ErrorCode::Conflict, "nics", text));
}

/// Reports controllers with more disks than they support.
fn controllers_fit(
    location: FindingLocation,
    config: &HostConfig,
    vm: &VmConfig,
    findings: &mut Vec<Finding>,
) {
    for controller in [DiskController::Ide, DiskController::Sata] {
        let is_on =
            |disk: &&DiskConfig| disk.controller == controller && vm.disks.contains(&disk.name);
        let (count, max) = (config.disks.iter().filter(is_on).count(), controller.disks_max());
        if let Some(max) = max.filter(|max| count > *max) {
            let text = format!(
                "{count} disks are on {controller}, which supports {max}; set controller = \
                 \"virtio\" of some"
            );
            findings.push(location.finding(ErrorCode::InvalidValue, "disks", text));
        }
    }
}

fn disk_fits_vm(
    location: FindingLocation,
    config: &HostConfig,
    disk: &DiskConfig,
    findings: &mut Vec<Finding>,
) {
    if let Some(socket) = config.emulated_disk_socket(disk) {
        path_fits(location, "disks", &socket, findings);
    }
    let Some(vhost_user) = config.vhost_user_of_disk(disk) else { return };
    if vhost_user.mode == SocketMode::Client {
        let text = format!(
            "`{}` is in client mode, for a VM started by another program; set vhost_user.mode = \
             \"server\" of the disk or remove it there",
            disk.name
        );
        findings.push(location.finding(ErrorCode::Conflict, "disks", text));
    }
    if disk.vhost_user.is_none() {
        path_fits(location, "disks", &vhost_user.socket, findings);
    }
}

#[cfg(test)]
#[path = "vm_checks_tests.rs"]
mod tests;
