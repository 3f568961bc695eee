//! Copying of bytes between a Unix socket on this host and a client or another node: serial
//! consoles, memory of migrating VMs, NBD.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};
use suimon_unix_socket::{AttachedDescriptors, CloseQueue, refuse_descriptors};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::UnixStream;

/// Size of a read in each direction, in bytes: as many bytes as TLS converts to records without
/// waiting for the socket.
const BUFFER_BYTES: usize = 256 << 10;
/// Maximum number of threads that close sockets. If this number of closes is in progress or queued,
/// [`local`] refuses further sockets.
const CLOSING_MAX: usize = 64;
/// Interval of checks for a closed end that has no more data to send.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Unix socket of this host whose peer is a process of a VM or this daemon.
#[derive(Debug)]
pub struct LocalSocket(Arc<Socket>);

#[derive(Debug)]
struct Socket {
    stream: UnixStream,
    /// Owner of the descriptors that the peer attaches to messages; `None` if the kernel refuses
    /// them. Dropped after `stream`.
    guard: Option<AttachedDescriptors>,
}

/// Threads that close sockets and the descriptors received through them, because their close may
/// block (`docs/decisions/0086-descriptors-attached-by-peers.md`).
static CLOSES: LazyLock<CloseQueue> = LazyLock::new(|| CloseQueue::new(CLOSING_MAX));

/// Registers a Unix socket of this host with the current async runtime.
///
/// # Errors
/// The descriptor is not a Unix socket, the process has no free descriptor, or [`CLOSING_MAX`]
/// earlier closes have not ended.
pub fn register_local_socket(end: OwnedFd) -> io::Result<LocalSocket> {
    let is_guarded = !refuse_descriptors(&end);
    LocalSocket::new(end, is_guarded)
}

impl LocalSocket {
    fn new(end: OwnedFd, is_guarded: bool) -> io::Result<Self> {
        let guard = match is_guarded.then(|| guard(&end)).transpose() {
            Ok(guard) => guard,
            Err(error) => {
                // The close of this socket may block, too.
                CLOSES.close(end);
                return Err(error);
            }
        };
        let end = std::os::unix::net::UnixStream::from(end);
        end.set_nonblocking(true)?;
        Ok(Self(Arc::new(Socket { stream: UnixStream::from_std(end)?, guard })))
    }
}

/// Creates the owner of descriptors that the peer of a socket attaches.
fn guard(socket: &OwnedFd) -> io::Result<AttachedDescriptors> {
    if CLOSES.pending_count() >= CLOSING_MAX {
        let text = "QEMU processes delay the close of earlier connections; end the VMs whose \
                    consoles or migrations ended with an error";
        return Err(io::Error::other(text));
    }
    AttachedDescriptors::new(socket, &CLOSES)
}

impl Socket {
    /// Reads data without blocking.
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(guard) = &self.guard else { return self.stream.try_read(buffer) };
        self.stream.try_io(Interest::READABLE, || {
            guard.receive(self.stream.as_fd(), &mut [IoSliceMut::new(buffer)])
        })
    }
}

impl AsyncRead for LocalSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.stream.poll_read_ready(context))?;
            match self.0.try_read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => {
                    buffer.advance(read?);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for LocalSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.stream.poll_write_ready(context))?;
            match self.0.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&self.0.stream, Shutdown::Write).map_err(Into::into))
    }
}

/// Copies bytes in both directions. When one end shuts down its writing side, the other end is shut
/// down in this direction, and the opposite direction continues. When an end is closed or fails,
/// the other end is closed after the remaining bytes have been delivered.
///
/// # Errors
/// An end failed.
pub async fn copy_bidirectional<S>(far: S, local: LocalSocket) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send,
{
    let socket = Arc::clone(&local.0);
    let (far_reads, far_writes) = tokio::io::split(far);
    let (local_reads, local_writes) = tokio::io::split(local);
    let out = copy_one_direction(local_reads, far_writes);
    let inbound = copy_one_direction(far_reads, local_writes);
    tokio::pin!(out, inbound);
    tokio::select! {
        ended = &mut out => {
            ended?;
            tokio::select! {
                ended = inbound => ended,
                () = closed(&socket) => Ok(()),
            }
        }
        ended = &mut inbound => {
            ended?;
            out.await
        }
    }
}

async fn copy_one_direction<R, W>(mut from: R, mut to: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return to.shutdown().await;
        };
        to.write_all(bytes).await?;
        to.flush().await?;
    }
}

/// Returns when the other end of a Unix socket is closed. Checks every [`POLL_INTERVAL`].
async fn closed(socket: &Socket) {
    loop {
        let mut poll_fds = [PollFd::new(&socket.stream, PollFlags::empty())];
        let poll_result = poll(&mut poll_fds, Some(&Timespec::default()));
        let [poll_fd] = poll_fds;
        if poll_result.is_err() || poll_fd.revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
#[path = "byte_relay_tests.rs"]
mod tests;
