//! Requests of a connection that are in flight.

use suimon_image::ByteRange;
use suimon_nbd::{ExportRange as NbdRange, NbdCommand, Request};
use suimon_ports::{AllocationExtent, DiskOp};

use crate::memory::SMALL_CHUNK_BYTES;

/// Request of a connection that is in flight.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    pub(crate) request: Request,
    /// Memory chunks of the request's payload.
    pub(crate) chunks: Vec<u32>,
    /// Extents of the requested range, as the disk has reported them; empty unless the client
    /// requests block status.
    pub(crate) extents: Vec<AllocationExtent>,
    /// True if the disk must be flushed before the reply: a trim with forced unit access.
    pub(crate) requires_flush: bool,
}

/// Action that an NBD command requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredAction {
    /// Operation that the disk executes on a range.
    Disk(DiskOp, ByteRange),
    /// No disk operation: the command succeeds at once.
    Nothing,
    /// Error reply: offset plus length of the range exceeds 64 bits.
    Overflow,
}

/// Returns the action that an NBD command requires.
pub(crate) fn required_action(command: &NbdCommand) -> RequiredAction {
    let (op, range) = match *command {
        NbdCommand::Read { range, .. } => (DiskOp::Read, range),
        NbdCommand::Write { range, fua } => (DiskOp::Write { is_durable: fua }, range),
        NbdCommand::Trim { range, .. } => (DiskOp::Discard, range),
        NbdCommand::WriteZeroes { range, fua, no_hole, fails_if_slow: fast } => {
            let op =
                DiskOp::WriteZeroes { may_unmap: !no_hole, is_durable: fua, only_if_fast: fast };
            (op, range)
        }
        NbdCommand::Flush => (DiskOp::Flush, NbdRange { offset: 0, length: 0 }),
        NbdCommand::BlockStatus { range, first_only } => {
            (DiskOp::AllocationStatus { is_first_only: first_only }, range)
        }
        NbdCommand::Cache { .. } | NbdCommand::BlockStatusWithPayload { .. } => {
            return RequiredAction::Nothing;
        }
    };
    ByteRange::new(range.offset, range.length)
        .map_or(RequiredAction::Overflow, |range| RequiredAction::Disk(op, range))
}

/// Returns the size in bytes of the memory that a request's payload, or that of its reply, needs.
pub(crate) fn payload_bytes(request: &Request) -> u64 {
    match request.command {
        // The list of extents is not in this memory, but is counted like a small chunk.
        NbdCommand::BlockStatus { .. } => SMALL_CHUNK_BYTES as u64,
        _ => disk_bytes(request),
    }
}

/// Returns the number of bytes that the disk reads from or writes to memory.
pub(crate) fn disk_bytes(request: &Request) -> u64 {
    match request.command {
        NbdCommand::Read { range, .. } => range.length,
        _ => request.payload_bytes.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_without_work_succeed_without_the_disk() {
        let range = NbdRange { offset: 512, length: 512 };
        let overflowing = NbdRange { offset: u64::MAX, length: 2 };
        let write = |range| NbdCommand::Write { range, fua: false };
        let on_disk = RequiredAction::Disk(
            DiskOp::Write { is_durable: false },
            ByteRange::new(512, 512).unwrap(),
        );
        assert_eq!(required_action(&write(range)), on_disk);
        assert_eq!(required_action(&write(overflowing)), RequiredAction::Overflow);
        assert_eq!(required_action(&NbdCommand::Cache { range }), RequiredAction::Nothing);
        assert!(matches!(
            required_action(&NbdCommand::Flush),
            RequiredAction::Disk(DiskOp::Flush, _)
        ));
    }
}
