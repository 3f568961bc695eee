//! Start of requests: assigns tags, and describes the locations of payloads to the disk.

use suimon_image::ByteRange;
use suimon_nbd::{NbdCommand, NbdError, REPLY_BYTES_MAX, Request};
use suimon_ports::{DiskOp, DiskRequest};
use suimon_uring::{PayloadUse, Segment};

use crate::in_flight_request::{InFlightRequest, RequiredAction, disk_bytes, required_action};
use crate::memory::{CHUNK_BYTES, SMALL_CHUNK_BYTES};
use crate::queue::NbdQueue;

impl NbdQueue {
    /// Starts a block status request whose payload selects metadata contexts. Queues an error
    /// reply, and returns `None`, if the payload is invalid.
    #[allow(unsafe_code, reason = "reads chunks that the client's bytes were put into")]
    pub(crate) fn begin_block_status(
        &mut self,
        request: Request,
        chunks: Vec<u32>,
    ) -> Option<DiskRequest> {
        let bytes = request.payload_bytes as usize;
        let result = chunks.first().map(|&chunk| {
            // SAFETY: the request was not passed on yet, so nothing else accesses its chunk, and
            // its payload of a few bytes fits into it.
            let payload =
                unsafe { self.memory.chunk_slice(chunk, 0, bytes.min(SMALL_CHUNK_BYTES)) };
            self.request_parser.parse_contexts(request, payload)
        });
        match result {
            // The reply is counted instead of the payload.
            Some(Ok(request)) => return self.begin(request, chunks),
            Some(Err(refused)) => self.queue_error_reply(&refused),
            None => {}
        }
        self.pool.release(chunks);
        None
    }

    /// Assigns a tag to a request and returns it for the disk. Queues the reply, and returns
    /// `None`, if the request needs no disk operation.
    pub(crate) fn begin(&mut self, request: Request, chunks: Vec<u32>) -> Option<DiskRequest> {
        let refusal = match required_action(&request.command) {
            RequiredAction::Nothing => None,
            RequiredAction::Overflow => Some((NbdError::Inval, "the range ends beyond 64 bits")),
            RequiredAction::Disk(op, range) => match self.free_slots.pop() {
                Some(tag) => return Some(self.begin_on_disk(request, chunks, (tag, op, range))),
                // This cannot occur, because the number of requests read at a time is limited.
                None => Some((NbdError::Nomem, "too many requests are in flight")),
            },
        };
        let reply_to = request.reply_to;
        let encode = |out: &mut [u8]| match refusal {
            None => reply_to.encode_success(out).ok(),
            Some((error, text)) => reply_to.encode_error(error, text, out).ok(),
        };
        self.output.push(REPLY_BYTES_MAX, encode, Vec::new(), 0);
        self.pool.release(chunks);
        None
    }

    fn begin_on_disk(
        &mut self,
        request: Request,
        chunks: Vec<u32>,
        (tag, op, range): (u32, DiskOp, ByteRange),
    ) -> DiskRequest {
        let usage = if op == DiskOp::Read { PayloadUse::Destination } else { PayloadUse::Source };
        self.describe(tag, usage, disk_bytes(&request), &chunks);
        let requires_flush = matches!(request.command, NbdCommand::Trim { fua: true, .. });
        if let Some(slot) = self.slots.get_mut(tag as usize) {
            *slot = Some(InFlightRequest { request, chunks, extents: Vec::new(), requires_flush });
        }
        DiskRequest { tag, op, range }
    }

    #[allow(unsafe_code, reason = "says where a payload lies")]
    fn describe(&mut self, tag: u32, usage: PayloadUse, bytes: u64, chunks: &[u32]) {
        let memory = &self.memory;
        let mut remaining = usize::try_from(bytes).unwrap_or(usize::MAX);
        let slices = chunks.iter().map(|&chunk| {
            let len = remaining.min(CHUNK_BYTES);
            remaining -= len;
            Segment { pointer: memory.chunk(chunk), len }
        });
        // SAFETY: the chunks are in memory that the table holds, and belong to this request until
        // its reply; references into them exist before and after, but not meanwhile.
        unsafe { self.table.set(tag, usage, slices) };
    }
}
