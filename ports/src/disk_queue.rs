//! Queues of disk requests: a virtqueue of a VM, or a connection of an NBD client.

use std::any::Any;
use std::os::fd::BorrowedFd;

use suimon_image::ByteRange;
use suimon_quantity::DiskId;

use crate::{ArmResult, CompletedDetachment, DetachingQueue, QueueFault};

/// Operation of a disk request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOp {
    /// Reads from the disk to the request's payload.
    Read,
    /// Writes the request's payload to the disk.
    Write {
        /// True if the data must be durable before completion (force unit access).
        is_durable: bool,
    },
    /// Makes all previously completed requests durable. The range is empty.
    Flush,
    /// Discards a range. Its contents are unspecified afterwards.
    Discard,
    /// Zeroes a range of the disk.
    WriteZeroes {
        /// True if the range may be deallocated.
        may_unmap: bool,
        /// True if the zeros must be durable before completion.
        is_durable: bool,
        /// True if the request must fail unless zeroing is faster than writing
        /// (`NBD_CMD_FLAG_FAST_ZERO`).
        only_if_fast: bool,
    },
    /// Reports the allocation status of a range through [`DiskQueue::set_allocation`] before
    /// completion.
    AllocationStatus {
        /// True if the first extent is sufficient (`NBD_CMD_FLAG_REQ_ONE`).
        is_first_only: bool,
    },
}

/// Allocation status of a range of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Allocated in the disk's image or in one of its parents.
    Data,
    /// Unallocated in every image of the chain; reads as zeros.
    Hole,
}

/// Extent of a disk with one allocation status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationExtent {
    /// Allocation status of the whole extent.
    pub allocation: Allocation,
    /// Length in bytes; not 0.
    pub len: u64,
}

/// Request received from a queue. The range is within the disk and aligned to its sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// Identifier, unique among the requests in flight of the queue; less than
    /// [`DiskQueue::in_flight_max`].
    pub tag: u32,
    /// Operation that the client requests.
    pub op: DiskOp,
    /// Bytes of the disk concerned.
    pub range: ByteRange,
}

/// Completion status of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOutcome {
    /// The request was carried out.
    Done,
    /// I/O error of the device or the file system.
    Failed,
    /// No space left in the store.
    NoSpace,
    /// Operation not supported by the disk.
    Unsupported,
    /// Write to a read-only disk.
    ReadOnly,
}

/// Queue of disk requests, serviced by one thread at a time; `Send` so that ownership can move
/// between threads. Requests may complete in any order.
pub trait DiskQueue: Send {
    /// Returns the maximum number of requests in flight.
    fn in_flight_max(&self) -> u32;

    /// Appends at most `max` requests and returns how many were appended. The queue itself
    /// completes malformed requests with an error. The payload of an appended write has arrived
    /// completely.
    ///
    /// # Errors
    /// The queue has failed permanently; requests appended before remain valid.
    fn receive(&mut self, max: usize, requests: &mut Vec<DiskRequest>)
    -> Result<usize, QueueFault>;

    /// Returns the container of request payloads. [`FileIo`](crate::FileIo) downcasts it to the
    /// concrete type.
    fn payloads(&self) -> &dyn Any;

    /// Zeroes `len` bytes of the payload of a read, starting at byte `offset`.
    fn zero_payload(&mut self, tag: u32, offset: u64, len: u64);

    /// Stores the allocation status for a [`DiskOp::AllocationStatus`] request, from the start of
    /// its range. The extents may cover less or more than the range. Queues that never emit
    /// `AllocationStatus` need not implement this.
    fn set_allocation(&mut self, tag: u32, extents: &[AllocationExtent]) {
        let _ = (tag, extents);
    }

    /// Completes a request and frees its tag. The completion becomes visible to the client only
    /// with [`DiskQueue::flush`].
    fn complete(&mut self, tag: u32, outcome: DiskOutcome);

    /// Takes back a request that was not completed. [`DiskQueue::receive`] returns it again before
    /// any other. Returns false if the queue does not support this; the request must be completed
    /// then.
    fn requeue(&mut self, request: DiskRequest) -> bool {
        let _ = request;
        false
    }

    /// Returns true if the client's next queue delivers again the requests that are in flight when
    /// this queue is dropped. False if they are lost with the queue.
    fn redelivers_after_drop(&self) -> bool {
        false
    }

    /// Makes completions visible and notifies the client if it enabled notifications.
    ///
    /// # Errors
    /// The queue has failed permanently.
    fn flush(&mut self) -> Result<(), QueueFault>;

    /// Enables notification of new requests, as [`FrameSource::arm`](crate::FrameSource::arm).
    fn arm(&mut self) -> ArmResult;

    /// Disables notification and clears the descriptor. Called after each wake-up, before polling.
    fn disarm(&mut self);

    /// Disables notification without a system call. Called before the descriptor was observed
    /// readable. A notification that has occurred is still reported.
    fn disarm_lazily(&mut self) {}

    /// Returns unused buffers to the system. Called every 500 ms while the return value is true and
    /// after requests of an NBD client. Returns true if unused buffers remain for the next call.
    fn release_unused_buffers(&mut self) -> bool {
        false
    }

    /// Returns the descriptor to wait on; valid while the queue exists.
    fn wake_fd(&self) -> BorrowedFd<'_>;

    /// Returns true if `receive` makes a system call even when no request is pending.
    fn is_polled_by_fd(&self) -> bool;

    /// Returns true if the client has visible completions that it has not consumed, so that it is
    /// not blocked on further completions. Returns false if unknown, or if completions still have
    /// to be sent. May make a system call.
    fn has_unconsumed_completions(&self) -> bool {
        false
    }
}

/// Services the queues of disks. Implemented by the storage plane. Callable from any thread except
/// workers.
pub trait DiskQueueHost: Send + Sync {
    /// Attaches a queue of a disk. `index` counts from 0 within the disk.
    fn attach(&self, disk: DiskId, index: u16, queue: Box<dyn DiskQueue>);

    /// Detaches a queue. Blocks until every received request is completed and the owning worker has
    /// flushed and dropped the queue. Unknown queues count as detached.
    fn detach(&self, disk: DiskId, index: u16);

    /// Requests the detachment of a queue without blocking. The default implementation calls
    /// [`detach`](Self::detach), which blocks; hosts with stores that may stall override it.
    fn begin_detach(&self, disk: DiskId, index: u16) -> Box<dyn DetachingQueue> {
        self.detach(disk, index);
        Box::new(CompletedDetachment)
    }

    /// Detaches all queues of a disk; blocks as [`detach`](Self::detach).
    fn detach_disk(&self, disk: DiskId);
}
