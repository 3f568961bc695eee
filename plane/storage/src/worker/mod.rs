//! Task of one worker for disks: executes commands of the control plane and the iterations of the
//! worker's storage engine.

mod commands;
#[cfg(test)]
mod immediate_completion_tests;
pub(crate) mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use suimon_image_files::LayerStack;
use suimon_ports::{
    ExpectedInput, FaultKind, QueueFault, ServedDeviceCell, TaskDescriptors, Waker, WorkerTask,
};
use suimon_quantity::{DiskId, StoreId, Time, WorkerId};
use suimon_recording::RecordSink;
use suimon_storage_engine::{
    FullStorePolicy, QueueKind, StorageEngine, StorageNotice, StoreDiskSlot,
};

use crate::command::queue_key::QueueKey;
use crate::command::{Command, DetachedDisk, DetachedQueue, MirrorSettings};
use crate::plane::error::PlaneError;
use crate::plane::notices::{NoticeQueue, PlaneNotice};

/// Token for the descriptor of the I/O; queues have their numbers as tokens.
const IO_TOKEN: u32 = u32::MAX;

/// Maximum number of pending detach commands for one queue. A further command ends the wait of the
/// oldest one. Only repeated detach commands for clients of a stalled disk reach this number; their
/// callers do not wait.
pub(crate) const WAITERS_MAX: usize = 8;

/// Command that removes a disk from this worker, and the disk's queues that the engine has closed
/// so far.
struct PendingDetach {
    reply: Sender<Result<DetachedDisk, PlaneError>>,
    queues: Vec<DetachedQueue>,
}

/// Disk of this worker with the state needed for commands.
struct WorkerDisk {
    id: DiskId,
    index: Option<StoreDiskSlot>,
    full: FullStorePolicy,
    mirror: MirrorSettings,
    /// Numbers of the disk's queues.
    queues: BTreeMap<QueueKey, usize>,
    pending_detach: Option<PendingDetach>,
    /// Channel to which the disk's images are sent when it is suspended; `None` if no suspension is
    /// in progress.
    suspend_reply: Option<Sender<Result<LayerStack, PlaneError>>>,
}

/// Queue of this worker with the state needed for commands.
struct WorkerQueue {
    /// Number of the queue's disk.
    disk: usize,
    key: QueueKey,
    /// Pending detach commands, oldest first. If there are any, the queue is dropped when it is
    /// closed, even if its disk moves to another worker meanwhile.
    waiters: VecDeque<Sender<()>>,
}

/// Task of one worker for disks: its storage engine, with the state needed for commands.
pub(crate) struct StorageWorker {
    worker: WorkerId,
    commands: Receiver<Command>,
    notices: Arc<NoticeQueue>,
    engine: Option<StorageEngine>,
    disks: BTreeMap<usize, WorkerDisk>,
    queues: BTreeMap<usize, WorkerQueue>,
    /// Stores on this worker, and stores that were removed from it since the last one was added.
    pub(crate) stores: BTreeSet<StoreId>,
    waker: Arc<dyn Waker>,
    recording: Option<Arc<dyn RecordSink>>,
    /// Queues with requests that cannot be accepted now, whose descriptors must not be watched
    /// meanwhile.
    to_unwatch: Vec<usize>,
    /// Identity of the disk currently being served, for diagnosis of a blocked worker.
    serving: Option<Arc<ServedDeviceCell>>,
    now: Time,
}

impl StorageWorker {
    pub(crate) fn new(
        processor: WorkerId,
        commands: Receiver<Command>,
        notice_sender: Arc<NoticeQueue>,
        waker: Arc<dyn Waker>,
        recording: Option<Arc<dyn RecordSink>>,
    ) -> Self {
        Self {
            worker: processor,
            commands,
            notices: notice_sender,
            engine: None,
            disks: BTreeMap::new(),
            queues: BTreeMap::new(),
            stores: BTreeSet::new(),
            waker,
            recording,
            to_unwatch: Vec::new(),
            serving: None,
            now: Time::ZERO,
        }
    }

    fn number(&self, disk: DiskId) -> Option<usize> {
        self.disks.iter().find(|(_, worker_disk)| worker_disk.id == disk).map(|(number, _)| *number)
    }

    /// Watches the descriptor of a queue. If that fails, closes the queue and emits a notice.
    fn watch(&mut self, number: usize, watches: &mut TaskDescriptors<'_>) {
        let Some(engine) = &mut self.engine else { return };
        let token = u32::try_from(number).unwrap_or(IO_TOKEN);
        let watched = engine.queue_fd(number).map_or(Ok(()), |fd| watches.watch(fd, token));
        let Err(error) = watched else { return };
        let worker_queue = self.queues.get(&number);
        if let Some((worker_queue, worker_disk)) = worker_queue
            .and_then(|worker_queue| Some((worker_queue, self.disks.get(&worker_queue.disk)?)))
        {
            self.notices.emit(unwatched(worker_disk.id, worker_queue.key, &error));
        }
        engine.close_queue(number);
    }

    /// Sends closed disks and the images of suspended disks of the engine to the callers that wait
    /// for them, and removes closed queues.
    fn send_closed_disks(&mut self, watches: &mut TaskDescriptors<'_>) {
        let Some(engine) = &mut self.engine else { return };
        while let Some((number, queue)) = engine.poll_closed_queue() {
            let found_full = engine.take_no_space_requests(number);
            watches.unwatch(queue.wake_fd());
            let Some(worker_queue) = self.queues.remove(&number) else { continue };
            let Some(worker_disk) = self.disks.get_mut(&worker_queue.disk) else { continue };
            // Another queue that was added under the same key meanwhile remains.
            if worker_disk.queues.get(&worker_queue.key) == Some(&number) {
                worker_disk.queues.remove(&worker_queue.key);
            }
            match &mut worker_disk.pending_detach {
                Some(pending_detach) if worker_queue.waiters.is_empty() => {
                    pending_detach.queues.push(DetachedQueue {
                        key: worker_queue.key,
                        queue,
                        no_space_requests: found_full,
                    });
                }
                _ => drop(queue),
            }
            drop(worker_queue.waiters);
        }
        while let Some((number, spec)) = engine.poll_suspended_disk() {
            let worker_disk = self.disks.get_mut(&number);
            let Some(reply) = worker_disk.and_then(|worker_disk| worker_disk.suspend_reply.take())
            else {
                continue;
            };
            let failed = || match engine.flush_error(number) {
                Some(error) => PlaneError::FlushFailed(error),
                None => PlaneError::CommitFailed,
            };
            let _ = reply.send(spec.ok_or_else(failed));
        }
        while let Some((number, spec)) = engine.poll_closed_disk() {
            let Some(worker_disk) = self.disks.remove(&number) else { continue };
            let WorkerDisk {
                pending_detach: Some(pending_detach),
                full,
                index: location,
                mirror,
                ..
            } = worker_disk
            else {
                continue;
            };
            let queues = pending_detach.queues;
            let _ = pending_detach.reply.send(Ok(DetachedDisk {
                spec,
                full_store_policy: full,
                store_slot: location,
                mirror,
                queues,
            }));
        }
    }

    fn emit(&mut self) {
        let Some(engine) = &mut self.engine else { return };
        while let Some(notice) = engine.poll_notice() {
            let id = |disk: usize| self.disks.get(&disk).map(|worker_disk| worker_disk.id);
            let plane_notice = match notice {
                StorageNotice::QueueFault { queue, fault } => self
                    .queues
                    .get(&queue)
                    .and_then(|worker_queue| Some((id(worker_queue.disk)?, worker_queue.key)))
                    .map(|(disk, queue)| PlaneNotice::QueueFault { disk, queue, fault }),
                StorageNotice::DiskFault { disk, offset, detail, suppressed } => {
                    id(disk).map(|disk| PlaneNotice::DiskFault { disk, offset, detail, suppressed })
                }
                StorageNotice::DiskStall { disk, is_beginning: stalls, stalled_for } => id(disk)
                    .map(|disk| PlaneNotice::DiskStall { disk, is_beginning: stalls, stalled_for }),
                StorageNotice::DiskSpaceChange { disk, change, full_for: duration } => id(disk)
                    .map(|disk| PlaneNotice::DiskSpaceChange { disk, change, full_for: duration }),
                StorageNotice::FlushFailed { disk, detail } => {
                    id(disk).map(|disk| PlaneNotice::FlushFailed { disk, detail })
                }
                StorageNotice::Qos { store, event } => Some(PlaneNotice::Qos { store, event }),
                StorageNotice::IoFault { detail } => {
                    Some(PlaneNotice::IoFault { worker: self.worker, detail })
                }
            };
            if let Some(plane_notice) = plane_notice {
                self.notices.emit(plane_notice);
            }
        }
    }
}

fn kind_of(key: QueueKey) -> QueueKind {
    match key {
        QueueKey::Ring(_) => QueueKind::Ring,
        QueueKey::Client(_) => QueueKind::Client,
        QueueKey::EmulatedDisk(_) => QueueKind::EmulatedDisk,
        QueueKey::Mirror => QueueKind::Mirror,
    }
}

/// Returns the notice for a queue that is closed because its descriptor cannot be watched.
fn unwatched(disk: DiskId, queue: QueueKey, error: &io::Error) -> PlaneNotice {
    let detail = format!("the descriptor of the queue cannot be polled: {error}");
    PlaneNotice::QueueFault {
        disk,
        queue,
        fault: QueueFault { kind: FaultKind::SystemCallFailed, detail },
    }
}

impl WorkerTask for StorageWorker {
    fn poll(&mut self, now: Time, is_busy: bool, watches: &mut TaskDescriptors<'_>) -> bool {
        self.now = now;
        // This must precede the engine's iteration, which may return one of these queues to be
        // watched again.
        for queue in self.to_unwatch.drain(..) {
            if let Some(fd) = self.engine.as_ref().and_then(|engine| engine.queue_fd(queue)) {
                watches.unwatch(fd);
            }
        }
        let mut has_worked = false;
        while let Ok(command) = self.commands.try_recv() {
            // A command may reuse the number of a disk or queue that the engine has closed.
            self.emit();
            self.send_closed_disks(watches);
            self.handle_command(command, watches);
            has_worked = true;
        }
        let Some(engine) = &mut self.engine else { return has_worked };
        engine.set_worker_busy(is_busy);
        has_worked |= engine.poll(now);
        if engine.has_completed_io() {
            engine.complete_immediate(watches.now());
            has_worked = true;
        }
        while let Some(queue) = self.engine.as_mut().and_then(StorageEngine::poll_queue_to_watch) {
            self.watch(queue, watches);
        }
        // A queue may fail without delivering requests.
        self.emit();
        self.send_closed_disks(watches);
        has_worked
    }

    fn set_serving(&mut self, serving: Arc<ServedDeviceCell>) {
        self.serving = Some(serving);
    }

    fn handle_unscheduled(&mut self, span: Duration) {
        if let Some(engine) = &mut self.engine {
            engine.handle_unscheduled(span);
        }
    }

    fn handle_readable(&mut self, token: u32) {
        if let Some(engine) = self.engine.as_mut().filter(|_| token != IO_TOKEN) {
            if !engine.wake_queue(token as usize) {
                self.to_unwatch.push(token as usize);
            }
        }
    }

    fn needs_descriptor_check(&self) -> bool {
        self.engine.as_ref().is_some_and(StorageEngine::has_waiting_queues)
    }

    fn expected_input(&self) -> ExpectedInput {
        self.engine.as_ref().map_or(ExpectedInput::None, StorageEngine::expects)
    }

    fn arm(&mut self) -> bool {
        self.engine.as_mut().is_none_or(StorageEngine::arm)
    }

    fn next_deadline(&self) -> Option<Time> {
        self.engine.as_ref()?.next_deadline()
    }
}
