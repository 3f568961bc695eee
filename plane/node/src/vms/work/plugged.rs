//! Check of changes of devices that are plugged into VMs.

use std::collections::{BTreeMap, BTreeSet};

use suimon_contract::{ApiError, DiskController, ErrorCode, HostConfig, Name, VmConfig, VmState};
use suimon_frame::MacAddr;

use crate::vms::{VmEntry, Vms};

/// Devices that are plugged into a VM.
#[derive(Default)]
struct PluggedDevices {
    nics: BTreeSet<Name>,
    disks: BTreeSet<Name>,
    /// MAC addresses with which NICs were plugged, as far as they are recorded.
    macs: BTreeMap<Name, MacAddr>,
}

impl PluggedDevices {
    /// Returns the devices of a VM that is not stopped. While its process has not responded, these
    /// are the devices of `from`, the former desired state.
    fn of(entry: &VmEntry, from: &HostConfig) -> Self {
        let view = entry.view();
        if let Some(run) = &view.running {
            let (nics, disks) = (run.nics.clone(), run.disks.clone());
            return Self { nics, disks, macs: run.macs.clone() };
        }
        match from.vm(entry.name.as_str()) {
            Some(vm) if view.state != VmState::Stopped => Self {
                nics: vm.nics.iter().cloned().collect(),
                disks: vm.disks.iter().cloned().collect(),
                macs: BTreeMap::new(),
            },
            _ => Self::default(),
        }
    }
}

/// Returns an error for each plugged device of a VM that the change would replace or that cannot be
/// unplugged: the backend and the address of a NIC, the controller of a disk, and the removal of an
/// emulated disk. QEMU sets the address of a NIC when it is plugged. IDE and SATA disks do not
/// support hot-unplug.
pub(super) fn check_plugged(vms: &Vms, from: &HostConfig, to: &HostConfig) -> Vec<ApiError> {
    let mut errors = Vec::new();
    for vm in &to.vms {
        let Some(entry) = vms.find(&vm.name) else { continue };
        let plugged = PluggedDevices::of(&entry, from);
        let stop = format!("stop {} first, with `suimon vm stop {}`", entry.label(), vm.name);
        for name in plugged.nics.iter().filter(|name| vm.nics.contains(name)) {
            errors.extend(check_nic(name, plugged.macs.get(name).copied(), (from, to), &stop, vm));
        }
        for name in &plugged.disks {
            let controller = |config: &HostConfig| {
                let disk = config.disks.iter().find(|disk| disk.name == *name);
                disk.map(|disk| disk.controller)
            };
            let (before, after) = (controller(from), controller(to));
            let is_emulated = before.is_some_and(DiskController::is_emulated);
            let field = match vm.disks.contains(name) {
                true if before != after => "controller",
                false if is_emulated => "disks",
                _ => continue,
            };
            let text = format!("disk/{name} is plugged into a running VM; {stop}");
            let subject = if field == "disks" { entry.label() } else { format!("disk/{name}") };
            errors.push(
                ApiError::new(ErrorCode::InUse, text).with_resource(subject).with_field(field),
            );
        }
    }
    errors
}

/// Checks the change of a NIC of the VM. `mac` is the address with which the NIC was plugged, if it
/// is recorded. A change to this address is accepted.
fn check_nic(
    name: &Name,
    mac: Option<MacAddr>,
    (from, to): (&HostConfig, &HostConfig),
    stop: &str,
    vm: &VmConfig,
) -> Option<ApiError> {
    let of_name = |config: &HostConfig| {
        let nic = config.nics.iter().find(|nic| nic.name == *name);
        nic.map(|nic| (nic.backend, nic.mac))
    };
    let (before, after) = (of_name(from), of_name(to));
    let (field, text) = if before.map(|nic| nic.0) != after.map(|nic| nic.0) {
        ("backend", format!("the NIC is plugged into a running VM; {stop}"))
    } else if before == after || (mac.is_some() && mac == after.and_then(|nic| nic.1)) {
        return None;
    } else {
        let address = match mac {
            Some(mac) => format!("the address {mac}"),
            None => "the address with which it was plugged".to_owned(),
        };
        let text = format!(
            "the NIC is plugged into a running VM, whose guest keeps {address}; {stop}, or take \
             the NIC out of `nics` of vm/{} and add it again after the change",
            vm.name
        );
        ("mac", text)
    };
    Some(
        ApiError::new(ErrorCode::InUse, text)
            .with_resource(format!("nic/{name}"))
            .with_field(field),
    )
}
