//! Restriction of a ring to I/O on registered files.
//!
//! The kernel executes the operations in a ring's memory with the rights of the thread that enters
//! it, but without applying the thread's seccomp filter. A restricted ring cannot open files,
//! connect or start anything (`io_uring_register(2)`, `IORING_REGISTER_RESTRICTIONS`).

use std::io;

use io_uring::{IoUring, opcode, register::Restriction, squeue};

/// Opcode `IORING_REGISTER_FILES_UPDATE` (linux/io_uring.h).
const FILES_UPDATE: u8 = 6;

/// Restricts a ring that was created disabled to I/O on registered files, and enables it.
///
/// # Errors
/// The error of the system call.
pub(crate) fn restrict(ring: &IoUring) -> io::Result<()> {
    let operations = [
        opcode::Read::CODE,
        opcode::Readv::CODE,
        opcode::Write::CODE,
        opcode::Writev::CODE,
        opcode::Fsync::CODE,
        opcode::Fallocate::CODE,
    ];
    let mut restrictions: Vec<Restriction> =
        operations.into_iter().map(Restriction::sqe_op).collect();
    // Each operation refers to its file by an index in the ring's own table.
    restrictions.push(Restriction::sqe_flags_required(squeue::Flags::FIXED_FILE.bits()));
    restrictions.push(Restriction::register_op(FILES_UPDATE));
    ring.submitter().register_restrictions(&mut restrictions)?;
    ring.submitter().register_enable_rings()
}

#[cfg(test)]
mod tests {
    #![allow(unsafe_code, reason = "hands pointers to the kernel")]

    use io_uring::types::{Fd, Fixed};

    use super::*;

    /// Submits one operation and returns the kernel's result.
    fn submit_one(ring: &mut IoUring, entry: &squeue::Entry) -> i32 {
        // SAFETY: none of the operations in these tests refers to memory that does not live as
        // long.
        unsafe { ring.submission().push(entry) }.unwrap();
        ring.submit_and_wait(1).unwrap();
        ring.completion().next().unwrap().result()
    }

    #[test]
    fn a_ring_permits_only_file_io() {
        let mut ring = IoUring::builder().setup_r_disabled().build(4).unwrap();
        ring.submitter().register_files_sparse(1).unwrap();
        restrict(&ring).unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        ring.submitter().register_files_update(0, &[fd]).unwrap();
        let mut byte = [0_u8];
        let iovec = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let refused = -libc::EACCES;
        let read = opcode::Readv::new(Fixed(0), &raw const iovec, 1).build();
        assert_eq!(submit_one(&mut ring, &read), 0);
        let by_descriptor = opcode::Readv::new(Fd(fd), &raw const iovec, 1).build();
        assert_eq!(submit_one(&mut ring, &by_descriptor), refused);
        let path = c"/dev/null";
        let open = opcode::OpenAt::new(Fd(libc::AT_FDCWD), path.as_ptr()).build();
        assert_eq!(submit_one(&mut ring, &open), refused);
        let socket = opcode::Socket::new(libc::AF_UNIX, libc::SOCK_STREAM, 0).build();
        assert_eq!(submit_one(&mut ring, &socket), refused);
        let error = ring.submitter().register_eventfd(fd).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EACCES));
    }
}
