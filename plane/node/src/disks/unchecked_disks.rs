//! Disks whose file may be the parent of an image in their store, and their records in the state
//! store.
//!
//! The file of a disk that a change adds, gives another file or makes writable is checked when it
//! is opened for writing (`parent_protection.rs`). The check is repeated at each attempt until the
//! disk is in service for writing: an attempt may fail for another reason, the disk may be
//! read-only first, and the daemon may restart in between. A record that is deleted too late causes
//! one more check only.

use std::collections::BTreeSet;

use suimon_contract::{HostConfig, Name};
use suimon_ports::{StateStore, StateStoreError};

use super::entry::DiskEntry;
use super::required::{RequiredDisks, required_disks};
use crate::control::Controller;
use crate::state::{StoreChange, encode, scan_all};

const UNCHECKED_DISKS: &str = "unchecked_disks";

/// Reads the names of the disks that are recorded as unchecked.
pub(super) fn load_unchecked_disks(
    store: &dyn StateStore,
) -> Result<BTreeSet<Name>, StateStoreError> {
    let mut names = BTreeSet::new();
    scan_all(store, UNCHECKED_DISKS, &mut |key, _| {
        names.extend(key.parse::<Name>());
        Ok(())
    })?;
    Ok(names)
}

fn clear(name: &Name) -> StoreChange {
    (UNCHECKED_DISKS, name.to_string(), None)
}

impl Controller {
    /// Returns the unchecked disks among these.
    pub(crate) fn present_unchecked_disks(&self, required: &RequiredDisks) -> BTreeSet<Name> {
        let disks = self.shared.disks.all().into_iter();
        let unchecked =
            disks.filter(|entry| entry.checks_children() && required.contains_key(&entry.name));
        unchecked.map(|entry| entry.name.clone()).collect()
    }

    /// Returns the changes of records after which these disks are recorded. When they are
    /// committed, `unchecked_disks` must be set to `unchecked`.
    pub(crate) fn unchecked_disk_changes(
        &self,
        unchecked: &BTreeSet<Name>,
    ) -> Result<Vec<StoreChange>, StateStoreError> {
        let mut changes = Vec::new();
        for name in unchecked.difference(&self.unchecked_disks) {
            let value = Some(encode(UNCHECKED_DISKS, &true)?);
            changes.push((UNCHECKED_DISKS, name.to_string(), value));
        }
        changes.extend(self.unchecked_disks.difference(unchecked).map(clear));
        Ok(changes)
    }

    /// Restores the records of the desired state `from` after a change was rolled back. A failure
    /// is logged: a disk whose record is missing is checked until the daemon ends.
    pub(super) fn restore_unchecked_disks(&mut self, from: &HostConfig) {
        let unchecked = self.present_unchecked_disks(&required_disks(from));
        let restored =
            self.unchecked_disk_changes(&unchecked).and_then(|changes| match changes.len() {
                0 => Ok(()),
                _ => self.store.commit(&changes),
            });
        match restored {
            Ok(()) => self.unchecked_disks = unchecked,
            Err(error) => tracing::warn!(%error, "cannot record which disks are to be checked"),
        }
    }

    /// Ends the check of a disk that is in service for writing. A failure to delete the record is
    /// logged; the next change deletes it.
    pub(super) fn end_child_check(&mut self, entry: &DiskEntry) {
        entry.set_checks_children(false);
        if !self.unchecked_disks.contains(&entry.name) {
            return;
        }
        match self.store.commit(&[clear(&entry.name)]) {
            Ok(()) => drop(self.unchecked_disks.remove(&entry.name)),
            Err(error) => {
                tracing::warn!(disk = %entry.name, %error, "cannot record that the disk is checked");
            }
        }
    }
}
