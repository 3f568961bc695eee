//! The part of a large frame that still lies where it came from.
//!
//! A source that gives a frame a tail copies its headers only. Whoever hands the
//! frame on either reads the tail straight to where it goes, or gathers it
//! ([`Frame::gather`](crate::Frame::gather)) and has a frame like any other. The tail
//! is payload, which the switch never looks at: whoever needs to know anything of
//! it gathers first, so that what is found out is true of the bytes that leave.

use core::any::Any;
use std::sync::Arc;

/// Most pieces a source should leave a tail in; for more, a frame takes memory. A
/// Linux guest makes at most 18 of a frame.
pub const TAIL_SPANS_MAX: usize = 32;

/// Memory in which tails of frames lie. Frames hold it while they have a tail in it.
pub trait TailMemory: Send + Sync {
    /// Copies the bytes from `address` on, as many as `into` has. Who owns them may
    /// write them meanwhile; then they are any mixture. Bytes that are not there, of
    /// which no source makes a tail, are zero.
    fn read(&self, address: u64, into: &mut [u8]);

    /// For who knows a better way out of some kinds of memory.
    fn as_any(&self) -> &dyn Any;
}

/// A piece of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it begins, as its [`TailMemory`] counts.
    pub address: u64,
    /// Its length.
    pub bytes: usize,
}

/// What a frame knows of its tail.
#[derive(Default)]
pub(crate) struct Tail {
    memory: Option<Arc<dyn TailMemory>>,
    /// Its room is kept from frame to frame.
    spans: Vec<Span>,
}

impl Tail {
    #[inline(always)]
    pub(crate) fn is_none(&self) -> bool {
        self.memory.is_none()
    }

    /// Makes these pieces the tail, and says how long it is.
    pub(crate) fn set(&mut self, memory: Arc<dyn TailMemory>, spans: &[Span]) -> usize {
        self.spans.clear();
        self.spans.extend(spans.iter().filter(|span| span.bytes > 0));
        self.memory = Some(memory);
        spans.iter().fold(0, |bytes, span| bytes.saturating_add(span.bytes))
    }

    pub(crate) fn forget(&mut self) {
        self.memory = None;
        self.spans.clear();
    }

    /// Reads the first `bytes` of it.
    pub(crate) fn reader(&self, bytes: usize) -> TailReader<'_> {
        TailReader { memory: self.memory.as_deref(), spans: &self.spans, done: 0, left: bytes }
    }
}

/// Reads a tail from its beginning to its end. Each reader reads it anew.
pub struct TailReader<'a> {
    memory: Option<&'a dyn TailMemory>,
    spans: &'a [Span],
    /// Bytes of the first of `spans` that were read.
    done: usize,
    left: usize,
}

impl<'a> TailReader<'a> {
    /// Bytes still to be read; 0 for a frame without a tail.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// The next piece, of at most so many bytes, and the memory it lies in; `None` at
    /// the end (or if no byte is asked for). It counts as read.
    pub fn next_span(&mut self, bytes_max: usize) -> Option<(&'a dyn TailMemory, Span)> {
        let (memory, span) = (self.memory?, self.spans.first()?);
        let bytes = (span.bytes - self.done).min(bytes_max).min(self.left);
        let address = span.address.wrapping_add(self.done as u64);
        self.done += bytes;
        self.left -= bytes;
        if self.done == span.bytes {
            self.spans = self.spans.get(1..).unwrap_or_default();
            self.done = 0;
        }
        (bytes > 0).then_some((memory, Span { address, bytes }))
    }

    /// Reads the next bytes, as many as `into` has or are left, and says how many.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let mut count = 0;
        while let Some((memory, span)) = self.next_span(into.len() - count) {
            if let Some(room) = into.get_mut(count..count + span.bytes) {
                memory.read(span.address, room);
            }
            count += span.bytes;
        }
        count
    }
}

#[cfg(test)]
mod tests;
