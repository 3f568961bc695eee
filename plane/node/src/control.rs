//! Control thread: the only thread that changes desired state and devices.
//!
//! The thread carries out changes one at a time, handles notices of devices and of the planes, and
//! retries failed devices.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use suimon_contract::{EventKind, IncomingMigrationRequest, Name};
use suimon_ports::{CpuAffinity, StateStore};

use crate::command::Command;
use crate::disks::{RunningJob, RunningMeasurement, UnfinishedJobs, nbd_event};
use crate::events::EventDraft;
use crate::host::StateStoreWatch;
use crate::ports::Devices;
use crate::retry::RetryState;
use crate::shared::Shared;
use crate::teams::TeamThreads;
use crate::virtual_functions::VfController;
use crate::vms::HostAutostart;

/// Interval at which notices of the plane are polled.
const PLANE_POLL: Duration = Duration::from_millis(250);
/// Interval at which the settings of configured adapters with SR-IOV are checked.
const PF_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Interval at which stores are checked, and their free space is queried.
const STORES_QUERY: Duration = Duration::from_secs(10);

/// Maximum number of commands handled before their events are committed. Also the maximum number of
/// plane notices handled per poll.
const NOTICES_PER_COMMIT: usize = 64;

/// State of the control thread.
pub(crate) struct Controller {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) devices: Devices,
    /// Current placements of the workers.
    pub(crate) worker_placements: Vec<CpuAffinity>,
    /// Failures to change the workers to the configured set.
    pub(crate) workers_retry: RetryState,
    /// Events to be committed together at the end of the iteration.
    pub(crate) drafts: Vec<EventDraft>,
    pub(crate) plane_polled_at: Option<Instant>,
    pub(crate) pfs_checked_at: Instant,
    pub(crate) stores_queried_at: Instant,
    pub(crate) state_store_watch: StateStoreWatch,
    /// Stores that were reported as nearly full.
    pub(crate) nearly_full_stores: BTreeSet<Name>,
    /// Stores that were reported as failed.
    pub(crate) failed_stores: BTreeSet<Name>,
    pub(crate) vf_controller: VfController,
    /// Threads that drive the NIC teams.
    pub(crate) teams: TeamThreads,
    /// Disk jobs in progress, each with its own thread.
    pub(crate) disk_jobs: Vec<RunningJob>,
    /// Disk jobs that earlier daemon processes left unfinished, until they resume.
    pub(crate) unfinished: UnfinishedJobs,
    /// Disks that the state store records as new: they have had no image yet.
    pub(crate) new_disks: BTreeSet<Name>,
    /// Disks that the state store records as unchecked: their file may be the parent of an image in
    /// their store.
    pub(crate) unchecked_disks: BTreeSet<Name>,
    /// Measurements of stores in progress, each with its own thread.
    pub(crate) measurements: Vec<RunningMeasurement>,
    /// NICs of VMs that other nodes run, according to the tables published last.
    pub(crate) nics_on_other_nodes: BTreeSet<Name>,
    /// Autostart of VMs, until it is recorded.
    pub(crate) autostart: HostAutostart,
    /// VM that the change in progress takes over from another node.
    pub(crate) incoming_vm: Option<Arc<IncomingMigrationRequest>>,
}

impl Controller {
    /// Runs until [`Command::Stop`], then closes all devices.
    pub(crate) fn run(mut self, commands: &Receiver<Command>) {
        loop {
            let mut stop = false;
            match commands.recv_timeout(self.time_to_next_retry()) {
                Ok(command) => stop = self.handle_all(command, commands),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => stop = true,
            }
            for notices in self.shared.unannounced_notices.take() {
                self.handle_device_notices(&notices);
            }
            self.publish_moved_nics();
            self.poll_plane();
            self.reopen_due();
            self.retry_workers();
            if self.pfs_checked_at.elapsed() >= PF_CHECK_INTERVAL {
                self.check_adapters();
                self.pfs_checked_at = Instant::now();
            }
            if self.stores_queried_at.elapsed() >= STORES_QUERY {
                self.report_store_space();
                self.stores_queried_at = Instant::now();
            }
            self.continue_autostart();
            self.watch_state_store();
            self.drive_vfs();
            self.poll_openings();
            self.retry_disks();
            self.poll_disk_jobs();
            self.poll_measurements();
            self.watch_cpus();
            self.report_rejections();
            let drafts = std::mem::take(&mut self.drafts);
            self.shared.events.append(drafts);
            if stop {
                break;
            }
        }
        self.shut_down();
    }

    /// Stops the threads that the controller has started and closes all devices. TAPs and VMs
    /// remain.
    pub(crate) fn shut_down(mut self) {
        self.report_rejections();
        self.write_drafts();
        self.shared.events.flush_withheld();
        self.shared.events.append(vec![EventDraft::new(
            EventKind::DaemonStopping,
            "host",
            "The daemon stops. VMs and TAP devices are kept, socket connections of VMs are closed.",
        )]);
        self.detach_vms();
        self.stop_disk_jobs();
        self.stop_measurements();
        self.restore_power_settings();
        // LACP partners are informed while frames still pass.
        self.teams.stop();
        for port in self.shared.ports.all() {
            Devices::close(&port);
        }
        for disk in self.shared.disks.all() {
            self.close_disk(&disk);
        }
        self.devices.negotiated_features.write();
    }

    /// Handles a command and those queued behind it, up to [`NOTICES_PER_COMMIT`]. Returns true on
    /// [`Command::Stop`].
    fn handle_all(&mut self, first: Command, commands: &Receiver<Command>) -> bool {
        let mut next = Some(first);
        let mut remaining = NOTICES_PER_COMMIT;
        while let Some(command) = next.take() {
            match command {
                Command::Stop => return true,
                Command::Wake => {}
                Command::PublishLimits => self.follow_limits(),
                Command::FinishStart => {
                    self.resume_jobs();
                    self.begin_autostart();
                }
                Command::DeviceNotices(notices) => self.handle_device_notices(&notices),
                Command::NbdNotice(notice) => self.drafts.push(nbd_event(notice)),
                Command::Change { operation, edit, options } => {
                    self.write_drafts();
                    if operation.begin() {
                        let result = self.apply(&operation, &edit, options);
                        self.write_drafts();
                        operation.end(&result);
                    }
                }
                Command::RunDiskFileJob { operation, disk, job: work } => {
                    self.write_drafts();
                    self.begin_disk_operation(operation, &disk, &work);
                    self.write_drafts();
                }
                Command::MeasureStore { operation, store, request } => {
                    self.write_drafts();
                    self.begin_measurement(operation, &store, request);
                    self.write_drafts();
                }
                Command::CreateIncomingVm { operation, request } => {
                    self.create_incoming_vm(operation, &request);
                }
                Command::ReturnDiskToService { disk, failure } => self.return_disk(&disk, failure),
                Command::DeleteMigratedVm {
                    operation,
                    migration_operation: waiting,
                    vm,
                    deletes_files: with_file,
                } => {
                    self.delete_migrated_vm(&operation, vm, with_file);
                    if let Some(waiting) = waiting {
                        waiting.end(&Ok(()));
                    }
                }
                Command::MoveQueue { operation, queue, to: target } => {
                    if operation.begin() {
                        let result = self.move_queue(queue, target);
                        self.write_drafts();
                        operation.end(&result);
                    }
                }
            }
            remaining -= 1;
            // A received command must be handled, so none is received beyond the maximum.
            if remaining > 0 {
                next = commands.try_recv().ok();
            }
        }
        false
    }

    /// Passes the effective limits to the disks.
    fn follow_limits(&self) {
        let desired = self.shared.desired();
        if let Err(error) = self.shared.disks.set_limits(&desired.config, false) {
            tracing::error!(%error, "cannot apply minimums");
        }
    }

    /// Creates events of the clients that NBD servers have rejected.
    fn report_rejections(&mut self) {
        let refusals = self.shared.disks.exports.take_rejections();
        let drafts =
            refusals.into_iter().map(|(last, count)| nbd_event(last).rate_limited_times(count));
        self.drafts.extend(drafts);
    }

    /// Commits the pending events. Called before and after changes, to keep events in chronological
    /// order.
    pub(crate) fn write_drafts(&mut self) {
        let drafts = std::mem::take(&mut self.drafts);
        self.shared.events.append(drafts);
    }

    /// Returns the time until the next retry, at most [`PLANE_POLL`].
    fn time_to_next_retry(&self) -> Duration {
        let now = Instant::now();
        let retries = self.shared.ports.all().into_iter().filter_map(|port| {
            let state = port.lock();
            state.retry.current_failure.as_ref().map(|f| f.retry_at.saturating_duration_since(now))
        });
        let disks = self.shared.disks.all().into_iter().filter_map(|disk| {
            let state = disk.lock();
            state.retry.current_failure.as_ref().map(|f| f.retry_at.saturating_duration_since(now))
        });
        let workers = self.workers_retry.current_failure.as_ref();
        let workers = workers.map(|f| f.retry_at.saturating_duration_since(now));
        retries.chain(disks).chain(workers).fold(PLANE_POLL, Duration::min)
    }

    /// Polls the notices of the planes and drives VMQ, at most once per [`PLANE_POLL`].
    fn poll_plane(&mut self) {
        let now = Instant::now();
        if self.plane_polled_at.is_some_and(|polled_at| now.duration_since(polled_at) < PLANE_POLL)
        {
            return;
        }
        self.plane_polled_at = Some(now);
        for port in self.shared.ports.all() {
            self.devices.retry_now_if_replaced(&port, now);
        }
        self.shared.refresh_kernel_paths();
        // Bounded, so that a flood of notices does not delay changes.
        let left_before = self.shared.bound_addresses.recently_disconnected();
        let mut has_more = true;
        for _ in 0..NOTICES_PER_COMMIT {
            let Some(notice) = self.shared.plane.poll_notice() else {
                has_more = false;
                break;
            };
            self.handle_plane_notice(notice);
        }
        if !has_more {
            self.shared.bound_addresses.clear_recently_disconnected(&left_before);
        }
        self.write_bindings();
        self.devices.negotiated_features.write();
        for _ in 0..NOTICES_PER_COMMIT {
            let Some(notice) = self.shared.disks.dependencies.plane.poll_notice() else { break };
            self.handle_storage_notice(notice);
        }
        let drafts = self.shared.drive_vmqs();
        self.drafts.extend(drafts);
    }
}
