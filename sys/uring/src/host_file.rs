//! File or block device that contains an image.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, AtFlags, FallocateFlags, FileType, Mode, OFlags, SeekFrom, StatxFlags};
use rustix::io::Errno;
use suimon_image::{ByteRange, FileError, ImageFile};
use suimon_ports::{
    Allocation, AllocationExtent, DiskFile, FileId, FileProperties, FileTime, FlushFailure,
};

use crate::aligned::AlignedBytes;
use crate::direct_alignment::direct_alignment;
use crate::file_system::{FUSE, RAMFS, TMPFS};
use crate::holes::{can_punch_holes, modification_time, set_modification_time};
use crate::image_lock::unlock;
use crate::mapped_file::MappedFile;
use crate::store_free_space::StoreFreeSpace;

/// Maximum number of bytes per system call of blocking operations.
const CALL_BYTES_MAX: u64 = 1 << 20;

/// Permissions of new image files: the daemon's user only.
pub(crate) const NEW_FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Intended access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Read access without write access.
    Read,
    /// Read and write access to an existing file.
    Write,
    /// Read and write access to a new file, which must not exist.
    Create,
}

/// File or block device that contains an image. I/O is direct if the device's alignment permits it
/// for the image's unit; otherwise all I/O uses the page cache. The two are never mixed, because
/// cached and direct writes of neighbouring bytes would overwrite each other.
#[derive(Debug)]
pub struct HostFile {
    fd: OwnedFd,
    properties: FileProperties,
    memory_alignment: u32,
    /// True if the file has image locks, which the drop releases.
    is_locked: bool,
    is_in_memory: bool,
    /// Mapping of a file in memory; `None` for other files.
    mapped: Option<MappedFile>,
    /// Free space of the store that contains the file; `None` outside a store.
    capacity: Option<Arc<StoreFreeSpace>>,
    flush_failure: FlushFailure,
    /// True once the file system has refused to allocate space.
    cannot_allocate: AtomicBool,
}

impl HostFile {
    /// Opens a file or block device. All I/O must be aligned to `unit` bytes, a power of two.
    ///
    /// # Errors
    /// The error of the system call; [`io::ErrorKind::InvalidInput`] if `path` is neither a regular
    /// file nor a block device.
    pub fn open(path: &Path, access: FileAccess, unit: u32) -> io::Result<Self> {
        let flags = OFlags::CLOEXEC
            | match access {
                FileAccess::Read => OFlags::RDONLY,
                FileAccess::Write => OFlags::RDWR,
                FileAccess::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            };
        // Opening a FIFO must not block.
        let plain = rustix::fs::open(path, flags | OFlags::NONBLOCK, NEW_FILE_MODE)?;
        Self::from_fd(plain, access, unit)
    }

    /// Creates the file from a descriptor that was opened with `O_NONBLOCK`.
    pub(crate) fn from_fd(plain: OwnedFd, access: FileAccess, unit: u32) -> io::Result<Self> {
        let opened = rustix::fs::fstat(&plain)?;
        let is_block_device = match FileType::from_raw_mode(opened.st_mode) {
            FileType::RegularFile => false,
            FileType::BlockDevice => true,
            _ => {
                let reason = "neither a file nor a block device";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
        };
        let len = rustix::fs::seek(&plain, SeekFrom::End(0))?;
        forgo_access_times(&plain);
        let system = rustix::fs::fstatfs(&plain)?.f_type as u64;
        let direct = Self::direct(&plain, unit, system)?;
        let properties = FileProperties {
            len,
            is_direct: direct.is_some(),
            alignment: direct.map_or(1, |direct| direct.offset),
            is_block_device,
            can_punch_holes: access != FileAccess::Read
                && can_punch_holes(&plain, &opened, system, len),
            id: file_id(&plain),
        };
        let memory_alignment = direct.map_or(1, |direct| direct.memory);
        let is_in_memory = !is_block_device && [TMPFS, RAMFS].contains(&system);
        let mapped = is_in_memory
            .then(|| MappedFile::new(plain.as_fd(), access != FileAccess::Read, len))
            .flatten();
        Ok(Self {
            fd: plain,
            properties,
            memory_alignment,
            is_locked: false,
            is_in_memory,
            mapped,
            capacity: None,
            flush_failure: FlushFailure::default(),
            cannot_allocate: AtomicBool::new(false),
        })
    }

    /// Sets the counter of free space of the store that contains the file.
    pub(crate) fn with_store_free_space(mut self, store_room: Arc<StoreFreeSpace>) -> Self {
        self.capacity = Some(store_room);
        self
    }

    /// Returns up to which offset in bytes an extension allocates space. The file ends at `end` and
    /// becomes `len` bytes long; the space up to `required` is needed soon. Returns `len`,
    /// `required` or `end`, depending on the free space of the store.
    pub(crate) fn claim_space(&self, end: u64, required: u64, len: u64) -> u64 {
        self.capacity.as_ref().map_or(len, |store_room| store_room.claim(end, required, len))
    }

    /// Returns false if the file system has refused to allocate space. NFS before 4.2 and some FUSE
    /// file systems do.
    pub(crate) fn can_allocate(&self) -> bool {
        !self.cannot_allocate.load(Ordering::Relaxed)
    }

    /// Records that the file system cannot allocate space.
    pub(crate) fn record_allocation_refused(&self) {
        self.cannot_allocate.store(true, Ordering::Relaxed);
    }

    /// Records that the file has image locks, which the drop releases.
    pub(crate) fn with_image_locks(mut self) -> Self {
        self.is_locked = true;
        self
    }

    /// Enables direct I/O on this descriptor if `unit` is a multiple of the required alignment.
    /// Returns the alignment, or `None` if all I/O uses the page cache. `system` is the magic
    /// number of the file system.
    ///
    /// FUSE is never used with direct I/O: if a file system that opens files with `FOPEN_DIRECT_IO`
    /// writes only part of a request, the rest is missing in the file although io_uring reports
    /// success (observed with Linux 6.18).
    fn direct(
        fd: &OwnedFd,
        unit: u32,
        system: u64,
    ) -> io::Result<Option<crate::direct_alignment::DirectAlignment>> {
        let flags = rustix::fs::fcntl_getfl(fd)? - OFlags::NONBLOCK;
        if system != FUSE && rustix::fs::fcntl_setfl(fd, flags | OFlags::DIRECT).is_ok() {
            let alignment = direct_alignment(fd)?.filter(|direct| unit % direct.offset == 0);
            if alignment.is_some() {
                return Ok(alignment);
            }
        }
        rustix::fs::fcntl_setfl(fd, flags - OFlags::DIRECT)?;
        Ok(None)
    }

    /// Returns true if the file is in memory (tmpfs, ramfs).
    pub(crate) fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    /// Returns the mapping of the file, if it has one.
    #[inline]
    pub(crate) fn mapped_file(&self) -> Option<&MappedFile> {
        self.mapped.as_ref()
    }

    /// Records in the mapping that the kernel has written to a range of the file (bytes).
    pub(crate) fn handle_written(&self, offset: u64, len: u64) {
        if let Some(mapped) = &self.mapped {
            mapped.handle_written(offset, len);
        }
    }

    /// Records in the mapping that a range of the file (bytes) is about to be zeroed and may become
    /// a hole.
    pub(crate) fn handle_zeroing(&self, offset: u64, len: u64) {
        if let Some(mapped) = &self.mapped {
            mapped.handle_zeroing(offset, len);
        }
    }

    /// Returns the alignment of memory for direct I/O in bytes.
    pub(crate) fn memory_alignment(&self) -> u32 {
        self.memory_alignment
    }

    /// Flushes the file with `flush`. Fails without a flush if an earlier one has failed.
    fn sync(&self, flush: impl Fn(&OwnedFd) -> rustix::io::Result<()>) -> io::Result<()> {
        self.flush_failure.check()?;
        loop {
            match flush(&self.fd) {
                Err(Errno::INTR) => {}
                result => {
                    return result
                        .map_err(io::Error::from)
                        .inspect_err(|error| self.flush_failure.record(error));
                }
            }
        }
    }

    /// Returns offset and length, in bytes, of the smallest range of whole units that contains a
    /// range of bytes.
    fn covering_units(&self, offset: u64, len: u64) -> (u64, u64) {
        let unit = u64::from(self.properties.alignment);
        let start = offset - offset % unit;
        let end = offset.saturating_add(len);
        (start, end.div_ceil(unit).saturating_mul(unit))
    }

    /// Reads whole units. Returns the number of bytes read, which is smaller than `units` at the
    /// end of the file.
    fn read_units(&self, offset: u64, units: &mut [u8]) -> io::Result<usize> {
        let mut read_bytes = 0;
        while let Some(rest) = units.get_mut(read_bytes..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(&self.fd, rest, offset + read_bytes as u64) {
                Ok(0) => break,
                Ok(read) => read_bytes += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            // The remainder of the unit is beyond the end of the file.
            if read_bytes as u64 % u64::from(self.properties.alignment) != 0 {
                break;
            }
        }
        Ok(read_bytes)
    }

    fn write_units(&self, offset: u64, units: &[u8]) -> io::Result<()> {
        let mut written_bytes = 0;
        while let Some(rest) = units.get(written_bytes..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pwrite(&self.fd, rest, offset + written_bytes as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.handle_written(offset + written_bytes as u64, written as u64);
                    written_bytes += written;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Writes zeros to a range, because the file system cannot zero it.
    fn write_zeros(&self, offset: u64, len: u64) -> Result<(), FileError> {
        let zeros = vec![0; usize::try_from(len.min(CALL_BYTES_MAX)).unwrap_or(0)];
        let mut written_bytes = 0;
        while written_bytes < len {
            let now = usize::try_from((len - written_bytes).min(CALL_BYTES_MAX)).unwrap_or(0);
            self.write_at(offset + written_bytes, zeros.get(..now).unwrap_or(&zeros))?;
            written_bytes += now as u64;
        }
        Ok(())
    }
}

/// Disables updates of the access time, which would delay requests (`O_NOATIME`). Has no effect if
/// the process is neither privileged nor the file's owner.
fn forgo_access_times(fd: &OwnedFd) {
    if let Ok(flags) = rustix::fs::fcntl_getfl(fd) {
        let _ = rustix::fs::fcntl_setfl(fd, flags | OFlags::NOATIME);
    }
}

impl Drop for HostFile {
    fn drop(&mut self) {
        if self.is_locked {
            unlock(&self.fd);
        }
    }
}

/// Returns the identity of a file (`statx(2)`); `None` if the file system does not report it.
fn file_id(fd: &OwnedFd) -> Option<FileId> {
    let status =
        rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME)
            .ok()?;
    let device = rustix::fs::makedev(status.stx_dev_major, status.stx_dev_minor);
    let has_birth = status.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = status.stx_btime;
    let seconds = if has_birth { u128::try_from(born.tv_sec).unwrap_or(0) } else { 0 };
    let nanoseconds = if has_birth { u128::from(born.tv_nsec) } else { 0 };
    Some(FileId {
        device,
        inode: status.stx_ino,
        created_unix_ns: seconds * 1_000_000_000 + nanoseconds,
    })
}

impl AsFd for HostFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl DiskFile for HostFile {
    fn properties(&self) -> FileProperties {
        self.properties
    }

    /// Uses `lseek(2)` with `SEEK_DATA` and `SEEK_HOLE`, which may read the file system's metadata.
    /// A block device is entirely data.
    fn allocation(&self, range: ByteRange) -> io::Result<AllocationExtent> {
        let data = AllocationExtent { allocation: Allocation::Data, len: range.len() };
        if self.properties.is_block_device {
            return Ok(data);
        }
        let len_to = |end: u64| end.min(range.end()).saturating_sub(range.offset());
        match rustix::fs::seek(&self.fd, SeekFrom::Data(range.offset())) {
            Ok(first) if first > range.offset() => {
                Ok(AllocationExtent { allocation: Allocation::Hole, len: len_to(first) })
            }
            Ok(_) => {
                let end = rustix::fs::seek(&self.fd, SeekFrom::Hole(range.offset()))?;
                Ok(AllocationExtent { len: len_to(end), ..data })
            }
            // There is no data beyond the offset.
            Err(Errno::NXIO) => Ok(AllocationExtent { allocation: Allocation::Hole, ..data }),
            // The file system does not report holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(data),
            Err(errno) => Err(errno.into()),
        }
    }

    fn flush_failure(&self) -> Option<&FlushFailure> {
        Some(&self.flush_failure)
    }

    /// Uses posix_fadvise(2). No effect for direct I/O, which leaves nothing in the cache, and for
    /// files in memory, which exist only there.
    fn drop_page_cache(&self) -> io::Result<()> {
        if self.properties.is_direct || self.is_in_memory {
            return Ok(());
        }
        Ok(rustix::fs::fadvise(&self.fd, 0, None, Advice::DontNeed)?)
    }

    fn modified(&self) -> io::Result<FileTime> {
        Ok(modification_time(&rustix::fs::fstat(&self.fd)?))
    }

    fn set_modified(&self, time: FileTime) -> io::Result<()> {
        set_modification_time(&self.fd, time)?;
        // fdatasync(2) does not write the modification time.
        self.sync(|fd| rustix::fs::fsync(fd))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_image_file(&self) -> &dyn ImageFile {
        self
    }
}

impl ImageFile for HostFile {
    fn len(&self) -> Result<u64, FileError> {
        Ok(rustix::fs::seek(&self.fd, SeekFrom::End(0)).map_err(io::Error::from)?)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        let mut position = offset;
        for chunk in bytes.chunks_mut(CALL_BYTES_MAX as usize) {
            let (start, end) = self.covering_units(position, chunk.len() as u64);
            let mut units = AlignedBytes::zeroed(usize::try_from(end - start).unwrap_or(0));
            let read = self.read_units(start, units.as_mut_slice())?;
            let skip = usize::try_from(position - start).unwrap_or(0);
            let available = units.as_slice().get(..read).unwrap_or_default();
            let Some(source) = available.get(skip..skip.saturating_add(chunk.len())) else {
                return Err(FileError::BeyondEnd { len: start + read as u64, offset: position });
            };
            chunk.copy_from_slice(source);
            position += chunk.len() as u64;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let mut position = offset;
        for chunk in bytes.chunks(CALL_BYTES_MAX as usize) {
            let len = chunk.len() as u64;
            let (start, end) = self.covering_units(position, len);
            let mut units = AlignedBytes::zeroed(usize::try_from(end - start).unwrap_or(0));
            let is_whole = (start, end) == (position, position + len);
            let file_len = if is_whole { u64::MAX } else { self.len()? };
            if !is_whole {
                self.read_units(start, units.as_mut_slice())?;
            }
            let skip = usize::try_from(position - start).unwrap_or(0);
            if let Some(target) = units.as_mut_slice().get_mut(skip..skip + chunk.len()) {
                target.copy_from_slice(chunk);
            }
            self.write_units(start, units.as_slice())?;
            if file_len < end && !self.properties.is_block_device {
                self.set_len(file_len.max(position + len))?;
            }
            position += len;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        if let Some(mapped) = &self.mapped {
            mapped.handle_len(len);
        }
        Ok(rustix::fs::ftruncate(&self.fd, len).map_err(io::Error::from)?)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        let end = offset.saturating_add(len).min(ImageFile::len(self)?);
        let len = end.saturating_sub(offset);
        if len == 0 {
            return Ok(());
        }
        self.handle_zeroing(offset, len);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.fd, flags, offset, len) {
            Ok(()) => Ok(()),
            // The file system does not support the operation, or not for units of this size.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.write_zeros(offset, len),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }

    fn flush(&self) -> Result<(), FileError> {
        Ok(self.sync(|fd| rustix::fs::fdatasync(fd))?)
    }
}
