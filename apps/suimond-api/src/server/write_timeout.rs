//! Connection with a time limit for the peer to read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::connections::{Activity, ConnectionSlot};

/// Connection that fails if the peer accepts no written data for some time.
pub(super) struct WriteTimeout<C> {
    connection: C,
    slot: Arc<ConnectionSlot>,
    timeout: Duration,
    waiting: Option<BlockedWrite>,
}

/// Write that is blocked by the peer.
struct BlockedWrite {
    until: Pin<Box<Sleep>>,
    _busy: Activity,
}

impl<C> WriteTimeout<C> {
    /// Wraps a connection. `timeout` is the longest time for which the peer may accept no data.
    pub(super) fn new(connection: C, slot: Arc<ConnectionSlot>, timeout: Duration) -> Self {
        Self { connection, slot, timeout, waiting: None }
    }

    /// Returns the result of a write, or an error if writes have been blocked for too long.
    fn bounded<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let Self { slot, timeout, .. } = self;
        let waiting = self.waiting.get_or_insert_with(|| BlockedWrite {
            until: Box::pin(tokio::time::sleep(*timeout)),
            _busy: slot.begin_activity(),
        });
        waiting.until.as_mut().poll(context).map(|()| {
            let text = format!("the peer has read nothing for {} s", timeout.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        })
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for WriteTimeout<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, buffer)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write(context, bytes);
        self.bounded(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write_vectored(context, pieces);
        self.bounded(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.connection).poll_flush(context) {
            // Flushing a socket always succeeds, which does not indicate that the peer reads.
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            other => self.bounded(context, other),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = Pin::new(&mut self.connection).poll_shutdown(context);
        self.bounded(context, shutdown)
    }
}
