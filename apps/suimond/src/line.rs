//! Copying of bytes between a Unix socket on this host and a client or node: serial consoles,
//! memory of migrating VMs, NBD.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suimon_unix_socket::refuse_descriptors;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

/// Size of a read in each direction, in bytes: as many bytes as TLS converts to records without
/// waiting for the socket.
const BUFFER_BYTES: usize = 256 << 10;
/// Interval of checks for a closed end that has no more data to send.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Registers a Unix socket of this host with the current async runtime.
///
/// # Errors
/// The descriptor is not a Unix socket, or no descriptor is left.
pub(crate) fn local(end: OwnedFd) -> io::Result<UnixStream> {
    // The thread that reads would close descriptors, which may block.
    refuse_descriptors(&end);
    let end = std::os::unix::net::UnixStream::from(end);
    end.set_nonblocking(true)?;
    UnixStream::from_std(end)
}

/// Copies bytes in both directions. When one end shuts down its writing side, the other end is shut
/// down in this direction, and the opposite direction continues. When an end is closed or fails,
/// the other end is closed after the remaining bytes have been delivered.
///
/// # Errors
/// An end failed.
pub async fn copy<S>(far: S, local: UnixStream) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send,
{
    let (far_reads, far_writes) = tokio::io::split(far);
    let (local_reads, local_writes) = local.into_split();
    let watched = rustix::io::fcntl_dupfd_cloexec(local_reads.as_ref().as_fd(), 3)?;
    let out = copy_one_direction(local_reads, far_writes);
    let back = copy_one_direction(far_reads, local_writes);
    tokio::pin!(out, back);
    tokio::select! {
        ended = &mut out => {
            ended?;
            tokio::select! {
                ended = back => ended,
                () = closed(&watched) => Ok(()),
            }
        }
        ended = &mut back => {
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

/// Returns when the other end of a Unix socket is closed.
async fn closed(socket: &OwnedFd) {
    loop {
        let mut look = [PollFd::new(socket, PollFlags::empty())];
        let looked = poll(&mut look, Some(&Timespec::default()));
        let [look] = look;
        if looked.is_err() || look.revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
