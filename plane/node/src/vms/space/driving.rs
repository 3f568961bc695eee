//! Pause of VMs on full stores, by their drivers.

use std::collections::BTreeSet;
use std::time::Instant;

use suimon_contract::{ApiError, DiskController, ErrorCode, Name, VmState};
use suimon_ports::{VmCommand, VmDevice, VmRunState};

use super::SpaceWait;
use crate::disks::QueuedWrites;
use crate::shared::Shared;
use crate::vms::driver::{Driver, Run};
use crate::vms::entry::vm_state;
use crate::vms::{VmEntry, texts};

impl Driver {
    /// Returns the names of the VM's emulated disks.
    fn emulated_disks(&self, run: &Run) -> BTreeSet<Name> {
        let desired = self.shared.desired();
        let disks =
            desired.config.disks.iter().filter(|disk| run.stored.disks.contains(&disk.name));
        let emulated = disks.filter(|disk| DiskController::is_emulated(disk.controller));
        emulated.map(|disk| disk.name.clone()).collect()
    }

    /// Updates whether the VM waits for space, after a change of its run state.
    ///
    /// A migrating VM is not resumed here, because it may run on the other node.
    pub(in crate::vms) fn update_space_wait(&mut self, state: VmState) {
        let is_moving = self.migration_record.is_some();
        let interval = self.space_query_interval;
        let Some(run) = self.run.as_mut() else { return };
        if is_moving {
            run.space = None;
            return;
        }
        if state != VmState::Paused {
            let is_running = matches!(state, VmState::Running | VmState::Stopping);
            run.space.take_if(|space| !(is_running && space.is_attempting));
            if std::mem::take(&mut run.stored.is_paused_on_request) {
                self.save_run();
            }
            return;
        }
        if !run.vm.status().waits_for_space || run.stored.is_paused_on_request {
            run.space = None;
            return;
        }
        match &mut run.space {
            Some(space) => space.end_attempt(Instant::now()),
            None => {
                run.space = Some(SpaceWait::new(Instant::now(), interval));
                let draft = texts::paused_for_space_event(&self.entry, &self.store_list());
                self.append(draft);
            }
        }
    }

    /// Updates the state after a migration, during which changes of the run state were not handled.
    pub(in crate::vms) fn update_space_wait_after_migration(&mut self) {
        let Some(run) = &self.run else { return };
        let state = vm_state(run.vm.status().state);
        self.update_space_wait(state);
        self.publish(state);
    }

    /// Ends waiting for space at the start of a migration; it is evaluated again on the node where
    /// the VM continues.
    pub(in crate::vms) fn end_space_wait(&mut self) {
        let Some(run) = self.run.as_mut() else { return };
        let Some(space) = run.space.take() else { return };
        if space.is_attempting && run.vm.status().state == VmRunState::Running {
            self.append(texts::resumed_with_space_event(&self.entry, space.waited()));
        }
        self.publish_again();
    }

    /// Returns the stores of the VM's emulated disks as text: `store/a, store/b`.
    fn store_list(&self) -> String {
        let Some(run) = &self.run else { return String::new() };
        let disks = self.emulated_disks(run);
        let desired = self.shared.desired();
        let store_disks = desired.config.disks.iter().filter(|disk| disks.contains(&disk.name));
        let stores: BTreeSet<&Name> = store_disks.map(|disk| &disk.store).collect();
        let stores: Vec<String> = stores.iter().map(|store| format!("store/{store}")).collect();
        stores.join(", ")
    }

    /// Returns the reason for the VM's pause if it waits for space; `None` otherwise.
    pub(in crate::vms) fn space_reason(&self) -> Option<String> {
        if !self.waits_for_space() {
            return None;
        }
        let (stores, name) = (self.store_list(), &self.entry.name);
        Some(format!(
            "paused because the store was full ({stores}); the VM resumes when there is space, \
             and `suimon vm pause {name}` keeps it paused"
        ))
    }

    /// Returns true if the VM is paused for space and not on request.
    pub(in crate::vms) fn waits_for_space(&self) -> bool {
        let space = self.run.as_ref().and_then(|run| run.space.as_ref());
        space.is_some_and(|space| !space.is_attempting)
    }

    /// Returns true if changes of the run state emit no events of their own: the VM waits for
    /// space, or an attempt to resume it is in progress.
    pub(in crate::vms) fn suppresses_state_events(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.space.is_some())
    }

    /// Records a pause on request: the VM stays paused when there is space.
    pub(in crate::vms) fn set_paused_on_request(&mut self) {
        self.set_held(true);
    }

    /// Records a resume on request: if a write finds no space again, the VM waits for space.
    pub(in crate::vms) fn clear_paused_on_request(&mut self) {
        self.set_held(false);
    }

    fn set_held(&mut self, is_paused: bool) {
        let Some(run) = &mut self.run else { return };
        run.space = None;
        if std::mem::replace(&mut run.stored.is_paused_on_request, is_paused) != is_paused {
            self.save_run();
        }
        self.publish_again();
    }

    /// Resumes a VM that waits for space if there may be some, and reports a successful attempt.
    pub(in crate::vms) fn resume_if_space(&mut self, now: Instant) {
        let is_moving = self.migration_record.is_some();
        let Some(run) = self.run.as_mut() else { return };
        let Some(space) = run.space.take_if(|space| is_moving || space.next_poll_at <= now) else {
            return;
        };
        let state = run.vm.status().state;
        if is_moving {
            return;
        }
        if space.is_attempting && state == VmRunState::Running {
            return self.append(texts::resumed_with_space_event(&self.entry, space.waited()));
        }
        let space = self.try_with_space(space, now, state);
        if let Some(run) = &mut self.run {
            run.space = Some(space);
        }
    }

    /// Resumes the VM if its stores have space. A run state other than `Paused` has a pending
    /// notice.
    fn try_with_space(
        &mut self,
        mut space: SpaceWait,
        now: Instant,
        state: VmRunState,
    ) -> SpaceWait {
        let disks = self.run.as_ref().map(|run| self.emulated_disks(run)).unwrap_or_default();
        let free = self.shared.disks.free_bytes(&disks);
        self.shared.disks.start_space_queries(&self.shared.desired().config.stores);
        if space.check(now, &free) && state == VmRunState::Paused {
            let resumed = self.execute(&VmCommand::Resume);
            space.record_attempt(now, resumed.is_ok());
            if let Err(error) = resumed {
                tracing::warn!(
                    vm = %self.entry.name,
                    %error,
                    "cannot resume a VM that was paused because its store was full"
                );
            }
        }
        space
    }

    /// Fails queued writes of the virtio disks whose completion the guest waits for: all disks
    /// during a shutdown, and disks to be unplugged. Queues writes of the others again.
    pub(in crate::vms) fn fail_awaited_writes(&mut self) {
        let mut awaited_disks = BTreeSet::new();
        if let Some(run) = &self.run {
            awaited_disks.extend(run.unplugging.iter().filter_map(disk_of));
            if self.pending_stop.is_some() {
                awaited_disks.extend(run.stored.disks.iter().cloned());
            }
        }
        let before = std::mem::replace(&mut self.disks_with_write_errors, awaited_disks);
        let vm = &self.entry.name;
        for disk in before.difference(&self.disks_with_write_errors) {
            self.shared.disks.set_writes_awaited(disk, vm, false);
        }
        // Repeated for disks that were included before, because a disk may have been created again.
        for disk in &self.disks_with_write_errors {
            self.shared.disks.set_writes_awaited(disk, vm, true);
        }
    }

    /// Checks that no writes to the VM's disks are queued.
    ///
    /// # Errors
    /// As [`VmEntry::check_no_queued_writes`].
    pub(in crate::vms) fn check_no_queued_writes(&self) -> Result<(), ApiError> {
        let Some(run) = &self.run else { return Ok(()) };
        self.entry.check_no_queued_writes(&self.shared, &run.stored.disks)
    }

    /// Checks that no writes to the VM's disks are known to be queued, while the VM continues to
    /// run here. A disk whose worker does not respond passes the check.
    ///
    /// # Errors
    /// As [`VmEntry::check_no_queued_writes`].
    pub(in crate::vms) fn check_no_known_queued_writes(&self) -> Result<(), ApiError> {
        let Some(run) = &self.run else { return Ok(()) };
        match self.shared.disks.queued_writes(&run.stored.disks) {
            QueuedWrites::Queued(disk) => Err(queued_writes_error(&self.entry, &disk)),
            QueuedWrites::Absent | QueuedWrites::Unknown(_) => Ok(()),
        }
    }
}

impl VmEntry {
    /// Checks that no writes to these disks of the VM are queued because a store is full.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`]: writes are queued, or the worker of a disk does not respond, so
    /// that this is not known. The writes would fail when the VM moves, and its file systems could
    /// become read-only.
    pub(crate) fn check_no_queued_writes(
        &self,
        shared: &Shared,
        disks: &BTreeSet<Name>,
    ) -> Result<(), ApiError> {
        match shared.disks.queued_writes(disks) {
            QueuedWrites::Absent => Ok(()),
            QueuedWrites::Queued(disk) => Err(queued_writes_error(self, &disk)),
            QueuedWrites::Unknown(disk) => {
                let text = format!(
                    "the worker of disk/{disk} does not respond (event 5006), so it is not known \
                     whether writes are queued because its store is full; retry when the worker \
                     proceeds (event 5007)"
                );
                Err(ApiError::new(ErrorCode::Conflict, text).with_resource(self.label()))
            }
        }
    }
}

fn queued_writes_error(entry: &VmEntry, disk: &Name) -> ApiError {
    let text = format!(
        "writes to disk/{disk} are queued because its store is full, and would fail; free space on \
         the store, or set on_full = \"error\" so that the guest gets the error"
    );
    ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label())
}

fn disk_of(device: &VmDevice) -> Option<Name> {
    match device {
        VmDevice::Disk(name) => name.parse().ok(),
        VmDevice::Nic(_) | VmDevice::Vf(_) => None,
    }
}
