//! Changes of a store or disk that a worker or a budget has not applied yet.

use std::sync::Mutex;

use suimon_storage_engine::FullStorePolicy;
use suimon_storage_engine::add_pending_change;
use suimon_storage_qos::ConfigStep;

use crate::sync::lock;

/// Changes of the maximums of a store that only one worker uses, which the worker has not applied
/// yet. The control plane holds the lock for an insertion only.
#[derive(Default)]
pub(crate) struct PendingMaximums(Mutex<Vec<ConfigStep>>);

impl PendingMaximums {
    /// Adds a change. Returns true if the worker must be notified, because there was none before.
    pub(crate) fn add(&self, change: ConfigStep) -> bool {
        let mut pending = lock(&self.0);
        let is_first = pending.is_empty();
        add_pending_change(&mut pending, change);
        is_first
    }

    /// Removes and returns the changes.
    pub(crate) fn take(&self) -> Vec<ConfigStep> {
        core::mem::take(&mut lock(&self.0))
    }
}

/// Policy for a full store that the worker of a disk has not applied yet. The control plane holds
/// the lock for an assignment only.
#[derive(Default)]
pub(crate) struct PendingFullStorePolicy(Mutex<Option<FullStorePolicy>>);

impl PendingFullStorePolicy {
    /// Replaces the policy. Returns true if the worker must be notified, because it had applied the
    /// previous one.
    pub(crate) fn set(&self, policy: FullStorePolicy) -> bool {
        lock(&self.0).replace(policy).is_none()
    }

    /// Removes and returns the policy; `None` if it was applied.
    pub(crate) fn take(&self) -> Option<FullStorePolicy> {
        lock(&self.0).take()
    }
}

#[cfg(test)]
mod tests {
    use suimon_quantity::TimedRateLimit;
    use suimon_storage_qos::{DiskSlot, PolicyId, PolicyShare};

    use super::*;

    #[test]
    fn the_last_value_of_each_limit_remains_and_steps_stay_in_order() {
        let cap = |iops| {
            let limit = TimedRateLimit { reserved_iops: iops, ..TimedRateLimit::default() };
            ConfigStep::SetCap(Some(limit))
        };
        let part = |policy, min_iops| {
            ConfigStep::SetPolicyShare(PolicyId(policy), Some(PolicyShare { min_iops, max: None }))
        };
        let pending = PendingMaximums::default();
        assert!(pending.add(cap(1)));
        let steps = [DiskSlot(3), DiskSlot(4), DiskSlot(3)].map(ConfigStep::RemoveDisk);
        for value in 0..1000 {
            assert!(!pending.add(cap(value)) && !pending.add(part(value as u32 % 2, value)));
        }
        steps.into_iter().for_each(|step| assert!(!pending.add(step)));
        let mut expected = vec![part(0, 998), cap(999), part(1, 999)];
        expected.extend(steps);
        assert_eq!(pending.take(), expected);
        assert_eq!(pending.take(), []);
        assert!(pending.add(cap(2)), "the worker must be notified again");
    }
}
