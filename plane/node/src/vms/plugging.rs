//! What changes of a VM while it runs: NICs, disks and CPUs.

use std::collections::BTreeSet;

use suimon_contract::{HostConfig, Name};
use suimon_ports::{VmCommand, VmDevice, VmError};

use super::driver::{Driver, Run};
use super::spec::{disk_spec, nic_spec};
use super::texts;

/// A device of a VM that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    Nic,
    Disk,
}

impl Device {
    /// The one of this name.
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

    /// The command that gives a VM the device as it is desired.
    fn plug(self, config: &HostConfig, name: &Name) -> Option<VmCommand> {
        match self {
            Self::Nic => nic_spec(config, name).map(VmCommand::PlugNic),
            Self::Disk => disk_spec(config, name).map(VmCommand::PlugDisk),
        }
    }
}

impl Driver {
    /// Gives a VM that runs what is desired of NICs, disks and CPUs, and takes away what is not.
    pub(super) fn look(&mut self) {
        let Some(mut run) = self.run.take() else { return };
        let desired = self.shared.desired();
        if let Some(vm) = desired.config.vm(self.entry.name.as_str()) {
            let nics: BTreeSet<Name> = vm.nics.iter().cloned().collect();
            let disks: BTreeSet<Name> = vm.disks.iter().cloned().collect();
            for (device, wanted) in [(Device::Nic, &nics), (Device::Disk, &disks)] {
                self.take_away(&mut run, device, wanted);
                self.give(&mut run, &desired.config, device, wanted);
            }
            self.set_cpus(&mut run, vm.cpus);
        }
        self.save(Some(&run.stored));
        self.run = Some(run);
        let state = self.entry.view().state;
        self.publish(state);
    }

    fn take_away(&mut self, run: &mut Run, device: Device, wanted: &BTreeSet<Name>) {
        let gone: Vec<Name> = device.plugged(run).difference(wanted).cloned().collect();
        for name in gone {
            let what = device.named(&name);
            if run.leaving.contains(&what) {
                continue;
            }
            match run.vm.tell(&VmCommand::Unplug(what.clone())) {
                Ok(()) => {
                    run.leaving.insert(what);
                }
                Err(error) => self.refuse(run, &what.to_string(), &error),
            }
        }
    }

    fn give(
        &mut self,
        run: &mut Run,
        config: &HostConfig,
        device: Device,
        wanted: &BTreeSet<Name>,
    ) {
        let new: Vec<Name> = wanted.difference(device.plugged(run)).cloned().collect();
        for name in new {
            let what = device.named(&name).to_string();
            let Some(command) = device.plug(config, &name) else { continue };
            match run.vm.tell(&command) {
                Ok(()) => {
                    device.plugged(run).insert(name);
                    run.refused.remove(&what);
                    self.append(texts::plugged(&self.entry, &what));
                }
                Err(error) => self.refuse(run, &what, &error),
            }
        }
    }

    fn set_cpus(&mut self, run: &mut Run, wanted: u16) {
        if run.vm.facts().cpus == wanted {
            run.refused.remove("cpus");
            return;
        }
        match run.vm.tell(&VmCommand::SetCpus(wanted)) {
            Ok(()) => {
                run.refused.remove("cpus");
                self.append(texts::cpus(&self.entry, wanted));
            }
            Err(error) => self.refuse(run, "cpus", &error),
        }
    }

    /// Told once, and so from the VM's next start on.
    pub(super) fn refuse(&self, run: &mut Run, what: &str, error: &VmError) {
        if run.refused.insert(what.to_owned()) {
            self.append(texts::refused(&self.entry, what, &error.text));
        }
    }

    /// The guest has let go of a device.
    pub(super) fn handle_unplugged(&mut self, device: &VmDevice) {
        let Some(mut run) = self.run.take() else { return };
        // A guest may let go of what it was not asked for: then it is not plugged in either.
        run.leaving.remove(device);
        let (kind, name) = match device {
            VmDevice::Nic(name) => (Device::Nic, name),
            VmDevice::Disk(name) => (Device::Disk, name),
        };
        let name = name.parse::<Name>();
        if name.is_ok_and(|name| kind.plugged(&mut run).remove(&name)) {
            let what = device.to_string();
            run.refused.remove(&what);
            self.append(texts::unplugged(&self.entry, &what));
        }
        self.run = Some(run);
        // One of the same name may have been wanted again meanwhile.
        self.look();
    }
}
