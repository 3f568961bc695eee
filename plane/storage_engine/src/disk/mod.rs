//! Disk in the engine of its worker.

pub(crate) mod counters;
pub(crate) mod dirty_map;
#[cfg(test)]
mod dirty_map_tests;
mod flush_failure;
#[cfg(test)]
mod flush_failure_tests;
pub(crate) mod latency;
pub(crate) mod layer;
mod mirror;
pub(crate) mod qos_slot;
pub(crate) mod rejected;
pub(crate) mod stall;
mod suspension;
#[cfg(test)]
mod suspension_tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use suimon_image::ByteRange;
use suimon_quantity::Time;

use crate::commit::idle_check::WriteIdlePeriod;
use crate::commit::running::RunningCommit;
use crate::disk::counters::DiskIoRecorder;
use crate::disk::dirty_map::DirtyMap;
use crate::disk::layer::{ContiguousRange, Layer, has_failed_flush};
use crate::disk::qos_slot::EngineDiskSlot;
use crate::engine::notices::FaultNoticeLimiter;
use crate::full_store::DiskFullState;
use crate::request::pending_discard::PendingDiscard;
use crate::scheduling::queued_list::QueuedList;

/// State of a mirror job that copies the disk. Storage QoS schedules its requests separately from
/// those of clients.
#[derive(Default)]
pub(crate) struct MirrorState {
    /// Slot of the copy's requests in Storage QoS.
    pub(crate) qos_slot: Option<EngineDiskSlot>,
    /// Requests of the copy that are queued in the scheduler of the disk's store, in order of
    /// submission.
    pub(crate) queued: QueuedList,
    /// Map that records changes, if this disk is the source of the copy.
    pub(crate) dirty: Option<Arc<DirtyMap>>,
}

/// Service state of a disk, which determines whether requests are taken from its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceState {
    InService,
    /// The files are released when no request is in flight and all changes are durable.
    Suspending,
    /// The disk has no files, and its queues are not read.
    Suspended,
}

/// Operation that must end before further requests of a disk are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockingOperation {
    /// Read of image metadata: number of the layer, and range of its file.
    MetadataRead(usize, ByteRange),
    /// Commit that has not begun yet.
    Commit,
    /// Commit with steps in flight.
    CommitInFlight,
}

/// Disk with its images, requests and state.
pub(crate) struct DiskState {
    pub(crate) layers: Vec<Layer>,
    /// File range of the disk, if the disk is stored contiguously.
    pub(crate) contiguous_range: Option<ContiguousRange>,
    pub(crate) client_slot: Option<EngineDiskSlot>,
    /// Requests of clients that are queued in the scheduler of the disk's store, in order of
    /// submission.
    pub(crate) queued: QueuedList,
    pub(crate) mirror: MirrorState,
    pub(crate) service: ServiceState,
    /// Number of the disk's queues.
    pub(crate) queues: usize,
    /// Number of requests with I/O in flight.
    pub(crate) requests_with_io: usize,
    /// Requests of the disk that are queued for translation, in order of submission
    /// ([`crate::request::parking`]).
    pub(crate) parked: VecDeque<usize>,
    /// Discard or write of zeros that starts when no overlapping request is in flight.
    pub(crate) pending_discard: Option<PendingDiscard>,
    /// Ranges that discards and writes of zeros in flight overwrite with zeros, by number of the
    /// request.
    pub(crate) ranges_being_zeroed: BTreeMap<usize, Vec<ByteRange>>,
    /// Operation that must end before further requests of the disk are translated.
    pub(crate) blocked_by: Option<BlockingOperation>,
    pub(crate) commit: Option<RunningCommit>,
    /// Requests that complete when the next commit is durable.
    pub(crate) commit_waiters: Vec<usize>,
    /// True if the last commit failed. Closing the disk does not wait for another one.
    pub(crate) has_failed_commit: bool,
    /// True if a flush has failed since the image was opened: requests that change the disk fail,
    /// and no commit begins.
    pub(crate) has_failed_flush: bool,
    /// True if a suspension releases the files although a flush has failed.
    pub(crate) is_reopening: bool,
    /// True if the disk is to be returned when no request is in flight.
    pub(crate) is_closing: bool,
    pub(crate) counters: DiskIoRecorder,
    /// Rate limit of notices about the disk's faults.
    pub(crate) fault_notice_limiter: FaultNoticeLimiter,
    /// Submission time of the metadata read in flight.
    pub(crate) metadata_submitted_at: Option<Time>,
    /// Submission time of the commit steps in flight, or completion time of the last step that was
    /// in flight together with them; `None` if no step is in flight.
    pub(crate) step_submitted_at: Option<Time>,
    /// Submission time of the zeroing of freed space that is in flight.
    pub(crate) zeroing_submitted_at: Option<Time>,
    /// Time for which the store has completed no operation of the disk, as of the last check;
    /// `None` up to [`STALLED_AFTER`](crate::STALLED_AFTER).
    pub(crate) stalled_for: Option<Duration>,
    pub(crate) write_idle: WriteIdlePeriod,
    /// Requests for which the store has no space.
    pub(crate) full_state: DiskFullState,
}

impl DiskState {
    pub(crate) fn new(layers: Vec<Layer>, disk_index: Option<EngineDiskSlot>) -> Self {
        Self {
            contiguous_range: ContiguousRange::from_layers(&layers),
            has_failed_flush: has_failed_flush(&layers),
            is_reopening: false,
            layers,
            client_slot: disk_index,
            queued: QueuedList::default(),
            mirror: MirrorState::default(),
            service: ServiceState::InService,
            queues: 0,
            requests_with_io: 0,
            parked: VecDeque::new(),
            pending_discard: None,
            ranges_being_zeroed: BTreeMap::new(),
            blocked_by: None,
            commit: None,
            commit_waiters: Vec::new(),
            has_failed_commit: false,
            is_closing: false,
            counters: DiskIoRecorder::default(),
            fault_notice_limiter: FaultNoticeLimiter::default(),
            metadata_submitted_at: None,
            step_submitted_at: None,
            zeroing_submitted_at: None,
            stalled_for: None,
            write_idle: WriteIdlePeriod::default(),
            full_state: DiskFullState::default(),
        }
    }

    /// Replaces the images and files of the disk.
    pub(crate) fn set_layers(&mut self, layers: Vec<Layer>) {
        self.contiguous_range = ContiguousRange::from_layers(&layers);
        self.has_failed_flush = has_failed_flush(&layers);
        self.layers = layers;
    }

    /// Returns the slot in Storage QoS of the disk's copy, or of its clients; `None` without
    /// limits.
    #[inline]
    pub(crate) fn qos_slot(&self, is_mirror: bool) -> Option<EngineDiskSlot> {
        if is_mirror { self.mirror.qos_slot } else { self.client_slot }
    }

    /// Returns the queued requests of the disk's copy, or of its clients.
    pub(crate) fn queued_list(&mut self, is_mirror: bool) -> &mut QueuedList {
        if is_mirror { &mut self.mirror.queued } else { &mut self.queued }
    }

    /// Returns the disk's own image.
    pub(crate) fn own_layer(&mut self) -> &mut Layer {
        &mut self.layers[0]
    }

    /// Returns true if the disk is stored contiguously, so that its mapping never changes.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.contiguous_range.is_some()
    }

    /// Returns true if a durable write needs no commit because the write itself is durable: the
    /// disk is contiguous and its I/O bypasses the page cache. Through the page cache, such a write
    /// would report the failed writeback of other writes, which no later flush reports.
    #[inline]
    pub(crate) fn writes_durably(&self) -> bool {
        self.is_contiguous() && self.layers.first().is_some_and(|top_layer| top_layer.is_direct)
    }

    /// Returns true if no requests are taken from the disk's queues.
    pub(crate) fn is_stopped(&self) -> bool {
        self.service != ServiceState::InService
    }

    /// Returns true if a new request for this range can be translated at once: no request is
    /// parked, and no pending discard or write of zeros prevents it.
    #[inline]
    pub(crate) fn can_translate_now(&self, range: ByteRange) -> bool {
        self.parked.is_empty()
            && self.pending_discard.as_ref().is_none_or(|disk_state| disk_state.permits(range))
    }

    /// Returns true if an operation of the disk is pending until one that is in flight has ended.
    #[inline]
    pub(crate) fn has_pending_operation(&self) -> bool {
        !self.parked.is_empty()
            || self.pending_discard.is_some()
            || self.is_closing
            || self.service != ServiceState::InService
    }

    /// Returns true if changes of the image's metadata are not in the file yet.
    pub(crate) fn has_uncommitted_changes(&self) -> bool {
        self.layers[0].image.uncommitted_bytes() > 0
            || self.commit.as_ref().is_some_and(|commit| commit.has_image_changes)
    }

    /// Returns true if no operation of the disk is in flight or queued.
    pub(crate) fn has_no_operations(&self) -> bool {
        self.requests_with_io == 0
            && self.parked.is_empty()
            && self.pending_discard.is_none()
            && self.blocked_by.is_none()
            && self.commit.is_none()
            && self.zeroing_submitted_at.is_none()
            && self.commit_waiters.is_empty()
            && self.queued.is_empty()
            && self.mirror.queued.is_empty()
    }
}
