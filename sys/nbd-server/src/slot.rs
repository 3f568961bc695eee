//! Requests of a connection in flight.

use suimon_image::ByteRange;
use suimon_nbd::{Command, Request};
use suimon_ports::{AllocatedExtent, DiskOp};

/// Request of a connection in flight.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) request: Request,
    /// Chunks that contain its payload.
    pub(crate) chunks: Vec<u32>,
    /// Allocation of its range, if that was requested.
    pub(crate) extents: Vec<AllocatedExtent>,
    /// True if a flush must follow before the reply.
    pub(crate) is_to_flush: bool,
}

/// Returns the disk operation of a command; `None` if there is nothing to do.
pub(crate) fn disk_op(command: &Command) -> Option<(DiskOp, ByteRange)> {
    let (op, range) = match *command {
        Command::Read { range, .. } => (DiskOp::Read, range),
        Command::Write { range, fua } => (DiskOp::Write { is_durable: fua }, range),
        Command::Trim { range, .. } => (DiskOp::Discard, range),
        Command::WriteZeroes { range, fua, no_hole, fast } => {
            let op =
                DiskOp::WriteZeroes { may_unmap: !no_hole, is_durable: fua, only_if_fast: fast };
            (op, range)
        }
        Command::Flush => return Some((DiskOp::Flush, ByteRange::new(0, 0)?)),
        Command::BlockStatus { range, one } => (DiskOp::Status { is_first_only: one }, range),
        Command::Cache { .. } | Command::BlockStatusOf { .. } => return None,
    };
    Some((op, ByteRange::new(range.offset, range.length)?))
}

/// Returns the number of bytes of memory that a request's payload needs.
pub(crate) fn payload_bytes(request: &Request) -> u64 {
    match request.command {
        Command::Read { range, .. } => range.length,
        _ => request.payload_bytes.into(),
    }
}
