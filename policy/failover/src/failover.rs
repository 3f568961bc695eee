//! Failover state machine of NICs between virtual function and paravirtual path.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use suimon_quantity::{PortId, Time};

use crate::action::{FailoverAction, FailoverReason};
use crate::event::FailoverEvent;
use crate::state::{Adapter, DataPath, Nic, Stage, Vf};
use crate::{AdapterId, VfId};

/// Times that govern the failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverSpec {
    /// Time after a failure during which the NIC gets no VF and the VF is not assigned.
    pub hold_down: Duration,
    /// Time after hot-plugging within which the guest must use the VF; later it is unplugged.
    pub ready_timeout: Duration,
}

impl Default for FailoverSpec {
    /// Returns defaults above the usual durations: a guest's driver takes a few seconds to use a
    /// new VF, the reset of an adapter takes less.
    fn default() -> Self {
        Self { hold_down: Duration::from_secs(10), ready_timeout: Duration::from_secs(60) }
    }
}

/// Failover state machine of all NICs of a host. See the crate documentation.
#[derive(Clone, Debug)]
pub struct Failover {
    pub(crate) spec: FailoverSpec,
    pub(crate) now: Time,
    pub(crate) nics: BTreeMap<PortId, Nic>,
    pub(crate) vfs: BTreeMap<VfId, Vf>,
    pub(crate) adapters: BTreeMap<AdapterId, Adapter>,
    pub(crate) actions: VecDeque<FailoverAction>,
}

impl Failover {
    /// Creates a state machine without NICs, VFs and adapters.
    pub fn new(spec: FailoverSpec) -> Self {
        Self {
            spec,
            now: Time::ZERO,
            nics: BTreeMap::new(),
            vfs: BTreeMap::new(),
            adapters: BTreeMap::new(),
            actions: VecDeque::new(),
        }
    }

    /// Processes an event that occurred at `now`.
    pub fn handle(&mut self, now: Time, event: &FailoverEvent) {
        self.now = self.now.max(now);
        match event {
            FailoverEvent::NicSet { nic, iov_weight, adapters } => {
                self.set_nic(*nic, *iov_weight, adapters);
            }
            FailoverEvent::VfInUse { nic, iov_weight, adapters, vf } => {
                self.adopt_vf(*nic, *vf);
                self.set_nic(*nic, *iov_weight, adapters);
            }
            FailoverEvent::VfUnplugPending { nic, vf } => {
                self.vfs.entry(*vf).or_default().owner.get_or_insert(*nic);
            }
            FailoverEvent::NicRemoved { nic } => {
                self.withdraw_vf(*nic, FailoverReason::NicRemoved);
                self.nics.remove(nic);
            }
            FailoverEvent::VfFound { vf } => self.vfs.entry(*vf).or_default().exists = true,
            FailoverEvent::VfLost { vf } => self.remove_vf(*vf),
            FailoverEvent::ResetBegan { adapter } => {
                self.adapters.entry(*adapter).or_default().is_resetting = true;
                self.withdraw_from_adapter(*adapter, FailoverReason::AdapterReset);
            }
            FailoverEvent::ResetEnded { adapter } => {
                self.adapters.entry(*adapter).or_default().is_resetting = false;
                self.hold_down_adapter(*adapter);
            }
            FailoverEvent::DriverUnbound { adapter } => {
                self.adapters.entry(*adapter).or_default().is_driver_unbound = true;
                self.withdraw_from_adapter(*adapter, FailoverReason::DriverUnbound);
            }
            FailoverEvent::DriverBound { adapter } => {
                self.adapters.entry(*adapter).or_default().is_driver_unbound = false;
                self.hold_down_adapter(*adapter);
            }
            FailoverEvent::MigrationBegan { nic } => {
                if let Some(state) = self.nics.get_mut(nic) {
                    state.is_migrating = true;
                }
                self.withdraw_vf(*nic, FailoverReason::Migration);
            }
            FailoverEvent::MigrationEnded { nic } => {
                if let Some(state) = self.nics.get_mut(nic) {
                    state.is_migrating = false;
                }
            }
            FailoverEvent::VfPathReady { nic, vf } => self.use_vf(*nic, *vf),
            FailoverEvent::VfPathFailed { nic, vf } => {
                if self.nics.get(nic).and_then(Nic::assigned_vf) == Some(*vf) {
                    self.withdraw_vf(*nic, FailoverReason::PathFailed);
                }
            }
            FailoverEvent::VfReleased { vf } => self.release(*vf),
        }
        self.assign();
    }

    /// Processes the deadline returned by [`Failover::next_deadline`].
    pub fn handle_deadline(&mut self, now: Time) {
        self.now = self.now.max(now);
        let expired = self.nics.iter().filter(
            |(_, nic)| matches!(nic.stage, Stage::Plugging { until, .. } if until <= self.now),
        );
        let expired: Vec<PortId> = expired.map(|(id, _)| *id).collect();
        for nic in expired {
            self.withdraw_vf(nic, FailoverReason::NotReadyInTime);
        }
        self.assign();
    }

    /// Returns the next action, or `None` if none is pending.
    pub fn poll_action(&mut self) -> Option<FailoverAction> {
        self.actions.pop_front()
    }

    /// Returns when to call [`Failover::handle_deadline`] unless an event occurs before.
    pub fn next_deadline(&self) -> Option<Time> {
        self.next_change_at()
    }

    /// Returns the path of a NIC's frames; `None` if the NIC does not exist.
    pub fn path(&self, nic: PortId) -> Option<DataPath> {
        self.nics.get(&nic).map(Nic::path)
    }

    fn set_nic(&mut self, id: PortId, iov_weight: u8, adapters: &[AdapterId]) {
        let nic = self.nics.entry(id).or_insert_with(Nic::new);
        nic.iov_weight = iov_weight;
        nic.adapters = adapters.to_vec();
        nic.is_missing_vf_reported &= iov_weight > 0;
        let Some(vf) = nic.assigned_vf() else { return };
        if iov_weight == 0 {
            self.withdraw_vf(id, FailoverReason::WeightZero);
        } else if !adapters.contains(&vf.adapter) {
            self.withdraw_vf(id, FailoverReason::AdapterOfOtherSwitch);
        }
    }

    /// Records that a NIC already uses a VF, and requests the VF path for it. Ignored if the NIC is
    /// known or the VF is assigned.
    fn adopt_vf(&mut self, id: PortId, vf: VfId) {
        let state = self.vfs.entry(vf).or_default();
        if state.owner.is_some() || self.nics.contains_key(&id) {
            return;
        }
        (state.exists, state.owner) = (true, Some(id));
        self.nics.insert(id, Nic { stage: Stage::OnVf { vf }, ..Nic::new() });
        self.actions.push_back(FailoverAction::UseVf {
            nic: id,
            vf,
            reason: FailoverReason::GuestDriverReady,
        });
    }

    /// Switches a NIC to the paravirtual path and unplugs its VF, if it has one. Holds both down if
    /// `reason` is a failure.
    fn withdraw_vf(&mut self, id: PortId, reason: FailoverReason) {
        let held_until = self.now + self.spec.hold_down;
        let Some(nic) = self.nics.get_mut(&id) else { return };
        let Some(vf) = nic.assigned_vf() else { return };
        if nic.path() != DataPath::Paravirtual {
            self.actions.push_back(FailoverAction::UseParavirtual { nic: id, reason });
        }
        self.actions.push_back(FailoverAction::UnplugVf { nic: id, vf, reason });
        nic.stage = Stage::Unplugging { vf };
        if reason.is_failure() {
            nic.held_down_until = held_until;
            if matches!(reason, FailoverReason::PathFailed | FailoverReason::NotReadyInTime) {
                nic.failed_vf = Some(vf);
            }
            self.hold_down(vf);
        }
    }

    fn hold_down(&mut self, vf: VfId) {
        let held_until = self.now + self.spec.hold_down;
        if let Some(state) = self.vfs.get_mut(&vf) {
            state.held_down_until = held_until;
        }
    }

    fn remove_vf(&mut self, vf: VfId) {
        let Some(state) = self.vfs.get_mut(&vf) else { return };
        state.exists = false;
        if let Some(owner) = state.owner {
            if self.nics.get(&owner).and_then(Nic::assigned_vf) == Some(vf) {
                self.withdraw_vf(owner, FailoverReason::VfLost);
            }
        }
        self.hold_down(vf);
    }

    fn withdraw_from_adapter(&mut self, adapter: AdapterId, reason: FailoverReason) {
        let is_of = |nic: &Nic| nic.assigned_vf().is_some_and(|vf| vf.adapter == adapter);
        let nics: Vec<PortId> =
            self.nics.iter().filter(|(_, nic)| is_of(nic)).map(|(id, _)| *id).collect();
        for nic in nics {
            self.withdraw_vf(nic, reason);
        }
    }

    fn hold_down_adapter(&mut self, adapter: AdapterId) {
        let vfs: Vec<VfId> = self.vfs.keys().filter(|vf| vf.adapter == adapter).copied().collect();
        for vf in vfs {
            self.hold_down(vf);
        }
    }

    fn use_vf(&mut self, id: PortId, vf: VfId) {
        let Some(nic) = self.nics.get_mut(&id) else { return };
        if matches!(nic.stage, Stage::Plugging { vf: offered, .. } if offered == vf) {
            nic.stage = Stage::OnVf { vf };
            nic.failed_vf = None;
            self.actions.push_back(FailoverAction::UseVf {
                nic: id,
                vf,
                reason: FailoverReason::GuestDriverReady,
            });
        }
    }

    fn release(&mut self, vf: VfId) {
        let Some(state) = self.vfs.get_mut(&vf) else { return };
        let Some(owner) = state.owner else { return };
        match self.nics.get_mut(&owner) {
            Some(nic) if nic.stage == (Stage::Unplugging { vf }) => nic.stage = Stage::Paravirtual,
            // The VF is in use and is not being unplugged: the event is erroneous.
            Some(nic) if nic.assigned_vf() == Some(vf) => return,
            _ => {}
        }
        state.owner = None;
    }
}
