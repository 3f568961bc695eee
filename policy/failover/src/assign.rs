//! Assignment of VFs to NICs.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use suimon_quantity::{PortId, Time};

use crate::action::{FailoverAction, FailoverReason};
use crate::failover::Failover;
use crate::state::{Adapter, Nic, Stage, Vf};
use crate::{AdapterId, VfId};

impl Failover {
    /// Assigns free VFs to waiting NICs by weight, and reports NICs that get none.
    pub(crate) fn assign(&mut self) {
        let now = self.now;
        let ready = self
            .nics
            .iter()
            .filter(|(_, nic)| nic.is_waiting_for_vf() && nic.held_down_until <= now);
        let mut order: Vec<(Reverse<u8>, PortId)> =
            ready.map(|(id, nic)| (Reverse(nic.iov_weight), *id)).collect();
        order.sort_unstable();
        let mut assigned = self.assigned_by_adapter();
        for (_, id) in order {
            let free = self.nics.get(&id).and_then(|nic| self.choose(nic, &assigned));
            let Some(nic) = self.nics.get_mut(&id) else { continue };
            if let Some(vf) = free {
                nic.stage = Stage::Plugging { vf, until: now + self.spec.ready_timeout };
                nic.is_missing_vf_reported = false;
                *assigned.entry(vf.adapter).or_default() += 1;
                if let Some(state) = self.vfs.get_mut(&vf) {
                    state.owner = Some(id);
                }
                self.actions.push_back(FailoverAction::PlugVf {
                    nic: id,
                    vf,
                    reason: FailoverReason::NextByWeight,
                });
            } else if !nic.is_missing_vf_reported {
                nic.is_missing_vf_reported = true;
                self.actions.push_back(FailoverAction::ReportNoVf {
                    nic: id,
                    reason: FailoverReason::NoVfFree,
                });
            }
        }
    }

    /// Returns the VF to assign to a NIC now, or `None` if none is free: from the adapter with the
    /// fewest assigned VFs, the one whose last failure is longest ago. `assigned` contains the
    /// number of assigned VFs by adapter. The VF that failed last at this NIC is chosen only if no
    /// other is free: another process may have it open for a long time.
    fn choose(&self, nic: &Nic, assigned: &BTreeMap<AdapterId, usize>) -> Option<VfId> {
        let free = nic.adapters.iter().enumerate().filter_map(|(position, adapter)| {
            let first = VfId { adapter: *adapter, index: 0 };
            let last = VfId { adapter: *adapter, index: u16::MAX };
            let free = self.vfs.range(first..=last).filter(|(vf, _)| self.is_free(**vf));
            let rank =
                |vf: VfId, state: &Vf| (nic.failed_vf == Some(vf), state.held_down_until, vf);
            let (has_failed, _, vf) = free.map(|(vf, state)| rank(*vf, state)).min()?;
            let load = assigned.get(adapter).copied().unwrap_or_default();
            Some((has_failed, load, position, vf))
        });
        free.min().map(|(.., vf)| vf)
    }

    fn is_free(&self, vf: VfId) -> bool {
        self.adapter(vf.adapter).carries_frames()
            && self.vfs.get(&vf).is_some_and(|state| {
                state.exists && state.owner.is_none() && state.held_down_until <= self.now
            })
    }

    fn assigned_by_adapter(&self) -> BTreeMap<AdapterId, usize> {
        let mut assigned = BTreeMap::new();
        for (vf, _) in self.vfs.iter().filter(|(_, state)| state.owner.is_some()) {
            *assigned.entry(vf.adapter).or_default() += 1;
        }
        assigned
    }

    pub(crate) fn adapter(&self, adapter: AdapterId) -> Adapter {
        self.adapters.get(&adapter).copied().unwrap_or_default()
    }

    /// Returns the next time at which the hold-down of a waiting NIC or of a free VF ends, or at
    /// which the guest must use a hot-plugged VF; `None` if there is no such time.
    pub(crate) fn next_change_at(&self) -> Option<Time> {
        let wanting = || self.nics.values().filter(|nic| nic.is_waiting_for_vf());
        let nics = wanting().map(|nic| nic.held_down_until);
        let offers = self.nics.values().filter_map(|nic| match nic.stage {
            Stage::Plugging { until, .. } => Some(until),
            _ => None,
        });
        // The hold-down of a VF matters only while a NIC waits for a VF.
        let vfs = self.vfs.values().filter(|vf| vf.exists && vf.owner.is_none());
        let vfs = vfs.map(|vf| vf.held_down_until).filter(|_| wanting().next().is_some());
        let times = nics.chain(vfs).filter(|time| *time > self.now);
        times.chain(offers).min()
    }
}
