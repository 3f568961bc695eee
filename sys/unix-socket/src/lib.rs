//! Unix sockets through which VMs reach their devices: listening and connecting.
//!
//! - [`listen_on`], [`accept`], [`SocketFile`]: a listening socket, and its file.
//! - [`is_hung_up`]: detects that the peer has closed a connection.
//! - [`connect_to`]: connects to a socket on which the VM's side listens.
//! - [`probe_listening`], [`probe_connecting`]: check whether either could succeed.
//! - [`refuse_descriptors`], [`AttachedDescriptors`], [`CloseQueue`]: protection from descriptors
//!   that a peer attaches to its data.
//!
//! Outside of the scope: other data transfer, and access control other than by the socket's mode.
//!
//! Life cycle: a path is checked, then bound; a listening socket does not need its file, which is
//! removed when [`SocketFile`] is dropped.
//!
//! Invariants
//! - A file on which a process listens, or that is not a socket, is never replaced or removed.
//! - Nothing blocks: sockets are non-blocking.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod attached_descriptors;
mod close_queue;
mod descriptors;

use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};
use suimon_ports::{DeviceError, DeviceErrorKind};

pub use attached_descriptors::AttachedDescriptors;
pub use close_queue::CloseQueue;
pub use descriptors::{receive_with_descriptors, refuse_descriptors};

/// Permissions of a socket: owner and group may connect, because a VM runs as another user of the
/// same group.
const SOCKET_MODE: u32 = 0o660;
/// Maximum number of pending connections of a listening socket (listen(2)).
const BACKLOG: i32 = 4;

/// File of a listening socket. Dropping it removes the file unless it was replaced. Separate from
/// the socket, because the thread that listens cannot access files.
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode number of the created file.
    file: Option<(u64, u64)>,
}

/// Listens on `path`. Replaces a socket file on which no process listens. Returns the non-blocking
/// listening socket, and the owner of its file.
///
/// # Errors
/// A process listens there, the path is of another kind of file, or a system call fails.
pub fn listen_on(path: &Path) -> Result<(OwnedFd, SocketFile), DeviceError> {
    clear_path(path, true)?;
    let failed = |action: &'static str| move |error: io::Error| refused(path, action, &error);
    let address = address(path)?;
    let socket = new_socket().map_err(failed("make"))?;
    bind(&socket, &address).map_err(io::Error::from).map_err(failed("bind"))?;
    let file = fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let file = SocketFile { path: path.to_owned(), file };
    // Connections are possible only after `listen`, so that none is made with permissions set by
    // the process's umask.
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))
        .map_err(failed("set the mode of"))?;
    listen(&socket, BACKLOG).map_err(io::Error::from).map_err(failed("listen on"))?;
    Ok((socket, file))
}

/// Accepts a connection on a listening socket.
///
/// # Errors
/// The error of accept4(2); [`io::ErrorKind::WouldBlock`] if no connection is pending. Listening
/// may continue.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        match accept_with(listener, flags) {
            Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
            accepted => return Ok(accepted?),
        }
    }
}

/// Returns true if the peer of a connected socket has closed it.
///
/// # Errors
/// The error of poll(2).
pub fn is_hung_up(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default()))?;
    let [fd] = fds;
    Ok(fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let current =
            fs::symlink_metadata(&self.path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        if current.is_some() && current == self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Connects to the socket at `path`.
///
/// # Errors
/// The error of the system call; in most cases no process listens yet.
pub fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = new_socket()?;
    connect(&socket, &address)?;
    Ok(socket)
}

/// Checks whether [`listen_on`] could succeed, without changing anything.
///
/// # Errors
/// The error that it would return.
pub fn probe_listening(path: &Path) -> Result<(), DeviceError> {
    address(path)?;
    clear_path(path, false)
}

/// Checks whether `path` is suitable for a socket, whether or not a process listens there.
///
/// # Errors
/// `path` is not a valid path of a socket, or its directory does not exist.
pub fn probe_connecting(path: &Path) -> Result<(), DeviceError> {
    address(path)?;
    check_directory(path)
}

/// Checks that `path` can be bound: its directory exists, and the path is free or a socket on which
/// no process listens. Such a socket is removed if `removes` is true.
fn clear_path(path: &Path, removes: bool) -> Result<(), DeviceError> {
    check_directory(path)?;
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(path, "check", &error)),
    };
    if !metadata.file_type().is_socket() {
        let detail = format!(
            "{} exists and is not a socket; remove it or choose another path",
            path.display()
        );
        return Err(DeviceError { kind: DeviceErrorKind::Busy, field: "socket", detail });
    }
    match connect_to(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
            return Err(refused(path, "check", &error));
        }
        _ => {
            let detail = format!(
                "another process listens on {}; stop it or choose another path",
                path.display()
            );
            return Err(DeviceError { kind: DeviceErrorKind::Busy, field: "socket", detail });
        }
    }
    if !removes {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(refused(path, "replace", &error))
        }
        _ => Ok(()),
    }
}

fn check_directory(path: &Path) -> Result<(), DeviceError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(missing(directory, "is not a directory")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(refused(path, "check", &error))
        }
        Err(_) => Err(missing(directory, "does not exist; create it")),
    }
}

fn missing(directory: &Path, problem: &str) -> DeviceError {
    let detail = format!("the socket's directory {} {problem}", directory.display());
    DeviceError { kind: DeviceErrorKind::Missing, field: "socket", detail }
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

fn address(path: &Path) -> Result<SocketAddrUnix, DeviceError> {
    SocketAddrUnix::new(path).map_err(|_| DeviceError {
        kind: DeviceErrorKind::Unsupported,
        field: "socket",
        detail: format!(
            "{} is not a path of a Unix socket; it must have 1 to 107 bytes and no NUL",
            path.display()
        ),
    })
}

fn refused(path: &Path, action: &str, error: &io::Error) -> DeviceError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => DeviceErrorKind::Denied,
        io::ErrorKind::AddrInUse => DeviceErrorKind::Busy,
        io::ErrorKind::NotFound => DeviceErrorKind::Missing,
        _ => DeviceErrorKind::Host,
    };
    let detail = format!("cannot {action} the socket {}: {error}", path.display());
    DeviceError { kind, field: "socket", detail }
}

#[cfg(test)]
mod tests;
