//! Replies to requests that the disk has executed.

use suimon_nbd::{
    ExportRange, ExtentState, NbdCommand, NbdError, REPLY_BYTES_MAX, RejectedRequest, Request,
    STATUS_BUFFER_BYTES_MIN, StatusExtent,
};
use suimon_ports::{Allocation, AllocationExtent, DiskOutcome};

use crate::in_flight_request::InFlightRequest;
use crate::queue::NbdQueue;

/// Size of an extent in bytes, in the longer one of the two formats of block status.
const STATUS_EXTENT_BYTES: usize = 16;

impl NbdQueue {
    /// Queues the error reply to an invalid request, which was not executed.
    pub(crate) fn queue_error_reply(&mut self, refused: &RejectedRequest) {
        self.output.push(REPLY_BYTES_MAX, |out| refused.encode(out).ok(), Vec::new(), 0);
    }

    /// Queues the reply to an executed request with its outcome.
    pub(crate) fn queue_reply(&mut self, slot: InFlightRequest, outcome: DiskOutcome) {
        let InFlightRequest { request, chunks, extents, .. } = slot;
        let reply_to = request.reply_to;
        if let Some((error, reason)) = error_of(outcome) {
            self.output.push(
                REPLY_BYTES_MAX,
                |out| reply_to.encode_error(error, reason, out).ok(),
                Vec::new(),
                0,
            );
        } else if let NbdCommand::Read { range, .. } = request.command {
            let head = self.read_head(&request, range);
            let bytes = usize::try_from(range.length).unwrap_or(0);
            return self.output.push(REPLY_BYTES_MAX, head, chunks, bytes);
        } else if let NbdCommand::BlockStatus { range, first_only } = request.command {
            let bytes_max = STATUS_BUFFER_BYTES_MIN + STATUS_EXTENT_BYTES * extents.len();
            let transmission = self.request_parser;
            let encode = |out: &mut [u8]| {
                let mut reply =
                    transmission.begin_block_status_reply(reply_to, range, first_only, out).ok()?;
                extents.into_iter().map(extent).all(|extent| reply.push(extent));
                Some(reply.finish())
            };
            // The chunk is counted for the extents until they are sent.
            return self.output.push(bytes_max, encode, chunks, 0);
        } else {
            self.output.push(
                REPLY_BYTES_MAX,
                |out| reply_to.encode_success(out).ok(),
                Vec::new(),
                0,
            );
        }
        self.pool.release(chunks);
    }

    /// Returns a function that encodes the head of the reply to a read, as its only chunk.
    fn read_head(
        &self,
        request: &Request,
        range: ExportRange,
    ) -> impl FnOnce(&mut [u8]) -> Option<usize> + use<> {
        let no_extents = core::iter::empty();
        let mut chunks =
            self.request_parser.split_read_reply(request.reply_to, range, true, no_extents);
        move |out| chunks.next()?.encode_head(out).ok()
    }
}

/// Returns the NBD error of an outcome with an explanation for the client; `None` for success.
pub(crate) fn error_of(outcome: DiskOutcome) -> Option<(NbdError, &'static str)> {
    match outcome {
        DiskOutcome::Done => None,
        DiskOutcome::Failed => Some((NbdError::Io, "the store failed the request")),
        DiskOutcome::NoSpace => Some((NbdError::Nospc, "no space is left for the disk")),
        DiskOutcome::Unsupported => Some((NbdError::Notsup, "writing zeros would not be faster")),
        DiskOutcome::ReadOnly => Some((NbdError::Perm, "the disk is read-only")),
    }
}

/// Converts an extent to one of the metadata context `base:allocation`.
fn extent(extent: AllocationExtent) -> StatusExtent {
    let state = match extent.allocation {
        Allocation::Data => ExtentState::DATA,
        Allocation::Hole => ExtentState::HOLE | ExtentState::ZERO,
    };
    StatusExtent { length: extent.len, state }
}
