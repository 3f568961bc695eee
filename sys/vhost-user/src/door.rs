//! How front-ends come in, one at a time.
//!
//! Anybody who may connect to the socket is not yet a front-end. Whoever has
//! connected and said nothing waits at the door, where nobody notices him, and
//! cannot keep a VM out that comes later and speaks. Once one of them speaks, the
//! others are turned away, as is everybody who comes while it is served.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suimon_ports::{DeviceError, VhostUserMode};
use suimon_unix_socket::{Listener, connect_to, probe_connecting, probe_listening};

use crate::model::DeviceName;

/// Who may wait at the door; the one who waited longest makes room for another.
const WAITING_MAX: usize = 8;
/// First and longest wait between two attempts to connect.
const RETRY_MS_MIN: u32 = 50;
const RETRY_MS_MAX: u32 = 1000;
/// How long to wait when the host has no descriptor for a connection.
const SHORTAGE_MS: u32 = 200;

/// The way in.
pub(crate) enum Door {
    /// We listen.
    Listens(Listener),
    /// The front-end listens. A thread of its own makes the connections: it reads
    /// nothing that a front-end says, and the thread that does can reach no file.
    Connects {
        /// Asks for a connection.
        wants: Sender<()>,
        /// Where it comes from.
        sockets: Receiver<OwnedFd>,
    },
}

impl Door {
    /// A way in to a front-end that listens on `path`, and the thread that makes the
    /// connections; it ends when the door is dropped or `stop` becomes readable.
    ///
    /// # Errors
    /// No thread could be made.
    pub(crate) fn connects(
        path: PathBuf,
        name: DeviceName,
        stop: Arc<OwnedFd>,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (wants, requests) = channel();
        let (made, sockets) = sync_channel(1);
        let thread = Builder::new()
            .name(format!("reach-{}", name.number()))
            .spawn(move || reach(&path, &requests, &made, &stop))?;
        Ok((Self::Connects { wants, sockets }, thread))
    }

    /// The next front-end: one that has connected and said something, or left
    /// something to read. `None` if `stop` became readable.
    pub(crate) fn next(&mut self, name: DeviceName, stop: &OwnedFd) -> Option<OwnedFd> {
        match self {
            Self::Listens(listener) => await_speaker(listener, name, stop),
            Self::Connects { wants, sockets } => {
                wants.send(()).ok()?;
                sockets.recv().ok()
            }
        }
    }

    /// What becomes readable when somebody else is at the door.
    pub(crate) fn other_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Listens(listener) => Some(listener.as_fd()),
            Self::Connects { .. } => None,
        }
    }

    /// Turns away whoever connected meanwhile. `false` if the host has no
    /// descriptor left even for that: then the door is best left alone for a
    /// while. The front-end that is served notices nothing either way.
    pub(crate) fn turn_away(&self, name: DeviceName) -> bool {
        let Self::Listens(listener) = self else { return true };
        match listener.accept() {
            Ok(Some(_closed)) => {
                tracing::warn!(device = %name, "a second front-end was turned away");
                true
            }
            Ok(None) => true,
            Err(error) => {
                tracing::warn!(device = %name, %error, "cannot turn a second front-end away");
                false
            }
        }
    }
}

/// Looks whether a device's socket could be opened, without changing anything.
///
/// # Errors
/// What opening it would say.
pub(crate) fn probe(socket: &Path, mode: VhostUserMode) -> Result<(), DeviceError> {
    match mode {
        VhostUserMode::Server => probe_listening(socket),
        VhostUserMode::Client => probe_connecting(socket),
    }
}

/// Makes a connection for each request, however long that takes.
fn reach(path: &Path, requests: &Receiver<()>, made: &SyncSender<OwnedFd>, stop: &OwnedFd) {
    while requests.recv().is_ok() {
        let mut retry_ms = RETRY_MS_MIN;
        let socket = loop {
            if let Ok(socket) = connect_to(path) {
                break socket;
            }
            if !pause(stop, retry_ms) {
                return;
            }
            retry_ms = (retry_ms * 2).min(RETRY_MS_MAX);
        };
        if made.send(socket).is_err() {
            return;
        }
    }
}

/// Waits at most `ms`. `false` if `stop` became readable.
pub(crate) fn pause(stop: &OwnedFd, ms: u32) -> bool {
    let mut fds = [PollFd::new(stop, PollFlags::IN)];
    let limit = Timespec::try_from(Duration::from_millis(u64::from(ms))).ok();
    let _ = poll(&mut fds, limit.as_ref());
    let [stop] = fds;
    stop.revents().is_empty()
}

/// Lets everybody in as far as the hall, and takes the first who speaks.
fn await_speaker(listener: &Listener, name: DeviceName, stop: &OwnedFd) -> Option<OwnedFd> {
    let mut waiting: VecDeque<OwnedFd> = VecDeque::new();
    loop {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        fds.extend(waiting.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
        let _ = poll(&mut fds, None);
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let (is_stopped, has_other) = (ready.next() == Some(true), ready.next() == Some(true));
        let speaks = ready.position(|ready| ready);
        if is_stopped {
            return None;
        }
        // Whoever is taken out here and has only left again is dropped at once.
        if let Some(socket) = speaks.and_then(|nth| waiting.remove(nth)) {
            if has_something_to_read(&socket) {
                return Some(socket);
            }
            continue;
        }
        if !has_other {
            continue;
        }
        match listener.accept() {
            Ok(Some(socket)) => {
                if waiting.len() >= WAITING_MAX {
                    waiting.pop_front();
                }
                waiting.push_back(socket);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(device = %name, %error, "cannot accept a front-end");
                if !pause(stop, SHORTAGE_MS) {
                    return None;
                }
            }
        }
    }
}

/// Whether the socket has at least one byte, rather than only an end.
fn has_something_to_read(socket: &OwnedFd) -> bool {
    use rustix::net::{RecvFlags, recv};
    let mut byte = [0_u8; 1];
    let seen = recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
    seen.is_ok_and(|(_, bytes)| bytes > 0)
}
