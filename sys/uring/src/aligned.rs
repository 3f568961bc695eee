//! Page-aligned buffers.
#![allow(unsafe_code, reason = "sees pages as bytes")]

/// Alignment in bytes that every device accepts for the memory of direct I/O.
pub(crate) const PAGE_BYTES: usize = 4096;

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
pub(crate) struct Page([u8; PAGE_BYTES]);

impl Page {
    pub(crate) const ZEROS: Self = Self([0; PAGE_BYTES]);
}

/// Buffer that starts at a page boundary.
pub(crate) struct AlignedBytes {
    pages: Vec<Page>,
    len: usize,
}

impl AlignedBytes {
    /// Allocates a buffer of `len` zero bytes.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self { pages: vec![Page::ZEROS; len.div_ceil(PAGE_BYTES)], len }
    }

    /// Returns the capacity in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// Sets the length, at most the capacity. The contents of the memory do not change.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.capacity());
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the pages contain at least `len` contiguous bytes, and `u8` has no alignment or
        // validity requirements. `set_len` keeps `len` within the pages.
        unsafe { core::slice::from_raw_parts(self.pages.as_ptr().cast(), self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_page_aligned_and_of_the_requested_length() {
        for len in [0, 1, PAGE_BYTES, PAGE_BYTES + 1] {
            let mut bytes = AlignedBytes::zeroed(len);
            assert_eq!(bytes.as_slice().as_ptr() as usize % PAGE_BYTES, 0);
            assert_eq!(bytes.as_mut_slice().len(), len);
            bytes.set_len(usize::MAX);
            assert_eq!(bytes.as_slice().len(), len.next_multiple_of(PAGE_BYTES));
        }
    }
}
