//! Acceptance of front-ends, one at a time.
//!
//! A process that connects to the socket is not yet a front-end. A connection on which nothing was
//! sent is kept aside, causes no notice, and cannot block a VM that connects later. The first
//! connection that sends something becomes the front-end. The others are closed, as are those that
//! arrive while it is served.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suimon_ports::{DeviceError, VhostUserMode};
use suimon_socket_runtime::{SocketRuntime, Task, TaskStop, WatchedFd, run_blocking};
use suimon_unix_socket::{accept, connect_to, probe_connecting, probe_listening};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::sleep;

use crate::connection::{Connection, PendingInput};
use crate::model::DeviceName;
use crate::peer_limits::PeerLimits;

/// Maximum number of connections on which nothing was sent. A further one replaces the oldest.
const SILENT_MAX: usize = 8;
/// Initial interval between two attempts to connect to a listening front-end. It doubles up to
/// `RETRY_MAX`.
const RETRY_MIN: Duration = Duration::from_millis(50);
/// Maximum interval between two attempts to connect.
const RETRY_MAX: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted because the process or host has no free
/// descriptor.
const SHORTAGE: Duration = Duration::from_millis(200);

/// Reason why further connections are not closed any more while a front-end is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RejectionEnd {
    /// The process or host has no free descriptor to accept them.
    DescriptorShortage,
    /// A pending connection replaces the front-end that is served, whose process has exited.
    Replaced,
}

/// Source of connections of front-ends.
pub(crate) enum Acceptor {
    /// The device listens on its socket.
    Listening(WatchedFd),
    /// The front-end listens. A task of another runtime connects, because the threads that read
    /// messages of front-ends may not open files.
    Connecting {
        /// Channel that requests a connection.
        requests: Sender<()>,
        /// Channel that receives the requested connection.
        sockets: Receiver<OwnedFd>,
    },
}

impl Acceptor {
    /// Creates a source that accepts connections of `listener`.
    ///
    /// # Errors
    /// The kernel cannot watch the socket.
    pub(crate) fn listening(listener: OwnedFd, runtime: &SocketRuntime) -> io::Result<Self> {
        let _guard = runtime.enter();
        Ok(Self::Listening(WatchedFd::readable(listener)?))
    }

    /// Creates a source that connects to front-ends listening on `path`, in a task of `runtime`.
    pub(crate) fn connecting(path: PathBuf, runtime: &SocketRuntime) -> (Self, Task) {
        let (request_sender, requests) = channel(1);
        let (socket_sender, sockets) = channel(1);
        let task = runtime.spawn(|mut stop: TaskStop| async move {
            tokio::select! {
                () = stop.wait() => {}
                () = connect_on_request(path, requests, socket_sender) => {}
            }
        });
        (Self::Connecting { requests: request_sender, sockets }, task)
    }

    /// Waits for the next front-end: the first connection on which something was sent. Returns
    /// `None` if the front-end listens and the task that connects has ended.
    pub(crate) async fn next(&mut self, name: DeviceName) -> Option<Connection> {
        match self {
            Self::Listening(listener) => Some(next_speaker(listener, name).await),
            Self::Connecting { requests: request_sender, sockets } => loop {
                request_sender.send(()).await.ok()?;
                match Connection::new(sockets.recv().await?) {
                    Ok(connection) => return Some(connection),
                    Err(error) => pause_for_shortage(name, &error).await,
                }
            },
        }
    }

    /// Accepts and closes connections that arrive while the front-end of `served` is served, at a
    /// limited rate. Completes if the process or host has no free descriptor, or if a pending
    /// connection may replace `served`: its front-end has disconnected, or its process has exited
    /// and `may_replace` is true. Cancel safe.
    pub(crate) async fn reject(
        &self,
        name: DeviceName,
        (served, may_replace): (&Connection, bool),
        limits: &mut PeerLimits,
    ) -> RejectionEnd {
        let Self::Listening(listener) = self else { return std::future::pending().await };
        loop {
            sleep(limits.rejections.delay(Instant::now())).await;
            let closed =
                listener.read(|listener| accept_other(listener, served, may_replace)).await;
            if matches!(closed, Ok(None)) {
                return RejectionEnd::Replaced;
            }
            let now = Instant::now();
            limits.rejections.record(now);
            if let Some(left_out) = limits.rejected_connections_log.try_log(now) {
                match &closed {
                    Ok(_) => {
                        tracing::warn!(device = %name, left_out, "another front-end was rejected");
                    }
                    Err(error) => {
                        tracing::warn!(
                            device = %name, %error, left_out,
                            "cannot reject another front-end"
                        );
                    }
                }
            }
            if closed.is_err() {
                return RejectionEnd::DescriptorShortage;
            }
        }
    }
}

/// Accepts a connection that arrived while `served` is served, so that the caller closes it.
/// Returns `None`, and leaves the connection pending, if it may replace `served`: the front-end of
/// `served` has disconnected, or its process has exited and `may_replace` is true.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if no connection is pending, and the errors of [`accept`].
fn accept_other(
    listener: BorrowedFd<'_>,
    served: &Connection,
    may_replace: bool,
) -> io::Result<Option<OwnedFd>> {
    if served.is_hung_up()? {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    if may_replace && served.has_peer_exited() {
        return if is_readable(listener)? {
            Ok(None)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        };
    }
    accept(listener).map(Some)
}

/// Returns true if a connection is pending.
fn is_readable(listener: BorrowedFd<'_>) -> io::Result<bool> {
    let mut polled = [PollFd::new(&listener, PollFlags::IN)];
    Ok(poll(&mut polled, Some(&Timespec::default()))? == 1)
}

/// Checks whether a device's socket could be opened, without changing anything.
///
/// # Errors
/// The error that opening it would return.
pub(crate) fn probe(socket: &Path, mode: VhostUserMode) -> Result<(), DeviceError> {
    match mode {
        VhostUserMode::Server => probe_listening(socket),
        VhostUserMode::Client => probe_connecting(socket),
    }
}

/// Connects to `path` once for each request, repeatedly until it succeeds, and sends the socket to
/// `socket_sender`.
async fn connect_on_request(
    path: PathBuf,
    mut requests: Receiver<()>,
    socket_sender: Sender<OwnedFd>,
) {
    while requests.recv().await.is_some() {
        let mut retry = RETRY_MIN;
        let socket = loop {
            let path = path.clone();
            // In a thread for blocking calls: the path may be on a file system that does not
            // respond.
            if let Ok(Ok(socket)) = run_blocking(move || connect_to(&path)).await {
                break socket;
            }
            sleep(retry).await;
            retry = (retry * 2).min(RETRY_MAX);
        };
        if socket_sender.send(socket).await.is_err() {
            return;
        }
    }
}

/// Accepts connections until something was sent on one of them, and returns that connection. Keeps
/// at most [`SILENT_MAX`] others.
async fn next_speaker(listener: &WatchedFd, name: DeviceName) -> Connection {
    let mut silent: VecDeque<Connection> = VecDeque::new();
    loop {
        tokio::select! {
            biased;
            (nth, pending) = first_pending(&silent) => {
                // A connection that was only closed is dropped here.
                if let (Some(connection), PendingInput::Bytes) = (silent.remove(nth), pending) {
                    return connection;
                }
            }
            accepted = listener.read(accept) => match accepted.and_then(Connection::new) {
                Ok(connection) => {
                    if silent.len() >= SILENT_MAX {
                        silent.pop_front();
                    }
                    silent.push_back(connection);
                }
                Err(error) => pause_for_shortage(name, &error).await,
            },
        }
    }
}

/// Waits until one of the connections has data or has ended. Returns the index of the first one,
/// and which of both. Cancel safe.
async fn first_pending(connections: &VecDeque<Connection>) -> (usize, PendingInput) {
    let mut waits: Vec<_> =
        connections.iter().map(|connection| Box::pin(connection.wait())).collect();
    poll_fn(|context| {
        for (index, wait) in waits.iter_mut().enumerate() {
            if let Poll::Ready(pending) = wait.as_mut().poll(context) {
                return Poll::Ready((index, pending));
            }
        }
        Poll::Pending
    })
    .await
}

async fn pause_for_shortage(name: DeviceName, error: &io::Error) {
    tracing::warn!(device = %name, %error, "cannot accept a front-end");
    sleep(SHORTAGE).await;
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use suimon_socket_runtime::ThreadHooks;

    use super::*;

    #[test]
    fn the_successor_of_a_front_end_that_has_just_disconnected_is_not_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let runtime = SocketRuntime::new("door", 1, ThreadHooks::default()).unwrap();
        let _guard = runtime.enter();
        let (front_end, back_end) = UnixStream::pair().unwrap();
        back_end.set_nonblocking(true).unwrap();
        let served = Connection::new(back_end.into()).unwrap();
        let other = UnixStream::connect(&path).unwrap();
        assert!(
            accept_other(listener.as_fd(), &served, false).is_ok(),
            "the connection was not accepted"
        );
        drop((front_end, other));
        let _successor = UnixStream::connect(&path).unwrap();
        let error = accept_other(listener.as_fd(), &served, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(accept(listener.as_fd()).is_ok(), "it was closed");
    }
}
