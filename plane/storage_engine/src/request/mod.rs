//! Request that a worker has taken from a queue.

mod block_status;
#[cfg(test)]
mod block_status_tests;
mod discard;
#[cfg(test)]
mod discard_tests;
pub(crate) mod parking;
pub(crate) mod pending_discard;
pub(crate) mod transfer;
pub(crate) mod translation;

use suimon_image::ByteRange;
use suimon_ports::{DiskOp, DiskOutcome, FileSlot};
use suimon_quantity::Time;
use suimon_storage_qos::{IoKind, RequestPhase};

use crate::disk::qos_slot::EngineDiskSlot;

/// Request that a worker has taken from a queue and not completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineRequest {
    /// Number of the disk on this worker.
    pub(crate) disk: usize,
    /// Number of the queue on this worker.
    pub(crate) queue: usize,
    /// True if the request belongs to a copy of the disk.
    pub(crate) is_mirror: bool,
    pub(crate) tag: u32,
    pub(crate) op: DiskOp,
    pub(crate) range: ByteRange,
    /// Time of receipt from the queue.
    pub(crate) received_at: Time,
    /// Times at which the parts were submitted to the I/O, and at which all of them had completed.
    /// Equal for requests without payload I/O.
    pub(crate) submitted_at: Time,
    pub(crate) transferred_at: Time,
    /// Slot of the store's scheduler that dispatched the request and must receive its completion. A
    /// copy of the disk may have ended meanwhile; then the disk does not refer to its slot any
    /// more.
    pub(crate) charged_slot: Option<EngineDiskSlot>,
    /// Phase of the request since its dispatch.
    pub(crate) phase: RequestPhase,
    /// Number of bytes that the request is charged for; 0 if it is charged as one operation.
    pub(crate) charged_bytes: u32,
    /// Number of the next request in the disk's
    /// [`QueuedList`](crate::scheduling::queued_list::QueuedList), while this request is queued.
    pub(crate) next_queued: u32,
    /// Number of parts that have not completed.
    pub(crate) remaining_parts: u32,
    /// Outcome of the parts that have ended: the last error, or success.
    pub(crate) outcome: DiskOutcome,
    /// State of the request with regard to a full store.
    pub(crate) full_state: RequestFullState,
}

/// State of a request with regard to space on its store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestFullState {
    /// The store has had space for the request so far.
    #[default]
    NotFull,
    /// The request is queued to be repeated. The store first had no space for it at this time.
    Queued(Time),
    /// The request is being repeated. The store first had no space for it at this time.
    Repeating(Time),
}

/// Requests of one queue for which the store had no space: tag, and time at which the request first
/// found no space.
pub type NoSpaceRequests = Vec<(u32, Time)>;

impl RequestFullState {
    /// Returns the time at which the store first had no space for the request; `None` if it always
    /// had.
    pub(crate) fn first_no_space_at(self) -> Option<Time> {
        match self {
            Self::NotFull => None,
            Self::Queued(first) | Self::Repeating(first) => Some(first),
        }
    }
}

impl EngineRequest {
    /// Returns true if the request may change the disk.
    #[inline]
    pub(crate) const fn may_change_disk(&self) -> bool {
        matches!(self.op, DiskOp::Write { .. } | DiskOp::WriteZeroes { .. } | DiskOp::Discard)
    }

    /// Returns the operation as the store's scheduler counts it.
    #[inline]
    pub(crate) const fn io_kind(&self) -> IoKind {
        match self.op {
            DiskOp::Read => IoKind::Read,
            DiskOp::Write { .. } => IoKind::Write,
            DiskOp::Flush => IoKind::Flush,
            DiskOp::Discard | DiskOp::WriteZeroes { .. } | DiskOp::AllocationStatus { .. } => {
                IoKind::Other
            }
        }
    }

    /// Returns true if the request's changes must be durable before it completes.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(
            self.op,
            DiskOp::Write { is_durable: true } | DiskOp::WriteZeroes { is_durable: true, .. }
        )
    }
}

/// Part of a request: I/O on one range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestPart {
    /// Number of the request on this worker.
    pub(crate) request: usize,
    pub(crate) file: FileSlot,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) action: PartAction,
}

/// Operation that a part performs on its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartAction {
    /// Read into the payload, starting at this byte of the payload.
    Read { to: u64 },
    /// Write from the payload, starting at this byte of the payload.
    Write { from: u64, is_durable: bool },
    /// Deallocation, where file and device support it.
    Discard,
    /// Write of zeros. With `only_if_fast`, it fails if zeros would have to be written.
    Zero { may_unmap: bool, only_if_fast: bool },
}
