//! [`StreamNic`]: an emulated NIC, as its owner uses it.

use std::io;
use std::sync::{Arc, Mutex};

use suimon_ports::{
    DeviceError, DeviceErrorKind, DeviceStatus, PortDevice, PortDeviceSpec, PortObserver,
    QueueHost, StreamNicSpec,
};
use suimon_quantity::PortId;
use suimon_socket_runtime::{SocketRuntime, Task, WatchedFd};
use suimon_unix_socket::{SocketFile, listen_on, probe_listening, refuse_descriptors};

use crate::serving::{Descriptors, SharedNicState, new_eventfd};

/// NIC that a VM's QEMU emulates. Dropping it detaches its queues, closes the connection and
/// removes the socket.
pub struct StreamNic {
    shared: Arc<SharedNicState>,
    spec: StreamNicSpec,
    task: Option<Task>,
    /// Socket file, removed when the NIC is closed.
    file: Option<SocketFile>,
}

impl StreamNic {
    /// Opens the NIC of `port`: listens on its socket. Queues are handed to `host` when a QEMU
    /// connects. A task of `runtime` accepts the connections; it opens no files.
    ///
    /// # Errors
    /// The socket cannot be bound, or the host has no descriptor left.
    pub fn open(
        port: PortId,
        spec: &StreamNicSpec,
        host: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
        runtime: &SocketRuntime,
    ) -> Result<Self, DeviceError> {
        check(spec)?;
        let (listener, file) = listen_on(&spec.socket)?;
        // Inherited by connections. QEMU starts after the socket exists.
        refuse_descriptors(&listener);
        let status = DeviceStatus { mac: spec.mac, mtu: spec.mtu, ..DeviceStatus::default() };
        let wake =
            new_eventfd().map(Arc::new).map_err(|error| host_error("create an eventfd", &error))?;
        let descriptors = {
            let _guard = runtime.enter();
            let failed = |error| host_error("poll a descriptor", &error);
            Descriptors {
                listener: WatchedFd::readable(listener).map_err(failed)?,
                wake_eventfd: WatchedFd::readable(Arc::clone(&wake)).map_err(failed)?,
            }
        };
        let (status, runtime_of) = (Mutex::new(status), runtime.clone());
        let shared = Arc::new(SharedNicState {
            port,
            host,
            observer,
            wake_eventfd: wake,
            status,
            runtime: runtime_of,
        });
        let task_shared = Arc::clone(&shared);
        let task = runtime.spawn(|stop| task_shared.run(descriptors, stop));
        Ok(Self { shared, spec: spec.clone(), task: Some(task), file: Some(file) })
    }

    /// Checks whether [`StreamNic::open`] could succeed, without changing anything.
    ///
    /// # Errors
    /// The error that `open` would return.
    pub fn probe(spec: &StreamNicSpec) -> Result<(), DeviceError> {
        check(spec)?;
        probe_listening(&spec.socket)
    }
}

impl PortDevice for StreamNic {
    fn status(&self) -> DeviceStatus {
        self.shared.status().clone()
    }

    /// Applies a new configuration without interruption, except that of another socket: returns
    /// false for it. The guest is informed of none of the settings.
    fn apply_spec(&mut self, spec: &PortDeviceSpec) -> Result<bool, DeviceError> {
        let PortDeviceSpec::Stream(spec) = spec else { return Ok(false) };
        check(spec)?;
        if spec.socket != self.spec.socket {
            return Ok(false);
        }
        self.spec = spec.clone();
        let mut status = self.shared.status();
        (status.mac, status.mtu) = (spec.mac, spec.mtu);
        Ok(true)
    }
}

impl Drop for StreamNic {
    fn drop(&mut self) {
        self.file = None;
        self.task = None;
        // The task has detached its queues; this call covers a task that panicked.
        self.shared.host.detach_port(self.shared.port);
    }
}

/// Checks that the specification is valid.
fn check(spec: &StreamNicSpec) -> Result<(), DeviceError> {
    if (68..=9216).contains(&spec.mtu) {
        return Ok(());
    }
    let detail = format!("an MTU of {} bytes is outside of 68 to 9216", spec.mtu);
    Err(DeviceError { kind: DeviceErrorKind::Unsupported, field: "mtu", detail })
}

fn host_error(action: &str, error: &io::Error) -> DeviceError {
    DeviceError {
        kind: DeviceErrorKind::Host,
        field: "socket",
        detail: format!("cannot {action} for the NIC: {error}"),
    }
}
