//! Copies between pieces of a payload and memory of our own.
//!
//! The pieces come from [`PayloadTable::part`](crate::PayloadTable), whose promise an
//! operation keeps by holding their memory.
#![allow(unsafe_code, reason = "copies from and to memory that is shared with a client")]

/// Copies the pieces into `to`, as far as there is room.
pub(crate) fn gather(from: &[libc::iovec], to: &mut [u8]) {
    let mut rest = to;
    for piece in from {
        let len = piece.iov_len.min(rest.len());
        let (now, next) = rest.split_at_mut(len);
        // SAFETY: a piece of a payload may be read while its memory is held, and memory of
        // our own lies elsewhere.
        unsafe { now.as_mut_ptr().copy_from_nonoverlapping(piece.iov_base.cast(), len) };
        rest = next;
    }
}

/// Copies `from` into the pieces, as far as there is room.
pub(crate) fn scatter(from: &[u8], to: &[libc::iovec]) {
    let mut rest = from;
    for piece in to {
        let (now, next) = rest.split_at(piece.iov_len.min(rest.len()));
        // SAFETY: a piece of a destination may be written while its memory is held, and
        // memory of our own lies elsewhere.
        unsafe { piece.iov_base.cast::<u8>().copy_from_nonoverlapping(now.as_ptr(), now.len()) };
        rest = next;
    }
}

/// Fills the pieces with zeros.
pub(crate) fn zero(pieces: &[libc::iovec]) {
    for piece in pieces {
        // SAFETY: as in `scatter`; pieces of our own are written as well, and nobody holds
        // a reference to them while an operation lasts.
        unsafe { piece.iov_base.cast::<u8>().write_bytes(0, piece.iov_len) };
    }
}
