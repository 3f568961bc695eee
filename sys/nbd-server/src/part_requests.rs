//! Processing of a large request in consecutive parts ([`SplitRequest`]).

use suimon_nbd::{ExtentState, NbdCommand, REPLY_BYTES_MAX, Request, StatusExtent};
use suimon_ports::{DiskOutcome, DiskRequest};

use crate::in_flight_request::InFlightRequest;
use crate::input::{InputError, InputEvent};
use crate::queue::NbdQueue;
use crate::replies::error_of;
use crate::split_request::{PartReply, Phase, SplitRequest};

impl NbdQueue {
    /// Returns the next part of the current large request as a disk request; `None` if it lacks
    /// memory or payload, or the disk executes it already.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn take_part(&mut self) -> Result<Option<DiskRequest>, InputError> {
        let Some(mut parts) = self.split_request else { return Ok(None) };
        let next = self.advance(&mut parts);
        self.split_request = Some(parts);
        next
    }

    fn advance(&mut self, parts: &mut SplitRequest) -> Result<Option<DiskRequest>, InputError> {
        if parts.phase == Phase::AwaitingMemory {
            // Memory is unavailable until the client has received the previous part.
            let Some(chunks) = self.take_chunks(parts.part_bytes()) else { return Ok(None) };
            let part = parts.part();
            if part.payload_bytes == 0 {
                return Ok(self.begin_part(parts, part, chunks));
            }
            self.input.expect_payload(part, chunks);
            parts.phase = Phase::Receiving;
        }
        if parts.phase == Phase::Receiving {
            let event = self.input.next_event(&self.socket, &self.memory, &self.request_parser)?;
            if let InputEvent::CompleteWrite(arrived) = event {
                return Ok(self.begin_part(parts, arrived.request, arrived.chunks));
            }
        }
        Ok(None)
    }

    fn begin_part(
        &mut self,
        parts: &mut SplitRequest,
        part: Request,
        chunks: Vec<u32>,
    ) -> Option<DiskRequest> {
        parts.phase = Phase::OnDisk;
        let request = self.begin(part, chunks);
        if request.is_none() {
            // The range of the whole request is valid, and no other request occupies a tag.
            self.end_reason = Some("a part of a request cannot be executed");
        }
        request
    }

    /// Processes the disk's completion of the current part: queues the reply if it was the last
    /// part of a write, or the data if it was a part of a read. Otherwise the next part follows.
    pub(crate) fn complete_part(
        &mut self,
        mut parts: SplitRequest,
        slot: InFlightRequest,
        outcome: DiskOutcome,
    ) {
        if error_of(outcome).is_some() {
            return self.fail_part(&parts, slot, outcome);
        }
        let is_read = matches!(slot.request.command, NbdCommand::Read { .. });
        if is_read {
            self.reply_to_part(&parts, slot.chunks);
            self.split_request = (!parts.finish_part()).then_some(parts);
        } else if parts.finish_part() {
            self.split_request = None;
            self.queue_reply(slot, outcome);
        } else {
            self.split_request = Some(parts);
            self.pool.release(slot.chunks);
        }
    }

    /// Ends a request after the disk failed to execute one of its parts. Queues an error reply. If
    /// the head of a simple reply was sent, no error can be reported: the connection ends (NBD
    /// protocol, section "Simple replies").
    fn fail_part(&mut self, parts: &SplitRequest, slot: InFlightRequest, outcome: DiskOutcome) {
        self.split_request = None;
        let is_read = matches!(slot.request.command, NbdCommand::Read { .. });
        if is_read && parts.reply_form(self.has_chunks) == PartReply::Data {
            self.pool.release(slot.chunks);
            self.end_reason = Some("the disk failed within a reply whose head was sent");
            return;
        }
        self.input.skip(parts.unreceived_bytes());
        self.queue_reply(slot, outcome);
    }

    /// Queues the data of a completed part of a read.
    fn reply_to_part(&mut self, parts: &SplitRequest, chunks: Vec<u32>) {
        let (bytes, reply_to) = (parts.part_bytes(), parts.request().reply_to);
        let form = parts.reply_form(self.has_chunks);
        // If another reply chunk follows an extent of data, the chunk of the extent is not the last
        // one.
        let data = StatusExtent { length: bytes, state: ExtentState::DATA };
        let hole = StatusExtent { length: u64::MAX, state: ExtentState::HOLE | ExtentState::ZERO };
        let extents = [data, hole].into_iter();
        let in_one = form == PartReply::Head;
        let mut heads = self.request_parser.split_read_reply(
            reply_to,
            parts.remaining_range(),
            in_one,
            extents,
        );
        let encode = |out: &mut [u8]| match form {
            PartReply::Data => Some(0),
            PartReply::Head | PartReply::Chunk => heads.next()?.encode_head(out).ok(),
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.output.push(REPLY_BYTES_MAX, encode, chunks, bytes);
    }
}
