//! Handling of virtual functions by the driver of a VM.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use suimon_contract::Name;
use suimon_ports::{NicStandbyState, VmCommand, VmDevice, VmError, VmErrorKind};

use super::{VfOrder, VmVfs};
use crate::virtual_functions::{StoredVfId, VfAddress, VfReport, settings_for_nic};
use crate::vms::driver::{Driver, Run};
use crate::vms::entry::{RunView, VmEntry};
use crate::vms::inbox::Message;

/// Interval between queries of QEMU for the failover state of standby NICs.
const QUERY_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between queries whether guests still support failover: not every change of the guest's
/// driver resets the machine.
const VERIFY_EVERY: Duration = Duration::from_secs(10);

impl VmEntry {
    /// Sends an order to the thread that drives the VM. The thread reports the result as a
    /// [`VfReport`].
    pub(crate) fn order_vf(&self, order: VfOrder) {
        self.inbox.put(Message::Vf(order));
    }

    /// Returns true if the running VM has this NIC or a VF for it, or if a VM that was not adopted
    /// yet has a VF recorded for the NIC.
    pub(crate) fn has_nic(&self, nic: &Name) -> bool {
        let view = self.view();
        let has_nic = |run: &RunView| run.nics.contains(nic) || run.vfs.contains(nic);
        view.running.as_ref().is_some_and(has_nic) || view.recorded_vfs.contains(nic)
    }
}

impl Run {
    /// Returns true if the VM has NICs that are plugged as standbys of VFs.
    fn has_standbys(&self) -> bool {
        !self.stored.standbys.is_empty()
    }

    /// Returns the standby NICs whose state is expected to change, or all with `verifies`.
    fn queried_standbys(&self, verifies: bool) -> Vec<Name> {
        let VmVfs { failover_nics, plugging, unplugging, .. } = &self.vfs;
        let is_settled = |nic: &Name| {
            failover_nics.contains(nic)
                && !plugging.contains_key(nic)
                && !unplugging.contains_key(nic)
        };
        let standbys = self.stored.standbys.intersection(&self.stored.nics);
        standbys.filter(|nic| verifies || !is_settled(nic)).cloned().collect()
    }
}

impl Driver {
    pub(in crate::vms) fn handle_vf_order(&mut self, order: VfOrder) {
        // The VM may still have its VFs and cannot receive commands.
        if self.unresponsive.is_some() {
            return self.vf_orders.push(order);
        }
        match order {
            VfOrder::Plug { nic, vf } => {
                if let Err(reason) = self.plug_vf(&nic, &vf) {
                    self.report(VfReport::Failed { nic, vf, reason });
                }
            }
            VfOrder::Unplug { nic, vf } => self.unplug_vf(&nic, vf),
        }
    }

    pub(super) fn report(&self, report: VfReport) {
        self.shared.vf_assignments.report(report);
    }

    fn plug_vf(&mut self, nic: &Name, vf: &VfAddress) -> Result<(), String> {
        let desired = self.shared.desired();
        let config = desired.config.nics.iter().find(|nic_config| nic_config.name == *nic);
        let (Some(run), Some(config)) = (&mut self.run, config) else {
            return Err("the VM is not running any more".to_owned());
        };
        if run.stored.vfs.contains_key(nic) {
            return Err("the NIC still has another VF".to_owned());
        }
        // The order was sent before the migration was known. Memory that a VF writes to by DMA
        // cannot be migrated.
        if self.migration_record.is_some() {
            return Err("the VM is migrating".to_owned());
        }
        run.stored.vfs.insert(nic.clone(), StoredVfId::from(vf));
        let (vm, memory) = (run.vm.clone(), run.stored.start_config.memory_bytes);
        let memory = suimon_contract::ByteSize::bytes(memory);
        self.save_run();
        if self.run.as_ref().is_some_and(|run| !run.is_recorded) {
            return Err(
                "the state directory cannot be written; `suimon host show` shows the reason"
                    .to_owned(),
            );
        }
        let text = |error: VmError| error.text;
        let assigned =
            self.shared.vms.dependencies.host.assign_vf(&vm.identity(), vf.pci_address, memory);
        if let Err(error) = assigned {
            if matches!(error.kind, VmErrorKind::Busy | VmErrorKind::Refused) {
                // Another process has it, or it cannot be assigned: this VM got nothing that it
                // could keep open.
                if let Some(run) = &mut self.run {
                    run.stored.vfs.remove(nic);
                }
                self.save_run();
            }
            return Err(error.text);
        }
        // Last step before the plug: from here on the adapter delivers the NIC's frames to the VF.
        self.shared.set_vf(vf, |current| settings_for_nic(current, config))?;
        let address = vf.pci_address;
        vm.execute(&VmCommand::PlugVf { nic: nic.to_string(), address }).map_err(text)?;
        if let Some(run) = &mut self.run {
            run.vfs.plugging.insert(nic.clone(), vf.clone());
        }
        self.update_failover_state();
        self.publish_again();
        Ok(())
    }

    fn unplug_vf(&mut self, nic: &Name, vf: VfAddress) {
        if self.unreturned_vfs.holds(&vf) {
            return;
        }
        let Some(run) = self.run.as_mut().filter(|run| is_recorded(run, nic, &vf)) else {
            // The VM has ended or never received the VF; its VFs were released at that time.
            return self.report(VfReport::Released { nic: nic.clone(), vf });
        };
        run.vfs.plugging.remove(nic);
        match run.vm.execute(&VmCommand::Unplug(VmDevice::Vf(nic.to_string()))) {
            Err(error) if error.kind == VmErrorKind::NotRunning => self.handle_released(nic),
            result => {
                if let Err(error) = result {
                    tracing::warn!(
                        vm = %self.entry.name,
                        %nic,
                        %error,
                        "cannot unplug a VF; the daemon retries"
                    );
                }
                run.vfs.unplugging.insert(nic.clone(), vf);
                run.vfs.next_query_at = Some(Instant::now() + QUERY_RETRY_INTERVAL);
            }
        }
    }

    /// Handles a VF that the guest has released, on request or on its own.
    pub(in crate::vms) fn handle_vf_unplugged(&mut self, nic: &str) {
        let Ok(nic) = nic.parse::<Name>() else { return };
        let Some(run) = &mut self.run else { return };
        let was_asked = run.vfs.unplugging.contains_key(&nic);
        if let Some(vf) = run.stored.vfs.get(&nic).and_then(StoredVfId::address) {
            if !was_asked && !self.unreturned_vfs.holds(&vf) {
                let reason = "the VF was unplugged by the guest, or the adapter removed it";
                self.report(VfReport::Failed { nic: nic.clone(), vf, reason: reason.to_owned() });
            }
        }
        self.handle_released(&nic);
    }

    /// Releases the VF of a NIC after it was unplugged: returns it to the host, reports and records
    /// that.
    fn handle_released(&mut self, nic: &Name) {
        let Some(run) = &mut self.run else { return };
        let Some(stored) = run.stored.vfs.get(nic).cloned() else { return };
        run.vfs.plugging.remove(nic);
        run.vfs.unplugging.remove(nic);
        // The record stays while QEMU keeps the VF open, for the next daemon.
        if self.return_to_host(nic, &stored) {
            self.forget_vf(nic);
        }
    }

    /// Deletes the record of a VF that was returned to the host.
    pub(super) fn forget_vf(&mut self, nic: &Name) {
        let Some(run) = &mut self.run else { return };
        run.stored.vfs.remove(nic);
        self.save_run();
        // The NIC's own unplug may have been delayed until now.
        self.reconcile();
    }

    /// Releases all VFs of a VM that has ended.
    pub(in crate::vms) fn release_all(&mut self, vfs: &BTreeMap<Name, StoredVfId>) {
        for (nic, stored) in vfs {
            self.return_to_host(nic, stored);
        }
    }

    /// Reports the start or end of a migration for each standby NIC: VFs are taken from the NICs,
    /// or may be assigned again.
    pub(in crate::vms) fn report_vm_migrating(&self, is_moving: bool) {
        for nic in self.run.iter().flat_map(|run| &run.stored.standbys) {
            self.report(VfReport::Migrating { nic: nic.clone(), is_moving });
        }
    }

    /// Returns true if the VM has VFs or has not released one yet.
    pub(in crate::vms) fn has_vfs(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.stored.vfs.is_empty())
    }

    /// Queries whether an adopted VM still has its recorded VFs, and reports those that are
    /// missing. The control thread assumes until then that all are present.
    pub(in crate::vms) fn verify_recorded_vfs(&mut self) {
        let Some(run) = &mut self.run else { return };
        let vm = run.vm.clone();
        if run.has_standbys() {
            run.vfs.next_query_at = Some(Instant::now());
        }
        let recorded = run.stored.vfs.clone();
        let nics: Vec<&str> = recorded.keys().map(Name::as_str).collect();
        let standbys = if nics.is_empty() { BTreeMap::new() } else { vm.standbys(&nics) };
        for (nic, stored) in recorded {
            let Some(vf) = stored.address() else { continue };
            // On a failed query the VF is assumed to be present, so that it is not assigned
            // elsewhere.
            let has_vf = standbys.get(nic.as_str()).is_none_or(|standby| standby.has_vf);
            if !has_vf {
                let reason = "the VF was unplugged while no daemon was running".to_owned();
                self.report(VfReport::Failed { nic: nic.clone(), vf, reason });
                self.handle_released(&nic);
            } else if let Some(run) = &mut self.run {
                run.vfs.failover_nics.insert(nic);
            }
        }
    }

    /// Queries the failover state if a query is due. QEMU does not report it by events.
    pub(in crate::vms) fn query_failover_state(&mut self, now: Instant) {
        let is_due = |run: &Run| {
            [run.vfs.next_query_at, run.vfs.next_verification_at]
                .into_iter()
                .flatten()
                .any(|deadline| deadline <= now)
        };
        if self.run.as_ref().is_some_and(is_due) {
            self.update_failover_state();
        }
    }

    /// Has the failover state of all NICs queried, because the machine was reset: the guest may
    /// have another driver.
    pub(in crate::vms) fn verify_failover_nics(&mut self) {
        if let Some(run) = &mut self.run {
            run.vfs.next_verification_at = Some(Instant::now());
        }
    }

    pub(in crate::vms) fn update_failover_state(&mut self) {
        // A VM in migration does not receive VFs: this node does not own an incoming VM yet, and a
        // handed-over VM may belong to the destination.
        let is_here = self.migration_record.is_none();
        let Some(run) = &mut self.run else { return };
        let (vm, mut released, mut reports) = (run.vm.clone(), Vec::new(), Vec::new());
        let before = run.vfs.failover_nics.clone();
        let verifies =
            run.vfs.next_verification_at.is_some_and(|verify_at| verify_at <= Instant::now());
        let mut is_undecided = false;
        let mut does_respond = true;
        let queried = run.queried_standbys(verifies);
        let nics: Vec<&str> = queried.iter().map(Name::as_str).collect();
        let standbys = if nics.is_empty() { BTreeMap::new() } else { vm.standbys(&nics) };
        for nic in &queried {
            let Some(standby) = standbys.get(nic.as_str()) else { continue };
            let is_known = run.vfs.failover_nics.contains(nic);
            let NicStandbyState { is_negotiated: is_taken, is_driver_ready, has_vf } = *standby;
            if is_taken && is_here {
                run.vfs.failover_nics.insert(nic.clone());
            } else if is_known && is_driver_ready && is_here {
                run.vfs.failover_nics.remove(nic);
            } else if is_known && !is_taken {
                // No driver has initialized the NIC since the reset.
                is_undecided = true;
            }
            if let Some(vf) = run.vfs.plugging.get(nic).filter(|_| has_vf).cloned() {
                run.vfs.plugging.remove(nic);
                reports.push(VfReport::Ready { nic: nic.clone(), vf });
            }
            if run.vfs.unplugging.contains_key(nic) {
                if !has_vf {
                    released.push(nic.clone());
                } else if does_respond {
                    // Repeats the request, because the guest's driver may have missed the first
                    // one.
                    let unplug = VmCommand::Unplug(VmDevice::Vf(nic.to_string()));
                    let is_late = |error: VmError| error.kind == VmErrorKind::Timeout;
                    does_respond = !vm.execute(&unplug).is_err_and(is_late);
                }
            }
        }
        let has_pending =
            run.stored.standbys.iter().any(|nic| !run.vfs.failover_nics.contains(nic))
                || !run.vfs.plugging.is_empty()
                || !run.vfs.unplugging.is_empty();
        run.vfs.next_query_at = has_pending.then(|| Instant::now() + QUERY_RETRY_INTERVAL);
        if verifies || run.vfs.next_verification_at.is_none() {
            let pause = if is_undecided { QUERY_RETRY_INTERVAL } else { VERIFY_EVERY };
            let is_needed = !run.vfs.failover_nics.is_empty();
            run.vfs.next_verification_at = is_needed.then(|| Instant::now() + pause);
        }
        let has_changed = run.vfs.failover_nics != before;
        reports.into_iter().for_each(|report| self.report(report));
        released.iter().for_each(|nic| self.handle_released(nic));
        if has_changed {
            self.publish_again();
        }
    }
}

/// Returns true if this VF is recorded as that of the NIC.
pub(super) fn is_recorded(run: &Run, nic: &Name, vf: &VfAddress) -> bool {
    run.stored.vfs.get(nic) == Some(&StoredVfId::from(vf))
}
