//! The control side: which disks and policies there are, and what may be promised.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use suimon_quantity::DiskId;

use crate::{
    Assignment, Capability, Change, DISKS_MAX, DiskSlot, FlowSlot, Holder, Limits, PolicyId,
    PolicyKind, PolicySpec, Promises, Refusal,
};

/// One change that may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proposal {
    /// The disk, which may be a new one, gets its limits from there.
    Disk(DiskId, Assignment),
    /// The disk goes.
    RemoveDisk(DiskId),
    /// The policy, which may be a new one, says this.
    Policy(PolicyId, PolicySpec),
    /// The policy goes; no disk may have it.
    RemovePolicy(PolicyId),
}

/// What is in effect for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effective {
    /// Whose the limits are: with a policy's, the disk shares them.
    pub holder: Holder,
    /// The limits.
    pub limits: Limits,
}

#[derive(Clone, Copy, Debug)]
struct Placed<T> {
    slot: u32,
    of: T,
}

/// The disks and policies of one store. It schedules nothing: each change that it accepts
/// becomes [`Change`]s for the store's scheduler.
#[derive(Clone, Debug, Default)]
pub struct Store {
    capability: Capability,
    disks: BTreeMap<DiskId, Placed<Assignment>>,
    policies: BTreeMap<PolicyId, Placed<PolicySpec>>,
}

impl Store {
    /// Without disks and policies.
    pub fn new(capability: Capability) -> Self {
        Self { capability, ..Self::default() }
    }

    /// What the store can do is known better. Promises that do not fit any more stay, and
    /// [`Store::promises`] shows it.
    pub fn set_capability(&mut self, capability: Capability) -> Change {
        self.capability = capability;
        Change::Capability(capability.iops())
    }

    /// What is promised.
    pub fn promises(&self) -> Promises {
        let mut promises = Promises { minimums_iops: 0, minimums: 0, capability: self.capability };
        let mut counted = BTreeSet::new();
        for disk in self.disks.keys() {
            let Some(effective) = self.effective(*disk) else { continue };
            let Some(min) = effective.limits.min_iops else { continue };
            if counted.insert(effective.holder) {
                promises.minimums += 1;
                promises.minimums_iops = promises.minimums_iops.saturating_add(min.per_second());
            }
        }
        promises
    }

    /// What is in effect for a disk.
    pub fn effective(&self, disk: DiskId) -> Option<Effective> {
        let holder = Holder::Disk(disk);
        let policy = match self.disks.get(&disk)?.of {
            Assignment::Own(limits) => return Some(Effective { holder, limits }),
            Assignment::Policy(policy) => policy,
        };
        let spec = self.policies.get(&policy)?.of;
        let holder = match spec.kind {
            PolicyKind::Dedicated => holder,
            PolicyKind::Aggregated => Holder::Policy(policy),
        };
        Some(Effective { holder, limits: spec.limits })
    }

    /// Where a disk is in the store's scheduler.
    pub fn slot(&self, disk: DiskId) -> Option<DiskSlot> {
        self.disks.get(&disk).map(|placed| DiskSlot(placed.slot))
    }

    /// Its disks.
    pub fn disks(&self) -> impl Iterator<Item = DiskId> {
        self.disks.keys().copied()
    }

    /// Whether these changes, all together, might be made: what would be promised then.
    /// Nothing is changed.
    ///
    /// # Errors
    /// What [`Store::propose`] would be refused for, had it to be forced or not.
    pub fn may_promise(&self, proposals: &[Proposal]) -> Result<Promises, Refusal> {
        let mut then = self.clone();
        then.propose(proposals, false)?;
        Ok(then.promises())
    }

    /// Makes these changes, all or none; `force` makes them although more is promised
    /// than the store can keep.
    ///
    /// # Errors
    /// What is wrong with the first that cannot be made, or that the store cannot keep
    /// what would be promised. Changes that promise less than before are not refused for
    /// that.
    pub fn propose(&mut self, proposals: &[Proposal], force: bool) -> Result<Vec<Change>, Refusal> {
        let mut then = self.clone();
        for proposal in proposals {
            then.accept(*proposal)?;
        }
        let promises = then.promises();
        let is_more = promises.minimums_iops > self.promises().minimums_iops;
        if is_more && !promises.fit() && !force {
            return Err(Refusal::Overcommitted(promises));
        }
        let changes = self.steps_to(&then);
        *self = then;
        Ok(changes)
    }

    /// The steps that make a new scheduler one with everything that is in effect here.
    pub fn changes(&self) -> Vec<Change> {
        let mut changes = Self::default().steps_to(self);
        changes.push(Change::Capability(self.capability.iops()));
        changes
    }

    fn accept(&mut self, proposal: Proposal) -> Result<(), Refusal> {
        match proposal {
            Proposal::Disk(disk, assignment) => {
                match assignment {
                    Assignment::Own(limits) => limits.check()?,
                    Assignment::Policy(policy) if !self.policies.contains_key(&policy) => {
                        return Err(Refusal::NoPolicy(policy));
                    }
                    Assignment::Policy(_) => {}
                }
                place(&mut self.disks, disk, assignment).ok_or(Refusal::TooMany("disks"))
            }
            Proposal::RemoveDisk(disk) => {
                self.disks.remove(&disk).map(|_| ()).ok_or(Refusal::NoDisk(disk))
            }
            Proposal::Policy(policy, spec) => {
                spec.limits.check()?;
                place(&mut self.policies, policy, spec).ok_or(Refusal::TooMany("policies"))
            }
            Proposal::RemovePolicy(policy) => {
                let user = self.disks.iter().find(
                    |(_, placed)| matches!(placed.of, Assignment::Policy(used) if used == policy),
                );
                if let Some((disk, _)) = user {
                    return Err(Refusal::PolicyInUse { policy, disk: *disk });
                }
                self.policies.remove(&policy).map(|_| ()).ok_or(Refusal::NoPolicy(policy))
            }
        }
    }

    /// The steps from what is in effect here to what is in effect then.
    fn steps_to(&self, then: &Self) -> Vec<Change> {
        let mut steps = Vec::new();
        for (disk, placed) in &self.disks {
            if then.slot(*disk).is_none_or(|slot| slot.0 != placed.slot) {
                steps.push(Change::RemoveDisk(DiskSlot(placed.slot)));
            }
        }
        let before: BTreeMap<FlowSlot, (Holder, Limits)> = self.flows();
        let after = then.flows();
        for flow in before.keys().filter(|flow| !after.contains_key(flow)) {
            steps.push(Change::RemoveFlow(*flow));
        }
        for (flow, (holder, limits)) in &after {
            if before.get(flow) != Some(&(*holder, *limits)) {
                steps.push(Change::Flow { flow: *flow, holder: *holder, limits: *limits });
            }
        }
        for (disk, placed) in &then.disks {
            let (Some(flow), slot) = (then.flow(*disk), DiskSlot(placed.slot)) else { continue };
            if self.slot(*disk) != Some(slot) || self.flow(*disk) != Some(flow) {
                steps.push(Change::Disk { slot, disk: *disk, flow });
            }
        }
        // Disks leave a place before it is gone.
        steps.sort_by_key(|step| matches!(step, Change::RemoveFlow(_)));
        steps
    }

    /// Everything that is scheduled by itself.
    fn flows(&self) -> BTreeMap<FlowSlot, (Holder, Limits)> {
        let flow_of = |disk: &DiskId| {
            let effective = self.effective(*disk)?;
            Some((self.flow(*disk)?, (effective.holder, effective.limits)))
        };
        self.disks.keys().filter_map(flow_of).collect()
    }

    /// Disks by themselves have even places, policies odd ones.
    fn flow(&self, disk: DiskId) -> Option<FlowSlot> {
        match self.effective(disk)?.holder {
            Holder::Disk(disk) => self.disks.get(&disk).map(|placed| FlowSlot(placed.slot * 2)),
            Holder::Policy(policy) => {
                self.policies.get(&policy).map(|placed| FlowSlot(placed.slot * 2 + 1))
            }
        }
    }
}

/// Keeps the place of what is there already, else takes the lowest free one.
fn place<K: Ord, T>(all: &mut BTreeMap<K, Placed<T>>, key: K, of: T) -> Option<()> {
    if let Some(placed) = all.get_mut(&key) {
        placed.of = of;
        return Some(());
    }
    if all.len() >= DISKS_MAX {
        return None;
    }
    let taken: BTreeSet<u32> = all.values().map(|placed| placed.slot).collect();
    let slot = (0..).zip(&taken).find(|(free, taken)| free != *taken).map(|(free, _)| free);
    let slot = slot.or_else(|| u32::try_from(taken.len()).ok())?;
    all.insert(key, Placed { slot, of });
    Some(())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
