//! A folder that somebody else writes to.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat, flock, fstat,
    open, openat2, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use suimon_contract::ApiError;

use super::unread;

/// Nothing outside of the folder, and nothing by way of a link (openat2(2), Linux 5.6).
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Entries of one folder that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Which file it is, and whether it has changed.
pub(super) type Stamp = (u64, u64, i64, i64);

/// A folder, open.
pub(super) struct Folder {
    path: PathBuf,
    opened: OwnedFd,
}

impl Folder {
    /// The folder at a path that an administrator named; none if there is nothing.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, ApiError> {
        let opened = open(path, FOLDER, Mode::empty());
        Self::of(path.to_owned(), opened)
    }

    /// The folder of that name in this one; none if there is no such folder.
    pub(super) fn folder(&self, name: &str) -> Result<Option<Self>, ApiError> {
        let opened = openat2(&self.opened, name, FOLDER, Mode::empty(), BENEATH);
        match opened {
            Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
            _ => Self::of(self.path(name), opened),
        }
    }

    fn of(path: PathBuf, opened: rustix::io::Result<OwnedFd>) -> Result<Option<Self>, ApiError> {
        match opened {
            Ok(opened) => Ok(Some(Self { path, opened })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(refused(&path, errno)),
        }
    }

    /// Where a file of this folder is.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// All of a file; none if there is no such file.
    ///
    /// # Errors
    /// It is no file, it has more bytes, or it cannot be read.
    pub(super) fn file(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, ApiError> {
        let path = self.path(name);
        // What is no file, such as a pipe, must not make who reads it wait.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = match openat2(&self.opened, name, flags, Mode::empty(), BENEATH) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::XDEV) => {
                return Err(unread(&path, "is a link, which is not followed; remove it"));
            }
            Err(errno) => return Err(refused(&path, errno)),
        };
        let stat = fstat(&opened).map_err(|errno| refused(&path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(unread(&path, "is no file; remove it"));
        }
        let mut bytes = Vec::new();
        let read = File::from(opened).take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| unread(&path, format!("cannot be read: {error}")))?;
        if bytes.len() as u64 > bytes_max {
            let text = format!("has more than the {bytes_max} bytes that are read of it");
            return Err(unread(&path, text));
        }
        Ok(Some(bytes))
    }

    /// Whether there is something of that name.
    pub(super) fn has(&self, name: &str) -> Result<bool, ApiError> {
        self.stat(name).map(|stat| stat.is_some())
    }

    /// Tells one state of a file from another; none if there is no such file.
    pub(super) fn stamp(&self, name: &str) -> Result<Option<Stamp>, ApiError> {
        let stat = self.stat(name)?;
        Ok(stat.map(|of| {
            let nanoseconds = i64::try_from(of.st_mtime_nsec).unwrap_or_default();
            (of.st_ino, of.st_size.unsigned_abs(), of.st_mtime, nanoseconds)
        }))
    }

    fn stat(&self, name: &str) -> Result<Option<Stat>, ApiError> {
        match statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(refused(&self.path(name), errno)),
        }
    }

    /// What is in it, in no order.
    pub(super) fn names(&self) -> Result<Vec<String>, ApiError> {
        let failed = |errno| refused(&self.path, errno);
        let entries = rustix::fs::Dir::read_from(&self.opened).map_err(failed)?;
        let mut names = Vec::new();
        for entry in entries.take(ENTRIES_MAX) {
            let entry = entry.map_err(failed)?;
            // What is no text is nothing of ours.
            if let Ok(name) = entry.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Whether another program has it for itself: a run is being made, requests are being done.
    pub(super) fn is_held(&self) -> Result<bool, ApiError> {
        // Opened anew, as what is held belongs to what was opened.
        let opened = openat2(&self.opened, ".", FOLDER, Mode::empty(), BENEATH);
        let opened = opened.map_err(|errno| refused(&self.path, errno))?;
        match flock(&opened, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(refused(&self.path, errno)),
        }
    }

    /// Writes a new file, whole or not at all; whether there was none of that name.
    pub(super) fn write_new(&self, name: &str, bytes: &[u8]) -> Result<bool, ApiError> {
        let path = self.path(name);
        let unfinished = format!("{name}.part");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let opened = openat2(&self.opened, &unfinished, flags, Mode::RUSR | Mode::WUSR, BENEATH);
        let opened = opened.map_err(|errno| refused(&self.path(&unfinished), errno))?;
        let written = File::from(opened).write_all(bytes);
        written.map_err(|error| unread(&path, format!("cannot be written: {error}")))?;
        let (folder, flags) = (&self.opened, RenameFlags::NOREPLACE);
        match renameat_with(folder, &unfinished, folder, name, flags) {
            Ok(()) => Ok(true),
            Err(errno) => {
                self.remove(&unfinished)?;
                if errno == Errno::EXIST { Ok(false) } else { Err(refused(&path, errno)) }
            }
        }
    }

    /// Removes a file; one that is gone already is as good.
    pub(super) fn remove(&self, name: &str) -> Result<(), ApiError> {
        match unlinkat(&self.opened, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(refused(&self.path(name), errno)),
        }
    }
}

fn refused(path: &Path, errno: Errno) -> ApiError {
    unread(path, format!("the host refuses: {}", io::Error::from(errno)))
}
