//! Sockets between daemon and launcher.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::MESSAGE_BYTES_MAX;

/// A new socket of the kind that is used.
pub(crate) fn new_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// A connection to whoever listens at `path`.
pub(crate) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Sends one message.
pub(crate) fn send_message(socket: impl AsFd, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(io::Error::other("the message is longer than a message may be"));
    }
    send(socket, &bytes, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next message; nothing at the end of the connection.
pub(crate) fn receive_message<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<T>> {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    let (_, length) =
        rustix::io::retry_on_intr(|| recv(&socket, buffer.as_mut_slice(), RecvFlags::TRUNC))?;
    if length == 0 {
        return Ok(None);
    }
    let bytes = buffer.get(..length);
    let bytes = bytes.ok_or_else(|| io::Error::other("a message longer than one may be"))?;
    Ok(Some(serde_json::from_slice(bytes)?))
}

/// Waits until one of them can be read or has ended, or until the time is over; says which.
pub(crate) fn wait_readable<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    limit: Option<Duration>,
) -> io::Result<[bool; N]> {
    let until = limit.map(|limit| Instant::now() + limit);
    loop {
        let mut polled = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_) => return Ok(polled.map(|fd| !fd.revents().is_empty())),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
