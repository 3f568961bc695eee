//! One front-end's connection: whole messages in, answers out.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use thiserror::Error;

use crate::message::{FDS_MAX, HEADER_BYTES, Header, Message, MessageError, PAYLOAD_BYTES_MAX};
use crate::reply::Reply;
use crate::request::Request;

/// How long the rest of a message, or room for an answer, is waited for. Both
/// sides are processes of one host; who takes longer than this is stuck.
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

/// A connected socket that does not block, and the descriptor that ends waiting.
pub(crate) struct Connection<'stop> {
    socket: OwnedFd,
    stop: BorrowedFd<'stop>,
}

impl<'stop> Connection<'stop> {
    pub(crate) fn new(socket: OwnedFd, stop: BorrowedFd<'stop>) -> Self {
        Self { socket, stop }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes the message that the socket has, or waits for one. Once it began, the
    /// rest of it must follow soon.
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) fn receive(&self) -> Result<Incoming, End> {
        let mut fds = Vec::new();
        let mut head = [0; HEADER_BYTES];
        self.fill(&mut head, 0, HEADER_BYTES, &mut fds)?;
        let header = Header::decode(&head)?;
        let mut payload = [0; PAYLOAD_BYTES_MAX];
        let payload = payload.get_mut(..header.size).unwrap_or_default();
        self.fill(payload, HEADER_BYTES, HEADER_BYTES + header.size, &mut fds)?;
        let message = Message::parse(&header, payload, fds)?;
        Ok(Incoming { header, message })
    }

    /// Sends an answer to `request`.
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) fn answer(&self, request: Request, reply: &Reply) -> Result<(), End> {
        let bytes = reply.encode(request);
        let mut rest = bytes.as_slice();
        let fd = reply.fd();
        let deadline = Instant::now() + PATIENCE;
        while !rest.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            // The descriptor goes with the first byte.
            if let (Some(fd), true) = (&fd, rest.len() == bytes.len()) {
                control.push(SendAncillaryMessage::ScmRights(core::slice::from_ref(fd)));
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match sendmsg(&self.socket, &[IoSlice::new(rest)], &mut control, flags) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(Errno::AGAIN) => {
                    if !self.wait(PollFlags::OUT, Some(deadline))? {
                        return Err(End::Deaf);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(End::Left),
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
        }
        Ok(())
    }

    /// Fills `into`; `before` bytes of the message came earlier, `expected` is
    /// the length announced so far. Collects descriptors on the way.
    fn fill(
        &self,
        into: &mut [u8],
        before: usize,
        expected: usize,
        fds: &mut Vec<OwnedFd>,
    ) -> Result<(), End> {
        let mut filled = 0;
        let mut rest_by = RestBy::default();
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.receive_part(rest, fds) {
                Ok(0) if before + filled == 0 => return Err(End::Left),
                Ok(0) => return Err(End::Truncated { got: before + filled, expected }),
                Ok(bytes) => filled += bytes,
                Err(End::Socket(error)) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        let limit = rest_by.deadline(before + filled, Instant::now());
                        if !self.wait(PollFlags::IN, limit)? {
                            return Err(End::Stalled { got: before + filled, expected });
                        }
                    }
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::ConnectionReset => return Err(End::Left),
                    _ => return Err(End::Socket(error)),
                },
                Err(end) => return Err(end),
            }
        }
        Ok(())
    }

    fn receive_part(&self, into: &mut [u8], fds: &mut Vec<OwnedFd>) -> Result<usize, End> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = recvmsg(&self.socket, &mut [IoSliceMut::new(into)], &mut ancillary, flags)
            .map_err(io::Error::from)?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) || fds.len() > FDS_MAX {
            return Err(End::Descriptors);
        }
        Ok(received.bytes)
    }

    /// Waits until the socket is ready, the deadline (then `false`) or the end.
    fn wait(&self, flags: PollFlags, deadline: Option<Instant>) -> Result<bool, End> {
        let mut fds = [PollFd::new(&self.stop, PollFlags::IN), PollFd::new(&self.socket, flags)];
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, limit.as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
        let [stop, _] = &fds;
        if stop.revents().is_empty() { Ok(true) } else { Err(End::Stopped) }
    }
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
