//! Folders of VMs.
//!
//! A folder is owned by the launcher's user and the VM's group. The VM may search it but not create
//! or replace files: the launcher creates its sockets, log and firmware variables before it starts.
//! A VM therefore cannot replace anything in the folder while the daemon creates sockets there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, fchmod, fchown, fstat, mkdirat, openat, openat2,
    renameat, statat, unlinkat,
};
use rustix::net::{SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::{Gid, Uid};
use suimon_ports::{VmError, VmErrorKind};

use super::launcher_user::{LauncherUser, unsearchable_folder};
use crate::spec_check::is_name;

/// Mode of a VM's folder: the VM's group may search it, and sockets that the daemon creates inherit
/// the group (setgid).
const FOLDER_MODE: u32 = 0o2750;
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Maximum size in bytes of a file with the record of a process. The launcher writes no larger
/// ones.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Folder that contains the VMs' folders.
#[derive(Debug)]
pub(crate) struct VmFolderRoot {
    path: PathBuf,
    folder: OwnedFd,
    rights: LauncherUser,
}

/// Open folder of one VM.
#[derive(Debug)]
pub(crate) struct VmFolder {
    /// Name of the folder below the root.
    pub(crate) name: String,
    folder: OwnedFd,
}

fn refused(path: &Path, reason: &str) -> VmError {
    VmError::new(VmErrorKind::Refused, format!("the folder {} {reason}", path.display()))
}

fn host(path: &Path, error: impl Into<io::Error>) -> VmError {
    let text = format!("the folder {}: {}", path.display(), error.into());
    VmError::new(VmErrorKind::Host, text)
}

/// Creates a folder and its missing ancestors, with a mode that lets users of VMs search them,
/// regardless of the umask.
fn make_passable(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
        make_passable(parent)?;
    }
    match std::fs::create_dir(path) {
        Ok(()) => std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

impl VmFolderRoot {
    /// Opens the folder of all VMs; creates it if it does not exist.
    pub(crate) fn open(path: &Path, rights: LauncherUser) -> io::Result<Self> {
        let unusable = |reason: &str| {
            let text = format!("the folder of all VMs {} {reason}", path.display());
            io::Error::other(text)
        };
        if !path.is_absolute() {
            return Err(unusable("is not an absolute path"));
        }
        let failed = |error: io::Error| unusable(&format!("cannot be used: {error}"));
        make_passable(path).map_err(failed)?;
        let folder = rustix::fs::open(path, FOLDER_FLAGS, Mode::empty());
        let folder = folder.map_err(|errno| failed(errno.into()))?;
        let stat = fstat(&folder)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o022 != 0 {
            return Err(unusable("is owned by another user, or writable by others"));
        }
        // A restrictive umask would deny VMs access to their folders.
        fchmod(&folder, Mode::from_raw_mode(0o755))?;
        Ok(Self { path: path.to_owned(), folder, rights })
    }

    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Returns the last component of a path directly below the root.
    ///
    /// # Errors
    /// The path is not a VM's folder.
    fn name<'a>(&self, path: &'a Path) -> Result<&'a str, VmError> {
        let relative = path.strip_prefix(&self.path).ok();
        let mut parts = relative.map(Path::components).into_iter().flatten();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(name)), None) => name.to_str().filter(|name| is_name(name)),
            _ => None,
        }
        .ok_or_else(|| {
            let root = self.path.display();
            refused(path, &format!("is not the folder of a VM, which is {root}/NAME"))
        })
    }

    /// Creates a VM's folder for a user, or sets owner and mode of an existing one.
    pub(crate) fn prepare(&self, path: &Path, user: u32) -> Result<(), VmError> {
        let name = self.name(path)?;
        match mkdirat(&self.folder, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(host(path, errno)),
        }
        let folder = self.open_own(path)?;
        let made_right = || -> io::Result<()> {
            if self.rights == LauncherUser::Root {
                let owner = Some(rustix::process::geteuid());
                fchown(&folder.folder, owner, Some(Gid::from_raw(user)))?;
            }
            Ok(fchmod(&folder.folder, Mode::from_raw_mode(FOLDER_MODE))?)
        };
        made_right().map_err(|error| host(path, error))
    }

    /// Checks that the VM's user can access the folder. Otherwise QEMU would fail later with an
    /// error that does not name the folder.
    fn check_open(&self, path: &Path, user: u32) -> Result<(), VmError> {
        let closed =
            unsearchable_folder(user, self.rights, path).map_err(|error| host(path, error))?;
        let Some(closed) = closed else { return Ok(()) };
        let closed = closed.display();
        let reason = format!(
            "cannot be reached by the VM's user {user}, who has no search permission on {closed}; \
             permit it with `chmod o+x {closed}`, or set another vm_folder"
        );
        Err(refused(path, &reason))
    }

    /// Opens an existing VM folder that is owned by the launcher.
    fn open_own(&self, path: &Path) -> Result<VmFolder, VmError> {
        let name = self.name(path)?;
        let folder = openat2(&self.folder, name, FOLDER_FLAGS, Mode::empty(), BENEATH);
        let folder = folder.map_err(|errno| match errno {
            rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => {
                refused(path, "is a symbolic link or not a folder")
            }
            rustix::io::Errno::NOENT => refused(path, "does not exist; it was not prepared"),
            errno => host(path, errno),
        })?;
        let stat = fstat(&folder).map_err(|errno| host(path, errno))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(refused(path, "is owned by another user"));
        }
        Ok(VmFolder { name: name.to_owned(), folder })
    }

    /// Opens an existing VM folder that is owned by the launcher and not writable by others.
    pub(crate) fn find(&self, path: &Path) -> Result<VmFolder, VmError> {
        let folder = self.open_own(path)?;
        let stat = fstat(&folder.folder).map_err(|errno| host(path, errno))?;
        if stat.st_mode & 0o022 != 0 {
            return Err(refused(path, "is writable by others"));
        }
        Ok(folder)
    }

    /// Opens a VM's folder that was prepared for this user and is accessible to the user.
    pub(crate) fn find_prepared(&self, path: &Path, user: u32) -> Result<VmFolder, VmError> {
        let folder = self.find(path)?;
        let stat = fstat(&folder.folder).map_err(|errno| host(path, errno))?;
        if self.rights == LauncherUser::Root && stat.st_gid != user {
            return Err(refused(path, "was prepared for the user of another VM"));
        }
        self.check_open(path, user)?;
        Ok(folder)
    }

    /// Returns the names of all VM folders.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.folder)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().to_str() {
                if is_name(name) {
                    names.push(name.to_owned());
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes a VM's folder with its files. Succeeds if it does not exist.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), VmError> {
        let name = self.name(path)?;
        let result = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
        if result.is_err_and(|errno| errno == rustix::io::Errno::NOENT) {
            return Ok(());
        }
        let folder = self.find(path)?;
        let removed = || -> io::Result<()> {
            for entry in rustix::fs::Dir::read_from(&folder.folder)? {
                let entry = entry?;
                if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                    continue;
                }
                // Only the launcher and the daemon could create a subfolder, and neither does.
                if entry.file_type() != FileType::Directory {
                    unlinkat(&folder.folder, entry.file_name(), AtFlags::empty())?;
                }
            }
            Ok(unlinkat(&self.folder, name, AtFlags::REMOVEDIR)?)
        };
        removed().map_err(|error| host(path, error))
    }
}

impl VmFolder {
    pub(crate) fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Creates a listening socket in the folder, replacing an earlier one. Only the launcher's user
    /// may connect; the VM inherits the open descriptor.
    pub(crate) fn listen(&self, name: &str) -> io::Result<OwnedFd> {
        self.remove_file(name)?;
        let family = rustix::net::AddressFamily::UNIX;
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The folder's path may exceed the length of a socket address.
        let path = format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd());
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, 1)?;
        Ok(socket)
    }

    /// Opens a log file for appending, and truncates it.
    pub(crate) fn open_log(&self, name: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP)?)
    }

    /// Opens a file of the folder for reading and writing.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(File::from(openat(&self.folder, name, flags, Mode::empty())?))
    }

    /// Reads a short file of the folder; `None` if it does not exist or cannot be read.
    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open_file(name).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Replaces a file of the folder atomically.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!("{name}.new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file =
            File::from(openat(&self.folder, new.as_str(), flags | OFlags::CLOEXEC, mode)?);
        file.write_all(bytes)?;
        Ok(renameat(&self.folder, new.as_str(), &self.folder, name)?)
    }

    /// Copies `source` to a file of the folder that the VM's user may write, unless the file
    /// exists.
    pub(crate) fn copy_unless_exists(
        &self,
        name: &str,
        user: u32,
        rights: LauncherUser,
        source: &mut File,
    ) -> io::Result<()> {
        if statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Ok(());
        }
        let new = format!("{name}.new");
        self.remove_file(&new)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(openat(&self.folder, new.as_str(), flags, mode)?);
        io::copy(source, &mut file)?;
        if rights == LauncherUser::Root {
            fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(user)))?;
        }
        file.sync_all()?;
        Ok(renameat(&self.folder, new.as_str(), &self.folder, name)?)
    }

    /// Removes a file of the folder. Succeeds if it does not exist.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
