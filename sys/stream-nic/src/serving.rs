//! Task that serves a NIC: one QEMU after another, each from its connection to its end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use suimon_ports::{DeviceNotice, DeviceStatus, PortObserver, QueueHost};
use suimon_quantity::{Direction, PortId, QueueId};
use suimon_socket_runtime::{
    DescriptorGuard, LogRateLimit, ReconnectPause, RejectionRateLimit, SocketRuntime, TaskStop,
    WatchedFd, run_blocking, run_blocking_on,
};
use suimon_unix_socket::{accept, is_hung_up};
use tokio::time::sleep;

use crate::queues::{StreamSink, StreamSource};
use crate::session::{Session, SessionEnd};

/// Pause after a connection could not be accepted because the process or host has no free
/// descriptor.
const SHORTAGE: Duration = Duration::from_millis(200);

/// State shared by a NIC's task and its owner.
pub(crate) struct SharedNicState {
    pub(crate) port: PortId,
    pub(crate) host: Arc<dyn QueueHost>,
    pub(crate) observer: Arc<dyn PortObserver>,
    /// Eventfd by which queues and the owner wake the task.
    pub(crate) wake_eventfd: Arc<OwnedFd>,
    pub(crate) status: Mutex<DeviceStatus>,
    /// Runtime of the task. It also closes sockets of peers, which may block.
    pub(crate) runtime: SocketRuntime,
}

/// Descriptors that the task watches.
pub(crate) struct Descriptors {
    pub(crate) listener: WatchedFd,
    /// Eventfd by which the owner and the workers wake the task ([`SharedNicState::wake_eventfd`]).
    pub(crate) wake_eventfd: WatchedFd,
}

impl SharedNicState {
    pub(crate) fn status(&self) -> MutexGuard<'_, DeviceStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one QEMU after another until `stop` is set.
    pub(crate) async fn run(self: Arc<Self>, descriptors: Descriptors, mut stop: TaskStop) {
        let mut pause = ReconnectPause::default();
        let mut limits = PeerLimits::default();
        loop {
            let socket = tokio::select! {
                biased;
                () = stop.wait() => return,
                socket = async {
                    sleep(pause.duration()).await;
                    self.next(&descriptors.listener).await
                } => socket,
            };
            let started_at = Instant::now();
            let guard = match DescriptorGuard::refuse_or_guard(socket.as_fd(), &self.runtime) {
                Ok(guard) => guard,
                Err(error) => {
                    tracing::warn!(port = self.port.0, %error, "cannot serve a legacy NIC");
                    self.runtime.drop_later(socket);
                    sleep(SHORTAGE).await;
                    continue;
                }
            };
            let session = Arc::new(Session::new(socket, Arc::clone(&self.wake_eventfd), guard));
            let (shared, task_session) = (Arc::clone(&self), Arc::clone(&session));
            let result = run_blocking(move || shared.begin(&task_session)).await;
            let end = match result {
                Ok(()) => tokio::select! {
                    biased;
                    () = stop.wait() => None,
                    end = self.serve(&descriptors, &session, &mut limits) => Some(end),
                },
                Err(_) => Some(SessionEnd::AttachThreadFailed),
            };
            pause.record_end(
                started_at.elapsed(),
                end.as_ref().is_some_and(SessionEnd::is_violation),
            );
            self.end(end, &stop).await;
        }
    }

    /// Detaches a connection's queues and reports why it ended.
    async fn end(self: &Arc<Self>, end: Option<SessionEnd>, stop: &TaskStop) {
        let mut end = Some(end);
        while end.is_some() {
            let shared = Arc::clone(self);
            let result = run_blocking_on(&mut end, move |end| shared.finish(end.as_ref())).await;
            // The owner detaches the queues of a NIC that is closed.
            if result.is_ok() || stop.is_set() {
                return;
            }
            sleep(SHORTAGE).await;
        }
    }

    /// Accepts the next connection of the listener.
    async fn next(&self, listener: &WatchedFd) -> OwnedFd {
        loop {
            match listener.read(accept).await {
                Ok(socket) => return socket,
                Err(error) => {
                    tracing::warn!(
                        port = self.port.0,
                        %error,
                        "cannot accept the connection of a legacy NIC"
                    );
                    sleep(SHORTAGE).await;
                }
            }
        }
    }

    /// Attaches a connection's queues to the switch, and reports the connection. Blocks.
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

    /// Waits until the connection has ended, and returns the reason. Cancel safe.
    async fn serve(
        &self,
        descriptors: &Descriptors,
        session: &Session,
        limits: &mut PeerLimits,
    ) -> SessionEnd {
        let mut is_door_open = true;
        loop {
            if let Some(end) = session.end_reason() {
                return end.clone();
            }
            tokio::select! {
                biased;
                _ = descriptors.wake_eventfd.read(|wake| Ok(rustix::io::read(wake, &mut [0; 8])?)) => {}
                () = wait_for_room(session), if session.has_pending_data() => {
                    // The session records the end of the connection if this call detects it.
                    let _ = session.send_pending();
                }
                other = self.next_other(&descriptors.listener, session, limits), if is_door_open => {
                    match other {
                        Ok(Other::Rejected) => self.log_rejection(limits),
                        // The worker has not read the end of the connection yet, and may service
                        // the queue later. The next connection does not wait for that.
                        Ok(Other::Successor) => return SessionEnd::PeerClosed,
                        Err(error) => {
                            let port = self.port.0;
                            tracing::warn!(port, %error, "cannot reject a second QEMU");
                            is_door_open = false;
                        }
                    }
                }
            }
        }
    }

    /// Waits for a connection that arrives while `session` is served. Cancel safe.
    async fn next_other(
        &self,
        listener: &WatchedFd,
        session: &Session,
        limits: &PeerLimits,
    ) -> io::Result<Other> {
        sleep(limits.rejections.delay(Instant::now())).await;
        listener.read(|listener| reject(listener, session, &self.runtime)).await
    }

    fn log_rejection(&self, limits: &mut PeerLimits) {
        let now = Instant::now();
        limits.rejections.record(now);
        if let Some(left_out) = limits.rejections_log.try_log(now) {
            tracing::warn!(port = self.port.0, left_out, "a second QEMU was rejected");
        }
    }

    /// Detaches a connection's queues from the switch and reports why the connection ended. Reports
    /// nothing if `end` is `None`: the NIC is closed. Blocks.
    fn finish(&self, end: Option<&SessionEnd>) {
        // The queues are detached before the notice is sent.
        self.host.detach_port(self.port);
        let mut status = self.status();
        status.link_up = false;
        status.queue_pairs = 0;
        drop(status);
        let Some(end) = end else { return };
        let reason = end.to_string();
        if end.is_violation() {
            let notice = DeviceNotice::ProtocolViolation { detail: reason.clone() };
            self.observer.handle_notice(self.port, notice);
        }
        self.observer.handle_notice(self.port, DeviceNotice::LinkDown { reason });
    }
}

/// Limits on the costs and log entries of further connections while one is served.
#[derive(Default)]
struct PeerLimits {
    rejections: RejectionRateLimit,
    rejections_log: LogRateLimit,
}

/// Connection that arrived while another one is served.
enum Other {
    /// The new connection was closed, because the served one is in use.
    Rejected,
    /// The connection is pending: the peer has closed the served one.
    Successor,
}

/// Accepts a pending connection and closes it, unless the peer has closed the served one.
fn reject(
    listener: BorrowedFd<'_>,
    session: &Session,
    runtime: &SocketRuntime,
) -> io::Result<Other> {
    if is_hung_up(session.socket.as_fd())? {
        return match readiness(listener, PollFlags::IN)?.is_empty() {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => Ok(Other::Successor),
        };
    }
    runtime.drop_later(accept(listener)?);
    Ok(Other::Rejected)
}

/// Returns the events for which a descriptor is ready.
fn readiness(fd: BorrowedFd<'_>, events: PollFlags) -> io::Result<PollFlags> {
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    poll(&mut fds, Some(&Timespec::default()))?;
    let [fd] = fds;
    Ok(fd.revents())
}

/// Waits until the socket accepts more data, or the connection has ended. The socket is watched
/// only while data is pending: a permanent watch would wake the runtime for each frame that QEMU
/// reads. Cancel safe.
async fn wait_for_room(session: &Session) {
    let Ok(socket) = WatchedFd::writable(Arc::clone(&session.socket)) else {
        return sleep(SHORTAGE).await;
    };
    let is_ready = |socket: BorrowedFd<'_>| match readiness(socket, PollFlags::OUT)?.is_empty() {
        true => Err(io::ErrorKind::WouldBlock.into()),
        false => Ok(()),
    };
    let _ = socket.write(is_ready).await;
}

/// Creates an eventfd.
pub(crate) fn new_eventfd() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}
