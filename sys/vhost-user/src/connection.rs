//! The connection of one front-end: receives whole messages and sends replies.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};
use suimon_socket_runtime::Watched;
use suimon_unix_socket::is_hung_up;
use thiserror::Error;
use tokio::time::timeout_at;

use crate::message::{FDS_MAX, HEADER_BYTES, Header, Message, MessageError, PAYLOAD_BYTES_MAX};
use crate::reply::Reply;
use crate::request::Request;

/// Longest time for the rest of a message, and for the front-end to read a reply. Both sides are
/// processes of one host: a front-end that takes longer does not work.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a connection ended.
#[derive(Debug, Error)]
pub(crate) enum End {
    /// We were told to stop.
    #[error("the device was closed")]
    Stopped,
    /// The front-end closed its end between two messages.
    #[error("the front-end left")]
    Left,
    /// The front-end closed its end inside a message.
    #[error("the connection ended after {got} of {expected} bytes of a message")]
    Truncated {
        /// Bytes that came.
        got: usize,
        /// Bytes that were announced.
        expected: usize,
    },
    /// The rest of a message did not come.
    #[error("{got} of {expected} bytes of a message came, the rest did not follow")]
    Stalled {
        /// Bytes that came.
        got: usize,
        /// Bytes that were announced.
        expected: usize,
    },
    /// The front-end does not take its answers.
    #[error("the front-end does not read its answers")]
    Deaf,
    /// More descriptors than any message has.
    #[error("more than {FDS_MAX} descriptors in one message")]
    Descriptors,
    /// A message that is none.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Socket(#[from] io::Error),
}

impl End {
    /// Whether the front-end broke the protocol.
    pub(crate) const fn is_violation(&self) -> bool {
        matches!(
            self,
            Self::Truncated { .. }
                | Self::Stalled { .. }
                | Self::Deaf
                | Self::Descriptors
                | Self::Message(_)
        )
    }
}

/// A message with what is needed to answer it.
pub(crate) struct Incoming {
    pub(crate) header: Header,
    pub(crate) message: Message,
}

/// Deadline for the rest of a message.
#[derive(Default)]
struct RestBy(Option<Instant>);

impl RestBy {
    /// Returns the deadline of a wait that begins `now`, after `got` bytes of the message:
    /// [`PATIENCE`] after the first wait inside the message. `None` before the message begins,
    /// because a front-end may be idle for as long as it likes.
    fn deadline(&mut self, got: usize, now: Instant) -> Option<Instant> {
        if got == 0 {
            return None;
        }
        Some(*self.0.get_or_insert(now + PATIENCE))
    }
}

/// What a connection has to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// At least one byte.
    Bytes,
    /// Only its end.
    End,
}

/// A connected, non-blocking socket. Its methods are called by a task of the runtime in which it was
/// made.
pub(crate) struct Connection {
    socket: Watched,
}

impl Connection {
    /// Registers the socket with the runtime of the calling task.
    ///
    /// # Errors
    /// The kernel cannot watch the socket: no memory, or too many watches of this user.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { socket: Watched::new(socket)? })
    }

    /// Completes when there is something to receive: bytes, or the end of the connection. Cancel
    /// safe.
    pub(crate) async fn wait(&self) -> Pending {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match self.socket.read(|socket| Ok(recv(socket, &mut [0_u8; 1], flags)?)).await {
            Ok((_, bytes)) if bytes > 0 => Pending::Bytes,
            // `receive` finds the reason.
            Ok(_) | Err(_) => Pending::End,
        }
    }

    /// Returns true if the front-end has closed its side, so that the connection will end.
    pub(crate) fn is_hung_up(&self) -> io::Result<bool> {
        is_hung_up(self.socket.as_fd())
    }

    /// Receives a message. Once it has begun, the rest of it must follow within [`PATIENCE`]. Not
    /// cancel safe: the connection is unusable after a cancelled call.
    ///
    /// # Errors
    /// The connection has ended, or the front-end broke the protocol.
    pub(crate) async fn receive(&self) -> Result<Incoming, End> {
        let mut fds = Vec::new();
        let mut head = [0; HEADER_BYTES];
        self.fill(&mut head, 0, HEADER_BYTES, &mut fds).await?;
        let header = Header::decode(&head)?;
        let mut payload = [0; PAYLOAD_BYTES_MAX];
        let payload = payload.get_mut(..header.size).unwrap_or_default();
        self.fill(payload, HEADER_BYTES, HEADER_BYTES + header.size, &mut fds).await?;
        let message = Message::parse(&header, payload, fds)?;
        Ok(Incoming { header, message })
    }

    /// Sends a reply to `request`. Not cancel safe.
    ///
    /// # Errors
    /// The connection has ended, or the front-end has not read the reply within [`PATIENCE`].
    pub(crate) async fn answer(&self, request: Request, reply: &Reply) -> Result<(), End> {
        let bytes = reply.encode(request);
        let deadline = Instant::now() + PATIENCE;
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = bytes.get(sent..).unwrap_or_default();
            // The descriptor is sent with the first byte.
            let fd = reply.fd().filter(|_| sent == 0);
            let sending = self.socket.write(|socket| Ok(send_part(socket, rest, fd)?));
            let result = timeout_at(deadline.into(), sending).await.map_err(|_| End::Deaf)?;
            sent += result.map_err(end_of)?;
        }
        Ok(())
    }

    /// Fills `into`. `before` bytes of the message were received earlier, and its length as far as
    /// it is known is `expected`. Appends received descriptors to `fds`.
    async fn fill(
        &self,
        into: &mut [u8],
        before: usize,
        expected: usize,
        fds: &mut Vec<OwnedFd>,
    ) -> Result<(), End> {
        let mut filled = 0;
        let mut rest_by = RestBy::default();
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let got = before + filled;
            let deadline = rest_by.deadline(got, Instant::now());
            let receiving = self.socket.read(|socket| receive_part(socket, rest, fds));
            let result = match deadline {
                None => receiving.await,
                Some(deadline) => timeout_at(deadline.into(), receiving)
                    .await
                    .map_err(|_| End::Stalled { got, expected })?,
            };
            match result.map_err(end_of)? {
                0 if got == 0 => return Err(End::Left),
                0 => return Err(End::Truncated { got, expected }),
                bytes => filled += bytes,
            }
            if fds.len() > FDS_MAX {
                return Err(End::Descriptors);
            }
        }
        Ok(())
    }
}

/// Returns how a connection ended of which a system call failed.
fn end_of(error: io::Error) -> End {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => End::Left,
        // See `receive_part`.
        io::ErrorKind::InvalidData => End::Descriptors,
        _ => End::Socket(error),
    }
}

/// Returns the number of bytes that the socket accepted.
fn send_part(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fd: Option<BorrowedFd<'_>>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(fd) = &fd {
        control.push(SendAncillaryMessage::ScmRights(core::slice::from_ref(fd)));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)
}

/// Receives bytes, and descriptors that came with them.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`]: more descriptors came than any message has.
fn receive_part(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut ancillary, flags)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_message_is_waited_for_from_its_beginning_not_from_that_of_the_idle_time() {
        let mut rest_by = RestBy::default();
        let idle = Instant::now();
        assert_eq!(rest_by.deadline(0, idle), None);
        let began = idle + 100 * PATIENCE;
        assert_eq!(rest_by.deadline(0, began), None);
        assert_eq!(rest_by.deadline(3, began), Some(began + PATIENCE));
        // Bytes that come one by one do not extend it.
        assert_eq!(rest_by.deadline(4, began + PATIENCE / 2), Some(began + PATIENCE));
    }
}
