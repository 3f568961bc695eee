//! New disks: disks that have had no image yet, and their records in the state store.
//!
//! A missing image file is created for new disks only. Every other disk has data somewhere: if its
//! file is missing, for example because its store is not mounted, the disk fails and is retried
//! (docs/decisions/0089-missing-image-files.md).
//!
//! A disk is new when a change adds it. A change that keeps the disk although it could not be
//! opened records it, so that retries and the next daemon create the image. The record is deleted
//! before the disk is in service. A disk without a record is not new, so neither a lost record nor
//! the state of an earlier version leads to an empty image.

use std::collections::BTreeSet;

use suimon_contract::{ApiError, Name};
use suimon_ports::{StateStore, StateStoreError};

use super::entry::DiskEntry;
use super::required::{RequiredDisks, required_disks};
use crate::control::Controller;
use crate::errors::store_error;
use crate::state::{StoreChange, encode, scan_all};

const NEW_DISKS: &str = "new_disks";

/// Reads the names of the disks that are recorded as new.
pub(crate) fn load_new_disks(store: &dyn StateStore) -> Result<BTreeSet<Name>, StateStoreError> {
    let mut names = BTreeSet::new();
    scan_all(store, NEW_DISKS, &mut |key, _| {
        names.extend(key.parse::<Name>());
        Ok(())
    })?;
    Ok(names)
}

fn save(name: &Name) -> Result<StoreChange, StateStoreError> {
    Ok((NEW_DISKS, name.to_string(), Some(encode(NEW_DISKS, &true)?)))
}

fn clear(name: &Name) -> StoreChange {
    (NEW_DISKS, name.to_string(), None)
}

impl Controller {
    /// Returns the new disks among these. A disk can stop being new at any time, when an attempt to
    /// open it finds its file.
    pub(crate) fn new_disks_among(&self, required: &RequiredDisks) -> BTreeSet<Name> {
        let disks = self.shared.disks.all().into_iter();
        let new = disks.filter(|entry| entry.is_new() && required.contains_key(&entry.name));
        new.map(|entry| entry.name.clone()).collect()
    }

    /// Returns the changes of records after which these disks are recorded. When they are
    /// committed, `new_disks` must be set to `new`.
    pub(crate) fn new_disk_changes(
        &self,
        new: &BTreeSet<Name>,
    ) -> Result<Vec<StoreChange>, StateStoreError> {
        let mut changes = Vec::new();
        for name in new.difference(&self.new_disks) {
            changes.push(save(name)?);
        }
        changes.extend(self.new_disks.difference(new).map(clear));
        Ok(changes)
    }

    /// Restores the records of the desired state `from` after a change was rolled back. A failure
    /// is logged: a disk whose record is missing counts as not new.
    pub(super) fn restore_new_disks(&mut self, from: &suimon_contract::HostConfig) {
        let new = self.new_disks_among(&required_disks(from));
        let restored = self.new_disk_changes(&new).and_then(|changes| match changes.len() {
            0 => Ok(()),
            _ => self.store.commit(&changes),
        });
        match restored {
            Ok(()) => self.new_disks = new,
            Err(error) => tracing::warn!(%error, "cannot record which disks have no image yet"),
        }
    }

    /// Records that a disk has an image now. Must be called before the disk is in service. Returns
    /// true if the disk was recorded as new.
    ///
    /// # Errors
    /// The record cannot be deleted. The disk must then not be put into service.
    pub(super) fn mark_not_new(&mut self, entry: &DiskEntry) -> Result<bool, ApiError> {
        if !self.new_disks.contains(&entry.name) {
            return Ok(false);
        }
        let result = self.store.commit(&[clear(&entry.name)]);
        // While the node starts, a change that cannot be written is deferred without an error.
        let result = result.and_then(|()| self.shared.store.failure().map_or(Ok(()), Err));
        result.map_err(|error| store_error(&error).with_resource(entry.label()))?;
        self.new_disks.remove(&entry.name);
        Ok(true)
    }

    /// Makes a disk new again whose created image was removed. `is_recorded`: the disk was recorded
    /// before. If it cannot be recorded again, it is new until the daemon ends.
    pub(super) fn mark_new_again(&mut self, entry: &DiskEntry, is_recorded: bool) {
        entry.set_new(true);
        if !is_recorded {
            return;
        }
        match save(&entry.name).and_then(|change| self.store.commit(&[change])) {
            Ok(()) => drop(self.new_disks.insert(entry.name.clone())),
            Err(error) => {
                tracing::warn!(disk = %entry.name, %error, "cannot record that the disk is new");
            }
        }
    }

    /// Deletes the record of a disk that could not be opened but has an image file. A failure is
    /// logged; the next failed attempt deletes the record.
    pub(super) fn mark_not_new_if_file_exists(&mut self, entry: &DiskEntry) {
        if entry.is_new() {
            return;
        }
        if let Err(error) = self.mark_not_new(entry) {
            tracing::warn!(disk = %entry.name, %error, "cannot record that the disk has an image");
        }
    }
}
