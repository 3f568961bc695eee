//! Disk in the engine of its worker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use suimon_image::{ByteRange, Image};
use suimon_ports::{DiskFile, DiskQueue, FileSlot};
use suimon_quantity::{DiskId, StoreId, Time};
use suimon_storage_qos::DiskSlot;

use crate::dirty::DirtyMap;
use crate::flush_failure::has_failed_flush;
use crate::freeing::PendingFree;
use crate::full::FullStore;
use crate::idle::Calm;
use crate::looking::BusyPoll;
use crate::notices::FaultPace;
use crate::queued_list::QueuedList;
use crate::request::FoundFull;
use crate::respite::PollPause;
use crate::running_commit::RunningCommit;
use crate::tally::DiskCounts;

/// One image of a disk, with its file.
pub struct DiskLayer {
    /// Translation of disk ranges to file ranges.
    pub image: Box<dyn Image>,
    /// File that contains the image.
    pub file: Arc<dyn DiskFile>,
}

/// Images that form a disk.
pub struct DiskSpec {
    /// The disk's own image, followed by its parent, the parent's parent and so on. Parents are
    /// only read. Empty for a suspended disk only.
    pub layers: Vec<DiskLayer>,
}

/// Space that requests of a disk can free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeing {
    /// True if a discard can free space, in the image or in the store.
    pub can_discard: bool,
    /// True if ranges can be zeroed without writing zeros.
    pub can_zero_fast: bool,
}

impl DiskSpec {
    /// Returns the space that requests can free; none without images.
    #[must_use]
    pub fn freeing(&self) -> Freeing {
        let own = self.layers.first();
        let can_zero_fast = own.is_some_and(|own| own.file.properties().can_punch);
        let has_blocks = own.is_some_and(|own| own.image.linear_offset().is_none());
        Freeing { can_discard: can_zero_fast || has_blocks, can_zero_fast }
    }
}

/// Disk that could not be added.
pub struct NotAdded {
    /// Error because of which the operation failed.
    pub error: std::io::Error,
    /// Disk that was to be added.
    pub spec: DiskSpec,
}

impl std::fmt::Debug for NotAdded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

/// Slot of a disk in Storage QoS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLocation {
    /// Store that contains the disk.
    pub store: StoreId,
    /// Slot in the store's scheduler.
    pub slot: DiskSlot,
}

/// Slot of a disk, with the store's number on the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DiskIndex {
    pub(crate) store: usize,
    pub(crate) slot: DiskSlot,
}

/// State of a disk copy: its requests are separate from those of the disk's clients in Storage QoS.
#[derive(Default)]
pub(crate) struct MirrorUse {
    /// Slot of the copy's requests in Storage QoS.
    pub(crate) index: Option<DiskIndex>,
    /// Requests that are queued for their store, in order of submission.
    pub(crate) queued: QueuedList,
    /// Map that records changes, if the disk is copied from here.
    pub(crate) dirty: Option<Arc<DirtyMap>>,
}

/// Service state of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    On,
    /// The files are released when no request is in flight and everything is durable.
    Suspending,
    /// The disk has no files, and its queues are not read.
    Suspended,
}

/// One image with its file in the worker's I/O.
pub(crate) struct Layer {
    pub(crate) image: Box<dyn Image>,
    /// File that the image was opened on; returned with the image.
    pub(crate) source: Arc<dyn DiskFile>,
    pub(crate) file: FileSlot,
    pub(crate) can_punch: bool,
    /// True if I/O bypasses the host's page cache.
    pub(crate) is_direct: bool,
}

/// Disk that is contiguous in its file. Requests are translated without its image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnePiece {
    pub(crate) file: FileSlot,
    start: u64,
    size: u64,
    /// Bits of an offset or length that are zero for whole sectors.
    within_sector: u64,
}

impl OnePiece {
    fn of(layers: &[Layer]) -> Option<Self> {
        let own = layers.first()?;
        let start = own.image.linear_offset()?;
        let shape = own.image.disk_geometry();
        let sector = u64::from(shape.logical_sector);
        let within_sector = sector.checked_sub(1).filter(|_| sector.is_power_of_two())?;
        Some(Self { file: own.file, start, size: shape.size, within_sector })
    }

    /// Returns the file offset of a range; `None` for an invalid range, for which the image returns
    /// the error.
    #[inline]
    pub(crate) fn locate(&self, range: ByteRange) -> Option<u64> {
        let is_whole = (range.offset() | range.len()) & self.within_sector == 0;
        let is_sound = is_whole && !range.is_empty() && range.is_within(self.size);
        is_sound.then(|| self.start.saturating_add(range.offset()))
    }
}

/// Kind of a queue, by the client that submits its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// Virtqueue of a VM.
    Ring,
    /// Connection of an NBD client.
    Client,
    /// Connection of a VM's QEMU, which pauses the VM if the store is full.
    EmulatedDisk,
    /// Copy of the disk.
    Mirror,
}

/// Queue of a disk on this worker.
pub(crate) struct QueueState {
    pub(crate) queue: Box<dyn DiskQueue>,
    /// Number of the disk on this worker.
    pub(crate) disk: usize,
    /// Identifier of the disk in the control plane, if it is known here.
    pub(crate) id: Option<DiskId>,
    /// Requests of the queue that have not completed.
    pub(crate) in_flight: usize,
    /// True if there are completions that are not yet published.
    pub(crate) has_answers: bool,
    /// True if the queue is not polled, and its descriptor is waited for.
    pub(crate) is_waiting: bool,
    /// Consecutive polls without requests while the worker did other work.
    pub(crate) empty_polls: u32,
    /// State that decides whether polling the queue for a short time before waiting is worthwhile.
    pub(crate) looking: BusyPoll,
    /// State that decides whether a pause between polls benefits the client.
    pub(crate) respite: PollPause,
    /// Source of the queue's requests.
    pub(crate) kind: QueueKind,
    /// End of the current pause between polls.
    pub(crate) left_alone: Option<Time>,
    /// Requests of the queue that are queued for their store.
    pub(crate) queued: u32,
    /// Requests of the queue that are queued because their store is full.
    pub(crate) full_queued: u32,
    /// Limit of `held`.
    pub(crate) held_max: u32,
    /// Slot of the queue's requests in Storage QoS.
    pub(crate) index: Option<DiskIndex>,
    /// True if the disk is not in service.
    pub(crate) is_stopped: bool,
    /// True if the queue is neither read nor waited for, because there is no room for its requests.
    pub(crate) is_paused: bool,
    /// True if the descriptor of the queue is not watched.
    pub(crate) is_unwatched: bool,
    /// True if the queue is being closed or is faulty: no further requests are taken from it.
    pub(crate) is_closing: bool,
    /// True if the queue is returned together with its disk: the disk's next worker receives the requests
    /// again that the queue takes back.
    pub(crate) is_moving: bool,
    /// Requests that found the store full on the queue's previous worker and were not yet received here,
    /// or that the queue has taken back.
    pub(crate) found_full: FoundFull,
}

impl QueueState {
    /// Returns the number of requests of the queue that are in flight or queued for their store, except
    /// those that wait for space.
    pub(crate) fn in_progress(&self) -> usize {
        self.in_flight.saturating_sub(self.full_queued as usize)
    }

    /// Returns true if the queue's requests belong to a copy of the disk.
    #[inline]
    pub(crate) fn is_mirror(&self) -> bool {
        self.kind == QueueKind::Mirror
    }

    /// Resumes polling of a queue that waits for its descriptor, because a request has completed.
    /// Its client will probably submit further requests, and would otherwise have to wake the
    /// worker. A queue whose poll costs a system call is polled again only when all its requests
    /// have completed. Returns true if polling was resumed.
    #[inline]
    pub(crate) fn is_polled_behind_answer(&mut self) -> bool {
        let is_polled = self.is_waiting
            && !self.is_closing
            && (self.in_flight == 0 || !self.queue.is_polled_by_fd());
        if is_polled {
            self.is_waiting = false;
            self.empty_polls = 0;
            self.queue.disarm_lazily();
        }
        is_polled
    }

    /// Accounts for a poll of the queue that returned `requests` requests. `is_all`: the queue is
    /// empty now. `is_busy`: the worker did other work.
    pub(crate) fn handle_looked(
        &mut self,
        now: Time,
        (requests, is_all): (usize, bool),
        is_busy: bool,
    ) {
        let is_all_answered = self.in_flight == 0;
        self.in_flight += requests;
        if requests == 0 {
            self.empty_polls = self.empty_polls.saturating_add(u32::from(is_busy));
            self.respite.handle_nothing();
            return;
        }
        self.empty_polls = 0;
        self.looking.handle_found();
        if self.queue.is_polled_by_fd() && is_all_answered {
            let has_answers = || self.queue.has_unconsumed_completions();
            self.left_alone = self.respite.handle_found(now, requests, is_all, has_answers);
        }
    }
}

/// Operation that must end before further requests of a disk are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockedBy {
    /// Read of image metadata: number of the layer, and range of its file.
    Metadata(usize, ByteRange),
    /// Commit that has not begun yet.
    Commit,
    /// Commit in flight.
    CommitInFlight,
}

/// Disk with its images, requests and state.
pub(crate) struct DiskState {
    pub(crate) layers: Vec<Layer>,
    /// Position in the file, if the disk is contiguous there.
    pub(crate) one_piece: Option<OnePiece>,
    pub(crate) index: Option<DiskIndex>,
    /// Requests that are queued for their store, in order of submission.
    pub(crate) queued: QueuedList,
    pub(crate) mirror: MirrorUse,
    pub(crate) service: Service,
    /// Number of the disk's queues.
    pub(crate) queues: usize,
    /// Requests with parts in flight.
    pub(crate) moving: usize,
    /// Requests that wait for translation, in order of submission.
    pub(crate) parked: VecDeque<usize>,
    /// Request that frees space as soon as no overlapping request is in flight.
    pub(crate) freeing: Option<PendingFree>,
    /// Ranges of the disk that requests in flight zero by writing, by number of the request.
    pub(crate) pieces: BTreeMap<usize, Vec<ByteRange>>,
    /// Operation that must end before further requests are translated.
    pub(crate) obstacle: Option<BlockedBy>,
    pub(crate) commit: Option<RunningCommit>,
    /// Requests that complete when the next commit is durable.
    pub(crate) waiters: Vec<usize>,
    /// True if the last commit failed. Closing the disk does not wait for another one.
    pub(crate) has_failed_commit: bool,
    /// True if a flush has failed since the image was opened: requests that change the disk fail, and
    /// no commit begins.
    pub(crate) has_failed_flush: bool,
    /// True if a suspension releases the files although a flush has failed.
    pub(crate) is_reopening: bool,
    /// True if the disk is to be returned when no request is in flight.
    pub(crate) is_closing: bool,
    pub(crate) tally: DiskCounts,
    /// Rate limit of fault notices.
    pub(crate) told: FaultPace,
    /// Start of the metadata read in flight.
    pub(crate) metadata_asked: Option<Time>,
    /// Start of the commit steps in flight, or end of the last one that was in flight with them.
    pub(crate) step_asked: Option<Time>,
    /// Start of the zeroing of freed space in flight.
    pub(crate) zeroing_asked: Option<Time>,
    /// Time for which the store has not completed an operation, if it exceeds the limit.
    pub(crate) stalled: Option<Duration>,
    pub(crate) calm: Calm,
    /// Requests for which the store had no space.
    pub(crate) full: FullStore,
}

impl DiskState {
    pub(crate) fn new(layers: Vec<Layer>, place: Option<DiskIndex>) -> Self {
        Self {
            one_piece: OnePiece::of(&layers),
            has_failed_flush: has_failed_flush(&layers),
            is_reopening: false,
            layers,
            index: place,
            queued: QueuedList::default(),
            mirror: MirrorUse::default(),
            service: Service::On,
            queues: 0,
            moving: 0,
            parked: VecDeque::new(),
            freeing: None,
            pieces: BTreeMap::new(),
            obstacle: None,
            commit: None,
            waiters: Vec::new(),
            has_failed_commit: false,
            is_closing: false,
            tally: DiskCounts::default(),
            told: FaultPace::default(),
            metadata_asked: None,
            step_asked: None,
            zeroing_asked: None,
            stalled: None,
            calm: Calm::default(),
            full: FullStore::default(),
        }
    }

    /// Sets other images and files.
    pub(crate) fn set_layers(&mut self, layers: Vec<Layer>) {
        self.one_piece = OnePiece::of(&layers);
        self.has_failed_flush = has_failed_flush(&layers);
        self.layers = layers;
    }

    /// Returns the slot in Storage QoS of a client's request, or of a request of a copy.
    #[inline]
    pub(crate) fn place_of(&self, is_mirror: bool) -> Option<DiskIndex> {
        if is_mirror { self.mirror.index } else { self.index }
    }

    /// Returns the requests of either kind that are queued for their store.
    pub(crate) fn held_of(&mut self, is_mirror: bool) -> &mut QueuedList {
        if is_mirror { &mut self.mirror.queued } else { &mut self.queued }
    }

    /// Returns the disk's own image.
    pub(crate) fn own_image(&mut self) -> &mut Layer {
        &mut self.layers[0]
    }

    /// Returns true if the mapping of the disk never changes.
    #[inline]
    pub(crate) fn is_linear(&self) -> bool {
        self.one_piece.is_some()
    }

    /// Returns true if a durable write needs no commit: the write itself is durable. Through the page
    /// cache, such a write would report the failed writeback of other writes, which no later flush
    /// reports.
    #[inline]
    pub(crate) fn writes_durably(&self) -> bool {
        self.is_linear() && self.layers.first().is_some_and(|own| own.is_direct)
    }

    /// Returns true if no requests are taken from the disk's queues.
    pub(crate) fn is_stopped(&self) -> bool {
        self.service != Service::On
    }

    /// Returns true if a new request for this range is translated at once.
    #[inline]
    pub(crate) fn is_next(&self, range: ByteRange) -> bool {
        self.parked.is_empty() && self.freeing.as_ref().is_none_or(|of| of.lets_pass(range))
    }

    /// Returns true if an operation of the disk waits for the end of another one.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        !self.parked.is_empty()
            || self.freeing.is_some()
            || self.is_closing
            || self.service != Service::On
    }

    /// Returns true if changes of the mapping are not in the file yet.
    pub(crate) fn has_uncommitted(&self) -> bool {
        self.layers[0].image.uncommitted_bytes() > 0
            || self.commit.as_ref().is_some_and(|commit| commit.is_of_image)
    }

    /// Returns true if no operation of the disk is in flight or queued.
    pub(crate) fn is_quiet(&self) -> bool {
        self.moving == 0
            && self.parked.is_empty()
            && self.freeing.is_none()
            && self.obstacle.is_none()
            && self.commit.is_none()
            && self.zeroing_asked.is_none()
            && self.waiters.is_empty()
            && self.queued.is_empty()
            && self.mirror.queued.is_empty()
    }
}
