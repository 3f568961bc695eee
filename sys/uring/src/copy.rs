//! Copies between the pieces of a payload and buffers of this process.
//!
//! The pieces come from [`PayloadTable::part`](crate::PayloadTable). They are valid while the
//! operation holds the memory that contains them.
#![allow(unsafe_code, reason = "copies from and to memory that is shared with a client")]

/// Copies the pieces into `to`, up to its length.
pub(crate) fn gather(from: &[libc::iovec], to: &mut [u8]) {
    let mut rest = to;
    for piece in from {
        let len = piece.iov_len.min(rest.len());
        let (now, next) = rest.split_at_mut(len);
        // SAFETY: the piece is valid for reads while its memory is held, and `to` does not overlap
        // it.
        unsafe { now.as_mut_ptr().copy_from_nonoverlapping(piece.iov_base.cast(), len) };
        rest = next;
    }
}

/// Copies `from` into the pieces, up to their length.
pub(crate) fn scatter(from: &[u8], to: &[libc::iovec]) {
    let mut rest = from;
    for piece in to {
        let (now, next) = rest.split_at(piece.iov_len.min(rest.len()));
        // SAFETY: the piece is valid for writes while its memory is held, and `from` does not
        // overlap it.
        unsafe { piece.iov_base.cast::<u8>().copy_from_nonoverlapping(now.as_ptr(), now.len()) };
        rest = next;
    }
}

/// Fills the pieces with zeros.
pub(crate) fn zero(pieces: &[libc::iovec]) {
    for piece in pieces {
        // SAFETY: as in `scatter`. Pieces of own buffers are valid for writes too, and no reference
        // to them exists while an operation lasts.
        unsafe { piece.iov_base.cast::<u8>().write_bytes(0, piece.iov_len) };
    }
}
