//! A device with its socket and its control thread.

use std::io;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use suimon_ports::{DeviceError, DeviceErrorKind, ThreadStart, VhostUserMode};
use suimon_unix_socket::{Listener, SocketFile};

use crate::control::{Changing, Shared, Subject};
use crate::door::Door;
use crate::model::DeviceName;

/// A device that is served. Dropping it takes its queues back, closes the connection and
/// removes the socket.
pub(crate) struct Served {
    pub(crate) shared: Arc<Shared>,
    control: Option<JoinHandle<()>>,
    /// Makes connections, if the front-end listens.
    reach: Option<JoinHandle<()>>,
    /// Removed when the device is closed.
    file: Option<SocketFile>,
}

impl Served {
    /// Listens on the socket, or starts trying to connect to it. The thread that reads the
    /// front-end's messages calls `on_start` first. It is handed all descriptors it
    /// needs, and opens nothing by name.
    ///
    /// # Errors
    /// The socket cannot be bound, the host has no thread or descriptor left, or what
    /// `on_start` said.
    pub(crate) fn open(
        subject: Subject,
        changing: Changing,
        socket: &Path,
        mode: VhostUserMode,
        on_start: &ThreadStart,
    ) -> Result<Self, DeviceError> {
        let name = subject.name();
        let host_error = |action, error: &io::Error| host_error(name, action, error);
        suimon_mapping::watch_for_cuts()
            .map_err(|error| host_error("watch over guests' memory", &error))?;
        let event = || {
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|errno| host_error("make an eventfd", &errno.into()))
        };
        let stop = Arc::new(event()?);
        let (mut door, file, reach) = match mode {
            VhostUserMode::Server => {
                let (listener, file) = Listener::bind(socket)?;
                (Door::Listens(listener), Some(file), None)
            }
            VhostUserMode::Client => {
                let (door, thread) = Door::connects(socket.to_owned(), name, Arc::clone(&stop))
                    .map_err(|error| host_error("start a thread", &error))?;
                (door, None, Some(thread))
            }
        };
        let shared = Arc::new(Shared {
            subject,
            stop,
            wake: event()?,
            faults: Arc::new(event()?),
            changing: Mutex::new(changing),
        });
        let inside = Arc::clone(&shared);
        let on_start = Arc::clone(on_start);
        let (report, outcome) = sync_channel(1);
        let thread_name = match name {
            DeviceName::Nic(port) => format!("vhost-{}", port.0),
            DeviceName::Disk(disk) => format!("vhost-disk-{}", disk.0),
        };
        let control = std::thread::Builder::new()
            .name(thread_name)
            .spawn(move || {
                let started = on_start();
                let is_started = started.is_ok();
                // The opener waits for this one message, so sending cannot fail.
                let _ = report.send(started);
                if is_started {
                    inside.run(&mut door);
                }
            })
            .map_err(|error| host_error("start a thread", &error))?;
        // Closes what is open if the thread did not start.
        let served = Self { shared, control: Some(control), reach, file };
        match outcome.recv() {
            Ok(Ok(())) => Ok(served),
            Ok(Err(error)) => Err(host_error("confine the thread", &error)),
            Err(_) => Err(host_error("start a thread", &io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
        self.file = None;
        for thread in [self.control.take(), self.reach.take()].into_iter().flatten() {
            let _ = thread.join();
        }
        // The thread has taken its rings back; this covers one that panicked.
        self.shared.subject.detach();
    }
}

fn host_error(name: DeviceName, action: &str, error: &io::Error) -> DeviceError {
    let what = match name {
        DeviceName::Nic(_) => "the NIC",
        DeviceName::Disk(_) => "the disk",
    };
    DeviceError {
        kind: DeviceErrorKind::Host,
        field: "socket",
        detail: format!("cannot {action} for {what}: {error}"),
    }
}
