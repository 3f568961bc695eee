//! User that a VM runs as, and access to files with this user's permissions.
#![allow(unsafe_code, reason = "a thread's own user is set by the kernel's calls alone")]

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use suimon_ports::{VmError, VmErrorKind};

/// Smallest permitted user id; smaller ones belong to the system.
const USER_MIN: u32 = 1000;
/// Exclusive upper bound of permitted user ids. System calls interpret -1 as "unchanged".
const USER_MAX: u32 = u32::MAX - 1;

/// Privileges of the launcher, which determine the user ids of VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LauncherUser {
    /// The launcher runs as root: each VM runs as a user of its own.
    Root,
    /// The launcher runs as another user: all VMs run as this user.
    Unprivileged,
}

impl LauncherUser {
    pub(crate) fn current() -> Self {
        if rustix::process::geteuid().is_root() { Self::Root } else { Self::Unprivileged }
    }
}

/// Checks that VMs may run as this user: the id is neither reserved for the system nor that of an
/// account of the host.
pub(crate) fn check_user(user: u32, rights: LauncherUser) -> Result<(), VmError> {
    if rights == LauncherUser::Unprivileged {
        return Ok(());
    }
    let refused = |text| Err(VmError::new(VmErrorKind::Refused, text));
    if !(USER_MIN..=USER_MAX).contains(&user) {
        return refused(format!("user ID {user} is below {USER_MIN}, the lowest of VMs"));
    }
    for (file, kind) in [("/etc/passwd", "user"), ("/etc/group", "group")] {
        let text = fs::read_to_string(file).unwrap_or_default();
        let number = user.to_string();
        let line = text.lines().find(|line| line.split(':').nth(2) == Some(number.as_str()));
        if let Some(name) = line.and_then(|line| line.split(':').next()) {
            return refused(format!(
                "{kind} ID {user} belongs to {name}; VMs use only unassigned IDs"
            ));
        }
    }
    Ok(())
}

/// Opens a file for reading, with the permissions of `user` if the launcher is root, otherwise with
/// its own.
pub(crate) fn open_as(user: u32, rights: LauncherUser, path: &Path) -> io::Result<File> {
    if rights == LauncherUser::Unprivileged {
        return open_regular(path);
    }
    as_user(user, || open_regular(path))
}

/// Returns the first folder on the path, `folder` included, that the user may not search, so that
/// nothing below it is accessible to the user. Returns `None` if the user may search all of them.
///
/// # Errors
/// A folder does not exist, or the launcher cannot assume the user's identity.
pub(crate) fn unsearchable_folder(
    user: u32,
    rights: LauncherUser,
    folder: &Path,
) -> io::Result<Option<PathBuf>> {
    if rights == LauncherUser::Unprivileged {
        return Ok(None);
    }
    // The path may contain a symbolic link that leads through an inaccessible folder.
    let folder = fs::canonicalize(folder)?;
    as_user(user, || {
        let mut ancestors: Vec<&Path> = folder.ancestors().collect();
        ancestors.reverse();
        for ancestor in ancestors {
            match fs::metadata(ancestor.join(".")) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Ok(Some(ancestor.to_owned()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    })
}

/// Executes `task` in a new thread that has assumed the user's identity.
fn as_user<T: Send>(user: u32, task: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            become_user(user)?;
            task()
        });
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    })
}

/// Opens a file for reading, if it is a regular file. Opening a pipe or device could block or have
/// side effects.
fn open_regular(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("not a regular file"))
}

/// Changes user and groups of the calling thread irrevocably.
fn become_user(user: u32) -> io::Result<()> {
    let checked = |result| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: the calls take numbers, and with zero groups no memory is read. The C library's
    // functions would change the user of all threads; these system calls change only that of the
    // calling thread.
    unsafe {
        checked(libc::syscall(libc::SYS_setgroups, 0_usize, std::ptr::null::<libc::gid_t>()))?;
        checked(libc::syscall(libc::SYS_setresgid, user, user, user))?;
        checked(libc::syscall(libc::SYS_setresuid, user, user, user))
    }
}

#[cfg(test)]
mod tests {
    use super::{LauncherUser, check_user, open_as, unsearchable_folder};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn users_of_the_host_are_refused() {
        for user in [0, 1, 999, 65534, u32::MAX] {
            assert!(check_user(user, LauncherUser::Root).is_err(), "{user}");
        }
        check_user(3_000_000, LauncherUser::Root).unwrap();
        check_user(0, LauncherUser::Unprivileged).unwrap();
    }

    #[test]
    fn a_file_is_opened_with_the_users_rights() {
        if LauncherUser::current() == LauncherUser::Unprivileged {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let everybody = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), everybody).unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let error = open_as(3_000_000, LauncherUser::Root, &file).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o604)).unwrap();
        open_as(3_000_000, LauncherUser::Root, &file).unwrap();
        assert!(open_as(3_000_000, LauncherUser::Root, folder.path()).is_err());
        // Another thread has assumed the user's identity.
        assert!(rustix::process::geteuid().is_root());
    }

    #[test]
    fn the_first_folder_that_the_user_may_not_search_is_named() {
        if LauncherUser::current() == LauncherUser::Unprivileged {
            return;
        }
        let top = tempfile::tempdir().unwrap();
        let set = |folder: &std::path::Path, mode| {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let middle = top.path().join("middle");
        let folder = middle.join("vm");
        std::fs::create_dir_all(&folder).unwrap();
        [top.path(), &middle, &folder].into_iter().for_each(|folder| set(folder, 0o755));
        let closed = || unsearchable_folder(3_000_000, LauncherUser::Root, &folder).unwrap();
        assert_eq!(closed(), None);
        for closed_one in [&folder, &middle, top.path()] {
            set(closed_one, 0o700);
            assert_eq!(closed().as_deref(), Some(closed_one));
        }
        assert_eq!(unsearchable_folder(0, LauncherUser::Unprivileged, &folder).unwrap(), None);
        // The target of the link is in an accessible folder.
        let other = tempfile::tempdir().unwrap();
        set(other.path(), 0o755);
        let link = other.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let closed = unsearchable_folder(3_000_000, LauncherUser::Root, &link).unwrap();
        assert_eq!(closed.as_deref(), Some(top.path()));
    }
}
