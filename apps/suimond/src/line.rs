//! Bytes carried between a Unix socket on this host and a client or node: consoles, memory of VMs
//! that move, NBD.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

/// Bytes read at a time, of each direction: as many as TLS makes records of without waiting for
/// the socket.
const BUFFER_BYTES: usize = 256 << 10;
/// How often it is looked whether an end is gone that has nothing more to say.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A socket of this host for the runtime that calls.
///
/// # Errors
/// It is no Unix socket, or descriptors are short.
pub(crate) fn local(end: OwnedFd) -> io::Result<UnixStream> {
    let end = std::os::unix::net::UnixStream::from(end);
    end.set_nonblocking(true)?;
    UnixStream::from_std(end)
}

/// Carries bytes both ways. An end that says it will write no more is told to the other, which may
/// go on; when an end is gone or fails, the other is let go of at once, after what was written
/// before has been handed on.
///
/// # Errors
/// An end failed.
pub async fn carry<S>(far: S, local: UnixStream) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send,
{
    let (far_reads, far_writes) = tokio::io::split(far);
    let (local_reads, local_writes) = local.into_split();
    let watched = rustix::io::fcntl_dupfd_cloexec(local_reads.as_ref().as_fd(), 3)?;
    let out = one_way(local_reads, far_writes);
    let back = one_way(far_reads, local_writes);
    tokio::pin!(out, back);
    tokio::select! {
        ended = &mut out => {
            ended?;
            tokio::select! {
                ended = back => ended,
                () = gone(&watched) => Ok(()),
            }
        }
        ended = &mut back => {
            ended?;
            out.await
        }
    }
}

async fn one_way<R, W>(mut from: R, mut to: W) -> io::Result<()>
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

/// Returns when nobody has the other end of a Unix socket any more.
async fn gone(socket: &OwnedFd) {
    loop {
        let mut look = [PollFd::new(socket, PollFlags::empty())];
        let looked = poll(&mut look, Some(&Timespec::default()));
        let [look] = look;
        if looked.is_err() || look.revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
