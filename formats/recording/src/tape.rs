//! Where a policy's records go.

use core::fmt;
use std::sync::Arc;

use suimon_quantity::Time;

use crate::record::{put_begin, put_step};
use crate::{Kind, StreamId};

/// Bytes that a tape keeps before it hands them on.
const HANDED_ON_BYTES: usize = 64 << 10;

/// Takes what is recorded. It never makes anybody wait.
pub trait Sink: Send + Sync {
    /// A stream that was nobody's before.
    fn next_stream(&self) -> StreamId;

    /// Takes a block's body with records of a stream. Whether it does; if not, it says in the file that
    /// nothing more of the stream follows.
    fn take(&self, stream: StreamId, body: Vec<u8>) -> bool;
}

/// A policy's end of a recording. A copy of it records what the copy of the policy does, so one of
/// both is to be thrown away before the other hands anything on.
#[derive(Clone)]
pub struct Tape {
    sink: Arc<dyn Sink>,
    stream: StreamId,
    body: Vec<u8>,
    /// When the last record of `body` was.
    last: Time,
    is_over: bool,
    input: Vec<u8>,
    decision: Vec<u8>,
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl Tape {
    /// A policy begins.
    pub(crate) fn begin(
        sink: &Arc<dyn Sink>,
        at: Time,
        kind: Kind,
        name: &str,
        birth: &[u8],
    ) -> Self {
        let stream = sink.next_stream();
        let mut tape = Self {
            sink: Arc::clone(sink),
            stream,
            body: Vec::new(),
            last: Time::ZERO,
            is_over: false,
            input: Vec::new(),
            decision: Vec::new(),
        };
        put_begin(&mut tape.body, (stream, at, &mut tape.last), kind, name, birth);
        tape
    }

    /// It was told something, and decided; `write` adds what and how.
    pub(crate) fn step(&mut self, at: Time, write: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) {
        if self.is_over {
            return;
        }
        self.input.clear();
        self.decision.clear();
        write(&mut self.input, &mut self.decision);
        let head = (self.stream, at, &mut self.last);
        put_step(&mut self.body, head, &self.input, &self.decision);
    }

    /// Hands on what there is, if that is much.
    pub(crate) fn flush_if_long(&mut self) {
        if self.body.len() >= HANDED_ON_BYTES {
            self.flush();
        }
    }

    /// Hands on what there is.
    pub(crate) fn flush(&mut self) {
        if self.body.is_empty() {
            return;
        }
        let next = Vec::with_capacity(self.body.len());
        let body = core::mem::replace(&mut self.body, next);
        self.last = Time::ZERO;
        if !self.is_over {
            self.is_over = !self.sink.take(self.stream, body);
        }
    }
}
