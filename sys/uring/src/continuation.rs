//! Next step of an operation after the kernel has completed one.

use std::io;

use suimon_ports::DiskFile;

use crate::host_file::HostFile;
use crate::operation::{Operation, OperationKind};

/// What an operation does after the kernel has completed one of its steps.
pub(crate) enum Next {
    /// The operation submits another step.
    SubmitStep,
    /// The operation has ended with this result.
    End(io::Result<()>),
}

/// Determines whether an operation that extends a file by appending zeros continues: it ends when
/// the file has the new length.
pub(crate) fn next_append_step(operation: &mut Operation, file: Option<&HostFile>) -> Next {
    let Some(file) = file else { return Next::End(Err(io::ErrorKind::NotFound.into())) };
    file.record_allocation_refused();
    match file_end(file) {
        Ok(end) if operation.handle_end(end) => Next::End(Ok(())),
        Ok(_) => Next::SubmitStep,
        Err(error) => Next::End(Err(error)),
    }
}

/// Determines the next step of an operation. `result` is the kernel's result of the previous step:
/// a number of bytes, or a negative error number.
pub(crate) fn next_step(operation: &mut Operation, result: i32) -> Next {
    let Ok(moved) = u64::try_from(result) else {
        let error = io::Error::from_raw_os_error(-result);
        let cannot = matches!(-result, libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL);
        let is_full = matches!(-result, libc::ENOSPC | libc::EDQUOT);
        return match operation.kind {
            _ if matches!(-result, libc::EINTR | libc::EAGAIN) => Next::SubmitStep,
            OperationKind::Discard if cannot => Next::End(Ok(())),
            OperationKind::Zero { only_if_fast: false, .. } if cannot => {
                operation.kind = OperationKind::WriteZeros;
                Next::SubmitStep
            }
            OperationKind::Zero { .. } if cannot => {
                Next::End(Err(io::ErrorKind::Unsupported.into()))
            }
            OperationKind::Extend { .. } | OperationKind::ExtendByHole if cannot => {
                operation.continue_by_appending();
                Next::SubmitStep
            }
            OperationKind::Extend { .. } if is_full => {
                operation.handle_extended(false);
                Next::SubmitStep
            }
            _ => Next::End(Err(error)),
        };
    };
    let is_complete = match operation.kind {
        OperationKind::Flush
        | OperationKind::Discard
        | OperationKind::Zero { .. }
        | OperationKind::ExtendByHole => true,
        OperationKind::Extend { .. } => operation.handle_extended(true),
        OperationKind::Read => {
            operation.handle_transferred(moved) || operation.handle_end_of_file(moved)
        }
        OperationKind::Write { .. } | OperationKind::WriteZeros | OperationKind::Append { .. }
            if moved == 0 =>
        {
            return Next::End(Err(io::ErrorKind::WriteZero.into()));
        }
        OperationKind::Write { .. } | OperationKind::WriteZeros => {
            operation.handle_transferred(moved)
        }
        // The caller compares the length of the file.
        OperationKind::Append { .. } => false,
    };
    if is_complete { Next::End(Ok(())) } else { Next::SubmitStep }
}

/// Returns the current length of a file, or the length of a block device when it was opened, in
/// bytes.
pub(crate) fn file_end(file: &HostFile) -> io::Result<u64> {
    if file.properties().is_block_device {
        return Ok(file.properties().len);
    }
    Ok(u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use suimon_ports::FileSlot;

    use super::*;

    fn extending(required: u64, len: u64) -> Operation {
        let offset = 1 << 20;
        Operation {
            file: FileSlot(0),
            token: 0,
            kind: OperationKind::Extend { required_len: required, len },
            offset,
            len: len - offset,
            unit: 4096,
            done_bytes: 0,
            iovecs: Vec::new(),
            buffer: None,
            bounce_iovecs: Vec::new(),
            memory: None,
        }
    }

    #[test]
    fn an_extension_first_omits_space_ahead_and_then_leaves_a_hole() {
        let mut operation = extending(3 << 20, 9 << 20);
        assert!(matches!(next_step(&mut operation, -libc::ENOSPC), Next::SubmitStep));
        assert_eq!((operation.offset, operation.len), (1 << 20, 2 << 20));
        // The remainder of the length becomes a hole.
        assert!(matches!(next_step(&mut operation, 0), Next::SubmitStep));
        assert!(matches!(operation.kind, OperationKind::ExtendByHole));
        assert_eq!((operation.offset, operation.len), ((9 << 20) - 4096, 4096));
        let mut operation = extending(3 << 20, 9 << 20);
        assert!(matches!(next_step(&mut operation, -libc::ENOSPC), Next::SubmitStep));
        assert!(matches!(next_step(&mut operation, -libc::ENOSPC), Next::SubmitStep));
        assert!(matches!(operation.kind, OperationKind::ExtendByHole));
        assert!(matches!(next_step(&mut operation, -libc::ENOSPC), Next::End(Err(_))));
        let mut operation = extending(3 << 20, 9 << 20);
        assert!(matches!(next_step(&mut operation, 0), Next::End(Ok(()))));
    }

    #[test]
    fn where_nothing_can_be_allocated_zeros_are_appended() {
        let mut operation = extending(1 << 20, 9 << 20);
        assert!(matches!(next_step(&mut operation, -libc::EOPNOTSUPP), Next::SubmitStep));
        assert!(matches!(operation.kind, OperationKind::Append { .. }));
        assert!(matches!(next_step(&mut operation, 4096), Next::SubmitStep));
        // Another operation has written to the range meanwhile.
        assert!(!operation.handle_end(4 << 20));
        assert_eq!((operation.next_offset(), operation.len), (4 << 20, 5 << 20));
        assert!(operation.handle_end(9 << 20));
        // This also applies if only the last unit was to be allocated.
        let mut operation = extending(1 << 20, 9 << 20);
        operation.handle_extended(false);
        assert!(matches!(next_step(&mut operation, -libc::EOPNOTSUPP), Next::SubmitStep));
        assert_eq!(operation.kind, OperationKind::Append { len: 9 << 20 });
        assert!(matches!(next_step(&mut operation, 0), Next::End(Err(_))));
    }
}
