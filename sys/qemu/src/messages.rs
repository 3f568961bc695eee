//! Unix sockets between daemon and launcher, and from the daemon to a monitor.

use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, send, sendmsg, socket_with,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::MESSAGE_BYTES_MAX;

/// Creates a socket that preserves message boundaries (`SOCK_SEQPACKET`).
pub(crate) fn new_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Connects to the `SOCK_SEQPACKET` socket at `path`.
pub(crate) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Sends one message as JSON. Blocks while the peer's buffer is full.
pub(crate) fn send_message(socket: impl AsFd, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(io::Error::other("the message exceeds the length limit"));
    }
    send(socket, &bytes, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the next message; `None` at the end of the connection. Blocks.
pub(crate) fn receive_message<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<T>> {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    let (_, length) =
        rustix::io::retry_on_intr(|| recv(&socket, buffer.as_mut_slice(), RecvFlags::TRUNC))?;
    if length == 0 {
        return Ok(None);
    }
    let bytes = buffer.get(..length);
    let bytes =
        bytes.ok_or_else(|| io::Error::other("a received message exceeds the length limit"))?;
    Ok(Some(serde_json::from_slice(bytes)?))
}

/// Writes a line to a monitor. `descriptor`, if any, is attached to its first byte.
pub(crate) fn write_line(
    mut stream: &UnixStream,
    line: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let Some(descriptor) = descriptor else { return stream.write_all(line) };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("the message has no room for a descriptor"));
    }
    let slices = [IoSlice::new(line)];
    let sent = rustix::io::retry_on_intr(|| {
        sendmsg(stream, &slices, &mut ancillary, SendFlags::NOSIGNAL)
    })?;
    stream.write_all(line.get(sent..).unwrap_or_default())
}

/// Blocks until one of the descriptors is readable or hung up, for at most `limit`. Returns for
/// each whether it is.
pub(crate) fn wait_readable<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    limit: Option<Duration>,
) -> io::Result<[bool; N]> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    loop {
        let mut polled = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let remaining = remaining.and_then(|remaining| Timespec::try_from(remaining).ok());
        match poll(&mut polled, remaining.as_ref()) {
            Ok(_) => return Ok(polled.map(|fd| !fd.revents().is_empty())),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
