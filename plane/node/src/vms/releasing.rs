//! Devices that a change takes from VMs while they run.
//!
//! The change closes the connections of such devices. QEMU can crash when the guest lets go of a
//! device in the moment in which its connection ends (seen with QEMU 7.2, vhost-user with
//! `reconnect`). So guests are asked first, and connections are closed when QEMU has closed them or
//! when a guest takes longer than a change is to wait.
//!
//! A NIC that stands by for a virtual function is not asked for here: the function goes first, in its
//! own time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name, VmState};
use suimon_ports::{PortSpec, VmCommand, VmDevice};

use super::VmEntry;
use super::driver::{Driver, Run};
use super::inbox::Message;
use crate::PortKey;
use crate::checks::Candidate;
use crate::control::Controller;
use crate::disks::{WantedDisk, WantedDisks};
use crate::needed::Needed;
use crate::wanted::WantedPorts;

/// A change waits so many of the pauses after which a failed device is tried again first: 3 s.
const WAIT_PAUSES: u32 = 3;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Devices by the VM that is to let go of them.
pub(crate) type Releases = BTreeMap<Name, BTreeSet<VmDevice>>;

/// The devices that VMs lose by a change and whose connection ends with it.
#[derive(Default)]
pub(crate) struct ReleasesOfChange {
    /// Those whose device a step closes or changes.
    pub(crate) early: Option<Releases>,
    /// Those whose device is closed when the change is made.
    pub(crate) late: Option<Releases>,
}

/// When a change closes the device behind a VM's NIC or disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    Early,
    Late,
}

/// What guests are to let go of on the way from one configuration to another. `ports` and `disks` are
/// those of `from`.
pub(crate) fn releases(
    from: &HostConfig,
    (ports, disks): (&WantedPorts, &WantedDisks),
    to: &Candidate,
    needed: &Needed,
) -> ReleasesOfChange {
    let (mut early, mut late) = (Releases::new(), Releases::new());
    for vm in &from.vms {
        let Some(after) = to.state.config.vm(vm.name.as_str()) else { continue };
        let nics = vm.nics.iter().filter(|nic| !after.nics.contains(nic)).map(|nic| {
            let key = PortKey::Nic(nic.clone());
            let is_held = |spec: &PortSpec| needed.is_held_by_port(spec);
            let closed = closed(ports.get(&key), to.wanted.get(&key), is_held);
            (VmDevice::Nic(nic.to_string()), closed)
        });
        let disks = vm.disks.iter().filter(|disk| !after.disks.contains(disk)).map(|disk| {
            let is_held = |wanted: &WantedDisk| needed.is_held_by_disk(wanted);
            let closed = closed(disks.get(disk), to.disks.get(disk), is_held);
            (VmDevice::Disk(disk.to_string()), closed)
        });
        for (device, closed) in nics.chain(disks) {
            let releases = match closed {
                None => continue,
                Some(Closed::Early) => &mut early,
                Some(Closed::Late) => &mut late,
            };
            releases.entry(vm.name.clone()).or_default().insert(device);
        }
    }
    let some = |releases: Releases| (!releases.is_empty()).then_some(releases);
    ReleasesOfChange { early: some(early), late: some(late) }
}

/// When what was wanted is closed; nothing if it was not there, or stays as it is.
fn closed<S: PartialEq>(
    before: Option<&S>,
    after: Option<&S>,
    is_in_the_way: impl Fn(&S) -> bool,
) -> Option<Closed> {
    let before = before?;
    match after {
        Some(after) => (before != after).then_some(Closed::Early),
        None if is_in_the_way(before) => Some(Closed::Early),
        None => Some(Closed::Late),
    }
}

impl Controller {
    /// Asks guests to let go of devices, and waits until they have, for a limited time. VMs are not
    /// given the devices again before [`Message::Look`]. The switch has the tables of `config`
    /// meanwhile.
    ///
    /// # Errors
    /// One of the VMs has begun to move to another node.
    pub(crate) fn release_devices(
        &mut self,
        releases: &Releases,
        config: &HostConfig,
    ) -> Result<(), ApiError> {
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
            // Frames of VMs that move do not wait for guests of others.
            self.follow_moves_in(config);
            waiting.retain(|(entry, devices)| has_any(entry, devices));
        }
        for (entry, _) in waiting {
            tracing::warn!(
                vm = %entry.name,
                "the guest has not released devices that are now closed"
            );
        }
        let moves = |vm: &Name| {
            let entry = self.shared.vms.find(vm)?;
            let is_moving = entry.view().moving.is_some();
            is_moving.then(|| {
                let text = "the VM has begun to migrate to another node; change it there after \
                            the migration";
                ApiError::new(ErrorCode::Conflict, text).about(entry.label())
            })
        };
        releases.keys().find_map(moves).map_or(Ok(()), Err)
    }
}

/// Whether the VM runs, so that its guest can let go, and still has one of the devices.
fn has_any(entry: &VmEntry, devices: &BTreeSet<VmDevice>) -> bool {
    let view = entry.view();
    let Some(run) = view.running.as_ref().filter(|_| view.moving.is_none()) else { return false };
    let has = |device: &VmDevice| match device {
        VmDevice::Nic(nic) => {
            let is_it = |name: &&Name| name.as_str() == nic;
            run.nics.iter().find(is_it).is_some_and(|name| !run.standbys.contains(name))
        }
        VmDevice::Disk(disk) => run.disks.iter().any(|name| name.as_str() == disk),
        VmDevice::Vf(_) => false,
    };
    matches!(view.state, VmState::Running | VmState::Stopping) && devices.iter().any(has)
}

impl Driver {
    /// Asks the guest to let go of devices that the change under way takes from it.
    pub(super) fn begin_release(&mut self, devices: BTreeSet<VmDevice>) {
        // A VM that has begun to move stays as it is, and the change is refused.
        if self.moving.is_some() {
            return;
        }
        let Some(run) = self.run.as_mut() else { return };
        for device in &devices {
            if run.is_standby(device) {
                continue;
            }
            // What is refused here is tried again, and told, when the change is made.
            let is_new = !run.leaving.contains(device);
            if is_new && run.vm.tell(&VmCommand::Unplug(device.clone())).is_ok() {
                run.leaving.insert(device.clone());
            }
        }
        run.withheld = devices;
        self.follow_awaited_writes();
    }

    /// The configuration is settled: what it has is the VM's. A device that the guest was asked for in
    /// vain, and keeps, is asked for anew if it is to go after all.
    pub(super) fn end_release(&mut self) {
        let Some(run) = &mut self.run else { return };
        let withheld = std::mem::take(&mut run.withheld);
        if withheld.is_empty() {
            return;
        }
        let desired = self.shared.desired();
        let vm = desired.config.vm(self.entry.name.as_str());
        let stays = |device: &VmDevice| match (device, vm) {
            (VmDevice::Nic(name), Some(vm)) => vm.nics.iter().any(|nic| nic.as_str() == name),
            (VmDevice::Disk(name), Some(vm)) => vm.disks.iter().any(|disk| disk.as_str() == name),
            (VmDevice::Vf(_), _) | (_, None) => false,
        };
        run.leaving.retain(|device| !(withheld.contains(device) && stays(device)));
        self.follow_awaited_writes();
    }

    /// # Errors
    /// The guest is asked to let go of something, which the other node would not know of.
    pub(super) fn check_nothing_leaves(&self) -> Result<(), ApiError> {
        let leaves = |run: &Run| run.leaving.iter().chain(&run.withheld).next().cloned();
        match self.run.as_ref().and_then(leaves) {
            None => Ok(()),
            Some(device) => {
                let text = format!(
                    "the guest was requested to release {device}; wait until it does, or restart \
                     the VM"
                );
                Err(self.error(ErrorCode::Conflict, &text))
            }
        }
    }
}

impl Run {
    fn is_standby(&self, device: &VmDevice) -> bool {
        let VmDevice::Nic(nic) = device else { return false };
        self.stored.standbys.iter().any(|name| name.as_str() == nic)
    }
}
