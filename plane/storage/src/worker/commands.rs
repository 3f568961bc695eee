//! Execution of the control plane's commands on a worker.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use suimon_image_files::LayerStack;
use suimon_ports::{DiskQueue, FileIo, TaskDescriptors};
use suimon_quantity::{DiskId, StoreId};
use suimon_storage_engine::{DiskIoCounters, RejectedDisk, StorageEngine, StoreDiskSlot};
use suimon_storage_qos::{ConfigStep, DiskSlot};

use crate::command::pending_changes::PendingFullStorePolicy;
use crate::command::queue_key::{QueueKey, QueueSelection};
use crate::command::revocable_value::RevocableValue;
use crate::command::{
    Command, DetachedDisk, DetachedQueue, MirrorSettings, SuspendCondition, WorkerAddDiskError,
};
use crate::plane::error::PlaneError;
use crate::worker::snapshot::{DiskView, StoreView, WorkerSnapshot};
use crate::worker::{
    IO_TOKEN, PendingDetach, StorageWorker, WAITERS_MAX, WorkerDisk, WorkerQueue, kind_of,
};

impl StorageWorker {
    pub(crate) fn handle_command(&mut self, command: Command, watches: &mut TaskDescriptors<'_>) {
        match command {
            Command::SetIo(io, reply) => {
                execute(&io, &reply, |io| self.ensure_io(io, watches));
            }
            Command::AddDisk { disk, detached, reply } => {
                execute(&detached, &reply, |detached| self.add_disk(disk, *detached, watches));
            }
            Command::AddQueue(disk, key, queue) => {
                if let Some(number) = self.number(disk) {
                    self.add_queue(number, key, queue, watches);
                }
            }
            Command::SetMirror(disk, mirror, reply) => {
                if let Some(number) = self.number(disk) {
                    self.set_mirror(number, mirror);
                    let _ = reply.send(());
                }
            }
            Command::SetFullStorePolicy(disk, policy) => {
                self.apply_full_store_policy(disk, &policy);
            }
            Command::CountRequestsInFlight(disk, reply) => {
                let in_flight = self.number(disk).zip(self.engine.as_ref());
                let _ = reply.send(
                    in_flight.map_or(0, |(number, engine)| engine.requests_in_flight(number)),
                );
            }
            Command::DetachQueues(disk, which, reply) => self.detach(disk, which, &reply),
            Command::DetachDisk(disk, reply) => self.take(disk, &reply),
            Command::Suspend(disk, suspension, reply) => self.suspend(disk, suspension, &reply),
            Command::Resume(disk, spec, reply) => {
                execute(&spec, &reply, |spec| self.resume(disk, spec));
            }
            Command::AddStore { store, spec, shared, changes } => {
                if let Some(engine) = &mut self.engine {
                    engine.add_store(self.now, store, spec, shared.as_ref());
                    self.stores.retain(|store| engine.store_status(*store).is_some());
                    self.stores.insert(store);
                }
                // A budget has the store's configuration.
                self.change(store, changes, shared.is_some());
            }
            Command::Share(store, reply) => {
                let engine = self.engine.as_mut();
                // Without a budget, the dropped channel reports an error to the caller.
                if let Some(budget) = engine.and_then(|engine| engine.share_store(self.now, store))
                {
                    let _ = reply.send(budget);
                }
            }
            Command::EndSharing(store) => {
                if let Some(engine) = &mut self.engine {
                    engine.end_sharing(self.now, store);
                }
            }
            Command::Sync(reply) => drop(reply),
            Command::RemoveStore(store) => {
                if let Some(engine) = &mut self.engine {
                    engine.remove_store(store);
                }
            }
            Command::ApplyChanges { store, changes, is_applied_to_budget: is_in_budget } => {
                self.change(store, changes, is_in_budget);
            }
            Command::ApplyMaximums(store, pending) => self.change(store, pending.take(), false),
            Command::QueryState(slots, reply) => {
                let _ = reply.send(self.snapshot(&slots));
            }
        }
    }

    /// Applies changes to a store of the engine. With `is_in_budget`, the shared budget has them
    /// already, and the engine only follows them.
    fn change(&mut self, store: StoreId, changes: Vec<ConfigStep>, is_in_budget: bool) {
        let Some(engine) = &mut self.engine else { return };
        for change in changes {
            if is_in_budget {
                engine.handle_budget_change(self.now, store, change);
            } else {
                engine.apply_store_change(self.now, store, change);
            }
        }
    }

    /// Closes a disk for its removal from this worker. The reply is sent when the engine has closed
    /// the disk and its queues.
    fn take(
        &mut self,
        disk: DiskId,
        reply: &RevocableValue<Sender<Result<DetachedDisk, PlaneError>>>,
    ) {
        let Some(reply) = reply.take() else { return };
        let Some(number) = self.number(disk) else {
            let _ = reply.send(Err(PlaneError::NoSuchDisk));
            return;
        };
        if let Some(worker_disk) = self.disks.get_mut(&number) {
            worker_disk.pending_detach = Some(PendingDetach { reply, queues: Vec::new() });
        }
        if let Some(engine) = &mut self.engine {
            engine.close_disk(number);
        }
    }

    /// Suspends a disk. The reply is sent when the engine has released the disk's files.
    pub(crate) fn suspend(
        &mut self,
        disk: DiskId,
        suspension: SuspendCondition,
        reply: &RevocableValue<Sender<Result<LayerStack, PlaneError>>>,
    ) {
        let Some(reply) = reply.take() else { return };
        let number = self.number(disk);
        let worker_disk = number.and_then(|number| Some((number, self.disks.get_mut(&number)?)));
        let Some(((number, worker_disk), engine)) = worker_disk.zip(self.engine.as_mut()) else {
            let _ = reply.send(Err(PlaneError::NoSuchDisk));
            return;
        };
        worker_disk.suspend_reply = Some(reply);
        match suspension {
            SuspendCondition::OnlyIfDurable => engine.suspend_disk(number),
            SuspendCondition::EvenIfFlushFailed => engine.suspend_disk_to_reopen(number),
        }
    }

    pub(crate) fn resume(&mut self, disk: DiskId, spec: LayerStack) -> Result<(), RejectedDisk> {
        match self.number(disk).zip(self.engine.as_mut()) {
            Some((number, engine)) => engine.resume_disk(number, spec),
            None => Err(RejectedDisk { error: io::ErrorKind::NotFound.into(), spec }),
        }
    }

    pub(crate) fn ensure_io(
        &mut self,
        io: Box<dyn FileIo>,
        watches: &mut TaskDescriptors<'_>,
    ) -> io::Result<()> {
        if self.engine.is_some() {
            return Ok(());
        }
        watches.watch(io.wake_fd(), IO_TOKEN)?;
        let mut engine = StorageEngine::new(io);
        engine.set_worker(self.worker);
        engine.set_waker(Arc::clone(&self.waker));
        engine.set_recording(self.recording.clone());
        engine.set_serving(self.serving.clone());
        self.engine = Some(engine);
        Ok(())
    }

    pub(crate) fn add_disk(
        &mut self,
        disk: DiskId,
        detached: DetachedDisk,
        watches: &mut TaskDescriptors<'_>,
    ) -> Result<(), WorkerAddDiskError> {
        let Some(engine) = &mut self.engine else {
            let error = io::ErrorKind::NotConnected.into();
            return Err(WorkerAddDiskError { error, detached: Some(Box::new(detached)) });
        };
        let DetachedDisk { spec, full_store_policy: full, store_slot: location, mirror, queues } =
            detached;
        let number = match engine.add_disk(spec, location) {
            Ok(number) => number,
            Err(RejectedDisk { error, spec }) => {
                let detached = Some(Box::new(DetachedDisk {
                    spec,
                    full_store_policy: full,
                    store_slot: location,
                    mirror,
                    queues,
                }));
                return Err(WorkerAddDiskError { error, detached });
            }
        };
        let worker_disk = WorkerDisk {
            id: disk,
            index: location,
            full,
            mirror: MirrorSettings::default(),
            queues: BTreeMap::new(),
            pending_detach: None,
            suspend_reply: None,
        };
        self.disks.insert(number, worker_disk);
        engine.set_full_store_policy(number, full);
        self.set_mirror(number, mirror);
        for DetachedQueue { key, queue, no_space_requests: found_full } in queues {
            let added = self.add_queue(number, key, queue, watches);
            if let Some((queue, engine)) = added.zip(self.engine.as_mut()) {
                engine.set_no_space_requests(queue, found_full);
            }
            // A queue was closed if its descriptor could not be watched.
            self.emit();
            self.send_closed_disks(watches);
        }
        Ok(())
    }

    pub(crate) fn apply_full_store_policy(
        &mut self,
        disk: DiskId,
        policy: &PendingFullStorePolicy,
    ) {
        let Some(policy) = policy.take() else { return };
        let Some(number) = self.number(disk) else { return };
        if let Some((worker_disk, engine)) = self.disks.get_mut(&number).zip(self.engine.as_mut()) {
            worker_disk.full = policy;
            engine.set_full_store_policy(number, policy);
        }
    }

    /// Sets the state of a disk's copy, with its slot in Storage QoS.
    pub(crate) fn set_mirror(&mut self, number: usize, mirror: MirrorSettings) {
        let worker_disk = self.disks.get_mut(&number);
        if let Some((worker_disk, engine)) = worker_disk.zip(self.engine.as_mut()) {
            let location = worker_disk.index.zip(mirror.slot);
            let location =
                location.map(|(StoreDiskSlot { store, .. }, slot)| StoreDiskSlot { store, slot });
            engine.set_mirror(number, location, mirror.dirty.clone());
            worker_disk.mirror = mirror;
        }
    }

    /// Adds a queue to a disk of the engine. Returns its number; `None` if the disk is being
    /// closed. If the queue cannot be watched, it is closed again.
    pub(crate) fn add_queue(
        &mut self,
        disk: usize,
        key: QueueKey,
        queue: Box<dyn DiskQueue>,
        watches: &mut TaskDescriptors<'_>,
    ) -> Option<usize> {
        let engine = self.engine.as_mut()?;
        let worker_disk = self.disks.get_mut(&disk)?;
        let number = engine.add_queue_of_kind(disk, queue, kind_of(key))?;
        engine.set_queue_disk_id(number, worker_disk.id);
        worker_disk.queues.insert(key, number);
        self.queues.insert(number, WorkerQueue { disk, key, waiters: VecDeque::new() });
        self.watch(number, watches);
        Some(number)
    }

    pub(crate) fn detach(&mut self, disk: DiskId, which: QueueSelection, reply: &Sender<()>) {
        let worker_disk = self.number(disk).and_then(|number| self.disks.get(&number));
        let Some((worker_disk, engine)) = worker_disk.zip(self.engine.as_mut()) else { return };
        let selected = worker_disk.queues.iter().filter(|(key, _)| which.has(**key));
        for number in selected.map(|(_, number)| *number).collect::<Vec<_>>() {
            // The command is complete when the last clone of `reply` is dropped.
            if let Some(worker_queue) = self.queues.get_mut(&number) {
                if worker_queue.waiters.len() >= WAITERS_MAX {
                    worker_queue.waiters.pop_front();
                }
                worker_queue.waiters.push_back(reply.clone());
            }
            engine.close_queue(number);
        }
    }

    pub(crate) fn snapshot(&self, slots: &BTreeMap<StoreId, Arc<Vec<DiskSlot>>>) -> WorkerSnapshot {
        let Some(engine) = &self.engine else { return WorkerSnapshot::default() };
        let views = self.disks.iter().map(|(number, worker_disk)| DiskView {
            disk: worker_disk.id,
            worker: self.worker,
            clients: worker_disk
                .queues
                .keys()
                .filter(|key| QueueSelection::Clients.has(**key))
                .count(),
            counters: engine.counters(*number).unwrap_or_else(DiskIoCounters::default),
            stalled_for: engine.stall_duration(*number),
            uncommitted_bytes: engine.uncommitted_bytes(*number),
            full_store: engine.full_store_view(*number),
            flush_error: engine.flush_error(*number),
            is_current: true,
        });
        let stores = self.stores.iter().filter_map(|store| {
            // If workers share the store, the control plane reads the state of disks from the
            // budget.
            let slots = slots.get(store).filter(|_| engine.reports_disks(*store));
            let slots = slots.map_or(&[][..], |slots| slots.as_slice());
            let (status, flows) = engine.store_view(self.now, *store, slots)?;
            let (store, worker, at) = (*store, self.worker, self.now);
            Some(StoreView { store, worker, status, read_at: at, flows, is_current: true })
        });
        WorkerSnapshot { disks: views.collect(), stores: stores.collect() }
    }
}

/// Executes a command with the value that it carries, and sends the result. Has no effect if the
/// value was taken back.
fn execute<T: Send, R>(offer: &RevocableValue<T>, reply: &Sender<R>, run: impl FnOnce(T) -> R) {
    if let Some(value) = offer.take() {
        let _ = reply.send(run(value));
    }
}
