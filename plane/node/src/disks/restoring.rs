//! Opening of the stored disks when the daemon starts.

use std::collections::BTreeMap;
use std::time::Instant;

use suimon_contract::{ErrorCode, HostConfig, Name};
use suimon_ports::StateStoreError;

use super::entry::{DiskEntry, DiskMigrationState};
use super::lock_retry::{LOCK_RELEASE_TIMEOUT, retry_until_unlocked};
use super::new_disks::load_new_disks;
use super::notices::disk_failed_event;
use super::opening::errors::OpenError;
use super::records::load_measurements;
use super::required::{RequiredDisks, required_sockets};
use super::store_threads::OPTIONAL_RESULT_TIMEOUT;
use super::unchecked_disks::load_unchecked_disks;
use crate::control::Controller;

impl Controller {
    /// Opens the disks of the stored desired state when the daemon starts, except those in
    /// `moving_disks`, which another node may have. Disks that cannot be opened are retried. Disks
    /// with an unfinished job are opened after the job.
    pub(crate) fn open_stored(
        &mut self,
        config: &HostConfig,
        required: RequiredDisks,
        moving_disks: &BTreeMap<Name, DiskMigrationState>,
    ) -> Result<(), StateStoreError> {
        self.load_unfinished()?;
        self.new_disks = load_new_disks(self.store.as_ref())?;
        self.unchecked_disks = load_unchecked_disks(self.store.as_ref())?;
        self.load_created_images()?;
        self.remove_created_images(&required);
        self.shared.disks.set_measurements(load_measurements(self.store.as_ref())?);
        if let Err(error) = self.shared.disks.set_limits(config, true) {
            tracing::error!(%error, "limits are not as configured");
        }
        let sockets = required_sockets(&required);
        self.shared.disks.set_required(required.clone());
        let deadline = Instant::now() + LOCK_RELEASE_TIMEOUT;
        for (name, required) in required {
            let is_unfinished = self.unfinished.contains_key(&name);
            let moving = moving_disks.get(&name).copied();
            let is_new = self.new_disks.contains(&name);
            let is_unchecked = self.unchecked_disks.contains(&name);
            let entry = self.shared.disks.insert(name, required);
            entry.set_checks_children(is_unchecked);
            entry.set_new(is_new);
            if moving.is_some() || is_unfinished {
                entry.lock().migration = moving;
                continue;
            }
            if let Err(OpenError::Failed(error)) = self.open_left_disk(&entry, deadline) {
                let reason = error.to_string();
                self.mark_not_new_if_file_exists(&entry);
                self.drafts.push(disk_failed_event(&entry, &reason));
                self.fail_disk(&entry, reason);
            }
        }
        self.devices.created.record_socket_identities(sockets)
    }

    /// Opens a disk whose images may still be locked by a process that was killed. Retries until
    /// the deadline.
    fn open_left_disk(&mut self, entry: &DiskEntry, deadline: Instant) -> Result<(), OpenError> {
        let is_busy = |error: &OpenError| matches!(error, OpenError::Failed(error) if error.code == ErrorCode::DeviceBusy);
        retry_until_unlocked(deadline, is_busy, || {
            self.open_disk_with_timeout(entry, OPTIONAL_RESULT_TIMEOUT)
        })
    }
}
