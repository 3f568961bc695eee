//! Members of a flow: its disks with queued requests, or its only disk.

use crate::StoreScheduler;
use crate::disk::Disk;

impl StoreScheduler {
    /// Updates the members of a flow after disks were added to it or removed.
    pub(crate) fn list_members(&mut self, flow_index: u32) {
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return };
        let is_its = |disk: &Disk| disk.flow_index == flow_index && disk.id.is_some();
        let count = self.disks.iter().filter(|disk| is_its(disk)).count();
        flow.members.reserve(count);
        for (slot, disk) in (0..).zip(&mut self.disks).filter(|(_, disk)| is_its(disk)) {
            disk.is_only_in_flow = count == 1;
            if disk.is_only_in_flow || disk.waiting > 0 {
                flow.members.set(&mut self.member_positions, slot, disk.served_virtual_time);
            } else {
                flow.members.remove(&mut self.member_positions, slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use suimon_quantity::{DiskId, Time};

    use crate::{
        Capacity, DiskSlot, Limits, LimitsSource, NextAction, PolicyId, PolicyKind, PolicySpec,
        Proposal, Store, StoreScheduler, StoreSpec, SubmitOutcome,
    };

    const NOW: Time = Time::from_ns(1 << 40);
    const POLICY: PolicyId = PolicyId(1);

    struct Shared {
        store: Store,
        scheduler: StoreScheduler,
    }

    impl Shared {
        /// Creates a store with a policy without disks, and with a queue depth of 1.
        fn new() -> Self {
            let spec = StoreSpec { depth_min: 1, depth_max: 1, ..StoreSpec::default() };
            let store = Store::new(Capacity::Declared(1000));
            let mut shared = Self { store, scheduler: StoreScheduler::new(spec) };
            let spec = PolicySpec { kind: PolicyKind::Aggregated, limits: Limits::default() };
            shared.change(Proposal::SetPolicy(POLICY, spec));
            shared
        }

        /// Applies a change. Returns the tags of requests that will never be dispatched.
        fn change(&mut self, proposal: Proposal) -> Vec<u32> {
            let changes = self.store.apply(&[proposal], false).unwrap();
            changes.into_iter().flat_map(|change| self.scheduler.apply(NOW, change)).collect()
        }

        fn join(&mut self, disk: u32) -> DiskSlot {
            self.change(Proposal::SetDisk(DiskId(disk), LimitsSource::Policy(POLICY)));
            self.store.slot(DiskId(disk)).unwrap()
        }

        fn submit(&mut self, slot: DiskSlot, count: u32) {
            for tag in 0..count {
                assert_eq!(self.scheduler.submit(NOW, slot, 4096, tag), Ok(SubmitOutcome::Queued));
            }
        }

        /// Completes requests one after another, the first one being of disk `in_device`. Returns
        /// the disk slots of the requests that are dispatched next.
        fn order(&mut self, mut in_device: DiskSlot) -> Vec<u32> {
            let mut order = Vec::new();
            loop {
                self.scheduler.handle_completion(
                    NOW,
                    in_device,
                    (crate::IoKind::Read, 4096),
                    Duration::from_micros(80),
                );
                let NextAction::Dispatch { disk, .. } = self.scheduler.poll(NOW) else {
                    return order;
                };
                order.push(disk.0);
                in_device = disk;
            }
        }
    }

    /// Queued requests of a policy's only disk alternate with those of a disk that is added to the
    /// policy. After that disk is removed from the policy, the former continue.
    #[test]
    fn disks_are_added_to_and_removed_from_a_policy_with_queued_requests() {
        let mut shared = Shared::new();
        let a = shared.join(1);
        assert_eq!(shared.scheduler.submit(NOW, a, 4096, 0), Ok(SubmitOutcome::Dispatch));
        shared.submit(a, 3);
        let b = shared.join(2);
        shared.submit(b, 3);
        let mut order = shared.order(a);
        for pair in order.chunks_mut(2) {
            pair.sort_unstable();
        }
        assert_eq!(order, [a.0, b.0, a.0, b.0, a.0, b.0]);

        assert_eq!(shared.scheduler.submit(NOW, b, 4096, 0), Ok(SubmitOutcome::Dispatch));
        shared.submit(a, 2);
        shared.submit(b, 4);
        assert_eq!(shared.change(Proposal::RemoveDisk(DiskId(1))), [0, 1]);
        assert_eq!(shared.order(b), [b.0; 4]);

        // The order does not contain a disk without requests.
        let c = shared.join(3);
        assert_eq!(shared.scheduler.submit(NOW, c, 4096, 0), Ok(SubmitOutcome::Dispatch));
        shared.submit(b, 2);
        assert_eq!(shared.order(c), [b.0; 2]);
    }
}
