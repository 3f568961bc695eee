//! Buffer for the records of one policy, before they are written to the file.

use core::fmt;
use std::sync::Arc;

use suimon_quantity::Time;

use crate::record::{put_begin, put_step};
use crate::{PolicyKind, StreamId};

/// Number of buffered bytes from which a buffer passes a block to the sink.
const FLUSH_THRESHOLD_BYTES: usize = 64 << 10;

/// Receiver of recorded blocks, such as a file. Its functions never block.
pub trait RecordSink: Send + Sync {
    /// Returns an unused stream identifier.
    fn allocate_stream_id(&self) -> StreamId;

    /// Accepts a block body with records of a stream. Returns false if it was discarded; the sink
    /// then records the early end of the stream itself.
    fn accept_block(&self, stream: StreamId, body: Vec<u8>) -> bool;
}

/// Buffer for the records of one policy. A clone belongs to a clone of the policy; only one of the
/// two may pass blocks to the sink, the other must be dropped first.
#[derive(Clone)]
pub struct RecordBuffer {
    sink: Arc<dyn RecordSink>,
    stream: StreamId,
    body: Vec<u8>,
    /// Time of the last record in `body`.
    last: Time,
    is_over: bool,
    input: Vec<u8>,
    decision: Vec<u8>,
}

impl fmt::Debug for RecordBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBuffer").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl RecordBuffer {
    /// Starts the stream of a new policy with its begin record.
    pub(crate) fn begin(
        sink: &Arc<dyn RecordSink>,
        now: Time,
        kind: PolicyKind,
        name: &str,
        birth: &[u8],
    ) -> Self {
        let stream = sink.allocate_stream_id();
        let mut buffer = Self {
            sink: Arc::clone(sink),
            stream,
            body: Vec::new(),
            last: Time::ZERO,
            is_over: false,
            input: Vec::new(),
            decision: Vec::new(),
        };
        put_begin(&mut buffer.body, (stream, now, &mut buffer.last), kind, name, birth);
        buffer
    }

    /// Appends a step record; `write` encodes the input into its first argument and the decision
    /// into its second.
    pub(crate) fn step(&mut self, now: Time, write: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) {
        if self.is_over {
            return;
        }
        self.input.clear();
        self.decision.clear();
        write(&mut self.input, &mut self.decision);
        let header = (self.stream, now, &mut self.last);
        put_step(&mut self.body, header, &self.input, &self.decision);
    }

    /// Passes the buffered records to the sink if they have reached the threshold.
    pub(crate) fn flush_if_long(&mut self) {
        if self.body.len() >= FLUSH_THRESHOLD_BYTES {
            self.flush();
        }
    }

    /// Passes the buffered records to the sink.
    pub(crate) fn flush(&mut self) {
        if self.body.is_empty() {
            return;
        }
        let next = Vec::with_capacity(self.body.len());
        let body = core::mem::replace(&mut self.body, next);
        self.last = Time::ZERO;
        if !self.is_over {
            self.is_over = !self.sink.accept_block(self.stream, body);
        }
    }
}
