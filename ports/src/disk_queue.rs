//! Queues of disk requests: a VM's ring, or a client's connection.

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use suimon_image::ByteRange;
use suimon_quantity::DiskId;

use crate::{PortFault, Wakeup};

/// What a client asks of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOp {
    /// Bytes of the disk go to the request's payload.
    Read,
    /// The request's payload goes to the disk.
    Write {
        /// The bytes are durable before the request is answered.
        is_durable: bool,
    },
    /// Whatever was answered before is durable before this is answered. The range is
    /// empty.
    Flush,
    /// The bytes are needed no more; what they read as afterwards is open.
    Discard,
    /// The bytes read as zeros.
    WriteZeroes {
        /// Their space may be given back.
        may_unmap: bool,
        /// They are durable before the request is answered.
        is_durable: bool,
        /// Nothing is to be done unless it takes less time than a write would.
        only_if_fast: bool,
    },
    /// How the bytes are allocated goes to [`DiskQueue::tell_allocation`], and then the
    /// request is answered.
    Status {
        /// The first extent is enough.
        is_first_only: bool,
    },
}

/// Whether bytes of a disk have a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// They have, in the disk's image or one that it stands on.
    Data,
    /// They have none, and read as zeros.
    Hole,
}

/// Bytes of a disk of which one thing is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedExtent {
    /// What.
    pub allocation: Allocation,
    /// How many bytes; not 0.
    pub len: u64,
}

/// A request that a queue has taken. It is within the disk and aligned to its sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// What the queue knows it by; no other request under way has the same. Less than
    /// [`DiskQueue::tags`].
    pub tag: u32,
    /// What is asked.
    pub op: DiskOp,
    /// Of which bytes.
    pub range: ByteRange,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOutcome {
    /// It was carried out.
    Done,
    /// The device or the file system failed.
    Failed,
    /// There is no space left for it.
    NoSpace,
    /// The disk cannot do that.
    Unsupported,
    /// The disk is read-only.
    ReadOnly,
}

/// A queue of requests, driven by one thread at a time; `Send` so that it can be handed
/// over. Requests may be answered in any order.
pub trait DiskQueue: Send {
    /// How many requests can be under way at once.
    fn tags(&self) -> u32;

    /// Appends at most `max` requests and returns how many. What is no request of this
    /// disk was answered inside. Payload of a write is there as a whole.
    ///
    /// # Errors
    /// The queue is finished; requests appended before stand.
    fn receive(&mut self, max: usize, requests: &mut Vec<DiskRequest>) -> Result<usize, PortFault>;

    /// Where requests' payloads lie, for [`FileIo`](crate::FileIo), which knows the type.
    fn payloads(&self) -> &dyn Any;

    /// Fills the payload of a read with zeros: `len` bytes from `from` on.
    fn zero_payload(&mut self, tag: u32, from: u64, len: u64);

    /// How the range of a [`DiskOp::Status`] is allocated, from its beginning on. It may be
    /// less than was asked for, and more. Queues that never ask need not do anything.
    fn tell_allocation(&mut self, tag: u32, extents: &[AllocatedExtent]) {
        let _ = (tag, extents);
    }

    /// Answers a request; its tag is free. Nothing is visible to the client before
    /// [`DiskQueue::flush`].
    fn complete(&mut self, tag: u32, outcome: DiskOutcome);

    /// Takes a request back that was not answered. [`DiskQueue::receive`] returns it again, before
    /// any other. Returns false if the queue cannot do that; then the request is to be answered.
    fn take_back(&mut self, request: DiskRequest) -> bool {
        let _ = request;
        false
    }

    /// Returns true if requests that are not answered when the queue is dropped come again by the
    /// client's next queue.
    fn outlives(&self) -> bool {
        false
    }

    /// Makes answers visible, and notifies the client if it asked for that.
    ///
    /// # Errors
    /// The queue is finished.
    fn flush(&mut self) -> Result<(), PortFault>;

    /// Asks for a wake-up, as [`FrameSource::arm`](crate::FrameSource::arm).
    fn arm(&mut self) -> Wakeup;

    /// Takes the request back. Called after each wake-up, before polling.
    fn disarm(&mut self);

    /// Takes the request back before the descriptor was seen to be readable, without a system call;
    /// if it is by now, that is told yet.
    fn park(&mut self) {}

    /// The descriptor to wait on; valid while the queue lives.
    fn wake_fd(&self) -> BorrowedFd<'_>;

    /// Whether `receive` costs a system call even when nothing is there.
    fn is_polled_by_fd(&self) -> bool;

    /// Whether the client has answers at hand that it has not taken, so that it does not
    /// wait for others. `false` where that is not known, or where answers wait to be sent.
    /// May cost a system call.
    fn has_untaken_answers(&self) -> bool {
        false
    }
}

/// A queue that its host was requested to give back ([`DiskQueueHost::begin_detach`]). Dropping
/// this does not cancel the request.
pub trait DetachingQueue: Send {
    /// Waits at most `at_most`. Returns true if the host has dropped the queue, with every
    /// request that was taken from it answered, or if it cannot do so because the disk ends
    /// while its store stalls.
    fn wait(&mut self, at_most: Duration) -> bool;
}

/// A queue that its host has dropped.
#[derive(Clone, Copy, Debug)]
pub struct DetachedQueue;

impl DetachingQueue for DetachedQueue {
    fn wait(&mut self, _at_most: Duration) -> bool {
        true
    }
}

/// Serves the queues of disks. Implemented by the storage plane; may be called from any
/// thread but a processor's.
pub trait DiskQueueHost: Send + Sync {
    /// Gives a queue of a disk to the host. `index` counts from 0 within the disk.
    fn attach(&self, disk: DiskId, index: u16, queue: Box<dyn DiskQueue>);

    /// Takes a queue back: returns after every request that was taken from it was
    /// answered, and its owner has flushed and dropped it. Unknown queues are already
    /// gone.
    fn detach(&self, disk: DiskId, index: u16);

    /// Requests a queue back without waiting for it. The default calls
    /// [`detach`](Self::detach), which waits; a host whose stores may stall has its own.
    fn begin_detach(&self, disk: DiskId, index: u16) -> Box<dyn DetachingQueue> {
        self.detach(disk, index);
        Box::new(DetachedQueue)
    }

    /// Takes all queues of a disk back, likewise.
    fn detach_disk(&self, disk: DiskId);
}
