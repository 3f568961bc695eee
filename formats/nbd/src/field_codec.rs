//! Big-endian encoding and decoding, without panics.

use thiserror::Error;

/// Error: the output buffer is too short. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("NBD output buffer of {bytes} bytes is too short; {required} bytes are required")]
pub struct BufferTooShort {
    /// Length of the buffer in bytes.
    pub bytes: usize,
    /// Length that is required, in bytes.
    pub required: usize,
}

/// Decodes fields from the start of a message.
#[derive(Clone, Copy)]
pub(crate) struct FieldReader<'a> {
    remaining: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { remaining: bytes }
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.remaining.len()
    }

    /// Returns the next `N` bytes; `None`, with nothing consumed, if fewer remain.
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.remaining.split_first_chunk()?;
        self.remaining = rest;
        Some(*field)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Returns the next `count` bytes; `None`, with nothing consumed, if fewer remain.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.remaining.split_at_checked(count)?;
        self.remaining = rest;
        Some(field)
    }
}

/// Encodes fields into a buffer whose length was checked before.
pub(crate) struct FieldWriter<'a> {
    capacity: &'a mut [u8],
    written: usize,
}

impl<'a> FieldWriter<'a> {
    /// Prepares to write `required` bytes to the start of `out`.
    ///
    /// # Errors
    ///
    /// `out` is too short.
    pub(crate) fn new(out: &'a mut [u8], required: usize) -> Result<Self, BufferTooShort> {
        let bytes = out.len();
        let space = out.get_mut(..required).ok_or(BufferTooShort { bytes, required })?;
        Ok(Self { capacity: space, written: 0 })
    }

    /// Appends a field. Bytes beyond the reserved length are dropped.
    pub(crate) fn put(&mut self, field: &[u8]) {
        let space = self.capacity.get_mut(self.written..).unwrap_or_default();
        for (to, from) in space.iter_mut().zip(field) {
            *to = *from;
        }
        self.written = self.written.saturating_add(field.len()).min(self.capacity.len());
    }

    pub(crate) fn put_u16(&mut self, field: u16) {
        self.put(&field.to_be_bytes());
    }

    pub(crate) fn put_u32(&mut self, field: u32) {
        self.put(&field.to_be_bytes());
    }

    pub(crate) fn put_u64(&mut self, field: u64) {
        self.put(&field.to_be_bytes());
    }

    /// Returns the number of bytes written.
    pub(crate) const fn written(&self) -> usize {
        self.written
    }
}
