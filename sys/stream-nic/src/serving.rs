//! The task that serves a NIC: one QEMU after another, from its connection to its end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use suimon_ports::{DeviceNotice, DeviceStatus, PortObserver, QueueHost};
use suimon_quantity::{Direction, PortId, QueueId};
use suimon_socket_runtime::{Stop, Watched, blocking};
use suimon_unix_socket::accept;
use tokio::time::sleep;

use crate::queues::{StreamSink, StreamSource};
use crate::session::{End, Session};

/// A connection that ends sooner than this, or that broke the protocol, is followed by a pause, which
/// doubles each time. It limits what a client costs that connects repeatedly.
const SOON: Duration = Duration::from_secs(1);
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// Time until the next attempt if the host has no descriptor for a connection.
const SHORTAGE: Duration = Duration::from_millis(200);

/// State of a NIC that its task and its owner share.
pub(crate) struct Shared {
    pub(crate) port: PortId,
    pub(crate) host: Arc<dyn QueueHost>,
    pub(crate) observer: Arc<dyn PortObserver>,
    /// Eventfd that becomes readable when a queue has something to report.
    pub(crate) wake: Arc<OwnedFd>,
    pub(crate) status: Mutex<DeviceStatus>,
}

/// Descriptors that the task watches.
pub(crate) struct Descriptors {
    pub(crate) listener: Watched,
    /// [`Shared::wake`].
    pub(crate) wake: Watched,
}

impl Shared {
    pub(crate) fn status(&self) -> MutexGuard<'_, DeviceStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one QEMU after another until `stop` is set.
    pub(crate) async fn run(self: Arc<Self>, descriptors: Descriptors, mut stop: Stop) {
        let mut pause = Duration::ZERO;
        loop {
            let socket = tokio::select! {
                biased;
                () = stop.wait() => return,
                socket = async {
                    sleep(pause).await;
                    self.next(&descriptors.listener).await
                } => socket,
            };
            let began = Instant::now();
            let session = Arc::new(Session::new(socket, Arc::clone(&self.wake)));
            let (shared, of) = (Arc::clone(&self), Arc::clone(&session));
            let begun = blocking(move || shared.begin(&of)).await;
            let end = match begun {
                Ok(()) => tokio::select! {
                    biased;
                    () = stop.wait() => None,
                    end = self.serve(&descriptors, &session) => Some(end),
                },
                Err(_) => Some(End::Host),
            };
            let is_soon = end.as_ref().is_some_and(End::is_violation) || began.elapsed() < SOON;
            pause = if is_soon { (pause * 2).clamp(PAUSE_MIN, PAUSE_MAX) } else { Duration::ZERO };
            let shared = Arc::clone(&self);
            // If this cannot be executed, the queues are taken back when the NIC is closed.
            let _ = blocking(move || shared.finish(end.as_ref())).await;
        }
    }

    /// Accepts the next QEMU.
    async fn next(&self, listener: &Watched) -> OwnedFd {
        loop {
            match listener.read(accept).await {
                Ok(socket) => return socket,
                Err(error) => {
                    tracing::warn!(port = self.port.0, %error, "cannot accept a legacy NIC");
                    sleep(SHORTAGE).await;
                }
            }
        }
    }

    /// Gives a connection's queues to the switch, and reports the connection. Blocks.
    fn begin(&self, session: &Arc<Session>) {
        let id = |direction| QueueId { port: self.port, direction, index: 0 };
        let sink = StreamSink::new(Arc::clone(session));
        self.host.attach_sink(id(Direction::Egress), Box::new(sink));
        let source = StreamSource::new(Arc::clone(session));
        self.host.attach_source(id(Direction::Ingress), Box::new(source));
        let mut status = self.status();
        status.link_up = true;
        status.queue_pairs = 1;
        drop(status);
        self.observer.handle_notice(self.port, DeviceNotice::LinkUp);
    }

    /// Waits until the connection has ended, and returns why. Cancel safe.
    async fn serve(&self, descriptors: &Descriptors, session: &Session) -> End {
        let mut is_door_open = true;
        loop {
            if let Some(end) = session.end() {
                return end.clone();
            }
            tokio::select! {
                biased;
                _ = descriptors.wake.read(|wake| Ok(rustix::io::read(wake, &mut [0; 8])?)) => {}
                () = wait_for_room(session), if session.is_stalled() => {
                    // The session notes the end of the connection, if this finds it.
                    let _ = session.send_rest();
                }
                other = descriptors.listener.read(|listener| turn_away(listener, session)),
                    if is_door_open =>
                {
                    match other {
                        Ok(Other::TurnedAway) => {
                            tracing::warn!(port = self.port.0, "a second QEMU was turned away");
                        }
                        // The worker may service the queue later and has not read the end of the
                        // connection. The next QEMU need not wait for that.
                        Ok(Other::Successor) => return End::Left,
                        Err(error) => {
                            let port = self.port.0;
                            tracing::warn!(port, %error, "cannot turn a second QEMU away");
                            is_door_open = false;
                        }
                    }
                }
            }
        }
    }

    /// Takes a connection's queues back and reports why. `None`: the NIC is closed, which is not
    /// reported. Blocks.
    fn finish(&self, end: Option<&End>) {
        // The queues go before the notice: whoever hears of it finds them gone.
        self.host.detach_port(self.port);
        let mut status = self.status();
        status.link_up = false;
        status.queue_pairs = 0;
        drop(status);
        let Some(end) = end else { return };
        let reason = end.to_string();
        if end.is_violation() {
            let notice = DeviceNotice::Violation { detail: reason.clone() };
            self.observer.handle_notice(self.port, notice);
        }
        self.observer.handle_notice(self.port, DeviceNotice::LinkDown { reason });
    }
}

/// A connection that arrived while another is served.
enum Other {
    /// It was closed.
    TurnedAway,
    /// It is still pending: the other side of the served connection has closed it.
    Successor,
}

/// Closes a pending connection, unless the served one was closed by its other side.
fn turn_away(listener: BorrowedFd<'_>, session: &Session) -> io::Result<Other> {
    let has_left = readiness(session.socket.as_fd(), PollFlags::OUT)?;
    if has_left.intersects(PollFlags::HUP | PollFlags::ERR) {
        return match readiness(listener, PollFlags::IN)?.is_empty() {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => Ok(Other::Successor),
        };
    }
    accept(listener).map(|_closed| Other::TurnedAway)
}

/// Returns what a descriptor is ready for.
fn readiness(fd: BorrowedFd<'_>, wanted: PollFlags) -> io::Result<PollFlags> {
    let mut fds = [PollFd::from_borrowed_fd(fd, wanted)];
    poll(&mut fds, Some(&Timespec::default()))?;
    let [fd] = fds;
    Ok(fd.revents())
}

/// Completes when the socket accepts more, or the connection has ended. The socket is watched only
/// while something is to be sent: watching it always would wake the runtime for each frame that QEMU
/// reads. Cancel safe.
async fn wait_for_room(session: &Session) {
    let Ok(socket) = Watched::writable(Arc::clone(&session.socket)) else {
        return sleep(SHORTAGE).await;
    };
    let is_ready = |socket: BorrowedFd<'_>| match readiness(socket, PollFlags::OUT)?.is_empty() {
        true => Err(io::ErrorKind::WouldBlock.into()),
        false => Ok(()),
    };
    let _ = socket.write(is_ready).await;
}

/// Returns a new eventfd.
pub(crate) fn event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}
