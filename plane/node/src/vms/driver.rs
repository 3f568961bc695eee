//! Driver thread of one VM.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, Name, VmState};
use suimon_ports::{StateStore, Vm, VmCommand, VmDevice, VmError, VmRunState};

use super::VmEntry;
use super::adoption::UnresponsiveVm;
use super::control_sender::ControlSender;
use super::entry::vm_state;
use super::freezing::GuestFreeze;
use super::inbox::{DriverEnd, Input, Message, PendingNotices};
use super::incoming::PendingIncomingMigration;
use super::outgoing::OutgoingMigration;
use super::records::{StoredMigrationState, StoredRun};
use super::self_released::SelfReleased;
use super::source_cleanup::SourceCleanup;
use super::space::SpaceWait;
use super::starting::Autostart;
use super::stopping::PendingStop;
use super::texts::{self, FreezeEnd};
use super::vfs::{UnreturnedVfs, VfOrder, VmVfs};
use super::work::VmAction;
use crate::operations::OperationHandle;
use crate::shared::Shared;

/// Minimum interval between two reset events of a VM, because the guest controls the reset rate.
const RESETS_EVERY: Duration = Duration::from_secs(10);

/// State of a VM's driver thread.
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Arc<dyn StateStore>,
    pub(super) entry: Arc<VmEntry>,
    pub(super) run: Option<Run>,
    /// Set if the VM's process is assumed to run but has not responded yet.
    pub(super) unresponsive: Option<UnresponsiveVm>,
    /// VF orders received while the VM is lost, executed once it is adopted.
    pub(super) vf_orders: Vec<VfOrder>,
    /// VFs that the VM's QEMU, or that of an ended run, keeps open.
    pub(super) unreturned_vfs: UnreturnedVfs,
    /// Number of the current run, which increases with each start or adoption. Notices of an ended
    /// run are not attributed to its successor.
    pub(super) run_number: u64,
    pub(super) pending_stop: Option<PendingStop>,
    pub(super) autostart: Autostart,
    /// Disks on a full store whose queued writes are failed instead of retried, so that a guest
    /// that is shutting down or ejecting the disk is not blocked.
    pub(super) disks_with_write_errors: BTreeSet<Name>,
    pub(super) reset_reported_at: Option<Instant>,
    /// Migration state, as recorded in the state store.
    pub(super) migration_record: Option<StoredMigrationState>,
    pub(super) outgoing: Option<OutgoingMigration>,
    pub(super) incoming: Option<PendingIncomingMigration>,
    /// True if a migration has failed before the VM was adopted. QEMU's migration is cancelled once
    /// the VM is adopted.
    pub(super) cancels_migration_when_adopted: bool,
    /// Set while the process and the configuration of a VM that was migrated to another node are
    /// deleted here.
    pub(super) source_cleanup: Option<SourceCleanup>,
    /// True if the incoming migration of the VM was abandoned and the VM is about to be deleted.
    pub(super) is_incoming_abandoned: bool,
    pub(super) control_sender: ControlSender,
    /// Interval between requests to a node that does not respond. Unit of other intervals and
    /// limits of migrations.
    pub(super) peer_request_interval: Duration,
    /// Interval in which the stores of a VM that waits for space are queried.
    pub(super) space_query_interval: Duration,
}

/// Running VM.
pub(super) struct Run {
    pub(super) vm: Arc<dyn Vm>,
    pub(super) stored: StoredRun,
    /// Devices whose hot-unplug was requested and is not complete.
    pub(super) unplugging: BTreeSet<VmDevice>,
    /// Devices that are not plugged again until the change in progress is committed or rolled back.
    pub(super) not_replugged: BTreeSet<VmDevice>,
    /// Devices that the guest has released without a request.
    pub(super) self_released: SelfReleased,
    /// Devices in `unplugging` that have lost their connection and are plugged again after the
    /// unplug, with the reason.
    pub(super) disconnected: BTreeMap<VmDevice, VmError>,
    /// Hot-plug and hot-unplug operations that failed at the last attempt: `nic/NAME`, `disk/NAME`,
    /// `VF of nic/NAME` or `cpus`. Attempts are repeated at each change of desired state.
    pub(super) failed_plugs: BTreeSet<String>,
    /// True if the state store contains `stored`.
    pub(super) is_recorded: bool,
    /// Set while the guest's file systems are frozen.
    pub(super) frozen: Option<GuestFreeze>,
    pub(super) vfs: VmVfs,
    /// Set while the VM is paused because a write found no space, and during an attempt to resume
    /// it.
    pub(super) space: Option<SpaceWait>,
}

impl Driver {
    /// Runs the driver until [`Message::Detach`] or [`Message::Delete`] arrives, executes kills
    /// that were queued behind, and fails other operations with the reason. `stored_run` is the run
    /// that the previous daemon recorded.
    pub(super) fn drive(mut self, stored_run: Option<StoredRun>) {
        self.take_up(stored_run);
        let end = loop {
            // Before the next input, because a guest controls the rate of notices.
            if self.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                self.handle_time();
            }
            match self.entry.inbox.take(self.deadline()) {
                Input::Notices(notices) => self.handle_notices(notices),
                Input::DeadlineReached => {}
                Input::Message(Message::Action(work, operation)) => self.begin(work, operation),
                Input::Message(Message::Kill(kill)) => self.begin_kill(&kill),
                Input::Message(Message::Vf(order)) => self.handle_vf_order(order),
                Input::Message(Message::Migrate(request, operation)) => {
                    self.begin_outgoing(&request, operation);
                }
                Input::Message(Message::StartIncomingMigration(request, operation)) => {
                    self.begin_incoming(&request, &operation);
                }
                Input::Message(Message::IncomingRequest(query)) => {
                    self.handle_incoming_request(query);
                }
                Input::Message(Message::ReleaseDevices(devices)) => self.begin_release(devices),
                Input::Message(Message::Reconcile) => {
                    self.end_release();
                    self.reconcile();
                }
                Input::Message(Message::Detach) => break DriverEnd::Detached,
                Input::Message(Message::Delete) => {
                    self.delete();
                    break DriverEnd::Deleted;
                }
            }
        };
        for message in self.entry.inbox.close(end) {
            match message {
                Message::Kill(kill) => self.begin_kill(&kill),
                other => self.entry.fail_request(other),
            }
        }
        self.end_operations();
    }

    /// Continues with the run or migration that the previous daemon recorded.
    fn take_up(&mut self, stored_run: Option<StoredRun>) {
        if matches!(self.migration_record, Some(StoredMigrationState::Incoming { .. })) {
            // `Message::StartIncomingMigration` starts a new incoming migration.
            if self.entry.view().migration.is_none() {
                self.abandon_recorded_incoming(stored_run);
            }
            return;
        }
        let has_left = matches!(self.migration_record, Some(StoredMigrationState::Migrated(_)));
        match stored_run {
            // The process is killed and not adopted.
            Some(stored) if has_left => self.unresponsive = Some(UnresponsiveVm::unqueried(stored)),
            Some(stored) => self.adopt(stored, false),
            None => {}
        }
        self.resume_outgoing();
    }

    fn deadline(&self) -> Option<Instant> {
        let stopping = self.pending_stop.as_ref().map(PendingStop::deadline);
        // The process of another node's VM is not adopted.
        let lost = self.unresponsive.as_ref().filter(|_| self.source_cleanup.is_none());
        let lost = lost.map(|lost| lost.query_at);
        let frozen = self.run.as_ref().and_then(|run| run.frozen).map(|frozen| frozen.thaw_at);
        let of_run = self.run.as_ref();
        let vfs = of_run.and_then(|run| run.vfs.next_query_at);
        let standbys = of_run.and_then(|run| run.vfs.next_verification_at);
        let outgoing = self.outgoing.as_ref().map(|outgoing| outgoing.next_poll_at);
        let arriving = self.incoming.as_ref().map(|arriving| arriving.next_poll_at);
        let autostart = self.autostart.deadline();
        let space = self.run.as_ref().and_then(|run| run.space.as_ref());
        let space = space.map(|space| space.next_poll_at);
        let departing = self.source_cleanup.as_ref().map(|departing| departing.retry_at);
        let released = self.run.as_ref().and_then(|run| run.self_released.deadline());
        let of_vm = [stopping, lost, frozen, autostart, space, released];
        let of_vfs = [vfs, standbys, self.unreturned_vfs.deadline()];
        let of_move = [outgoing, arriving, departing, self.control_sender.retry_at];
        of_vm.into_iter().chain(of_vfs).chain(of_move).flatten().min()
    }

    fn handle_time(&mut self) {
        let now = Instant::now();
        self.poll_stopping(now);
        self.poll_autostart(now);
        self.resume_if_space(now);
        self.thaw_if_due(now);
        self.query_failover_state(now);
        self.retry_vf_returns(now);
        self.poll_outgoing(now);
        self.poll_incoming(now);
        self.retry_deletion(now);
        self.plug_self_released(now);
        self.control_sender.poll(now);
        self.retry_adoption(now);
    }

    fn begin(&mut self, work: VmAction, operation: Option<OperationHandle>) {
        if operation.as_ref().is_some_and(|operation| !operation.begin()) {
            return;
        }
        let state = self.entry.view().state;
        let is_paused = work == VmAction::Pause && self.waits_for_space();
        let checked =
            if is_paused { self.check_migration_permits(work) } else { self.check_action(work) };
        let result = checked.and_then(|()| match work {
            VmAction::Start if operation.is_none() => self.start_with_host(),
            VmAction::Pause if is_paused => {
                self.set_paused_on_request();
                Ok(())
            }
            work => self.execute_action(work),
        });
        match (work, operation) {
            (VmAction::Stop(request), operation) if result.is_ok() => {
                self.begin_stopping(request, operation);
            }
            (_, Some(operation)) => operation.end(&result),
            (_, None) => self.end_autostart_request(state, &result),
        }
    }

    /// Executes an operation that the VM's state permits.
    pub(super) fn execute_action(&mut self, work: VmAction) -> Result<(), ApiError> {
        match work {
            VmAction::Start => self.start(),
            // QEMU may have paused the VM for lack of space immediately before; that notice has not
            // been handled yet.
            VmAction::Pause => {
                self.execute(&VmCommand::Pause).map(|()| self.set_paused_on_request())
            }
            VmAction::Resume => {
                self.execute(&VmCommand::Resume).map(|()| self.clear_paused_on_request())
            }
            VmAction::Reset => self.execute(&VmCommand::Reset),
            VmAction::Kill => self.kill(),
            VmAction::Stop(request) => self.request_stop(request.method),
            VmAction::Freeze(request) => self.freeze(request),
            VmAction::Thaw => self.thaw(),
        }
    }

    /// Checks that the VM's state and its migration permit the operation.
    pub(super) fn check_action(&self, work: VmAction) -> Result<(), ApiError> {
        let state = self.entry.view().state;
        work.check(&self.entry.name, state)?;
        self.check_migration_permits(work)
    }

    /// Makes a started or adopted VM the current run, publishes its state and applies desired
    /// state. `is_written`: true if the state store contains `stored`.
    pub(super) fn set_current_run(&mut self, vm: Arc<dyn Vm>, stored: StoredRun, is_written: bool) {
        let state = vm.status().state;
        let (unplugging, not_replugged) = (BTreeSet::new(), BTreeSet::new());
        let (cut_off, failed_plugs) = (BTreeMap::new(), BTreeSet::new());
        let self_released = SelfReleased::default();
        let frozen = stored.is_frozen.then(|| GuestFreeze::lasting(Duration::ZERO));
        let (vfs, space) = (VmVfs::default(), None);
        self.run = Some(Run {
            vm,
            stored,
            unplugging,
            not_replugged,
            self_released,
            disconnected: cut_off,
            failed_plugs,
            is_recorded: is_written,
            frozen,
            vfs,
            space,
        });
        self.verify_recorded_vfs();
        self.update_space_wait(vm_state(state));
        self.publish(vm_state(state));
        // Applies changes that were made during the start or while no daemon was running.
        self.reconcile();
    }

    pub(super) fn execute(&mut self, command: &VmCommand) -> Result<(), ApiError> {
        let Some(run) = &self.run else { return Err(self.not_running_error()) };
        run.vm.execute(command).map_err(|error| self.api_error(&error))
    }

    /// Kills the VM's process, also if QEMU does not respond. Succeeds if there is no process.
    pub(super) fn kill(&mut self) -> Result<(), ApiError> {
        if self.run.is_none() && self.unresponsive.is_none() {
            return Ok(());
        }
        self.kill_process().map_err(|error| self.api_error(&error))?;
        self.handle_ended(true, texts::KILLED_ON_REQUEST);
        Ok(())
    }

    fn handle_notices(&mut self, notices: PendingNotices) {
        if self.run.is_none() || notices.run_number != self.run_number {
            return;
        }
        if let Some((is_orderly, reason)) = notices.ended {
            if self.source_cleanup.is_some() {
                return self.handle_killed_process();
            }
            return self.handle_ended(is_orderly, &reason);
        }
        if self.source_cleanup.is_some() {
            return;
        }
        if notices.is_reset {
            self.end_freeze(FreezeEnd::Reset);
            self.verify_failover_nics();
            let now = Instant::now();
            let is_due =
                self.reset_reported_at.is_none_or(|reported_at| now - reported_at >= RESETS_EVERY);
            if is_due {
                self.reset_reported_at = Some(now);
                self.append(texts::reset_event(&self.entry));
            }
        }
        for device in notices.unplugged {
            self.handle_unplugged(&device);
        }
        if let Some(state) = notices.state {
            self.handle_state(state);
        }
    }

    fn handle_state(&mut self, state: VmRunState) {
        let before = self.entry.view().state;
        // `VmNotice::Ended` reports the end of the process.
        if state == VmRunState::Off {
            return;
        }
        if self.handle_state_during_migration(state) {
            return;
        }
        let now = match (state, &self.pending_stop) {
            (VmRunState::Running, Some(_)) => VmState::Stopping,
            _ => vm_state(state),
        };
        // Also for an unchanged state: notices are merged, so the state may have changed and
        // changed back.
        self.update_space_wait(now);
        if before != now {
            let draft = texts::state_event(&self.entry, before, now);
            if let Some(draft) = draft.filter(|_| !self.suppresses_state_events()) {
                self.append(draft);
            }
        }
        self.publish(now);
    }

    /// Handles the end of the VM's process: releases its VFs, records and publishes the end,
    /// completes a pending stop operation.
    pub(super) fn handle_ended(&mut self, is_orderly: bool, reason: &str) {
        let was_asked = self.pending_stop.is_some();
        let (is_orderly, reason) = self.cause_of_end(is_orderly, reason);
        self.handle_killed_process();
        if std::mem::take(&mut self.cancels_migration_when_adopted) {
            self.migration_record = None;
        }
        self.fail_awaited_writes();
        self.vf_orders.clear();
        let mut view = self.entry.view();
        view.state = VmState::Stopped;
        view.running = None;
        view.waits_for_space = false;
        view.recorded_vfs.clear();
        view.reason = (!is_orderly).then(|| reason.to_owned());
        drop(view);
        self.save(None);
        self.append(texts::ended_event(&self.entry, is_orderly || was_asked, reason));
        self.end_stopping(&Ok(()));
    }

    /// Kills a VM that has been removed from desired state. Its removal was accepted while it was
    /// stopped.
    fn delete(&mut self) {
        if let Err(error) = self.kill() {
            tracing::error!(vm = %self.entry.name, %error, "a deleted VM is still running");
        }
        self.stop_vf_returns();
        self.end_stopping(&Ok(()));
    }
}
