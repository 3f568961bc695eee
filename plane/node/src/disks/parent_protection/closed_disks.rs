//! Disks that are not open.

use suimon_contract::Name;

use super::ClosedDisk;
use crate::disks::Disks;
use crate::disks::entry::{DiskEntry, DiskMigrationState};

impl Disks {
    /// Returns the desired disks of the same store path that are not open and whose format has
    /// metadata, so that their images may have parents.
    pub(in crate::disks) fn closed_siblings(&self, entry: &DiskEntry) -> Vec<ClosedDisk> {
        let store = entry.lock().required.store.path.clone();
        let required = self.required();
        let siblings = required.iter().filter(|(name, disk)| {
            **name != entry.name && disk.store.path == store && !self.is_open_or_away(name)
        });
        let others = siblings.map(|(name, disk)| (format!("disk/{name}"), disk.plan()));
        let others = others.filter(|(_, plan)| plan.format.has_metadata());
        others.map(|(label, plan)| ClosedDisk { label, plan }).collect()
    }

    fn is_open_or_away(&self, name: &Name) -> bool {
        self.find(name).is_some_and(|entry| {
            let state = entry.lock();
            state.open.is_some()
                || state.migration.is_some_and(DiskMigrationState::is_owned_by_other_node)
        })
    }
}
