//! Files of disk images, and who carries out I/O on them without waiting.

use std::any::Any;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use suimon_image::{ByteRange, ImageFile};

use crate::{AllocatedExtent, Allocation, Wakeup};

/// What a file can do and how it wants to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Bytes when it was opened.
    pub len: u64,
    /// Whether I/O goes past the host's page cache.
    pub is_direct: bool,
    /// Offsets and lengths of I/O must be multiples of this; a power of two, 1 if any will
    /// do.
    pub alignment: u32,
    /// Whether it is a block device.
    pub is_block_device: bool,
    /// Whether space inside of it can be given back.
    pub can_punch: bool,
    /// Which file it is; unknown to file systems that do not tell.
    pub id: Option<FileId>,
}

/// Tells a file from all others of this host, whatever their names are and for as long as their file
/// systems stay mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// Number of the file system's device.
    pub device: u64,
    /// Number of the file there, which another one may get when this one was removed.
    pub inode: u64,
    /// When the file was made, in nanoseconds since 1970-01-01 UTC; 0 if the file system does not
    /// record it.
    pub born_ns: u128,
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}-{:x}", self.device, self.inode, self.born_ns)
    }
}

/// Time of a file's last change (mtime), as precise as its file system has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime {
    /// Seconds since 1970-01-01 UTC; negative before.
    pub unix_s: i64,
    /// Nanoseconds of the second, below 1 000 000 000.
    pub ns: u32,
}

/// An open file of an image. What can be waited for is done through [`ImageFile`]; the
/// rest through the [`FileIo`] of a processor.
pub trait DiskFile: ImageFile + Send + Sync {
    /// What it can do.
    fn facts(&self) -> FileFacts;

    /// Whether what is at the beginning of a range has a place on the file system, and of
    /// how many bytes, up to the range's end, the same is true. What is behind the file's
    /// end has none.
    ///
    /// # Errors
    /// The system said no.
    fn allocation(&self, range: ByteRange) -> io::Result<AllocatedExtent> {
        Ok(AllocatedExtent { allocation: Allocation::Data, len: range.len() })
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

    /// Itself, for [`FileIo`], which knows the type.
    fn as_any(&self) -> &dyn Any;

    /// Itself, for images.
    fn as_image_file(&self) -> &dyn ImageFile;
}

/// A file that a processor's [`FileIo`] has been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileSlot(pub u32);

/// Part of a request's payload.
#[derive(Clone, Copy)]
pub struct PayloadPart<'a> {
    /// As [`DiskQueue::payloads`](crate::DiskQueue::payloads) has it.
    pub payloads: &'a dyn Any,
    /// The request.
    pub tag: u32,
    /// The part's first byte within the payload.
    pub from: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// One operation on a file.
pub enum FileOp<'a> {
    /// The file's bytes from `offset` on go to a payload. Behind the file's end are zeros.
    Read {
        /// Where in the file.
        offset: u64,
        /// Where to.
        to: PayloadPart<'a>,
    },
    /// A payload goes to the file.
    Write {
        /// Where in the file.
        offset: u64,
        /// Where from.
        from: PayloadPart<'a>,
        /// It is durable, with all the file's metadata that leads to it, when it is done.
        is_durable: bool,
    },
    /// A range of the file comes back with the completion.
    ReadBytes(ByteRange),
    /// Bytes go to the file.
    WriteBytes {
        /// Where in the file.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// Whatever was completed before is durable when this is done.
    Flush,
    /// A range reads as zeros.
    Zero {
        /// Which.
        range: ByteRange,
        /// Its space may be given back.
        may_unmap: bool,
    },
    /// Makes the file at least this long. Allocates space as far as the store has plenty, and leaves
    /// a hole otherwise.
    Extend {
        /// New length in bytes.
        len: u64,
        /// End of the part that will be written soon, in bytes; at most `len`.
        needed: u64,
    },
}

/// An operation has ended.
#[derive(Debug)]
pub struct FileDone {
    /// As given with it.
    pub token: u64,
    /// What was read by [`FileOp::ReadBytes`]; else empty.
    ///
    /// # Errors
    /// What the system said.
    pub outcome: io::Result<Vec<u8>>,
}

/// Carries out operations on files for one processor, any number at once up to its
/// capacity, in any order. Memory of payloads is kept while an operation needs it.
pub trait FileIo: Send {
    /// How many operations can be under way.
    fn capacity(&self) -> usize;

    /// Makes a file known.
    ///
    /// # Errors
    /// There are too many, or it is no file of this system.
    fn add_file(&mut self, file: Arc<dyn DiskFile>) -> io::Result<FileSlot>;

    /// Forgets a file of which no operation is under way.
    fn remove_file(&mut self, slot: FileSlot);

    /// Begins an operation. `false`: too many are under way, and nothing was begun.
    ///
    /// What cannot be begun for another reason ends as one that failed.
    fn submit(&mut self, file: FileSlot, op: FileOp<'_>, token: u64) -> bool;

    /// Hands what was begun to the system.
    ///
    /// # Errors
    /// The system said no; nothing is lost, call it again.
    fn kick(&mut self) -> io::Result<()>;

    /// Appends what has ended and returns how many.
    fn poll_done(&mut self, done: &mut Vec<FileDone>) -> usize;

    /// Whether operations have ended while they were begun, because they needed no waiting, and
    /// are there for [`FileIo::poll_done`].
    fn has_ended_at_once(&self) -> bool {
        false
    }

    /// Operations that are under way.
    fn under_way(&self) -> usize;

    /// Waits until nothing is under way, for at most this long after something has ended
    /// last. Whether nothing is.
    fn drain(&mut self, patience: Duration) -> bool {
        let _ = patience;
        self.under_way() == 0
    }

    /// Asks for a wake-up when something ends.
    fn arm(&mut self) -> Wakeup;

    /// The descriptor to wait on.
    fn wake_fd(&self) -> BorrowedFd<'_>;
}

/// Where processors' I/O comes from.
pub trait FileIoSource: Send + Sync {
    /// I/O for a processor that has none yet.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self) -> io::Result<Box<dyn FileIo>>;
}
