//! Hot-plug and hot-unplug: NICs, disks and CPUs of a running VM.

use std::collections::BTreeSet;
use std::time::Instant;

use suimon_contract::{HostConfig, Name, VmConfig};
use suimon_ports::{VmCommand, VmDevice, VmError, VmNicSpec};

use super::driver::{Driver, Run};
use super::spec::{disk_spec, nic_spec};
use super::texts;

/// Kind of a hot-pluggable device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceKind {
    Nic,
    Disk,
}

impl DeviceKind {
    /// Returns the device of this kind with this name.
    fn named(self, name: &Name) -> VmDevice {
        match self {
            Self::Nic => VmDevice::Nic(name.to_string()),
            Self::Disk => VmDevice::Disk(name.to_string()),
        }
    }

    fn plugged(self, run: &mut Run) -> &mut BTreeSet<Name> {
        match self {
            Self::Nic => &mut run.stored.nics,
            Self::Disk => &mut run.stored.disks,
        }
    }

    /// Returns the command that plugs the device as configured; `None` if it is not configured.
    fn plug(self, config: &HostConfig, name: &Name) -> Option<VmCommand> {
        match self {
            Self::Nic => nic_spec(config, name).map(VmCommand::PlugNic),
            Self::Disk => disk_spec(config, name).map(VmCommand::PlugDisk),
        }
    }
}

/// Failed hot-plug and hot-unplug operations: `nic/NAME`, `disk/NAME` or `cpus`, with the error.
pub(super) type PlugFailures = Vec<(String, VmError)>;

/// Returns the disconnected NICs that the guest has not released yet, with the reason of the
/// disconnection.
pub(super) fn remaining_disconnected(run: &Run) -> PlugFailures {
    run.disconnected.iter().map(|(device, reason)| (device.to_string(), reason.clone())).collect()
}

impl Run {
    fn note_plugged_nic(&mut self, name: &Name, nic: &VmNicSpec) {
        if let Some(mac) = nic.mac {
            self.stored.macs.insert(name.clone(), mac);
        }
        if nic.is_standby {
            self.stored.standbys.insert(name.clone());
            self.vfs.next_query_at = Some(Instant::now());
        }
    }
}

impl Driver {
    /// Reconciles a running VM's NICs, disks and CPUs with desired state. Guests complete unplug
    /// requests later.
    pub(super) fn reconcile(&mut self) {
        if self.run.is_none() || self.source_cleanup.is_some() {
            return;
        }
        // A migrating VM is reconciled once the migration has ended.
        if self.migration_record.is_some() {
            return self.publish_again();
        }
        let Some(mut run) = self.run.take() else { return };
        let desired = self.shared.desired();
        if let Some(vm) = desired.config.vm(self.entry.name.as_str()) {
            let before = run.stored.clone();
            let vm_names = |names: &[Name], device: DeviceKind| -> BTreeSet<Name> {
                let is_given = |name: &&Name| !run.not_replugged.contains(&device.named(name));
                names.iter().filter(is_given).cloned().collect()
            };
            let nics = vm_names(&vm.nics, DeviceKind::Nic);
            let disks = vm_names(&vm.disks, DeviceKind::Disk);
            run.self_released.retain(|device| vm_has(vm, device));
            let mut refusals = Vec::new();
            for (device, required) in [(DeviceKind::Nic, &nics), (DeviceKind::Disk, &disks)] {
                refusals.extend(self.unplug_removed(&mut run, device, required));
                refusals.extend(self.plug_new(&mut run, &desired.config, device, required));
            }
            refusals.extend(self.set_cpus(&run, vm.cpus));
            refusals.extend(remaining_disconnected(&run));
            self.report_failed_plugs(&mut run, refusals);
            if run.stored != before || !run.is_recorded {
                run.is_recorded = self.save(Some(&run.stored));
            }
        }
        self.run = Some(run);
        self.fail_awaited_writes();
        self.publish_again();
    }

    /// Requests the hot-unplug of devices that are plugged but not in `required`.
    fn unplug_removed(
        &self,
        run: &mut Run,
        device: DeviceKind,
        required: &BTreeSet<Name>,
    ) -> PlugFailures {
        let mut refusals = Vec::new();
        let removed: Vec<Name> = device.plugged(run).difference(required).cloned().collect();
        for name in removed {
            let device_label = device.named(&name);
            // A VF must be unplugged before its standby NIC. `Driver::release` calls `reconcile`
            // again.
            let has_vf = device == DeviceKind::Nic && run.stored.vfs.contains_key(&name);
            if has_vf || run.unplugging.contains(&device_label) {
                continue;
            }
            match run.vm.execute(&VmCommand::Unplug(device_label.clone())) {
                Ok(()) => {
                    run.unplugging.insert(device_label);
                }
                Err(error) => refusals.push((device_label.to_string(), error)),
            }
        }
        refusals
    }

    fn plug_new(
        &self,
        run: &mut Run,
        config: &HostConfig,
        device: DeviceKind,
        required: &BTreeSet<Name>,
    ) -> PlugFailures {
        let mut refusals = Vec::new();
        let new: Vec<Name> = required.difference(device.plugged(run)).cloned().collect();
        let now = Instant::now();
        for name in new {
            let device_label = device.named(&name);
            if run.self_released.is_delayed(&device_label, now) {
                continue;
            }
            let device_label = device_label.to_string();
            let Some(command) = device.plug(config, &name) else { continue };
            match run.vm.execute(&command) {
                Ok(()) => {
                    if let VmCommand::PlugNic(nic) = &command {
                        run.note_plugged_nic(&name, nic);
                    }
                    device.plugged(run).insert(name);
                    self.append(texts::device_plugged_event(&self.entry, &device_label));
                }
                Err(error) => refusals.push((device_label, error)),
            }
        }
        refusals
    }

    fn set_cpus(&self, run: &Run, required_cpus: u16) -> Option<(String, VmError)> {
        if run.vm.status().cpus == required_cpus {
            return None;
        }
        match run.vm.execute(&VmCommand::SetCpus(required_cpus)) {
            Ok(()) => {
                self.append(texts::cpus_plugged_event(&self.entry, required_cpus));
                None
            }
            Err(error) => Some(("cpus".to_owned(), error)),
        }
    }

    /// Replaces the set of failed devices, and emits an event for each device that did not fail
    /// before.
    fn report_failed_plugs(&self, run: &mut Run, refusals: PlugFailures) {
        let before = std::mem::take(&mut run.failed_plugs);
        for (device_label, error) in refusals {
            if !before.contains(&device_label) {
                self.append(texts::plug_failed_event(&self.entry, &device_label, &error.text));
            }
            run.failed_plugs.insert(device_label);
        }
    }

    /// Handles a completed unplug: updates the recorded devices and reconciles again.
    pub(super) fn handle_unplugged(&mut self, device: &VmDevice) {
        if let VmDevice::Vf(nic) = device {
            return self.handle_vf_unplugged(nic);
        }
        let Some(mut run) = self.run.take() else { return };
        let was_requested = run.unplugging.remove(device);
        run.disconnected.remove(device);
        let (kind, name) = match device {
            VmDevice::Nic(name) => (DeviceKind::Nic, name),
            VmDevice::Disk(name) => (DeviceKind::Disk, name),
            VmDevice::Vf(_) => return self.run = Some(run),
        };
        let name = name.parse::<Name>();
        if let (DeviceKind::Nic, Ok(name)) = (kind, &name) {
            run.stored.macs.remove(name);
            run.stored.standbys.remove(name);
            run.vfs.failover_nics.remove(name);
        }
        if name.is_ok_and(|name| kind.plugged(&mut run).remove(&name)) {
            let device_label = device.to_string();
            self.append(if was_requested {
                texts::device_unplugged_event(&self.entry, &device_label)
            } else {
                let (now, first) = (Instant::now(), self.peer_request_interval);
                let delay = run.self_released.record_release(device.clone(), now, first);
                texts::device_self_released_event(&self.entry, &device_label, delay)
            });
            run.is_recorded = false;
        }
        self.run = Some(run);
        // A device with the same name may have been configured again in the meantime.
        self.reconcile();
    }
}

/// Returns true if the VM is to have the device.
fn vm_has(vm: &VmConfig, device: &VmDevice) -> bool {
    let (names, device_name) = match device {
        VmDevice::Nic(device_name) => (&vm.nics, device_name),
        VmDevice::Disk(device_name) => (&vm.disks, device_name),
        VmDevice::Vf(_) => return false,
    };
    names.iter().any(|name| name.as_str() == device_name)
}
