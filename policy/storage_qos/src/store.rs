//! Control side of a store: disks, policies and admission control.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use suimon_quantity::DiskId;

use crate::{
    AdmissionError, Capacity, ConfigStep, DISKS_MAX, DiskSlot, FlowSlot, Limits, LimitsOwner,
    LimitsSource, MinimumsCheck, PolicyId, PolicyKind, PolicySpec,
};

/// Change requested by the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proposal {
    /// Adds a disk, or changes the source of limits of an existing one.
    #[serde(rename = "disk")]
    SetDisk(DiskId, LimitsSource),
    /// Removes a disk from the store.
    RemoveDisk(DiskId),
    /// Adds a policy, or changes an existing one.
    #[serde(rename = "policy")]
    SetPolicy(PolicyId, PolicySpec),
    /// Removes a policy that no disk uses.
    RemovePolicy(PolicyId),
}

/// Limits in effect for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectiveLimits {
    /// Owner of the limits: the disk itself, or a policy with other disks.
    #[serde(rename = "holder")]
    pub owner: LimitsOwner,
    /// Values of the limits in effect.
    pub limits: Limits,
}

#[derive(Clone, Copy, Debug)]
struct Slotted<T> {
    slot: u32,
    value: T,
}

/// Disks and policies of one store. Accepted changes are converted to [`ConfigStep`]s for the
/// store's scheduler.
#[derive(Clone, Debug, Default)]
pub struct Store {
    capacity: Capacity,
    disks: BTreeMap<DiskId, Slotted<LimitsSource>>,
    policies: BTreeMap<PolicyId, Slotted<PolicySpec>>,
}

impl Store {
    /// Creates a store without disks and policies.
    pub fn new(capability: Capacity) -> Self {
        Self { capacity: capability, ..Self::default() }
    }

    /// Sets the capacity of the store. Minimums that exceed the new capacity remain in effect; see
    /// [`Store::minimums_check`].
    pub fn set_capacity(&mut self, capability: Capacity) -> ConfigStep {
        self.capacity = capability;
        ConfigStep::SetCapacity(capability.iops())
    }

    /// Returns the sum of the minimums and the capacity.
    pub fn minimums_check(&self) -> MinimumsCheck {
        let mut promises =
            MinimumsCheck { minimums_iops: 0, minimum_count: 0, capacity: self.capacity };
        let mut holders = BTreeSet::new();
        for disk in self.disks.keys() {
            let Some(effective) = self.effective_limits(*disk) else { continue };
            let Some(min) = effective.limits.min_iops else { continue };
            if holders.insert(effective.owner) {
                promises.minimum_count += 1;
                promises.minimums_iops = promises.minimums_iops.saturating_add(min.per_second());
            }
        }
        promises
    }

    /// Returns the limits in effect for a disk; `None` if the disk is not on this store.
    pub fn effective_limits(&self, disk: DiskId) -> Option<EffectiveLimits> {
        let holder = LimitsOwner::Disk(disk);
        let policy = match self.disks.get(&disk)?.value {
            LimitsSource::Own(limits) => return Some(EffectiveLimits { owner: holder, limits }),
            LimitsSource::Policy(policy) => policy,
        };
        let spec = self.policies.get(&policy)?.value;
        let holder = match spec.kind {
            PolicyKind::Dedicated => holder,
            PolicyKind::Aggregated => LimitsOwner::Policy(policy),
        };
        Some(EffectiveLimits { owner: holder, limits: spec.limits })
    }

    /// Returns the slot of a disk in the store's scheduler; `None` if the disk is not on this
    /// store.
    pub fn slot(&self, disk: DiskId) -> Option<DiskSlot> {
        self.disks.get(&disk).map(|slotted| DiskSlot(slotted.slot))
    }

    /// Returns the disks of the store in ascending order.
    pub fn disks(&self) -> impl Iterator<Item = DiskId> {
        self.disks.keys().copied()
    }

    /// Checks whether the store would accept all these changes together, and returns the resulting
    /// sum of minimums. Does not change the store.
    ///
    /// # Errors
    ///
    /// The reason for which [`Store::apply`] without `force` would refuse the changes.
    pub fn check(&self, proposals: &[Proposal]) -> Result<MinimumsCheck, AdmissionError> {
        let mut proposed = self.clone();
        proposed.apply(proposals, false)?;
        Ok(proposed.minimums_check())
    }

    /// Applies all these changes or none, and returns the steps for the store's scheduler. `force`
    /// permits a sum of minimums above the permitted share of the capacity.
    ///
    /// # Errors
    ///
    /// The reason for which the first invalid change was refused, or that the minimums exceed the
    /// permitted share of the capacity. Changes that do not increase the sum of minimums are never
    /// refused for the latter reason.
    pub fn apply(
        &mut self,
        proposals: &[Proposal],
        force: bool,
    ) -> Result<Vec<ConfigStep>, AdmissionError> {
        let mut proposed = self.clone();
        for proposal in proposals {
            proposed.accept(*proposal)?;
        }
        let promises = proposed.minimums_check();
        let is_more = promises.minimums_iops > self.minimums_check().minimums_iops;
        if is_more && !promises.is_admissible() && !force {
            return Err(AdmissionError::Overcommitted(promises));
        }
        let changes = self.steps_to(&proposed);
        *self = proposed;
        Ok(changes)
    }

    /// Returns the steps that configure a new scheduler with the disks, policies and capacity of
    /// this store.
    pub fn config_steps(&self) -> Vec<ConfigStep> {
        let mut changes = Self::default().steps_to(self);
        changes.push(ConfigStep::SetCapacity(self.capacity.iops()));
        changes
    }

    fn accept(&mut self, proposal: Proposal) -> Result<(), AdmissionError> {
        match proposal {
            Proposal::SetDisk(disk, assignment) => {
                match assignment {
                    LimitsSource::Own(limits) => limits.check()?,
                    LimitsSource::Policy(policy) if !self.policies.contains_key(&policy) => {
                        return Err(AdmissionError::NoPolicy(policy));
                    }
                    LimitsSource::Policy(_) => {}
                }
                position(&mut self.disks, disk, assignment)
                    .ok_or(AdmissionError::TooManyObjects("disks"))
            }
            Proposal::RemoveDisk(disk) => {
                self.disks.remove(&disk).map(|_| ()).ok_or(AdmissionError::NoDisk(disk))
            }
            Proposal::SetPolicy(policy, spec) => {
                spec.limits.check()?;
                position(&mut self.policies, policy, spec)
                    .ok_or(AdmissionError::TooManyObjects("policies"))
            }
            Proposal::RemovePolicy(policy) => {
                let user = self.disks.iter().find(
                    |(_, slotted)| matches!(slotted.value, LimitsSource::Policy(used) if used == policy),
                );
                if let Some((disk, _)) = user {
                    return Err(AdmissionError::PolicyInUse { policy, disk: *disk });
                }
                self.policies.remove(&policy).map(|_| ()).ok_or(AdmissionError::NoPolicy(policy))
            }
        }
    }

    /// Returns the steps from this configuration to another one.
    fn steps_to(&self, proposed: &Self) -> Vec<ConfigStep> {
        let mut steps = Vec::new();
        for (disk, slotted) in &self.disks {
            if proposed.slot(*disk).is_none_or(|slot| slot.0 != slotted.slot) {
                steps.push(ConfigStep::RemoveDisk(DiskSlot(slotted.slot)));
            }
        }
        let before: BTreeMap<FlowSlot, (LimitsOwner, Limits)> = self.flows();
        let after = proposed.flows();
        for flow in before.keys().filter(|flow| !after.contains_key(flow)) {
            steps.push(ConfigStep::RemoveFlow(*flow));
        }
        for (flow, (holder, limits)) in &after {
            if before.get(flow) != Some(&(*holder, *limits)) {
                steps.push(ConfigStep::SetFlow { flow: *flow, owner: *holder, limits: *limits });
            }
        }
        for (disk, slotted) in &proposed.disks {
            let (Some(flow), slot) = (proposed.flow(*disk), DiskSlot(slotted.slot)) else {
                continue;
            };
            if self.slot(*disk) != Some(slot) || self.flow(*disk) != Some(flow) {
                steps.push(ConfigStep::SetDisk { slot, disk: *disk, flow });
            }
        }
        // Disks must leave a flow before the flow is removed.
        steps.sort_by_key(|step| matches!(step, ConfigStep::RemoveFlow(_)));
        steps
    }

    /// Returns all flows with the owners of their limits and the limits, by slot.
    fn flows(&self) -> BTreeMap<FlowSlot, (LimitsOwner, Limits)> {
        let flow_of = |disk: &DiskId| {
            let effective = self.effective_limits(*disk)?;
            Some((self.flow(*disk)?, (effective.owner, effective.limits)))
        };
        self.disks.keys().filter_map(flow_of).collect()
    }

    /// Returns the flow of a disk; `None` if the disk is not on this store. Disks with their own
    /// limits have even flow slots; policies have odd ones.
    fn flow(&self, disk: DiskId) -> Option<FlowSlot> {
        match self.effective_limits(disk)?.owner {
            LimitsOwner::Disk(disk) => {
                self.disks.get(&disk).map(|slotted| FlowSlot(slotted.slot * 2))
            }
            LimitsOwner::Policy(policy) => {
                self.policies.get(&policy).map(|slotted| FlowSlot(slotted.slot * 2 + 1))
            }
        }
    }
}

/// Inserts or updates an entry. A new entry gets the lowest free slot. Returns `None` if all slots
/// are used.
fn position<K: Ord, T>(entries: &mut BTreeMap<K, Slotted<T>>, key: K, value: T) -> Option<()> {
    if let Some(slotted) = entries.get_mut(&key) {
        slotted.value = value;
        return Some(());
    }
    if entries.len() >= DISKS_MAX {
        return None;
    }
    let used: BTreeSet<u32> = entries.values().map(|slotted| slotted.slot).collect();
    let slot = (0..).zip(&used).find(|(free, used)| free != *used).map(|(free, _)| free);
    let slot = slot.or_else(|| u32::try_from(used.len()).ok())?;
    entries.insert(key, Slotted { slot, value });
    Some(())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
