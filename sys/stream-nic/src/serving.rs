//! The NIC's thread: one QEMU after the other, from when it connects to its end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suimon_ports::{DeviceNotice, DeviceStatus, PortObserver, QueueHost};
use suimon_quantity::{Direction, PortId, QueueId};
use suimon_unix_socket::Listener;

use crate::queues::{StreamSink, StreamSource};
use crate::session::{End, Session};

/// Who left or was cut off sooner than this after he came is followed by a pause, a longer one
/// each time, so that nobody keeps the thread busy by coming and going.
const SOON: Duration = Duration::from_secs(1);
const PAUSE_MS_MIN: u32 = 5;
const PAUSE_MS_MAX: u32 = 100;
/// How long to wait when the host has no descriptor for a connection.
const SHORTAGE_MS: u32 = 200;

/// What the thread and the NIC's owner both see.
pub(crate) struct Shared {
    pub(crate) port: PortId,
    pub(crate) host: Arc<dyn QueueHost>,
    pub(crate) observer: Arc<dyn PortObserver>,
    /// Readable once the thread is to end.
    pub(crate) stop: OwnedFd,
    /// Readable when a queue has something to tell.
    pub(crate) wake: Arc<OwnedFd>,
    pub(crate) status: Mutex<DeviceStatus>,
}

/// What the thread woke up for.
struct Woken {
    stop: bool,
    wake: bool,
    other: bool,
    socket: PollFlags,
}

impl Shared {
    pub(crate) fn status(&self) -> MutexGuard<'_, DeviceStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
    pub(crate) fn run(&self, listener: &Listener) {
        let mut pause_ms = 0;
        while let Some(socket) = self.next(listener) {
            let came = Instant::now();
            let session = Arc::new(Session::new(socket, Arc::clone(&self.wake)));
            self.begin(&session);
            let end = self.serve(listener, &session);
            self.finish(end.as_ref());
            let Some(end) = end else { return };
            let is_soon = end.is_violation() || came.elapsed() < SOON;
            pause_ms = if is_soon { (pause_ms * 2).clamp(PAUSE_MS_MIN, PAUSE_MS_MAX) } else { 0 };
            if pause_ms > 0 && !self.pause(pause_ms) {
                return;
            }
        }
    }

    /// The next QEMU; `None` if the NIC is to be closed.
    fn next(&self, listener: &Listener) -> Option<OwnedFd> {
        loop {
            let woken = self.wait(listener, None);
            if woken.stop {
                return None;
            }
            if woken.wake {
                self.drain_wake();
            }
            match listener.accept() {
                Ok(Some(socket)) => return Some(socket),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(port = self.port.0, %error, "cannot accept a legacy NIC");
                    if !self.pause(SHORTAGE_MS) {
                        return None;
                    }
                }
            }
        }
    }

    /// Hands a connection's queues to the switch, and tells.
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

    /// Waits until the connection is over, and says why; `None` if the NIC is to be closed.
    fn serve(&self, listener: &Listener, session: &Session) -> Option<End> {
        let mut is_door_open = true;
        loop {
            if let Some(end) = session.end() {
                return Some(end.clone());
            }
            let woken = self.wait(listener, Some((session, is_door_open)));
            if woken.stop {
                return None;
            }
            if woken.wake {
                self.drain_wake();
            }
            let has_left = woken.socket.intersects(PollFlags::HUP | PollFlags::ERR);
            if session.is_stalled() && (has_left || woken.socket.contains(PollFlags::OUT)) {
                // How it ended, if it did, is known to the session.
                let _ = session.send_rest();
            }
            if woken.other {
                // Its queue may be left alone for a while and has not read that it has left:
                // whoever comes next need not wait for that.
                if has_left {
                    return Some(End::Left);
                }
                is_door_open = self.turn_away(listener);
            }
        }
    }

    /// Takes a connection's queues back, and tells why; that the NIC is closed is no news.
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

    /// Turns away whoever comes while somebody is there. `false` if the host has no descriptor
    /// left even for that: then nobody is looked at until the connection is over.
    fn turn_away(&self, listener: &Listener) -> bool {
        match listener.accept() {
            Ok(Some(_closed)) => {
                tracing::warn!(port = self.port.0, "a second QEMU was turned away");
                true
            }
            Ok(None) => true,
            Err(error) => {
                tracing::warn!(port = self.port.0, %error, "cannot turn a second QEMU away");
                false
            }
        }
    }

    /// Waits until there is something to do. That the other side of a connection leaves is not
    /// waited for: its queues find out when they have read what it left.
    fn wait(&self, listener: &Listener, session: Option<(&Session, bool)>) -> Woken {
        let is_door_open = session.is_none_or(|(_, is_door_open)| is_door_open);
        let door = if is_door_open { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = vec![
            PollFd::new(&self.stop, PollFlags::IN),
            PollFd::new(&self.wake, PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), door),
        ];
        if let Some((session, _)) = session.filter(|(session, _)| session.is_stalled()) {
            fds.push(PollFd::new(&session.socket, PollFlags::OUT));
        }
        let _ = poll(&mut fds, None);
        let mut ready = fds.iter().map(PollFd::revents);
        let mut is_ready = || ready.next().is_some_and(|flags| !flags.is_empty());
        let (stop, wake, other) = (is_ready(), is_ready(), is_ready());
        let socket = match session {
            Some((session, _)) if other || fds.len() > 3 => now(session),
            _ => PollFlags::empty(),
        };
        Woken { stop, wake, other, socket }
    }

    fn drain_wake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }

    /// Waits at most `ms`. `false` if the NIC is to be closed.
    fn pause(&self, ms: u32) -> bool {
        let mut fds = [PollFd::new(&self.stop, PollFlags::IN)];
        let limit = Timespec::try_from(Duration::from_millis(u64::from(ms))).ok();
        let _ = poll(&mut fds, limit.as_ref());
        let [stop] = fds;
        stop.revents().is_empty()
    }
}

/// What a connection's socket is ready for now.
fn now(session: &Session) -> PollFlags {
    let mut fds = [PollFd::new(&session.socket, PollFlags::OUT)];
    let _ = poll(&mut fds, Some(&Timespec::default()));
    let [socket] = fds;
    socket.revents()
}

/// An eventfd.
pub(crate) fn event() -> io::Result<OwnedFd> {
    use rustix::event::{EventfdFlags, eventfd};
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}
