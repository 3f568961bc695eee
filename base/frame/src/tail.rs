//! Tails: parts of large frames that remain in the memory of their source.
//!
//! A source that sets a tail copies only the headers. The sink either reads the tail directly to
//! its destination, or linearizes it ([`Frame::linearize`](crate::Frame::linearize)) into a normal
//! frame. A tail is payload, which the switch does not inspect. Code that derives any property from
//! it linearizes it first, so that the property holds for the bytes sent.

use core::any::Any;
use std::sync::Arc;

/// Recommended maximum number of spans of a tail; more spans cause an allocation. Linux guests use
/// at most 18 per frame.
pub const TAIL_SPANS_MAX: usize = 32;

/// Memory that contains tails of frames. A frame with a tail holds a reference to it.
pub trait TailMemory: Send + Sync {
    /// Fills `buffer` with the bytes from `address` on. The owner of the memory may write
    /// concurrently; the result is then any mixture of old and new bytes. Addresses outside the
    /// memory, which sources do not use, read as zero.
    fn read(&self, address: u64, buffer: &mut [u8]);

    /// Returns the memory as [`Any`], for optimized access to known types.
    fn as_any(&self) -> &dyn Any;
}

/// Contiguous part of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start address in its [`TailMemory`].
    pub address: u64,
    /// Length of the span in bytes.
    pub bytes: usize,
}

/// Tail of a frame: the memory that contains it, and its spans in this memory.
#[derive(Default)]
pub(crate) struct Tail {
    memory: Option<Arc<dyn TailMemory>>,
    /// Spans in the order of their bytes; the allocation is reused between frames.
    spans: Vec<Span>,
}

impl Tail {
    #[inline(always)]
    pub(crate) fn is_none(&self) -> bool {
        self.memory.is_none()
    }

    /// Sets memory and spans, and returns the total length of the spans in bytes.
    pub(crate) fn set(&mut self, memory: Arc<dyn TailMemory>, spans: &[Span]) -> usize {
        self.spans.clear();
        self.spans.extend(spans.iter().filter(|span| span.bytes > 0));
        self.memory = Some(memory);
        spans.iter().fold(0, |bytes, span| bytes.saturating_add(span.bytes))
    }

    pub(crate) fn clear(&mut self) {
        self.memory = None;
        self.spans.clear();
    }

    /// Returns a reader of the first `bytes` bytes of the tail.
    pub(crate) fn reader(&self, bytes: usize) -> TailReader<'_> {
        TailReader { memory: self.memory.as_deref(), spans: &self.spans, done: 0, remaining: bytes }
    }
}

/// Sequential reader of a tail. Each reader starts at the beginning.
pub struct TailReader<'a> {
    memory: Option<&'a dyn TailMemory>,
    spans: &'a [Span],
    /// Number of bytes already read of the first span.
    done: usize,
    remaining: usize,
}

impl<'a> TailReader<'a> {
    /// Returns the number of bytes left to read; 0 without a tail.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// Consumes and returns the next contiguous part of the tail, of at most `bytes_max` bytes,
    /// with its memory; `None` at the end or if `bytes_max` is 0.
    pub fn next_span(&mut self, bytes_max: usize) -> Option<(&'a dyn TailMemory, Span)> {
        let (memory, span) = (self.memory?, self.spans.first()?);
        let bytes = (span.bytes - self.done).min(bytes_max).min(self.remaining);
        let address = span.address.wrapping_add(self.done as u64);
        self.done += bytes;
        self.remaining -= bytes;
        if self.done == span.bytes {
            self.spans = self.spans.get(1..).unwrap_or_default();
            self.done = 0;
        }
        (bytes > 0).then_some((memory, Span { address, bytes }))
    }

    /// Reads up to `buffer.len()` bytes; returns the number read.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        let mut count = 0;
        while let Some((memory, span)) = self.next_span(buffer.len() - count) {
            if let Some(target) = buffer.get_mut(count..count + span.bytes) {
                memory.read(span.address, target);
            }
            count += span.bytes;
        }
        count
    }
}

#[cfg(test)]
mod tests;
