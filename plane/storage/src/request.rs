//! A request that is under way.

use suimon_image::ByteRange;
use suimon_ports::{DiskOp, DiskOutcome, FileSlot};
use suimon_quantity::Time;
use suimon_storage_qos::{Operation, Phase};

/// A request that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The disk's number.
    pub(crate) disk: usize,
    /// The queue's number.
    pub(crate) queue: usize,
    /// Whether the disk is copied by it.
    pub(crate) is_mirror: bool,
    pub(crate) tag: u32,
    pub(crate) op: DiskOp,
    pub(crate) range: ByteRange,
    /// When it was taken.
    pub(crate) taken: Time,
    /// When its parts were handed to the I/O, and when all had ended; the same for those
    /// of which nothing is read or written there.
    pub(crate) sent: Time,
    pub(crate) moved: Time,
    /// Whether its store let it go, and is to hear that it was answered.
    pub(crate) is_charged: bool,
    /// Phase since its dispatch.
    pub(crate) phase: Phase,
    /// What its store is told of its size.
    pub(crate) bytes: u32,
    /// Who waits for their store right behind it, if it does.
    pub(crate) behind: u32,
    /// Parts that have not ended.
    pub(crate) parts: u32,
    /// What became of it so far.
    pub(crate) outcome: DiskOutcome,
    /// Whether its store had no space for it.
    pub(crate) full: Full,
}

/// Whether a request found its store full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Full {
    /// It did not.
    #[default]
    No,
    /// It is queued until it is repeated. It found the store full first at this time.
    Queued(Time),
    /// It is being repeated. It found the store full first at this time.
    Repeated(Time),
}

/// Requests of one queue that found the store full: their tags, and when each first did.
pub(crate) type FoundFull = Vec<(u32, Time)>;

impl Full {
    /// When it first found the store full.
    pub(crate) fn first(self) -> Option<Time> {
        match self {
            Self::No => None,
            Self::Queued(first) | Self::Repeated(first) => Some(first),
        }
    }
}

impl Request {
    /// Whether bytes of the disk may be others for it.
    #[inline]
    pub(crate) const fn changes(&self) -> bool {
        matches!(self.op, DiskOp::Write { .. } | DiskOp::WriteZeroes { .. } | DiskOp::Discard)
    }

    /// Returns its operation, as its store is told of it.
    #[inline]
    pub(crate) const fn operation(&self) -> Operation {
        match self.op {
            DiskOp::Read => Operation::Read,
            DiskOp::Write { .. } => Operation::Write,
            DiskOp::Flush => Operation::Flush,
            DiskOp::Discard | DiskOp::WriteZeroes { .. } | DiskOp::Status { .. } => {
                Operation::Other
            }
        }
    }

    /// Whether its answer says that it is durable.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(
            self.op,
            DiskOp::Write { is_durable: true } | DiskOp::WriteZeroes { is_durable: true, .. }
        )
    }
}

/// What is to be done with a range of a file for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The request's number.
    pub(crate) request: usize,
    pub(crate) file: FileSlot,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) action: PartAction,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartAction {
    /// Bytes go to the payload, from this byte of it on.
    Read { to: u64 },
    /// Bytes come from the payload, from this byte of it on.
    Write { from: u64, is_durable: bool },
    /// They become zeros.
    Zero { may_unmap: bool },
}
