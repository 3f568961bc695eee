//! Devices that a change takes from VMs while they run.
//!
//! The change closes the connections of such devices. QEMU can crash when the guest lets go of a
//! device in the moment in which its connection ends (seen with QEMU 7.2, vhost-user with
//! `reconnect`). So guests are asked first, and connections are closed when QEMU has closed them or
//! when a guest takes longer than a change is to wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{HostConfig, Name, VmState};
use suimon_ports::{VmCommand, VmDevice};

use super::VmEntry;
use super::driver::Driver;
use super::inbox::Message;
use crate::control::Controller;

/// A change waits so many of the pauses after which a failed device is tried again first: 3 s.
const WAIT_PAUSES: u32 = 3;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Devices by the VM that is to let go of them.
pub(crate) type Releases = BTreeMap<Name, BTreeSet<VmDevice>>;

/// The NICs and disks that VMs of one configuration have in another no more, of those for which
/// `changes` says that their connection does not stay.
pub(crate) fn releases(
    from: &HostConfig,
    to: &HostConfig,
    changes: impl Fn(&VmDevice) -> bool,
) -> Releases {
    let mut releases = Releases::new();
    for vm in &from.vms {
        let Some(after) = to.vm(vm.name.as_str()) else { continue };
        let nics = vm.nics.iter().filter(|nic| !after.nics.contains(nic));
        let disks = vm.disks.iter().filter(|disk| !after.disks.contains(disk));
        let nics = nics.map(|nic| VmDevice::Nic(nic.to_string()));
        let devices = nics.chain(disks.map(|disk| VmDevice::Disk(disk.to_string())));
        let devices: BTreeSet<VmDevice> = devices.filter(|device| changes(device)).collect();
        if !devices.is_empty() {
            releases.insert(vm.name.clone(), devices);
        }
    }
    releases
}

impl Controller {
    /// Asks guests to let go of devices, and waits until they have, for a limited time. VMs are not
    /// given the devices again before [`Message::Look`].
    pub(crate) fn release_devices(&self, releases: &Releases) {
        let mut waiting: Vec<(Arc<VmEntry>, &BTreeSet<VmDevice>)> = Vec::new();
        for (vm, devices) in releases {
            let Some(entry) = self.shared.vms.find(vm).filter(|entry| has_any(entry, devices))
            else {
                continue;
            };
            entry.inbox.put(Message::Release(devices.clone()));
            waiting.push((entry, devices));
        }
        let deadline = Instant::now() + self.devices.retry_first * WAIT_PAUSES;
        while !waiting.is_empty() && Instant::now() < deadline {
            std::thread::sleep(LOOK_EVERY);
            waiting.retain(|(entry, devices)| has_any(entry, devices));
        }
        for (entry, _) in waiting {
            tracing::warn!(vm = %entry.name, "the guest has not let go of devices that are closed now");
        }
    }
}

/// Whether the VM runs, so that its guest can let go, and still has one of the devices.
fn has_any(entry: &VmEntry, devices: &BTreeSet<VmDevice>) -> bool {
    let view = entry.view();
    let Some(run) = view.running.as_ref().filter(|_| view.moving.is_none()) else { return false };
    let has = |device: &VmDevice| match device {
        VmDevice::Nic(nic) => run.nics.iter().any(|name| name.as_str() == nic),
        VmDevice::Disk(disk) => run.disks.iter().any(|name| name.as_str() == disk),
        VmDevice::Vf(_) => false,
    };
    matches!(view.state, VmState::Running | VmState::Stopping) && devices.iter().any(has)
}

impl Driver {
    /// Asks the guest to let go of devices that the change under way takes from it.
    pub(super) fn begin_release(&mut self, devices: BTreeSet<VmDevice>) {
        let Some(run) = &mut self.run else { return };
        for device in &devices {
            // What is refused here is tried again, and told, when the change is made.
            let is_new = !run.leaving.contains(device);
            if is_new && run.vm.tell(&VmCommand::Unplug(device.clone())).is_ok() {
                run.leaving.insert(device.clone());
            }
        }
        run.withheld = devices;
    }

    /// The configuration is settled: what it has is the VM's.
    pub(super) fn end_release(&mut self) {
        if let Some(run) = &mut self.run {
            run.withheld.clear();
        }
    }
}
