//! Measurements carried out by the control thread.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suimon_contract::{
    ApiError, DiskConfig, ErrorCode, EventKind, HostConfig, MEASURE_SECONDS_MAX,
    MeasureStoreRequest, Name, ResourceKind, StoreConfig, StoreMeasurement,
};
use suimon_ports::ArmResult;
use suimon_quantity::Time;
use suimon_storage::measure::{MeasureError, MeasurePlan, Measurement, MeasurementResult};
use suimon_storage_qos::MINIMUMS_PERCENT_MAX;

use super::state::StoreInMeasurement;
use super::{Ended, RunningMeasurement};
use crate::control::Controller;
use crate::disks::Disks;
use crate::disks::entry::{CurrentJob, DiskEntry};
use crate::disks::limits::store_spec;
use crate::disks::measured_capacity::MeasuredStore;
use crate::disks::measurement_texts::{measure_error, report_lines, to_measurement};
use crate::disks::records::save_measurement;
use crate::disks::store_threads::{STORE_TIMEOUT, StoreOperationError};
use crate::disks::work::{DiskUsers, check_idle, unknown_clients_error};
use crate::errors::not_found;
use crate::events::EventDraft;
use crate::operations::OperationHandle;
use crate::shared::Shared;

/// Maximum wait for the device before the thread checks whether it is cancelled or stopped.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl Shared {
    /// Checks whether a store can be measured now.
    ///
    /// # Errors
    /// Fails if there is no such store, the duration is out of range, the store is being measured,
    /// or a disk of the store is in use and the request does not permit that.
    pub(crate) fn check_measurement(
        &self,
        name: &Name,
        request: MeasureStoreRequest,
    ) -> Result<(), ApiError> {
        let desired = self.desired();
        let about_store = |error: ApiError| error.with_resource(format!("store/{name}"));
        if !desired.config.stores.iter().any(|store| store.name == *name) {
            return Err(not_found(ResourceKind::Store, name));
        }
        if !(1..=MEASURE_SECONDS_MAX).contains(&request.seconds) {
            let text = format!(
                "must be a whole number from 1 to {MEASURE_SECONDS_MAX}, not {}",
                request.seconds
            );
            return Err(about_store(
                ApiError::new(ErrorCode::InvalidValue, text).with_field("seconds"),
            ));
        }
        if let Some(StoreInMeasurement { operation_id: operation, .. }) =
            self.disks.in_measurement().get(name)
        {
            let text = format!(
                "operation {operation} already measures the store; wait until it has ended, or \
                 cancel it with `suimon operation cancel {operation}`"
            );
            return Err(about_store(ApiError::new(ErrorCode::Conflict, text)));
        }
        desired
            .config
            .disks
            .iter()
            .filter(|disk| disk.store == *name)
            .try_for_each(|disk| self.disks.check_beside(disk, request.while_in_use))
    }
}

impl Disks {
    fn in_measurement(&self) -> MutexGuard<'_, BTreeMap<Name, StoreInMeasurement>> {
        self.in_measurement.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks whether a measurement is possible while this disk is configured. `is_allowed`: the
    /// operator permits users of disks with files.
    fn check_beside(&self, disk: &DiskConfig, is_allowed: bool) -> Result<(), ApiError> {
        let Some(entry) = self.find(&disk.name) else { return Ok(()) };
        check_idle(&entry)?;
        let has_file = disk.effective_file().is_some();
        let DiskUsers { has_vm, client_count: clients } = self.disk_users(&entry);
        if is_allowed && has_file {
            return Ok(());
        }
        if !has_vm && clients.ok_or_else(|| unknown_clients_error(&entry))? == 0 {
            return Ok(());
        }
        let clients = clients.unwrap_or_default();
        let (user, release) = if has_vm {
            ("the VM of the disk".to_owned(), "stop the VM first")
        } else {
            (format!("{clients} NBD connections"), "disconnect the NBD clients first")
        };
        let text = if has_file {
            format!(
                "{user} would get less than the minimum during the measurement, which finds only \
                 the remaining capacity; {release}, or measure anyway with `--beside`"
            )
        } else {
            format!(
                "the disk is the whole store and is out of service during the measurement, so \
                 requests of {user} would stay queued; {release}"
            )
        };
        Err(ApiError::new(ErrorCode::InUse, text).with_resource(entry.label()))
    }

    /// Returns an error for each store that is being measured and that the configuration changes.
    /// `capacity_iops` may change.
    pub(crate) fn check_not_measured(&self, to: &HostConfig) -> Vec<ApiError> {
        let measured = self.in_measurement();
        let is_same = |measured: &StoreConfig| {
            to.stores.iter().any(|store| {
                let capacity_iops = store.capacity_iops;
                *store == StoreConfig { capacity_iops, ..measured.clone() }
            })
        };
        let changed = measured.iter().filter(|(_, measurement)| !is_same(&measurement.store));
        let errors = changed.map(|(name, StoreInMeasurement { operation_id: operation, .. })| {
            let text = format!(
                "operation {operation} measures it: wait until it has ended, or cancel it with \
                 `suimon operation cancel {operation}`"
            );
            ApiError::new(ErrorCode::Conflict, text).with_resource(format!("store/{name}"))
        });
        errors.collect()
    }
}

impl Controller {
    /// Starts a measurement. `operation` reports the result.
    pub(crate) fn begin_measurement(
        &mut self,
        operation: OperationHandle,
        name: &Name,
        request: MeasureStoreRequest,
    ) {
        if !operation.begin() {
            return;
        }
        let started = self.shared.check_measurement(name, request).and_then(|()| {
            let desired = self.shared.desired();
            let store = desired.config.stores.iter().find(|store| store.name == *name);
            store.cloned().ok_or_else(|| not_found(ResourceKind::Store, name))
        });
        let store = match started {
            Ok(store) => store,
            Err(error) => return operation.end(&Err(error)),
        };
        let disks = self.take_out_of_service(&store, operation.id());
        match self.measurement(&store, request.seconds) {
            Ok(measurement) => {
                let in_measurement =
                    StoreInMeasurement { operation_id: operation.id(), store: store.clone() };
                self.shared.disks.in_measurement().insert(name.clone(), in_measurement);
                self.start_measurement(operation, measurement, store, request.seconds, disks);
            }
            Err(error) => {
                self.serve_again(disks);
                self.write_drafts();
                operation.end(&Err(error));
            }
        }
    }

    fn measurement(&self, store: &StoreConfig, seconds: u64) -> Result<Measurement, ApiError> {
        let name = store.name.clone();
        let failed = |error: MeasureError| measure_error(&name, &error);
        let disks = &self.shared.disks;
        let io = disks
            .dependencies
            .file_io
            .open()
            .map_err(|error| failed(MeasureError::IoUring(error)))?;
        let random = u128::from_le_bytes((disks.dependencies.random)());
        let seed = u64::try_from(random >> 64).unwrap_or_default();
        let plan = MeasurePlan {
            spec: store_spec(store),
            pattern_duration: Duration::from_secs(seconds),
            seed,
        };
        let (stores, path) = (disks.stores.clone(), store.path.clone());
        let begin = move || Measurement::begin(stores.files(&path)?.as_ref(), io, plan);
        let started = disks.threads.run(&store.path, STORE_TIMEOUT, begin, drop);
        let unanswered =
            |error: StoreOperationError<_>| error.abandon().with_resource(format!("store/{name}"));
        started.map_err(unanswered)?.map_err(failed)
    }

    /// Closes pass-through disks: only one process can have their device open.
    fn take_out_of_service(
        &mut self,
        store: &StoreConfig,
        operation: u64,
    ) -> Vec<(Arc<DiskEntry>, bool)> {
        let desired = self.shared.desired();
        let disks_on_store = desired.config.disks.iter().filter(|disk| disk.store == store.name);
        let full_image_disks = disks_on_store.filter(|disk| disk.effective_file().is_none());
        let entries = full_image_disks.filter_map(|disk| self.shared.disks.find(&disk.name));
        let mut taken_disks = Vec::new();
        for entry in entries.collect::<Vec<_>>() {
            let had_failed = entry.lock().open.is_none();
            self.close_disk(&entry);
            entry.lock().job = Some(CurrentJob { operation_id: operation, verb: "measure" });
            taken_disks.push((entry, had_failed));
        }
        taken_disks
    }

    fn serve_again(&mut self, disks: Vec<(Arc<DiskEntry>, bool)>) {
        for (entry, had_failed) in disks {
            entry.lock().job = None;
            self.open_after_job(&entry, had_failed);
        }
    }

    fn start_measurement(
        &mut self,
        operation: OperationHandle,
        measurement: Measurement,
        store: StoreConfig,
        seconds: u64,
        disks: Vec<(Arc<DiskEntry>, bool)>,
    ) {
        operation.allow_concurrent_changes();
        let stop = Arc::new(AtomicBool::new(false));
        let (name, stopped) = (store.name.clone(), stop.clone());
        let thread =
            std::thread::Builder::new().name("suimon-measure".to_owned()).spawn(move || {
                let result = run(measurement, &operation, &stopped, &name);
                Ended { operation, result }
            });
        match thread {
            Ok(thread) => {
                let under_way = RunningMeasurement { store, seconds, disks, stop, thread };
                self.measurements.push(under_way);
            }
            // The operation was dropped with the closure and has failed.
            Err(error) => {
                tracing::error!(%error, "cannot start a thread for a measurement");
                self.shared.disks.in_measurement().remove(&store.name);
                self.serve_again(disks);
            }
        }
    }

    /// Processes the results of measurements that have ended. Called by the control thread after
    /// every command and timeout.
    pub(crate) fn poll_measurements(&mut self) {
        let measurements = std::mem::take(&mut self.measurements);
        let (finished, running): (Vec<_>, Vec<_>) =
            measurements.into_iter().partition(|under_way| under_way.thread.is_finished());
        self.measurements = running;
        for under_way in finished {
            self.end_measurement(under_way);
        }
    }

    fn end_measurement(&mut self, under_way: RunningMeasurement) {
        let RunningMeasurement { store, seconds, disks, thread, .. } = under_way;
        self.shared.disks.in_measurement().remove(&store.name);
        self.serve_again(disks);
        // A thread that has panicked has dropped its operation, which has failed.
        let Ok(Ended { operation, result }) = thread.join() else {
            tracing::error!(
                store = %store.name,
                "the measurement ended because of a defect in the daemon; see its log"
            );
            return;
        };
        let result = result.and_then(|measured| {
            self.keep_measured(
                &store,
                &to_measurement(&self.shared, &store, seconds, &measured),
                &operation,
            )
        });
        self.write_drafts();
        operation.end(&result);
    }

    /// Stores the result of a measurement durably, and applies it to admission control if the
    /// store's capacity is `measure`.
    fn keep_measured(
        &mut self,
        store: &StoreConfig,
        measurement: &StoreMeasurement,
        operation: &OperationHandle,
    ) -> Result<(), ApiError> {
        let record = MeasuredStore::new(store, measurement.clone());
        let failed = |error: suimon_ports::StateStoreError| {
            ApiError::new(ErrorCode::HostError, error.to_string())
                .with_resource(format!("store/{}", store.name))
        };
        let change = save_measurement(&store.name, &record).map_err(failed)?;
        self.store.commit(&[change]).map_err(failed)?;
        self.shared.disks.set_measurement(&store.name, record);
        self.shared.disks.set_limits(&self.shared.desired().config, true)?;
        let status = self.shared.store(store.name.as_str())?;
        operation.set_report(report_lines(&status.config, measurement));
        let fits = status.reserved_percent.is_none_or(|percent| percent <= MINIMUMS_PERCENT_MAX);
        let too_much = if fits {
            ""
        } else {
            " The minimums of its disks exceed the permitted share: lower them, or move disks to \
             another store."
        };
        let text = format!("The capacity of the store is {} IOPS.{too_much}", measurement.iops);
        let draft =
            EventDraft::new(EventKind::StoreMeasured, format!("store/{}", store.name), text)
                .with("iops", measurement.iops)
                .with("promised_iops", status.reserved_iops)
                .with("fits", fits)
                .with("others_iops", measurement.other_load_iops);
        let draft = measurement.pattern_results.iter().fold(draft, |draft, figure| {
            let key = format!("{}_iops", figure.pattern.display_name().replace([' ', ','], "_"));
            draft.with(&key.replace("__", "_"), figure.iops)
        });
        self.drafts.push(draft);
        Ok(())
    }

    /// Stops all measurements and waits for their threads. Called when the daemon stops.
    pub(crate) fn stop_measurements(&mut self) {
        for under_way in &self.measurements {
            under_way.stop.store(true, Ordering::Release);
        }
        for under_way in std::mem::take(&mut self.measurements) {
            if let Ok(Ended { operation, result }) = under_way.thread.join() {
                operation.end(&result.and_then(|_| Err(stopped())));
            }
        }
    }
}

/// Executes a measurement until it completes, fails, is cancelled or stopped.
fn run(
    mut measurement: Measurement,
    operation: &OperationHandle,
    stop: &AtomicBool,
    store: &Name,
) -> Result<MeasurementResult, ApiError> {
    let started = Instant::now();
    let mut last_progress = None;
    loop {
        operation.check_cancelled()?;
        if stop.load(Ordering::Acquire) {
            return Err(stopped());
        }
        let now = Time::from_ns(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let progress = measurement.step(now).map_err(|error| measure_error(store, &error))?;
        if progress.is_done {
            return Ok(measurement.result().clone());
        }
        if last_progress.as_ref() != Some(&progress) {
            operation.report_progress(
                progress.stages_done,
                progress.stages_total,
                &progress.stage_description,
            );
            last_progress = Some(progress);
        }
        if measurement.arm() == ArmResult::Armed {
            let fd = measurement.wake_fd();
            // A signal shortens the wait only.
            let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&POLL_INTERVAL));
        }
    }
}

fn stopped() -> ApiError {
    let text = "the daemon is stopping before the measurement has ended; nothing was changed";
    ApiError::new(ErrorCode::Cancelled, text)
}
