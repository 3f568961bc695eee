//! Sockets in a VM's folder.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use suimon_unix_socket::refuse_descriptors;

/// Connects to QEMU's socket `name` in a VM's folder. The path of the folder may exceed the length
/// of a socket address. Blocks for at most `limit` while QEMU does not accept the connection.
pub(crate) fn connect_in(folder: &Path, name: &str, limit: Duration) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let folder = open(folder, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // QEMU sends no descriptors.
    refuse_descriptors(&socket);
    // The limit also applies to connect(2), see unix(7).
    set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::AGAIN) => {
            let seconds = limit.as_secs();
            let text = format!("QEMU has accepted no connection for {seconds} s");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        result => result?,
    }
    set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(UnixStream::from(socket))
}
