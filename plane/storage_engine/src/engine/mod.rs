//! Engine of one worker: its state, disks and queues.

mod closing;
pub(crate) mod io_token;
mod iteration;
pub(crate) mod notices;
pub(crate) mod slab;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use suimon_image::ByteRange;
use suimon_image_files::LayerStack;
use suimon_ports::{DiskQueue, DiskRequest, FileCompletion, FileIo, ServedDeviceCell, Waker};
use suimon_quantity::{DiskId, Time, WorkerId};
use suimon_recording::RecordSink;

use crate::commit::idle_check::IdleCheck;
use crate::disk::counters::DiskIoCounters;
use crate::disk::qos_slot::{EngineDiskSlot, StoreDiskSlot};
use crate::disk::rejected::RejectedDisk;
use crate::disk::{DiskState, ServiceState};
use crate::engine::notices::{Notices, StorageNotice};
use crate::engine::slab::Slab;
use crate::queue::buffer_reclaim_state::BufferReclaim;
use crate::queue::busy_poll::BusyPoll;
use crate::queue::poll_pause::PollPause;
use crate::queue::rotation::Rotation;
use crate::queue::{QueueKind, QueueState};
use crate::request::translation::Scratch;
use crate::request::{EngineRequest, NoSpaceRequests, RequestPart};
use crate::scheduling::store::WorkerStore;
use crate::scheduling::unscheduled_time::UnscheduledTime;

/// Largest number of requests in flight on a worker; further requests stay in their queues.
pub const REQUESTS_MAX: usize = 4096;
/// Largest number of requests taken from a queue per iteration.
pub(crate) const REQUESTS_PER_POLL_MAX: usize = 32;

/// Storage engine of one worker. The caller polls it, and sleeps when [`StorageEngine::arm`]
/// permits.
pub struct StorageEngine {
    pub(crate) io: Box<dyn FileIo>,
    pub(crate) disks: Slab<DiskState>,
    pub(crate) queues: Slab<QueueState>,
    pub(crate) requests: Slab<EngineRequest>,
    /// Queues that are polled, in round-robin order.
    pub(crate) polled_queues: Rotation,
    /// Identity of the disk currently being served, for diagnosis of a blocked worker.
    pub(crate) served_device: Option<Arc<ServedDeviceCell>>,
    /// Queues in a pause between polls ([`PollPause`]).
    pub(crate) poll_paused_queues: Vec<usize>,
    /// Queues with completions that are not published to their clients yet.
    pub(crate) queues_to_publish: Vec<usize>,
    /// Parts of requests that wait for a free submission-queue entry.
    pub(crate) parts_to_submit: VecDeque<RequestPart>,
    /// Metadata reads that wait for a free submission-queue entry: disk, layer, range.
    pub(crate) metadata_to_read: Vec<(usize, usize, ByteRange)>,
    /// Disks with a commit that waits for a free submission-queue entry for its next step.
    pub(crate) commits_to_run: Vec<usize>,
    /// Disks with freed space that could not be zeroed yet for lack of a submission-queue entry.
    pub(crate) zeroing_to_begin: Vec<usize>,
    /// Disks on which an operation has ended, so that their parked requests must be checked.
    pub(crate) disks_to_continue: Vec<usize>,
    pub(crate) scratch: Scratch,
    pub(crate) notices: Notices,
    /// Identifier of this engine's worker.
    pub(crate) worker: WorkerId,
    /// Waker of this engine's worker.
    pub(crate) waker: Option<Arc<dyn Waker>>,
    pub(crate) stores: Slab<WorkerStore>,
    /// Sink for the recording of scheduler decisions.
    pub(crate) recording: Option<Arc<dyn RecordSink>>,
    /// Number of requests that are queued for their store.
    pub(crate) queued: usize,
    /// Number of requests that are queued because their store is full.
    pub(crate) queued_for_space: usize,
    /// Disks that count as full.
    pub(crate) full_disks: Vec<usize>,
    /// Time of the next check of the full disks; `None` if no check is due without another event.
    pub(crate) full_check_due: Option<Time>,
    /// True if each queue may deliver as many requests in this iteration as one poll returns.
    pub(crate) has_room: bool,
    /// Queues that must be watched again by their descriptors.
    pub(crate) queues_to_watch: Vec<usize>,
    pub(crate) now: Time,
    /// True if the worker's last iteration did some work, network frames included.
    pub(crate) is_busy: bool,
    /// Time of the last check for stalled disks.
    pub(crate) stalls_checked_at: Time,
    pub(crate) idle_check: IdleCheck,
    pub(crate) buffer_reclaim: BufferReclaim,
    pub(crate) unscheduled: UnscheduledTime,
    pub(crate) receive_buffer: Vec<DiskRequest>,
    /// Numbers of the requests received from one queue in one iteration, before their submission to
    /// a scheduler.
    pub(crate) requests_to_submit: Vec<usize>,
    pub(crate) request_sizes_bytes: Vec<u32>,
    pub(crate) completion_buffer: Vec<FileCompletion>,
    pub(crate) closed_queues: Vec<(usize, Box<dyn DiskQueue>)>,
    /// Requests that closed queues have taken back because the store had no space, by number of the
    /// queue.
    pub(crate) no_space_requests: BTreeMap<usize, NoSpaceRequests>,
    pub(crate) closed_disks: Vec<(usize, LayerStack)>,
    pub(crate) suspended_disks: VecDeque<(usize, Option<LayerStack>)>,
}

impl StorageEngine {
    /// Creates an engine without disks that uses `io`.
    #[must_use]
    pub fn new(io: Box<dyn FileIo>) -> Self {
        Self {
            io,
            disks: Slab::default(),
            queues: Slab::default(),
            requests: Slab::default(),
            polled_queues: Rotation::default(),
            served_device: None,
            poll_paused_queues: Vec::new(),
            queues_to_publish: Vec::new(),
            parts_to_submit: VecDeque::new(),
            metadata_to_read: Vec::new(),
            commits_to_run: Vec::new(),
            zeroing_to_begin: Vec::new(),
            disks_to_continue: Vec::new(),
            scratch: Scratch::default(),
            notices: Notices::default(),
            worker: WorkerId(0),
            waker: None,
            stores: Slab::default(),
            recording: None,
            queued: 0,
            queued_for_space: 0,
            full_disks: Vec::new(),
            full_check_due: None,
            has_room: false,
            queues_to_watch: Vec::new(),
            now: Time::ZERO,
            is_busy: true,
            stalls_checked_at: Time::ZERO,
            idle_check: IdleCheck::default(),
            buffer_reclaim: BufferReclaim::default(),
            unscheduled: UnscheduledTime::default(),
            receive_buffer: Vec::with_capacity(REQUESTS_PER_POLL_MAX),
            requests_to_submit: Vec::with_capacity(REQUESTS_PER_POLL_MAX),
            request_sizes_bytes: Vec::with_capacity(REQUESTS_PER_POLL_MAX),
            completion_buffer: Vec::new(),
            closed_queues: Vec::new(),
            no_space_requests: BTreeMap::new(),
            closed_disks: Vec::new(),
            suspended_disks: VecDeque::new(),
        }
    }

    /// Adds a disk with a slot in a store of this worker, or without limits. Returns the disk's
    /// number. A disk without images is suspended: its queues wait for
    /// [`StorageEngine::resume_disk`].
    ///
    /// # Errors
    /// The files cannot be registered with the I/O, the store is not on this worker, or the store
    /// does not have the slot (apply the store's changes first). Nothing was added.
    pub fn add_disk(
        &mut self,
        spec: LayerStack,
        location: Option<StoreDiskSlot>,
    ) -> Result<usize, RejectedDisk> {
        let index = match location {
            None => None,
            Some(StoreDiskSlot { store, slot }) => {
                let number = self.store_number(store);
                let worker_store = number.and_then(|number| self.stores.get(number));
                if !worker_store.is_some_and(|worker_store| {
                    worker_store.has_disk(slot) && !worker_store.is_leaving
                }) {
                    return Err(RejectedDisk { error: std::io::ErrorKind::NotFound.into(), spec });
                }
                number.map(|store| EngineDiskSlot { store_number: store, slot })
            }
        };
        // A disk without images is suspended until they are set.
        let is_waiting = spec.layers.is_empty();
        let layers = if is_waiting { Vec::new() } else { self.register_files(spec)? };
        if let Some(EngineDiskSlot { store_number: store, slot }) = index {
            if let Some(worker_store) = self.stores.get_mut(store) {
                worker_store.disks += 1;
                worker_store.prepare_for_disk(slot);
            }
        }
        let service = if is_waiting { ServiceState::Suspended } else { ServiceState::InService };
        let number = self.disks.insert(DiskState { service, ..DiskState::new(layers, index) });
        // The disk's previous worker may have left freed space that must be zeroed.
        self.begin_zeroing(number);
        Ok(number)
    }

    /// Adds a virtqueue of a VM to a disk. Returns the queue's number; `None` if there is no such
    /// disk, or if the disk is being closed.
    pub fn add_queue(&mut self, disk: usize, queue: Box<dyn DiskQueue>) -> Option<usize> {
        self.add_queue_of_kind(disk, queue, QueueKind::Ring)
    }

    /// Adds a queue of this kind to a disk. Returns as [`StorageEngine::add_queue`] does.
    pub fn add_queue_of_kind(
        &mut self,
        disk: usize,
        queue: Box<dyn DiskQueue>,
        kind: QueueKind,
    ) -> Option<usize> {
        let is_mirror = kind == QueueKind::Mirror;
        let owner = self.disks.get_mut(disk).filter(|owner| !owner.is_closing)?;
        owner.queues += 1;
        let (index, is_stopped) = (owner.qos_slot(is_mirror), owner.is_stopped());
        if let Some(EngineDiskSlot { store_number: store, .. }) = owner.client_slot {
            self.adjust_store_queue_count(store, 1);
        }
        let store = index.and_then(|index| self.stores.get(index.store_number));
        let queued_max = store.map_or(u32::MAX, |worker_store| worker_store.queued_per_queue_max);
        let number = self.queues.insert(QueueState {
            queue,
            disk,
            disk_id: None,
            in_flight: 0,
            has_unpublished_completions: false,
            waits_for_descriptor: false,
            empty_polls: 0,
            busy_poll: BusyPoll::default(),
            poll_pause: PollPause::default(),
            kind,
            poll_pause_end: None,
            queued: 0,
            queued_for_space: 0,
            queued_max,
            qos_slot: index,
            is_stopped,
            is_paused: false,
            is_unwatched: false,
            is_closing: false,
            is_moving: false,
            no_space_requests: NoSpaceRequests::new(),
        });
        self.polled_queues.add(number);
        Some(number)
    }

    /// Sets the cell to which the identity of the disk being served is published, for diagnosis of
    /// a blocked worker.
    pub fn set_serving(&mut self, serving: Option<Arc<ServedDeviceCell>>) {
        self.served_device = serving;
    }

    /// Sets the disk identity that is published while the queue is served.
    pub fn set_queue_disk_id(&mut self, queue: usize, id: DiskId) {
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.disk_id = Some(id);
        }
    }

    /// Returns the oldest notice that was not returned yet; `None` if there is none.
    pub fn poll_notice(&mut self) -> Option<StorageNotice> {
        self.notices.pop()
    }

    /// Returns the counters of a disk; `None` if there is no such disk.
    #[must_use]
    pub fn counters(&self, disk: usize) -> Option<DiskIoCounters> {
        self.disks.get(disk).map(|disk| disk.counters.counters())
    }

    /// Returns the descriptor that signals requests of a queue; `None` if there is no such queue.
    #[must_use]
    pub fn queue_fd(&self, queue: usize) -> Option<BorrowedFd<'_>> {
        self.queues.get(queue).map(|queue_state| queue_state.queue.wake_fd())
    }

    /// Returns the descriptor that signals completions of the I/O.
    #[must_use]
    pub fn io_fd(&self) -> BorrowedFd<'_> {
        self.io.wake_fd()
    }
}
