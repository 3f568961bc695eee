//! Store of images: a directory tree or a block device.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom,
    Stat, Timespec, Timestamps,
};
use rustix::io::Errno;
use suimon_ports::{
    DiskFile, FileLockMode, FileName, FileStatus, STORE_NAMES_MAX, StoreFault, StoreFileError,
    StoreFiles, StoreIdentity, StoreOpener, StoreSpace,
};

use crate::host_file::NEW_FILE_MODE;
use crate::image_lock::lock;
use crate::store_free_space::StoreFreeSpace;
use crate::{FileAccess, HostFile};

/// Maximum depth of directories in a listing.
const LEVELS_MAX: usize = 8;

/// Resolution of names below the store's directory, without symbolic links (openat2(2), Linux 5.6).
const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

#[derive(Debug)]
enum StoreRoot {
    Folder(OwnedFd),
    Device,
}

/// Store of images in a directory tree, or on one block device that is the only image.
#[derive(Debug)]
pub struct HostStore {
    path: PathBuf,
    root: StoreRoot,
    identity: StoreIdentity,
    capacity: Arc<StoreFreeSpace>,
}

/// Source of this host's stores, which it opens.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostStores;

impl StoreOpener for HostStores {
    fn open(&self, path: &Path) -> Result<Arc<dyn StoreFiles>, StoreFileError> {
        Ok(Arc::new(HostStore::open(path)?))
    }

    fn identity(&self, path: &Path) -> Result<StoreIdentity, StoreFileError> {
        let status = rustix::fs::stat(path);
        let status =
            status.map_err(|errno| StoreFileError::new(path.to_string_lossy(), fault(errno)))?;
        Ok(identity(&status))
    }
}

impl HostStore {
    /// Opens a store. Symbolic links in `path` are followed; links within the store are not.
    ///
    /// # Errors
    /// The path does not exist, is neither a directory nor a block device, or the error of the
    /// system call.
    pub fn open(path: &Path) -> Result<Self, StoreFileError> {
        let to_error = |errno| StoreFileError::new(path.to_string_lossy(), fault(errno));
        let status = rustix::fs::stat(path).map_err(to_error)?;
        let (root, status) = match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(to_error)?;
                // Another file system may have been mounted since the first call.
                let status = rustix::fs::fstat(&folder).map_err(to_error)?;
                (StoreRoot::Folder(folder), status)
            }
            FileType::BlockDevice => (StoreRoot::Device, status),
            other => {
                let fault = StoreFault::WrongStoreType {
                    found_type: type_name(other),
                    hint: "set the path of a directory or a block device",
                };
                return Err(StoreFileError::new(path.to_string_lossy(), fault));
            }
        };
        let (path, identity) = (path.to_owned(), identity(&status));
        let store = Self { path, root, identity, capacity: Arc::default() };
        // Initialises the free space. If it is unknown, no space is allocated ahead.
        let _ = store.space();
        Ok(store)
    }

    fn folder(&self) -> Result<&OwnedFd, StoreFault> {
        match &self.root {
            StoreRoot::Folder(folder) => Ok(folder),
            StoreRoot::Device => Err(StoreFault::WrongStoreType {
                found_type: "a block device, which has no files",
                hint: "use the whole device (format pass-through), or set the path of a directory",
            }),
        }
    }

    /// Opens the directory that contains a file.
    fn open_folder(&self, name: &FileName) -> Result<OwnedFd, StoreFault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open_at(self.folder()?, name.folder().unwrap_or("."), flags)
    }

    /// Returns the status of a file without opening it, which could have side effects for a device.
    fn inspect(&self, name: &FileName) -> Result<Stat, StoreFault> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open_at(self.folder()?, name.as_str(), flags)?;
        regular(rustix::fs::fstat(&file).map_err(fault)?)
    }

    /// Acquires the image locks for the use `used` of an opened file, and returns the file. All its
    /// I/O must be aligned to `unit` bytes.
    ///
    /// # Errors
    /// Another user of the file holds a conflicting lock, or a system call failed.
    fn locked(
        &self,
        file: OwnedFd,
        used: FileLockMode,
        access: FileAccess,
        unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFault> {
        if let Some(holder) = lock(&file, used)? {
            return Err(StoreFault::InUse { lock_holder: holder });
        }
        let file = HostFile::from_fd(file, access, unit)?.with_image_locks();
        Ok(Arc::new(file.with_store_free_space(Arc::clone(&self.capacity))))
    }

    fn open_regular(&self, name: &FileName, flags: OFlags) -> Result<OwnedFd, StoreFault> {
        let inspected = self.inspect(name)?;
        let file =
            open_at(self.folder()?, name.as_str(), flags | OFlags::CLOEXEC | OFlags::NONBLOCK)?;
        let opened = regular(rustix::fs::fstat(&file).map_err(fault)?)?;
        if (opened.st_dev, opened.st_ino) != (inspected.st_dev, inspected.st_ino) {
            return Err(io::Error::other("the path was replaced just now; retry").into());
        }
        Ok(file)
    }

    fn move_name(
        &self,
        from: &FileName,
        to: &FileName,
        flags: RenameFlags,
    ) -> Result<(), StoreFileError> {
        let of_from = |fault| StoreFileError::new(from, fault);
        let of_to = |fault| StoreFileError::new(to, fault);
        self.inspect(from).map_err(of_from)?;
        let folder = self.open_folder(from).map_err(of_from)?;
        let target = self.open_folder(to).map_err(of_to)?;
        rustix::fs::renameat_with(&folder, from.file_name(), &target, to.file_name(), flags)
            .map_err(|errno| of_to(fault(errno)))?;
        let synced = sync(&target).map_err(of_to).and_then(|()| {
            if from.folder() == to.folder() { Ok(()) } else { sync(&folder).map_err(of_from) }
        });
        if synced.is_err() && flags == RenameFlags::NOREPLACE {
            // A file whose new name may not be durable keeps the former name. If this fails, the
            // file has the new name, and the caller reports the first error.
            let (new, former) = (to.file_name(), from.file_name());
            let _ = rustix::fs::renameat_with(&target, new, &folder, former, flags);
        }
        synced
    }

    /// Appends to `names` the files with one of the extensions `endings` below `folder`, down to
    /// `levels` levels. `prefix` is the name of `folder` in the store.
    fn walk(
        folder: &OwnedFd,
        prefix: &str,
        levels: usize,
        endings: &[&str],
        names: &mut Vec<FileName>,
    ) -> Result<(), StoreFault> {
        for entry in Dir::read_from(folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let Ok(last) = entry.file_name().to_str() else { continue };
            let Ok(name) = FileName::new(&format!("{prefix}{last}")) else { continue };
            let file_type = match entry.file_type() {
                // Some file systems do not report the type, and an entry may have been removed
                // meanwhile.
                FileType::Unknown => {
                    let status = rustix::fs::statat(folder, last, AtFlags::SYMLINK_NOFOLLOW);
                    let Ok(status) = status else { continue };
                    FileType::from_raw_mode(status.st_mode)
                }
                known => known,
            };
            match file_type {
                FileType::RegularFile if endings.iter().any(|ending| last.ends_with(*ending)) => {
                    if names.len() == STORE_NAMES_MAX {
                        return Ok(());
                    }
                    names.push(name);
                }
                FileType::Directory if levels > 1 => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                    // A directory that cannot be read is skipped.
                    if let Ok(child) = open_at(folder, last, flags) {
                        Self::walk(&child, &format!("{name}/"), levels - 1, endings, names)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl StoreFiles for HostStore {
    fn open(
        &self,
        name: &FileName,
        used: FileLockMode,
        unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError> {
        let (flags, access) = match used {
            FileLockMode::Read => (OFlags::RDONLY, FileAccess::Read),
            FileLockMode::Write => (OFlags::RDWR, FileAccess::Write),
        };
        self.open_regular(name, flags)
            .and_then(|file| self.locked(file, used, access, unit))
            .map_err(|fault| StoreFileError::new(name, fault))
    }

    fn open_unlocked(
        &self,
        name: &FileName,
        unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError> {
        let open = || -> Result<HostFile, StoreFault> {
            let file = self.open_regular(name, OFlags::RDONLY)?;
            Ok(HostFile::from_fd(file, FileAccess::Read, unit)?)
        };
        let file = open().map_err(|fault| StoreFileError::new(name, fault))?;
        Ok(Arc::new(file))
    }

    fn create(&self, name: &FileName, unit: u32) -> Result<Arc<dyn DiskFile>, StoreFileError> {
        let make = || {
            let folder = self.open_folder(name)?;
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&folder, name.file_name(), flags, NEW_FILE_MODE);
            let file = file.map_err(fault)?;
            let created = self.locked(file, FileLockMode::Write, FileAccess::Create, unit);
            if created.is_err() {
                // The caller has no file that it could remove. The first error is returned.
                let _ = rustix::fs::unlinkat(&folder, name.file_name(), AtFlags::empty());
            }
            created
        };
        make().map_err(|fault| StoreFileError::new(name, fault))
    }

    fn open_device(
        &self,
        used: FileLockMode,
        unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError> {
        let open = || {
            if let StoreRoot::Folder(_) = self.root {
                let hint = "set a block device as the store of a pass-through disk";
                return Err(StoreFault::WrongStoreType { found_type: "a directory", hint });
            }
            // With O_EXCL the kernel rejects a device that is mounted or part of another one.
            let (flags, access) = match used {
                FileLockMode::Read => (OFlags::RDONLY, FileAccess::Read),
                FileLockMode::Write => (OFlags::RDWR | OFlags::EXCL, FileAccess::Write),
            };
            let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let file = rustix::fs::open(&self.path, flags, Mode::empty()).map_err(fault)?;
            self.locked(file, used, access, unit)
        };
        open().map_err(|fault| StoreFileError::new(self.path.to_string_lossy(), fault))
    }

    fn reserve(&self, name: &FileName) -> Result<(), StoreFileError> {
        let set_aside = || {
            let file = self.open_regular(name, OFlags::RDWR)?;
            let len = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(fault)?;
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, len) {
                Ok(()) => Ok(()),
                Err(Errno::INVAL) if len == 0 => Ok(()),
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(StoreFault::Unsupported {
                    operation: "preallocate space",
                    hint: "create a dynamic disk, or use ext4, XFS or Btrfs",
                }),
                Err(errno) => Err(fault(errno)),
            }
        };
        set_aside().map_err(|fault| StoreFileError::new(name, fault))
    }

    fn status(&self, name: &FileName) -> Result<FileStatus, StoreFileError> {
        let status = self.inspect(name).map_err(|fault| StoreFileError::new(name, fault))?;
        Ok(FileStatus {
            len: u64::try_from(status.st_size).unwrap_or(0),
            allocated_bytes: u64::try_from(status.st_blocks).unwrap_or(0).saturating_mul(512),
            modified_unix_s: u64::try_from(status.st_mtime).unwrap_or(0),
        })
    }

    fn set_modified(&self, name: &FileName, unix_s: u64) -> Result<(), StoreFileError> {
        let set = || {
            let file = self.open_regular(name, OFlags::RDWR)?;
            let time = Timespec { tv_sec: i64::try_from(unix_s).unwrap_or(i64::MAX), tv_nsec: 0 };
            let times = Timestamps { last_access: time, last_modification: time };
            rustix::fs::futimens(&file, &times).map_err(fault)?;
            sync(&file)
        };
        set().map_err(|fault| StoreFileError::new(name, fault))
    }

    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), StoreFileError> {
        self.move_name(from, to, RenameFlags::NOREPLACE)
    }

    fn replace(&self, from: &FileName, to: &FileName) -> Result<(), StoreFileError> {
        self.move_name(from, to, RenameFlags::empty())
    }

    fn remove(&self, name: &FileName) -> Result<(), StoreFileError> {
        let remove = || {
            self.inspect(name)?;
            let folder = self.open_folder(name)?;
            rustix::fs::unlinkat(&folder, name.file_name(), AtFlags::empty()).map_err(fault)?;
            sync(&folder)
        };
        remove().map_err(|fault| StoreFileError::new(name, fault))
    }

    fn names_with(&self, endings: &[&str]) -> Result<Vec<FileName>, StoreFileError> {
        let mut names = Vec::new();
        if let StoreRoot::Folder(folder) = &self.root {
            Self::walk(folder, "", LEVELS_MAX, endings, &mut names)
                .map_err(|fault| StoreFileError::new(self.path.to_string_lossy(), fault))?;
        }
        names.sort_unstable();
        Ok(names)
    }

    fn space(&self) -> Result<StoreSpace, StoreFileError> {
        let failed = |errno| StoreFileError::new(self.path.to_string_lossy(), fault(errno));
        let StoreRoot::Folder(folder) = &self.root else {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let device = rustix::fs::open(&self.path, flags, Mode::empty()).map_err(failed)?;
            let total_bytes = rustix::fs::seek(&device, SeekFrom::End(0)).map_err(failed)?;
            return Ok(StoreSpace { total_bytes, free_bytes: 0 });
        };
        let statistics = rustix::fs::fstatvfs(folder).map_err(failed)?;
        let free_bytes = statistics.f_bavail.saturating_mul(statistics.f_frsize);
        self.capacity.set(free_bytes);
        // As for df(1), blocks that only a privileged process may allocate are neither free nor
        // used.
        let used_blocks = statistics.f_blocks.saturating_sub(statistics.f_bfree);
        let total_blocks = used_blocks.saturating_add(statistics.f_bavail);
        Ok(StoreSpace { total_bytes: total_blocks.saturating_mul(statistics.f_frsize), free_bytes })
    }

    fn identity(&self) -> StoreIdentity {
        self.identity
    }
}

fn identity(status: &Stat) -> StoreIdentity {
    StoreIdentity { device: status.st_dev, inode: status.st_ino }
}

fn open_at(folder: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, StoreFault> {
    rustix::fs::openat2(folder, name, flags, Mode::empty(), CONFINED).map_err(|errno| match errno {
        Errno::LOOP | Errno::XDEV => StoreFault::SymbolicLink,
        other => fault(other),
    })
}

fn regular(status: Stat) -> Result<Stat, StoreFault> {
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => Ok(status),
        FileType::Symlink => Err(StoreFault::SymbolicLink),
        other => Err(StoreFault::NotRegular { found_type: type_name(other) }),
    }
}

fn sync(file: &OwnedFd) -> Result<(), StoreFault> {
    rustix::fs::fsync(file).map_err(fault)
}

fn fault(errno: Errno) -> StoreFault {
    match errno {
        Errno::NOENT => StoreFault::Missing,
        Errno::EXIST => StoreFault::Exists,
        Errno::NOSPC | Errno::DQUOT => StoreFault::Full,
        Errno::BUSY => {
            StoreFault::InUse { lock_holder: "the kernel has it mounted or in use".to_owned() }
        }
        other => StoreFault::System(other.into()),
    }
}

const fn type_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a character device",
        FileType::BlockDevice => "a block device",
        _ => "a file of unknown type",
    }
}
