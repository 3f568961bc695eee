//! Connection with a time limit for the peer to read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::connections::{Busy, Place};

/// Connection that fails if the peer accepts no written data for some time.
pub(super) struct Patient<C> {
    connection: C,
    place: Arc<Place>,
    patience: Duration,
    waiting: Option<Waiting>,
}

/// Write that is blocked by the peer.
struct Waiting {
    until: Pin<Box<Sleep>>,
    _busy: Busy,
}

impl<C> Patient<C> {
    /// Wraps a connection. `patience` is the longest time for which the peer may accept no data.
    pub(super) fn new(connection: C, place: Arc<Place>, patience: Duration) -> Self {
        Self { connection, place, patience, waiting: None }
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
        let Self { place, patience, .. } = self;
        let waiting = self.waiting.get_or_insert_with(|| Waiting {
            until: Box::pin(tokio::time::sleep(*patience)),
            _busy: place.begin(),
        });
        waiting.until.as_mut().poll(context).map(|()| {
            let text = format!("the peer has read nothing for {} s", patience.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        })
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Patient<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, buffer)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Patient<C> {
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
        let ended = Pin::new(&mut self.connection).poll_shutdown(context);
        self.bounded(context, ended)
    }
}
