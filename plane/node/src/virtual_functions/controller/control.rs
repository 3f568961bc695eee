//! Assignment of virtual functions by the control thread.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use suimon_contract::{HostConfig, Name};
use suimon_failover::{FailoverAction, FailoverEvent, FailoverReason, VfId};
use suimon_frame::MacAddr;
use suimon_quantity::PciAddress;

use super::FdbState;
use crate::control::Controller;
use crate::virtual_functions::query::{HostQuery, eligible_nics};
use crate::virtual_functions::vf_address::settings_for_nic;
use crate::virtual_functions::{VfAddress, VfReport, texts};
use crate::vms::VfOrder;

/// Interval in which adapters are queried while a NIC has or can have a VF.
const ADAPTER_POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Controller {
    /// Handles reports, queries adapters if due, and executes the policy's actions. Called by the
    /// control thread in each iteration.
    pub(crate) fn drive_vfs(&mut self) {
        let desired = self.shared.desired();
        let config = &desired.config;
        let mut has_news = false;
        while let Some(report) = self.shared.vf_assignments.poll_report() {
            has_news = true;
            self.handle_vf_report(config, report);
        }
        let is_needed = config.switches.iter().any(|switch| switch.iov_enabled)
            || !self.vf_controller.reported_nics.is_empty()
            || !self.vf_controller.led.is_empty();
        let is_due = self
            .vf_controller
            .looked_at
            .is_none_or(|polled_at| polled_at.elapsed() >= ADAPTER_POLL_INTERVAL);
        if is_needed && (is_due || has_news) {
            self.look_at_vfs(config);
            self.vf_controller.looked_at = Some(Instant::now());
        }
        let now = self.shared.plane.now();
        if self.vf_controller.policy.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.vf_controller.policy.handle_deadline(now);
        }
        self.execute_policy_actions(config);
    }

    pub(in crate::virtual_functions) fn notify_policy(&mut self, event: &FailoverEvent) {
        let now = self.shared.plane.now();
        self.vf_controller.policy.handle(now, event);
    }

    fn handle_vf_report(&mut self, config: &HostConfig, report: VfReport) {
        match report {
            VfReport::Ready { nic, vf } => {
                let (nic, vf) = (
                    self.vf_controller.assign_nic_number(&nic),
                    self.vf_controller.assign_vf_id(&vf),
                );
                self.notify_policy(&FailoverEvent::VfPathReady { nic, vf });
            }
            VfReport::Failed { nic, vf, reason } => {
                let (id, vf) = (
                    self.vf_controller.assign_nic_number(&nic),
                    self.vf_controller.assign_vf_id(&vf),
                );
                self.vf_controller.failures.insert(nic, reason);
                self.notify_policy(&FailoverEvent::VfPathFailed { nic: id, vf });
            }
            VfReport::Unplugged { nic, vf } => self.end_leaving(config, &nic, &vf),
            VfReport::Released { nic, vf } => {
                self.shared.vf_assignments.view().assigned.remove(&vf.pci_address);
                self.end_leaving(config, &nic, &vf);
                let vf = self.vf_controller.assign_vf_id(&vf);
                self.notify_policy(&FailoverEvent::VfReleased { vf });
            }
            VfReport::Migrating { nic, is_moving } => {
                let nic = self.vf_controller.assign_nic_number(&nic);
                let event = if is_moving {
                    FailoverEvent::MigrationBegan { nic }
                } else {
                    FailoverEvent::MigrationEnded { nic }
                };
                self.notify_policy(&event);
            }
        }
        // Actions caused by one report precede the next report.
        self.execute_policy_actions(config);
    }

    /// Switches a NIC that releases its VF on request to the paravirtual path. Called when the
    /// guest has released the VF.
    fn end_leaving(&mut self, config: &HostConfig, nic: &Name, vf: &VfAddress) {
        // A former VF of the NIC was returned to the host late.
        if self.shared.vf_assignments.view().active.get(nic).is_some_and(|active| active != vf) {
            return;
        }
        if let Some(reason) = self.vf_controller.leaving.remove(nic) {
            self.leave_path(config, nic);
            self.drafts.push(texts::nic_on_paravirtual_path_event(nic, vf, &reason.to_string()));
        }
    }

    fn look_at_vfs(&mut self, config: &HostConfig) {
        let properties = match self.shared.sriov.host.adapters() {
            Ok(properties) => properties,
            Err(error) => {
                tracing::warn!(%error, "cannot read the VFs of adapters");
                return;
            }
        };
        let shared = self.shared.clone();
        let query = HostQuery::new(&shared, config, properties);
        self.update_drivers(&query);
        self.update_vfs(&query);
        self.update_nics(config, &query);
        self.execute_policy_actions(config);
        self.keep_settings(config, &query);
        self.update_fdb(config, &query);
        let configured = config.nics.iter().map(|nic| &nic.name).collect();
        let view = self.shared.vf_assignments.view();
        let assigned = view.assigned.values().chain(view.active.keys()).cloned().collect();
        drop(view);
        self.vf_controller.forget_nics(&configured, &assigned);
    }

    fn update_drivers(&mut self, query: &HostQuery) {
        for (address, has_driver) in &query.has_driver_by_adapter {
            let adapter = self.vf_controller.adapter(*address);
            if !has_driver && self.vf_controller.unbound.insert(*address) {
                self.notify_policy(&FailoverEvent::DriverUnbound { adapter });
            } else if *has_driver && self.vf_controller.unbound.remove(address) {
                self.vf_controller.led.retain(|(entry_adapter, _), _| entry_adapter != address);
                self.notify_policy(&FailoverEvent::DriverBound { adapter });
            }
        }
    }

    fn update_vfs(&mut self, query: &HostQuery) {
        let mut reported = BTreeMap::new();
        for vf in &query.vfs {
            reported.insert(self.vf_controller.assign_vf_id(vf), vf.clone());
        }
        let before = std::mem::replace(&mut self.vf_controller.reported_vfs, reported.clone());
        for (vf, address) in &before {
            if reported.get(vf) != Some(address) {
                self.notify_policy(&FailoverEvent::VfLost { vf: *vf });
            }
        }
        for (vf, address) in reported {
            if before.get(&vf) != Some(&address) {
                self.notify_policy(&FailoverEvent::VfFound { vf });
            }
        }
        // An assigned VF stays known until it is released, even if it has disappeared.
        for (vf, address) in before {
            if self.shared.vf_assignments.nic_of_vf(address.pci_address).is_some() {
                self.vf_controller.reported_vfs.entry(vf).or_insert(address);
            }
        }
    }

    fn update_nics(&mut self, config: &HostConfig, query: &HostQuery) {
        let takers = eligible_nics(&self.shared, config);
        let mut nic_requests = BTreeMap::new();
        for nic in config.nics.iter().filter(|nic| takers.contains(&nic.name)) {
            let adapters = query
                .adapter_by_switch
                .get(&nic.switch)
                .map(|adapter| self.vf_controller.adapter(*adapter));
            nic_requests.insert(nic.name.clone(), (nic.iov_weight, Vec::from_iter(adapters)));
        }
        let before = std::mem::replace(&mut self.vf_controller.reported_nics, nic_requests.clone());
        for name in before.keys().filter(|name| !nic_requests.contains_key(*name)) {
            let nic = self.vf_controller.assign_nic_number(name);
            self.shared.vf_assignments.view().reasons.remove(name);
            self.notify_policy(&FailoverEvent::NicRemoved { nic });
        }
        let is_new = |(name, set): &(Name, _)| before.get(name) != Some(set);
        let mut new: Vec<_> = nic_requests.into_iter().filter(is_new).collect();
        // NICs are reported by descending weight, because the first one gets a free VF.
        new.sort_by_key(|(_, (iov_weight, _))| Reverse(*iov_weight));
        for (name, (iov_weight, adapters)) in new {
            let nic = self.vf_controller.assign_nic_number(&name);
            self.notify_policy(&FailoverEvent::NicSet { nic, iov_weight, adapters });
        }
    }

    /// Applies changed settings of NICs to their VFs. A VF that has lost its MAC address was reset,
    /// which is reported to the failover policy.
    fn keep_settings(&mut self, config: &HostConfig, query: &HostQuery) {
        let paths = self.shared.vf_assignments.view().active.clone();
        for (name, vf) in paths {
            let nic = config.nics.iter().find(|nic| nic.name == name);
            let current = query.vf(&vf).and_then(|properties| properties.settings.as_ref());
            let (Some(nic), Some(current)) = (nic, current) else { continue };
            let change = settings_for_nic(current, nic);
            if change.is_empty() || self.vf_controller.leaving.contains_key(&name) {
                continue;
            }
            if change.mac.is_some() {
                let adapter = self.vf_controller.adapter(vf.adapter);
                self.notify_policy(&FailoverEvent::ResetBegan { adapter });
                self.notify_policy(&FailoverEvent::ResetEnded { adapter });
                self.execute_policy_actions(config);
            } else if let Err(error) =
                self.shared.sriov.host.change_vf(vf.adapter, vf.index, &change)
            {
                let (nic, reason) = (self.vf_controller.assign_nic_number(&name), error.detail);
                self.vf_controller.failures.insert(name, reason);
                let vf = self.vf_controller.assign_vf_id(&vf);
                self.notify_policy(&FailoverEvent::VfPathFailed { nic, vf });
                self.execute_policy_actions(config);
            }
        }
    }

    /// Adds the addresses of NICs on the switch to the embedded switches and removes all others,
    /// including those that the previous daemon may have added.
    fn update_fdb(&mut self, config: &HostConfig, query: &HostQuery) {
        let mut nics_elsewhere = self.shared.vf_assignments.nics_on_vfs();
        nics_elsewhere.extend(self.shared.nics_on_other_nodes(config));
        let required = query.nic_addresses(config, |nic| nics_elsewhere.contains(&nic.name));
        let removed: Vec<_> = self
            .vf_controller
            .led
            .keys()
            .filter(|entry| !required.contains_key(entry))
            .copied()
            .collect();
        for entry in removed {
            if self.vf_controller.led.remove(&entry) != Some(FdbState::Away) {
                self.remove_fdb(entry);
            }
        }
        for (entry, is_here) in required {
            let before = self.vf_controller.led.get(&entry).copied();
            let led = match before {
                Some(FdbState::Here) if is_here => continue,
                Some(FdbState::Away) if !is_here => continue,
                _ if is_here => self.add_fdb(entry, before),
                _ => self.remove_fdb(entry),
            };
            self.vf_controller.led.insert(entry, led);
        }
    }

    fn add_fdb(&self, (adapter, mac): (PciAddress, MacAddr), before: Option<FdbState>) -> FdbState {
        match self.shared.sriov.host.set_embedded_switch_address(adapter, mac, true) {
            Ok(()) => FdbState::Here,
            Err(error) => {
                if before != Some(FdbState::Refused) {
                    tracing::warn!(
                        %adapter,
                        %error,
                        "VFs cannot reach a NIC of the switch by this address"
                    );
                }
                FdbState::Refused
            }
        }
    }

    fn remove_fdb(&self, (adapter, mac): (PciAddress, MacAddr)) -> FdbState {
        if let Err(error) = self.shared.sriov.host.set_embedded_switch_address(adapter, mac, false)
        {
            tracing::debug!(%adapter, %error, "cannot remove an obsolete address from an adapter");
        }
        FdbState::Away
    }

    pub(in crate::virtual_functions) fn execute_policy_actions(&mut self, config: &HostConfig) {
        while let Some(action) = self.vf_controller.policy.poll_action() {
            let Some(name) = self.vf_controller.name(action.nic()) else { continue };
            match action {
                FailoverAction::PlugVf { vf, .. } => self.give_vf(config, name, vf),
                FailoverAction::UnplugVf { vf, reason, .. } => {
                    self.take_vf(config, name, vf, reason);
                }
                FailoverAction::UseVf { vf, .. } => {
                    let Some(address) = self.vf_controller.reported_vfs.get(&vf).cloned() else {
                        continue;
                    };
                    self.vf_controller.failures.remove(&name);
                    let mut view = self.shared.vf_assignments.view();
                    view.reasons.remove(&name);
                    let before = view.active.insert(name.clone(), address.clone());
                    drop(view);
                    // The NIC may use the path already, as recorded by the previous daemon.
                    if before.as_ref() != Some(&address) {
                        self.drafts.push(texts::nic_on_vf_event(&name, &address));
                        self.publish_paths(config);
                    }
                }
                FailoverAction::UseParavirtual { reason, .. } if reason.is_failure() => {
                    self.leave_path(config, &name);
                }
                // Until the guest has released the VF, frames reach the guest only through it.
                FailoverAction::UseParavirtual { reason, .. } => {
                    self.vf_controller.leaving.insert(name, reason);
                }
                FailoverAction::ReportNoVf { reason, .. } => {
                    let reason = reason.to_string();
                    let before = self
                        .shared
                        .vf_assignments
                        .view()
                        .reasons
                        .insert(name.clone(), reason.clone());
                    if before.as_ref() != Some(&reason) {
                        self.drafts.push(texts::nic_without_vf_event(&name, &reason));
                    }
                }
            }
        }
    }

    fn give_vf(&mut self, config: &HostConfig, name: Name, vf: VfId) {
        let Some(address) = self.vf_controller.reported_vfs.get(&vf).cloned() else { return };
        self.shared.vf_assignments.view().assigned.insert(address.pci_address, name.clone());
        let entry = config.vm_of_nic(&name).and_then(|vm| self.shared.vms.find(&vm.name));
        match entry {
            Some(entry) => entry.order_vf(VfOrder::Plug { nic: name, vf: address }),
            None => {
                let reason = "the NIC was removed from its VM".to_owned();
                self.shared.vf_assignments.report(VfReport::Failed {
                    nic: name,
                    vf: address,
                    reason,
                });
            }
        }
    }

    fn take_vf(&mut self, config: &HostConfig, name: Name, vf: VfId, reason: FailoverReason) {
        let Some(address) = self.vf_controller.reported_vfs.get(&vf).cloned() else { return };
        if reason.is_failure() {
            let failure = self.vf_controller.failures.get(&name);
            let reason = failure
                .map_or_else(|| reason.to_string(), |failure| format!("{reason} ({failure})"));
            let before =
                self.shared.vf_assignments.view().reasons.insert(name.clone(), reason.clone());
            if before.as_ref() != Some(&reason) {
                self.drafts.push(texts::nic_lost_vf_event(&name, &address, &reason));
            }
        }
        // A NIC that was removed from desired state may still be plugged into a VM.
        let has_nic = |name: &Name| {
            let entries = self.shared.vms.all();
            entries.into_iter().find(|entry| entry.has_nic(name))
        };
        let of_vm = config.vm_of_nic(&name).and_then(|vm| self.shared.vms.find(&vm.name));
        match of_vm.or_else(|| has_nic(&name)) {
            Some(entry) => entry.order_vf(VfOrder::Unplug { nic: name, vf: address }),
            None => {
                self.shared.vf_assignments.report(VfReport::Released { nic: name, vf: address });
            }
        }
    }

    /// Switches a NIC to the paravirtual path.
    fn leave_path(&mut self, config: &HostConfig, name: &Name) {
        if self.shared.vf_assignments.view().active.remove(name).is_some() {
            self.publish_paths(config);
        }
    }

    fn publish_paths(&mut self, config: &HostConfig) {
        if let Err(error) = self.shared.publish_tables(config) {
            tracing::error!(%error, "cannot publish the paths of NICs to the switch");
        }
        self.schedule_vf_query();
    }

    /// Makes the next iteration of the control thread query the adapters and update their embedded
    /// switches.
    pub(crate) fn schedule_vf_query(&mut self) {
        self.vf_controller.looked_at = None;
    }
}
