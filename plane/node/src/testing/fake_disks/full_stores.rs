//! Disks on full stores.

use std::time::Duration;

use suimon_quantity::DiskId;
use suimon_storage::PlaneNotice;
use suimon_storage_engine::{FullStorePolicy, FullStoreView, SpaceChange};

use super::FakeDisks;

impl FakeDisks {
    /// Makes the stores of all disks full, with this number of queued requests, or gives them space
    /// again.
    pub(crate) fn fill(&self, queued: Option<usize>) {
        let mut world = self.lock();
        let lasts = Duration::from_secs(2);
        let disks: Vec<DiskId> = world.in_service.keys().copied().collect();
        world.full = queued
            .map(|queued| {
                disks
                    .iter()
                    .map(|disk| (*disk, FullStoreView { queued, full_for: lasts }))
                    .collect()
            })
            .unwrap_or_default();
        let (change, lasted) = match queued {
            Some(_) => (SpaceChange::Full, Duration::ZERO),
            None => (SpaceChange::HasSpace, lasts),
        };
        let notices = disks.into_iter().map(|disk| PlaneNotice::DiskSpaceChange {
            disk,
            change,
            full_for: lasted,
        });
        world.notices.extend(notices);
    }

    /// Queues a notice for each disk that no request has needed space for some time.
    pub(crate) fn need_no_space(&self) {
        let mut world = self.lock();
        let (change, lasted) = (SpaceChange::NoLongerObserved, Duration::from_secs(10));
        let disks: Vec<DiskId> = std::mem::take(&mut world.full).into_keys().collect();
        let notices = disks.into_iter().map(|disk| PlaneNotice::DiskSpaceChange {
            disk,
            change,
            full_for: lasted,
        });
        world.notices.extend(notices);
    }

    /// Returns the changes of full policies since the last call.
    pub(crate) fn take_full_changes(&self) -> Vec<FullStorePolicy> {
        std::mem::take(&mut self.lock().full_changes)
    }

    /// Returns the full policies of all disks.
    pub(crate) fn full_policies(&self) -> Vec<FullStorePolicy> {
        self.lock().full_policies.values().copied().collect()
    }
}
