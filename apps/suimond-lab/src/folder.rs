//! Access to a folder that another, untrusted user writes to.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat, flock, fstat,
    open, openat2, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use suimon_contract::{ApiError, ErrorCode};

/// Restricts path resolution to the folder, without symbolic links (openat2(2), Linux 5.6).
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Largest number of entries read from one folder.
const ENTRIES_MAX: usize = 10_000;

/// Identity and modification state of a file: inode, size in bytes, and modification time in s and
/// ns.
pub(super) type FileStamp = (u64, u64, i64, i64);

/// Folder, identified by an open descriptor.
pub(super) struct Folder {
    path: PathBuf,
    opened: OwnedFd,
}

impl Folder {
    /// Opens the folder at a path configured by the administrator; `None` if it does not exist.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, ApiError> {
        let opened = open(path, FOLDER, Mode::empty());
        Self::from_opened(path.to_owned(), opened)
    }

    /// Opens a subfolder; `None` if it does not exist.
    pub(super) fn open_subfolder(&self, name: &str) -> Result<Option<Self>, ApiError> {
        let opened = openat2(&self.opened, name, FOLDER, Mode::empty(), BENEATH);
        match opened {
            Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
            _ => Self::from_opened(self.path(name), opened),
        }
    }

    fn from_opened(
        path: PathBuf,
        opened: rustix::io::Result<OwnedFd>,
    ) -> Result<Option<Self>, ApiError> {
        match opened {
            Ok(opened) => Ok(Some(Self { path, opened })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(host_error(&path, errno)),
        }
    }

    /// Returns the path of a file in this folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Reads a whole file; `None` if it does not exist.
    ///
    /// # Errors
    /// The path is not a regular file, the file has more than `bytes_max` bytes, or it cannot be
    /// read.
    pub(super) fn read_file(
        &self,
        name: &str,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, ApiError> {
        let path = self.path(name);
        // Without `NONBLOCK`, opening a pipe would block.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = match openat2(&self.opened, name, flags, Mode::empty(), BENEATH) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::XDEV) => {
                return Err(file_error(
                    &path,
                    "is a symbolic link, which is not followed; remove it",
                ));
            }
            Err(errno) => return Err(host_error(&path, errno)),
        };
        let stat = fstat(&opened).map_err(|errno| host_error(&path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(file_error(&path, "is not a regular file; remove it"));
        }
        let mut bytes = Vec::new();
        let read = File::from(opened).take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| file_error(&path, format!("cannot be read: {error}")))?;
        if bytes.len() as u64 > bytes_max {
            let text = format!("exceeds the limit of {bytes_max} bytes");
            return Err(file_error(&path, text));
        }
        Ok(Some(bytes))
    }

    /// Returns true if an entry with this name exists.
    pub(super) fn contains_entry(&self, name: &str) -> Result<bool, ApiError> {
        self.stat(name).map(|stat| stat.is_some())
    }

    /// Returns the stamp of a file; `None` if it does not exist.
    pub(super) fn file_stamp(&self, name: &str) -> Result<Option<FileStamp>, ApiError> {
        let stat = self.stat(name)?;
        Ok(stat.map(|stat| {
            let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
            (stat.st_ino, stat.st_size.unsigned_abs(), stat.st_mtime, nanoseconds)
        }))
    }

    fn stat(&self, name: &str) -> Result<Option<Stat>, ApiError> {
        match statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(host_error(&self.path(name), errno)),
        }
    }

    /// Returns the names of entries in no particular order.
    pub(super) fn entry_names(&self) -> Result<Vec<String>, ApiError> {
        let failed = |errno| host_error(&self.path, errno);
        let entries = rustix::fs::Dir::read_from(&self.opened).map_err(failed)?;
        let mut names = Vec::new();
        for entry in entries.take(ENTRIES_MAX) {
            let entry = entry.map_err(failed)?;
            // Names that are not UTF-8 are ignored.
            if let Ok(name) = entry.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Returns true if another program has locked the folder: a run is in progress in a run's
    /// folder, or a worker carries out requests in the folder of results.
    pub(super) fn is_locked(&self) -> Result<bool, ApiError> {
        // Opened again, since a lock belongs to the open file description.
        let opened = openat2(&self.opened, ".", FOLDER, Mode::empty(), BENEATH);
        let opened = opened.map_err(|errno| host_error(&self.path, errno))?;
        match flock(&opened, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(host_error(&self.path, errno)),
        }
    }

    /// Creates a file atomically. Returns false if a file with this name exists.
    pub(super) fn write_new(&self, name: &str, bytes: &[u8]) -> Result<bool, ApiError> {
        let path = self.path(name);
        let unfinished = format!("{name}.part");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let opened = openat2(&self.opened, &unfinished, flags, Mode::RUSR | Mode::WUSR, BENEATH);
        let opened = opened.map_err(|errno| host_error(&self.path(&unfinished), errno))?;
        let written = File::from(opened).write_all(bytes);
        written.map_err(|error| file_error(&path, format!("cannot be written: {error}")))?;
        let (folder, flags) = (&self.opened, RenameFlags::NOREPLACE);
        match renameat_with(folder, &unfinished, folder, name, flags) {
            Ok(()) => Ok(true),
            Err(errno) => {
                self.remove(&unfinished)?;
                if errno == Errno::EXIST { Ok(false) } else { Err(host_error(&path, errno)) }
            }
        }
    }

    /// Removes a file. A missing file is not an error.
    pub(super) fn remove(&self, name: &str) -> Result<(), ApiError> {
        match unlinkat(&self.opened, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(host_error(&self.path(name), errno)),
        }
    }
}

fn host_error(path: &Path, errno: Errno) -> ApiError {
    file_error(path, format!("the host rejected the operation: {}", io::Error::from(errno)))
}

/// Returns the error for an invalid or unreadable file of the folder.
pub(crate) fn file_error(path: &Path, text: impl Into<String>) -> ApiError {
    let mut error = ApiError::new(ErrorCode::HostError, text).with_resource("lab");
    error.file = Some(path.display().to_string());
    error
}
