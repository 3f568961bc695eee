//! Copies between the segments of a payload and buffers of this process.
//!
//! The segments come from [`PayloadTable::part`](crate::PayloadTable). They are valid while the
//! operation holds the memory that contains them.
#![allow(unsafe_code, reason = "copies from and to memory that is shared with a client")]

/// Copies the bytes of the segments `from`, in order, into `remaining` until it is full.
pub(crate) fn gather(from: &[libc::iovec], remaining: &mut [u8]) {
    let mut rest = remaining;
    for iovec in from {
        let len = iovec.iov_len.min(rest.len());
        let (now, next) = rest.split_at_mut(len);
        // SAFETY: the segment is valid for reads while its memory is held, and `remaining` does not
        // overlap it.
        unsafe { now.as_mut_ptr().copy_from_nonoverlapping(iovec.iov_base.cast(), len) };
        rest = next;
    }
}

/// Copies `from` into the segments `to`, in order, until these are full.
pub(crate) fn scatter(from: &[u8], to: &[libc::iovec]) {
    let mut remaining = from;
    for iovec in to {
        let (now, next) = remaining.split_at(iovec.iov_len.min(remaining.len()));
        // SAFETY: the segment is valid for writes while its memory is held, and `from` does not
        // overlap it.
        unsafe { iovec.iov_base.cast::<u8>().copy_from_nonoverlapping(now.as_ptr(), now.len()) };
        remaining = next;
    }
}

/// Fills the segments with zeros.
pub(crate) fn zero(iovecs: &[libc::iovec]) {
    for iovec in iovecs {
        // SAFETY: as in `scatter`. Segments of own buffers are valid for writes too, and no
        // reference to them exists while an operation lasts.
        unsafe { iovec.iov_base.cast::<u8>().write_bytes(0, iovec.iov_len) };
    }
}
