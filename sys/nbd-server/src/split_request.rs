//! State of a large request that is processed in consecutive parts.
//!
//! A read or write that exceeds the memory reserved for its connection, and for which the limits
//! permit no more, is split into disk requests of at most [`PART_BYTES`]. All parts use the
//! reserved memory. The connection has no other request meanwhile, so that replies are not
//! interleaved.

use suimon_nbd::{ExportRange, NbdCommand, Request};

use crate::limit_level::PAYLOAD_RESERVED_BYTES;

/// Size of a part in bytes: a multiple of every sector size.
pub(crate) const PART_BYTES: u64 = PAYLOAD_RESERVED_BYTES;

/// State of the current part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The part waits for buffer memory.
    AwaitingMemory,
    /// The payload of the part, which belongs to a write, is being received.
    Receiving,
    /// The disk executes the part.
    OnDisk,
}

/// Read or write request that is processed in parts, and its progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitRequest {
    request: Request,
    range: ExportRange,
    /// Number of bytes of parts that the disk has executed.
    done: u64,
    pub(crate) phase: Phase,
}

/// Form of the reply to a part of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartReply {
    /// Separate reply chunk (`NBD_REPLY_TYPE_OFFSET_DATA`).
    Chunk,
    /// Head of one reply for the whole range, followed by the data of this part.
    Head,
    /// Data that continues the reply of the previous part.
    Data,
}

impl SplitRequest {
    /// Returns the state of a request before its first part; `None` if it is neither a read nor a
    /// write, or not larger than one part.
    pub(crate) fn new(request: Request) -> Option<Self> {
        let (NbdCommand::Read { range, .. } | NbdCommand::Write { range, .. }) = request.command
        else {
            return None;
        };
        let parts = Self { request, range, done: 0, phase: Phase::AwaitingMemory };
        (range.length > PART_BYTES).then_some(parts)
    }

    /// Returns the remaining range of the request, from the current part to the end.
    pub(crate) fn remaining_range(&self) -> ExportRange {
        let offset = self.range.offset.saturating_add(self.done);
        ExportRange { offset, length: self.range.length.saturating_sub(self.done) }
    }

    /// Returns the length of the current part in bytes.
    pub(crate) fn part_bytes(&self) -> u64 {
        self.remaining_range().length.min(PART_BYTES)
    }

    /// Returns the whole request, including executed parts.
    pub(crate) const fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the current part as a request of its own.
    pub(crate) fn part(&self) -> Request {
        let range = ExportRange { length: self.part_bytes(), ..self.remaining_range() };
        let (command, payload) = match self.request.command {
            NbdCommand::Write { fua, .. } => (NbdCommand::Write { range, fua }, range.length),
            _ => (NbdCommand::Read { range, dont_fragment: true }, 0),
        };
        let payload_bytes = u32::try_from(payload).unwrap_or(u32::MAX);
        Request { command, payload_bytes, ..self.request }
    }

    /// Returns the number of bytes of a write's payload that were not received yet. Valid while the
    /// disk executes a part.
    pub(crate) fn unreceived_bytes(&self) -> u64 {
        let remaining = self.remaining_range().length.saturating_sub(self.part_bytes());
        if self.request.payload_bytes > 0 { remaining } else { 0 }
    }

    /// Returns the form of the reply to the current part of a read. `has_chunks` is true if the
    /// client has negotiated structured or extended replies.
    pub(crate) fn reply_form(&self, has_chunks: bool) -> PartReply {
        let in_one = matches!(self.request.command, NbdCommand::Read { dont_fragment: true, .. });
        match (has_chunks && !in_one, self.done) {
            (true, _) => PartReply::Chunk,
            (false, 0) => PartReply::Head,
            (false, _) => PartReply::Data,
        }
    }

    /// Records that the disk has executed the current part. Returns true if it was the last one.
    pub(crate) fn finish_part(&mut self) -> bool {
        self.done = self.done.saturating_add(self.part_bytes());
        self.phase = Phase::AwaitingMemory;
        self.done >= self.range.length
    }
}
