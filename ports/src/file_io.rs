//! Files of disk images, and asynchronous I/O on them.

use std::any::Any;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use suimon_image::{ByteRange, ImageFile};

use crate::{Allocation, AllocationExtent, ArmResult, FlushFailure};

/// Properties of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileProperties {
    /// Length in bytes when the file was opened.
    pub len: u64,
    /// True if I/O bypasses the host's page cache (`O_DIRECT`).
    pub is_direct: bool,
    /// Required alignment of offsets and lengths in bytes: a power of two, 1 if unrestricted.
    pub alignment: u32,
    /// True for a block device.
    pub is_block_device: bool,
    /// True if ranges of the file can be deallocated, and then read as zeros.
    pub can_punch_holes: bool,
    /// Identity of the file; `None` if the file system does not provide it.
    pub id: Option<FileId>,
}

/// Identity of a file on this host, independent of its names. Valid while its file system remains
/// mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// Device number of the file system.
    pub device: u64,
    /// Inode number; may be reused after the file is removed.
    pub inode: u64,
    /// Creation time in nanoseconds since 1970-01-01 UTC; 0 if the file system does not record it.
    pub created_unix_ns: u128,
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}-{:x}", self.device, self.inode, self.created_unix_ns)
    }
}

/// Modification time (mtime) of a file, with the resolution of its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime {
    /// Seconds since 1970-01-01 UTC; negative before.
    pub unix_s: i64,
    /// Nanoseconds within the second, below 1 000 000 000.
    pub ns: u32,
}

/// Open file of an image. Blocking access uses [`ImageFile`]; asynchronous access uses the
/// [`FileIo`] of a worker.
pub trait DiskFile: ImageFile + Send + Sync {
    /// Returns length, alignment and capabilities of the file.
    fn properties(&self) -> FileProperties;

    /// Returns the allocation status at the start of a range, and the number of bytes with the same
    /// status up to the end of the range. Bytes beyond the end of the file are unallocated.
    ///
    /// # Errors
    /// Fails with the error of the system call.
    fn allocation(&self, range: ByteRange) -> io::Result<AllocationExtent> {
        Ok(AllocationExtent { allocation: Allocation::Data, len: range.len() })
    }

    /// Returns the time of the file's last change. Blocks on the file system.
    ///
    /// # Errors
    /// The system cannot read the time, or the file has none.
    fn modified(&self) -> io::Result<FileTime> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets the time of the file's last change, durably. The change goes through the open, locked
    /// file. Blocks on the file system.
    ///
    /// # Errors
    /// The caller is neither the file's owner nor root ([`io::ErrorKind::PermissionDenied`]), or
    /// the file has no time.
    fn set_modified(&self, time: FileTime) -> io::Result<()> {
        let _ = time;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the record of failed flushes; `None` if flushes of this kind of file do not fail.
    fn flush_failure(&self) -> Option<&FlushFailure> {
        None
    }

    /// Returns the error of the first flush that has failed since the file was opened.
    fn first_flush_error(&self) -> Option<&str> {
        self.flush_failure()?.reason()
    }

    /// Removes unmodified contents of the file from the host's page cache, so that reads return
    /// what the device has. Pages that were written and not written back stay.
    ///
    /// # Errors
    /// Fails with the error of the system call.
    fn drop_page_cache(&self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the file as [`Any`], which [`FileIo`] downcasts to the concrete type.
    fn as_any(&self) -> &dyn Any;

    /// Returns the file as [`ImageFile`], for image formats.
    fn as_image_file(&self) -> &dyn ImageFile;
}

/// Handle of a file registered with a worker's [`FileIo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileSlot(pub u32);

/// Part of a request's payload.
#[derive(Clone, Copy)]
pub struct PayloadRange<'a> {
    /// Payload container, from [`DiskQueue::payloads`](crate::DiskQueue::payloads).
    pub payloads: &'a dyn Any,
    /// Tag of the request in its queue.
    pub tag: u32,
    /// Offset of the part within the payload, in bytes.
    pub offset: u64,
    /// Length of the part in bytes.
    pub len: u64,
}

/// Operation that a worker's [`FileIo`] performs on a file.
pub enum FileRequest<'a> {
    /// Reads from the file to a payload. Bytes beyond the end of the file read as zeros.
    Read {
        /// Offset in the file, in bytes.
        offset: u64,
        /// Payload that receives the data.
        destination: PayloadRange<'a>,
    },
    /// Writes a payload to the file.
    Write {
        /// Offset in the file, in bytes.
        offset: u64,
        /// Payload that contains the data.
        source: PayloadRange<'a>,
        /// True if data, and file metadata required to read it, must be durable at completion
        /// (`RWF_DSYNC`).
        is_durable: bool,
    },
    /// Reads a range, which is returned in [`FileCompletion::result`].
    ReadBytes(ByteRange),
    /// Writes a buffer to the file.
    WriteBytes {
        /// Offset in the file, in bytes.
        offset: u64,
        /// Data to write to the file.
        bytes: Vec<u8>,
    },
    /// Makes all previously completed writes durable.
    Flush,
    /// Deallocates a range whose contents are not needed. Nothing is written: where the file system
    /// or device cannot deallocate, the operation succeeds without effect.
    Discard(ByteRange),
    /// Zeroes a range of the file.
    Zero {
        /// Bytes of the file to zero.
        range: ByteRange,
        /// True if the range may be deallocated.
        may_unmap: bool,
        /// True if the operation fails with [`io::ErrorKind::Unsupported`] where zeros would have
        /// to be written.
        only_if_fast: bool,
    },
    /// Extends the file to at least `len`. Allocates space if the store has ample free space;
    /// otherwise leaves a hole.
    Extend {
        /// New length of the file in bytes.
        len: u64,
        /// End of the part that will be written soon, in bytes; at most `len`.
        required_end: u64,
    },
}

/// Completion of an operation submitted to a [`FileIo`].
#[derive(Debug)]
pub struct FileCompletion {
    /// Token passed to [`FileIo::submit`].
    pub token: u64,
    /// Data read by [`FileRequest::ReadBytes`], empty for other operations; or the error of the
    /// operation.
    pub result: io::Result<Vec<u8>>,
}

/// Asynchronous file I/O of one worker. Up to [`FileIo::capacity`] operations are in flight and
/// complete in any order. Payload memory stays valid while an operation refers to it.
pub trait FileIo: Send {
    /// Returns the maximum number of operations in flight.
    fn capacity(&self) -> usize;

    /// Registers a file, which the returned slot identifies.
    ///
    /// # Errors
    /// Fails if too many files are registered, or the file was opened by another implementation of
    /// [`DiskFile`].
    fn add_file(&mut self, file: Arc<dyn DiskFile>) -> io::Result<FileSlot>;

    /// Unregisters a file without operations in flight.
    fn remove_file(&mut self, slot: FileSlot);

    /// Queues an operation. Returns false, with nothing queued, if the capacity is exhausted.
    ///
    /// An operation that cannot be started for another reason completes with an error.
    fn submit(&mut self, file: FileSlot, op: FileRequest<'_>, token: u64) -> bool;

    /// Submits the queued operations to the system.
    ///
    /// # Errors
    /// Fails with the error of the system call. No operation is lost; the call may be repeated.
    fn submit_queued(&mut self) -> io::Result<()>;

    /// Appends completions and returns how many were appended.
    fn poll_completions(&mut self, completions: &mut Vec<FileCompletion>) -> usize;

    /// Returns true if operations completed during submission and their completions are available
    /// to [`FileIo::poll_completions`].
    fn has_immediate_completions(&self) -> bool {
        false
    }

    /// Returns the number of operations in flight.
    fn in_flight(&self) -> usize;

    /// Blocks until no operation is in flight, or until `timeout` has passed since the last
    /// completion. Returns true if no operation is in flight.
    fn drain(&mut self, timeout: Duration) -> bool {
        let _ = timeout;
        self.in_flight() == 0
    }

    /// Enables notification of completions on the wake descriptor.
    fn arm(&mut self) -> ArmResult;

    /// Returns the descriptor to wait on.
    fn wake_fd(&self) -> BorrowedFd<'_>;
}

/// Creates the file I/O of workers.
pub trait FileIoFactory: Send + Sync {
    /// Creates the file I/O of one worker.
    ///
    /// # Errors
    /// Fails with the error of the system call.
    fn open(&self) -> io::Result<Box<dyn FileIo>>;
}
