//! Devices that a change unplugs from running VMs.
//!
//! The change closes the connections of such devices. QEMU can crash when a guest releases a device
//! while its connection is being closed (observed with QEMU 7.2, vhost-user with `reconnect`).
//! Therefore the unplug is requested first. Connections are closed when QEMU has closed them, or
//! after a limited time if the guest does not release the device.
//!
//! The unplug of a NIC that is the standby of a virtual function is not requested here, because the
//! function must be unplugged first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name, VmState};
use suimon_ports::{PortDeviceSpec, VmCommand, VmDevice};

use super::VmEntry;
use super::driver::{Driver, Run};
use super::inbox::Message;
use crate::PortKey;
use crate::change::ValidatedChange;
use crate::control::Controller;
use crate::disks::{RequiredDisk, RequiredDisks};
use crate::ports::{RequiredPorts, exclusive_resource};
use crate::transaction::AcquiredResources;

/// Time that a change waits for guests, in units of the first retry delay of devices (1 s by
/// default).
const WAIT_PAUSES: u32 = 3;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Devices to be released, by VM.
pub(crate) type DevicesToRelease = BTreeMap<Name, BTreeSet<VmDevice>>;

/// Time at which a change closes the device behind a VM's NIC or disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CloseTime {
    Early,
    Late,
}

/// Returns the devices that guests must release for a change from one configuration to another:
/// those that a step before the commit closes or changes, and those that are closed after it.
/// `ports` and `disks` are those of `from`.
pub(super) fn devices_to_release(
    from: &HostConfig,
    (ports, disks): (&RequiredPorts, &RequiredDisks),
    to: &ValidatedChange,
    acquired: &AcquiredResources,
) -> (DevicesToRelease, DevicesToRelease) {
    let (mut early_unplugs, mut late_unplugs) = (DevicesToRelease::new(), DevicesToRelease::new());
    for vm in &from.vms {
        let Some(after) = to.state.config.vm(vm.name.as_str()) else { continue };
        let nics = vm.nics.iter().filter(|nic| !after.nics.contains(nic)).map(|nic| {
            let key = PortKey::Nic(nic.clone());
            let is_acquired = |spec: &PortDeviceSpec| acquired.contains(&exclusive_resource(spec));
            let closed = closed(ports.get(&key), to.required.get(&key), is_acquired);
            (VmDevice::Nic(nic.to_string()), closed)
        });
        let disks = vm.disks.iter().filter(|disk| !after.disks.contains(disk)).map(|disk| {
            let is_acquired = |required: &RequiredDisk| required.uses_any(acquired);
            let closed = closed(disks.get(disk), to.disks.get(disk), is_acquired);
            (VmDevice::Disk(disk.to_string()), closed)
        });
        for (device, closed) in nics.chain(disks) {
            let releases = match closed {
                None => continue,
                Some(CloseTime::Early) => &mut early_unplugs,
                Some(CloseTime::Late) => &mut late_unplugs,
            };
            releases.entry(vm.name.clone()).or_default().insert(device);
        }
    }
    (early_unplugs, late_unplugs)
}

/// Returns when a change closes a device; `None` if the device did not exist or is unchanged.
/// `is_in_the_way`: true if the device holds a resource that another device acquires.
fn closed<S: PartialEq>(
    before: Option<&S>,
    after: Option<&S>,
    is_in_the_way: impl Fn(&S) -> bool,
) -> Option<CloseTime> {
    let before = before?;
    match after {
        Some(after) => (before != after).then_some(CloseTime::Early),
        None if is_in_the_way(before) => Some(CloseTime::Early),
        None => Some(CloseTime::Late),
    }
}

impl Controller {
    /// Requests the unplug of devices and blocks until the guests have released them, at most
    /// [`WAIT_PAUSES`] retry delays. The devices are not plugged again before
    /// [`Message::Reconcile`]. The switch uses the tables of `config` meanwhile.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] if a migration of one of the VMs has started.
    pub(crate) fn release_devices(
        &mut self,
        releases: &DevicesToRelease,
        config: &HostConfig,
    ) -> Result<(), ApiError> {
        let mut waiting: Vec<(Arc<VmEntry>, &BTreeSet<VmDevice>)> = Vec::new();
        for (vm, devices) in releases {
            let Some(entry) = self.shared.vms.find(vm).filter(|entry| has_any(entry, devices))
            else {
                continue;
            };
            entry.inbox.put(Message::ReleaseDevices(devices.clone()));
            waiting.push((entry, devices));
        }
        let deadline = Instant::now() + self.devices.retry_first * WAIT_PAUSES;
        while !waiting.is_empty() && Instant::now() < deadline {
            std::thread::sleep(POLL_INTERVAL);
            // Keeps the switch's tables of migrating VMs current during the wait.
            self.update_moved_nics(config);
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
            let is_moving = entry.view().migration.is_some();
            is_moving.then(|| {
                let text = "the VM has begun to migrate to another node; change it there after \
                            the migration";
                ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label())
            })
        };
        releases.keys().find_map(moves).map_or(Ok(()), Err)
    }
}

/// Returns true if the VM is running, so that its guest can respond, and still has one of the
/// devices.
fn has_any(entry: &VmEntry, devices: &BTreeSet<VmDevice>) -> bool {
    let view = entry.view();
    let Some(run) = view.running.as_ref().filter(|_| view.migration.is_none()) else {
        return false;
    };
    let holds = |device: &VmDevice| match device {
        VmDevice::Nic(nic) => {
            let is_named = |name: &&Name| name.as_str() == nic;
            run.nics.iter().find(is_named).is_some_and(|name| !run.standbys.contains(name))
        }
        VmDevice::Disk(disk) => run.disks.iter().any(|name| name.as_str() == disk),
        VmDevice::Vf(_) => false,
    };
    matches!(view.state, VmState::Running | VmState::Stopping) && devices.iter().any(holds)
}

impl Driver {
    /// Requests the unplug of devices that the change in progress takes from the VM.
    pub(super) fn begin_release(&mut self, devices: BTreeSet<VmDevice>) {
        // A migrating VM stays unchanged, and the change is rejected.
        if self.migration_record.is_some() {
            return;
        }
        let Some(run) = self.run.as_mut() else { return };
        for device in &devices {
            if run.is_standby(device) {
                continue;
            }
            // A failed request is repeated and reported when the change is committed.
            let is_new = !run.unplugging.contains(device);
            if is_new && run.vm.execute(&VmCommand::Unplug(device.clone())).is_ok() {
                run.unplugging.insert(device.clone());
            }
        }
        run.not_replugged.extend(devices);
        self.fail_awaited_writes();
    }

    /// Ends the release after the change was committed or rolled back. If a device stays configured
    /// and the guest has not released it, a later unplug is requested again.
    pub(super) fn end_release(&mut self) {
        let Some(run) = &mut self.run else { return };
        let not_replugged = std::mem::take(&mut run.not_replugged);
        if not_replugged.is_empty() {
            return;
        }
        let desired = self.shared.desired();
        let vm = desired.config.vm(self.entry.name.as_str());
        let is_configured = |device: &VmDevice| match (device, vm) {
            (VmDevice::Nic(name), Some(vm)) => vm.nics.iter().any(|nic| nic.as_str() == name),
            (VmDevice::Disk(name), Some(vm)) => vm.disks.iter().any(|disk| disk.as_str() == name),
            (VmDevice::Vf(_), _) | (_, None) => false,
        };
        run.unplugging.retain(|device| !(not_replugged.contains(device) && is_configured(device)));
        self.fail_awaited_writes();
    }

    /// Checks that no unplug is pending, because the destination of a migration would not know of
    /// it.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] with the device.
    pub(super) fn check_no_pending_unplug(&self) -> Result<(), ApiError> {
        let first_released =
            |run: &Run| run.unplugging.iter().chain(&run.not_replugged).next().cloned();
        match self.run.as_ref().and_then(first_released) {
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
