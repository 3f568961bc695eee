//! Connection of one front-end: receives complete messages and sends replies.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, recv, sendmsg,
    shutdown,
};
use rustix::process::{PidfdFlags, pidfd_open};
use suimon_socket_runtime::WatchedFd;
use suimon_unix_socket::{is_hung_up, receive_with_descriptors};
use thiserror::Error;
use tokio::time::timeout_at;

use crate::message::{
    FDS_MAX, FrontEndMessage, HEADER_BYTES, Header, MessageError, PAYLOAD_BYTES_MAX,
};
use crate::received_descriptors::{ClosingDescriptors, ReceivedDescriptors, descriptor_kind};
use crate::reply::VhostUserReply;
use crate::request::Request;

/// Maximum time for the remaining bytes of a message to arrive, and for the front-end to read a
/// reply. Both processes are on one host: a front-end that takes longer has failed.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Reason why a connection ended.
#[derive(Debug, Error)]
pub(crate) enum ConnectionEnd {
    /// The owner of the device has closed it.
    #[error("the device was closed")]
    Stopped,
    /// The front-end closed its end between two messages.
    #[error("the front-end disconnected")]
    PeerClosed,
    /// The front-end closed its end inside a message.
    #[error("the connection ended after {received_bytes} of {expected_bytes} bytes of a message")]
    Truncated {
        /// Bytes of the message received so far.
        received_bytes: usize,
        /// Length of the message in bytes, with its header.
        expected_bytes: usize,
    },
    /// The rest of a message did not arrive in time.
    #[error(
        "{received_bytes} of {expected_bytes} bytes of a message were received, the rest did not follow"
    )]
    Stalled {
        /// Bytes of the message received so far.
        received_bytes: usize,
        /// Length of the message in bytes, with its header.
        expected_bytes: usize,
    },
    /// The front-end does not read its replies.
    #[error("the front-end does not read replies")]
    NotReading,
    /// A message with more descriptors than any request carries.
    #[error("a message has more than {FDS_MAX} descriptors")]
    TooManyDescriptors,
    /// The front-end sent a descriptor of a kind that no message carries.
    #[error("{request}: the descriptor is not {}", descriptor_kind(*.request))]
    UnexpectedDescriptorKind {
        /// Request with which the descriptor was sent.
        request: Request,
    },
    /// Message that could not be parsed.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// Another front-end has connected after the process of this one exited.
    #[error(
        "the front-end's process exited, but its connection is open, because the other end of its \
         back-end channel holds it; another front-end connects"
    )]
    Replaced,
    /// A system call on the socket failed.
    #[error("the socket failed: {0}")]
    Socket(#[from] io::Error),
}

impl ConnectionEnd {
    /// Returns true if the front-end violated the protocol.
    pub(crate) const fn is_violation(&self) -> bool {
        matches!(
            self,
            Self::Truncated { .. }
                | Self::Stalled { .. }
                | Self::NotReading
                | Self::TooManyDescriptors
                | Self::UnexpectedDescriptorKind { .. }
                | Self::Message(_)
        )
    }
}

/// Received message, and its header, which a reply repeats.
pub(crate) struct IncomingMessage {
    pub(crate) header: Header,
    pub(crate) message: FrontEndMessage,
}

/// Time at which a partly received message must be complete; `None` before its first byte.
#[derive(Default)]
struct MessageDeadline(Option<Instant>);

impl MessageDeadline {
    /// Returns the time until which a wait that begins at `now`, after `received` bytes of the
    /// message, may last: [`MESSAGE_TIMEOUT`] after the first wait inside the message. Returns
    /// `None` before the message begins, because a front-end may be idle indefinitely.
    fn deadline(&mut self, received: usize, now: Instant) -> Option<Instant> {
        if received == 0 {
            return None;
        }
        Some(*self.0.get_or_insert(now + MESSAGE_TIMEOUT))
    }
}

/// Which data is ready to be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingInput {
    /// At least one byte of a message.
    Bytes,
    /// Only the end of the connection.
    End,
}

/// Connected, non-blocking socket of a front-end. Its methods must be called by a task of the
/// runtime in which it was created.
pub(crate) struct Connection {
    socket: WatchedFd,
    /// Counter of the front-end's descriptors that are being closed.
    closing: Arc<ClosingDescriptors>,
    /// pidfd of the process that connected; `None` if it is not known.
    peer: Option<OwnedFd>,
    /// Receive buffer. Keeps the socket open while messages are unread: closing the socket closes
    /// their descriptors, which may block.
    unread: ReceivedDescriptors,
}

impl Connection {
    /// Registers the socket with the runtime of the calling task.
    ///
    /// # Errors
    /// The kernel cannot watch the socket: no memory, or too many watches of this user.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        let peer = peer_process(socket.as_fd());
        let closing = Arc::default();
        let unread = ReceivedDescriptors::new(&closing);
        Ok(Self { socket: WatchedFd::new(socket)?, closing, peer, unread })
    }

    /// Waits until bytes or the end of the connection can be received. Cancel safe.
    pub(crate) async fn wait(&self) -> PendingInput {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match self.socket.read(|socket| Ok(recv(socket, &mut [0_u8; 1], flags)?)).await {
            Ok((_, bytes)) if bytes > 0 => PendingInput::Bytes,
            // `receive` determines the reason.
            Ok(_) | Err(_) => PendingInput::End,
        }
    }

    /// Returns the counter of the front-end's descriptors that are being closed.
    pub(crate) fn closing_descriptors(&self) -> Arc<ClosingDescriptors> {
        Arc::clone(&self.closing)
    }

    /// Returns true if the process that connected has exited. Another process may hold the
    /// connection.
    pub(crate) fn has_peer_exited(&self) -> bool {
        let Some(peer) = &self.peer else { return false };
        let mut polled = [PollFd::new(peer, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())) == Ok(1)
    }

    /// Returns true if the front-end has closed its side, so that the connection will end.
    pub(crate) fn is_hung_up(&self) -> io::Result<bool> {
        is_hung_up(self.socket.as_fd())
    }

    /// Receives a message. Once its first byte has arrived, the rest must follow within
    /// [`MESSAGE_TIMEOUT`]. Not cancel safe: the connection is unusable after a cancelled call.
    ///
    /// # Errors
    /// The connection has ended, or the front-end violated the protocol.
    pub(crate) async fn receive(&self) -> Result<IncomingMessage, ConnectionEnd> {
        let mut received = ReceivedDescriptors::new(&self.closing);
        let fds = &mut received.fds;
        let mut header_bytes = [0; HEADER_BYTES];
        self.fill(&mut header_bytes, 0, HEADER_BYTES, fds).await?;
        let header = Header::decode(&header_bytes)?;
        let mut payload = [0; PAYLOAD_BYTES_MAX];
        let payload = payload.get_mut(..header.size).unwrap_or_default();
        self.fill(payload, HEADER_BYTES, HEADER_BYTES + header.size, fds).await?;
        let request = header.request;
        let fds =
            received.take_accepted().ok_or(ConnectionEnd::UnexpectedDescriptorKind { request })?;
        let message = FrontEndMessage::parse(&header, payload, fds)?;
        Ok(IncomingMessage { header, message })
    }

    /// Sends a reply to `request`. Not cancel safe.
    ///
    /// # Errors
    /// The connection has ended, or the front-end has not read the reply within
    /// [`MESSAGE_TIMEOUT`].
    pub(crate) async fn send_reply(
        &self,
        request: Request,
        reply: &VhostUserReply,
    ) -> Result<(), ConnectionEnd> {
        let bytes = reply.encode(request);
        let deadline = Instant::now() + MESSAGE_TIMEOUT;
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = bytes.get(sent..).unwrap_or_default();
            // The descriptor is sent with the first byte.
            let fd = reply.fd().filter(|_| sent == 0);
            let sending = self.socket.write(|socket| Ok(send_part(socket, rest, fd)?));
            let result = timeout_at(deadline.into(), sending)
                .await
                .map_err(|_| ConnectionEnd::NotReading)?;
            sent += result.map_err(connection_end)?;
        }
        Ok(())
    }

    /// Receives bytes until `buffer` is full. `before` is the number of bytes of the message
    /// received earlier, and `expected` the length of the message, as far as it is known; both for
    /// errors. Appends received descriptors to `fds`.
    async fn fill(
        &self,
        buffer: &mut [u8],
        before: usize,
        expected: usize,
        fds: &mut Vec<OwnedFd>,
    ) -> Result<(), ConnectionEnd> {
        let mut filled = 0;
        let mut rest_by = MessageDeadline::default();
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let received = before + filled;
            let deadline = rest_by.deadline(received, Instant::now());
            let receiving = self
                .socket
                .read(|socket| receive_with_descriptors(socket, &mut [IoSliceMut::new(rest)], fds));
            let result = match deadline {
                None => receiving.await,
                Some(deadline) => timeout_at(deadline.into(), receiving).await.map_err(|_| {
                    ConnectionEnd::Stalled { received_bytes: received, expected_bytes: expected }
                })?,
            };
            match result.map_err(connection_end)? {
                0 if received == 0 => return Err(ConnectionEnd::PeerClosed),
                0 => {
                    return Err(ConnectionEnd::Truncated {
                        received_bytes: received,
                        expected_bytes: expected,
                    });
                }
                bytes => filled += bytes,
            }
            if fds.len() > FDS_MAX {
                return Err(ConnectionEnd::TooManyDescriptors);
            }
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Nothing more arrives.
        let _ = shutdown(&self.socket, Shutdown::Both);
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = recv(&self.socket, &mut [0_u8; 1], flags);
        if peeked.is_ok_and(|(_, bytes)| bytes > 0) {
            self.unread.fds.extend(self.socket.as_fd().try_clone_to_owned());
        }
    }
}

/// Opens a pidfd of the process at the other end of a connection. Returns `None` if it has exited,
/// or belongs to another PID namespace.
fn peer_process(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let peer = socket_peercred(socket).ok()?;
    pidfd_open(peer.pid, PidfdFlags::empty()).ok()
}

/// Converts the error of a system call to the reason why the connection ended.
fn connection_end(error: io::Error) -> ConnectionEnd {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ConnectionEnd::PeerClosed,
        _ => ConnectionEnd::Socket(error),
    }
}

/// Sends bytes, and `fd` with the first of them. Returns the number of bytes that the socket
/// accepted.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_message_is_waited_for_from_its_beginning_not_from_that_of_the_idle_time() {
        let mut rest_by = MessageDeadline::default();
        let idle = Instant::now();
        assert_eq!(rest_by.deadline(0, idle), None);
        let message_start = idle + 100 * MESSAGE_TIMEOUT;
        assert_eq!(rest_by.deadline(0, message_start), None);
        assert_eq!(rest_by.deadline(3, message_start), Some(message_start + MESSAGE_TIMEOUT));
        // Bytes that arrive one by one do not extend the deadline.
        assert_eq!(
            rest_by.deadline(4, message_start + MESSAGE_TIMEOUT / 2),
            Some(message_start + MESSAGE_TIMEOUT)
        );
    }
}
