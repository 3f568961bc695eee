//! Open device: its socket, and the task that serves it.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustix::event::{EventfdFlags, eventfd};
use suimon_ports::{DeviceError, DeviceErrorKind, VhostUserMode};
use suimon_socket_runtime::{SocketRuntime, Task, ThreadHooks, WatchedFd};
use suimon_unix_socket::{SocketFile, listen_on};
use tokio::sync::Notify;

use crate::acceptor::Acceptor;
use crate::control::{ChangeableState, SharedDeviceState};
use crate::device_owner::DeviceOwner;
use crate::model::DeviceName;

/// Threads that serve all vhost-user devices. Their number does not depend on the number of
/// devices. Clones share the same threads.
#[derive(Clone)]
pub struct VhostUserThreads {
    /// Runtime that reads messages of front-ends. Its threads open no files; they receive all
    /// descriptors that they need.
    pub serving_runtime: SocketRuntime,
    /// Runtime that connects to front-ends that listen.
    pub connecting_runtime: SocketRuntime,
}

/// Open device, served by a task. Dropping it detaches its queues, closes the connection and
/// removes the socket file.
pub(crate) struct OpenDevice {
    pub(crate) shared: Arc<SharedDeviceState>,
    serving: Option<Task>,
    /// Task that connects to the front-end; `None` if the device listens.
    connecting: Option<Task>,
    /// Socket file, removed when the device is closed.
    file: Option<SocketFile>,
}

impl VhostUserThreads {
    /// Starts one thread of each runtime. Each thread that reads messages calls `hooks` first.
    ///
    /// # Errors
    /// The host has no thread or descriptor left, or the error of `hooks`.
    pub fn new(hooks: ThreadHooks) -> io::Result<Self> {
        Ok(Self {
            serving_runtime: SocketRuntime::new("front-ends", 1, hooks)?,
            connecting_runtime: SocketRuntime::new("connect", 1, ThreadHooks::default())?,
        })
    }

    /// Starts threads without confinement, for tests and examples.
    ///
    /// # Errors
    /// The host has no thread or descriptor left.
    pub fn unconfined() -> io::Result<Self> {
        Self::new(ThreadHooks::default())
    }
}

impl OpenDevice {
    /// Opens a device: listens on `socket`, or starts to connect to it.
    ///
    /// # Errors
    /// The socket cannot be bound, or no descriptor is free.
    pub(crate) fn open(
        subject: DeviceOwner,
        changing: ChangeableState,
        (socket, mode): (&Path, VhostUserMode),
        threads: &VhostUserThreads,
    ) -> Result<Self, DeviceError> {
        let name = subject.name();
        let host_error = |action: &'static str| move |error| host_error(name, action, &error);
        suimon_mapping::install_truncation_handler()
            .map_err(host_error("monitor the guest's memory"))?;
        // Read while the thread may; threads that read messages may not.
        let _ = suimon_ring::device_bytes_max();
        suimon_eventfd::prepare().map_err(host_error("prepare interrupts"))?;
        let (acceptor, file, connecting) = match mode {
            VhostUserMode::Server => {
                let (listener, file) = listen_on(socket)?;
                let acceptor = Acceptor::listening(listener, &threads.serving_runtime)
                    .map_err(host_error("poll the socket"))?;
                (acceptor, Some(file), None)
            }
            VhostUserMode::Client => {
                let (acceptor, task) =
                    Acceptor::connecting(socket.to_owned(), &threads.connecting_runtime);
                (acceptor, None, Some(task))
            }
        };
        let faults = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(io::Error::from)
            .map_err(host_error("create an eventfd"))?;
        let faults = Arc::new(faults);
        let watched = {
            let _guard = threads.serving_runtime.enter();
            WatchedFd::readable(Arc::clone(&faults)).map_err(host_error("poll an eventfd"))?
        };
        let changing = Mutex::new(changing);
        let shared = Arc::new(SharedDeviceState {
            owner: subject,
            spec_changed: Notify::new(),
            fault_eventfd: faults,
            changeable_state: changing,
        });
        let task_shared = Arc::clone(&shared);
        let serving =
            threads.serving_runtime.spawn(|stop| task_shared.run(acceptor, watched, stop));
        Ok(Self { shared, serving: Some(serving), connecting, file })
    }
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        self.file = None;
        self.serving = None;
        self.connecting = None;
        // The task has detached its rings; this call covers a task that panicked.
        self.shared.owner.detach();
    }
}

fn host_error(name: DeviceName, action: &str, error: &io::Error) -> DeviceError {
    let subject = match name {
        DeviceName::Nic(_) => "the NIC",
        DeviceName::Disk(_) => "the disk",
    };
    DeviceError {
        kind: DeviceErrorKind::Host,
        field: "socket",
        detail: format!("cannot {action} for {subject}: {error}"),
    }
}
