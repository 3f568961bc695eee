//! Submission queue entries of operations (`io_uring_enter(2)`).

use io_uring::{opcode, squeue, types};

use crate::aligned::AlignedBytes;
use crate::operation::{Operation, OperationKind, ZEROS_BYTES};

/// Creates the submission queue entry for an operation's next step. The entry points to memory held
/// by the operation, and to `zeros`.
pub(crate) fn submission_entry(operation: &Operation, zeros: &AlignedBytes) -> squeue::Entry {
    let file = types::Fixed(operation.file.0);
    let offset = operation.next_offset();
    let remaining = operation.len.saturating_sub(operation.done_bytes);
    match operation.kind {
        OperationKind::Read => read(operation, file, offset),
        OperationKind::Write { is_durable } => {
            let flags = if is_durable { libc::RWF_DSYNC } else { 0 };
            write(operation, file, offset, flags)
        }
        OperationKind::Flush => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
        OperationKind::Discard | OperationKind::Zero { .. } => {
            let may_unmap = !matches!(operation.kind, OperationKind::Zero { may_unmap: false, .. });
            let zero =
                if may_unmap { libc::FALLOC_FL_PUNCH_HOLE } else { libc::FALLOC_FL_ZERO_RANGE };
            let mode = zero | libc::FALLOC_FL_KEEP_SIZE;
            opcode::Fallocate::new(file, remaining).offset(offset).mode(mode).build()
        }
        OperationKind::WriteZeros => {
            let now = remaining.min(ZEROS_BYTES) as u32;
            opcode::Write::new(file, zeros.as_slice().as_ptr(), now).offset(offset).build()
        }
        OperationKind::Append { .. } => {
            let now = remaining.min(ZEROS_BYTES) as u32;
            let zeros = opcode::Write::new(file, zeros.as_slice().as_ptr(), now);
            // The file system determines the offset.
            zeros.offset(offset).rw_flags(libc::RWF_APPEND).build()
        }
        OperationKind::Extend { .. } | OperationKind::ExtendByHole => {
            opcode::Fallocate::new(file, remaining).offset(offset).build()
        }
    }
}

fn read(operation: &Operation, file: types::Fixed, offset: u64) -> squeue::Entry {
    match operation.single_buffer() {
        Some((pointer, len)) => opcode::Read::new(file, pointer, len).offset(offset).build(),
        None => {
            let (iovecs, count) = operation.iovec_list();
            opcode::Readv::new(file, iovecs, count).offset(offset).build()
        }
    }
}

fn write(operation: &Operation, file: types::Fixed, offset: u64, flags: i32) -> squeue::Entry {
    match operation.single_buffer() {
        Some((pointer, len)) => {
            opcode::Write::new(file, pointer, len).offset(offset).rw_flags(flags).build()
        }
        None => {
            let (iovecs, count) = operation.iovec_list();
            opcode::Writev::new(file, iovecs, count).offset(offset).rw_flags(flags).build()
        }
    }
}
