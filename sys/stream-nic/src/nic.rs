//! The NIC: what its owner sees of it.

use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use suimon_ports::{
    DeviceError, DeviceErrorKind, DeviceStatus, PortDevice, PortObserver, PortSpec, QueueHost,
    StreamSpec, ThreadStart,
};
use suimon_quantity::PortId;
use suimon_unix_socket::{Listener, SocketFile, probe_listening};

use crate::serving::{Shared, event};

/// A NIC that a VM's QEMU emulates. Dropping it takes its queues back, closes the connection and
/// removes the socket.
pub struct StreamNic {
    shared: Arc<Shared>,
    spec: StreamSpec,
    thread: Option<JoinHandle<()>>,
    /// Removed when the NIC is closed.
    file: Option<SocketFile>,
}

impl StreamNic {
    /// Opens the NIC of `port`: listens on its socket. Queues go to `host` as soon as a QEMU
    /// connects. The thread that lets it in calls `on_start` first. It is handed all descriptors
    /// that it needs, and opens nothing by name.
    ///
    /// # Errors
    /// The socket cannot be bound, the host has no thread or descriptor left, or what `on_start`
    /// said.
    pub fn open(
        port: PortId,
        spec: &StreamSpec,
        host: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
        on_start: &ThreadStart,
    ) -> Result<Self, DeviceError> {
        check(spec)?;
        let event = || event().map_err(|error| host_error("make an eventfd", &error));
        let (listener, file) = Listener::bind(&spec.socket)?;
        let status = DeviceStatus { mac: spec.mac, mtu: spec.mtu, ..DeviceStatus::default() };
        let shared = Arc::new(Shared {
            port,
            host,
            observer,
            stop: event()?,
            wake: Arc::new(event()?),
            status: Mutex::new(status),
        });
        let (inside, on_start) = (Arc::clone(&shared), Arc::clone(on_start));
        let (report, outcome) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(format!("stream-{}", port.0))
            .spawn(move || {
                let started = on_start();
                let is_started = started.is_ok();
                // The opener waits for this one message, so sending cannot fail.
                let _ = report.send(started);
                if is_started {
                    inside.run(&listener);
                }
            })
            .map_err(|error| host_error("start a thread", &error))?;
        // Closes what is open if the thread did not start.
        let nic = Self { shared, spec: spec.clone(), thread: Some(thread), file: Some(file) };
        match outcome.recv() {
            Ok(Ok(())) => Ok(nic),
            Ok(Err(error)) => Err(host_error("confine the thread", &error)),
            Err(_) => Err(host_error("start a thread", &io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Looks whether [`StreamNic::open`] could succeed, without changing anything.
    ///
    /// # Errors
    /// What `open` would say.
    pub fn probe(spec: &StreamSpec) -> Result<(), DeviceError> {
        check(spec)?;
        probe_listening(&spec.socket)
    }
}

impl PortDevice for StreamNic {
    fn status(&self) -> DeviceStatus {
        self.shared.status().clone()
    }

    /// All but the socket changes live: nothing of it is told to the guest.
    fn change(&mut self, to: &PortSpec) -> Result<bool, DeviceError> {
        let PortSpec::Stream(to) = to else { return Ok(false) };
        check(to)?;
        if to.socket != self.spec.socket {
            return Ok(false);
        }
        self.spec = to.clone();
        let mut status = self.shared.status();
        (status.mac, status.mtu) = (to.mac, to.mtu);
        Ok(true)
    }
}

impl Drop for StreamNic {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
        self.file = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // The thread has taken its queues back; this covers one that panicked.
        self.shared.host.detach_port(self.shared.port);
    }
}

/// Whether the numbers are ones a NIC can have.
fn check(spec: &StreamSpec) -> Result<(), DeviceError> {
    if (68..=9216).contains(&spec.mtu) {
        return Ok(());
    }
    let detail = format!("an MTU of {} bytes; 68 to 9216 are possible", spec.mtu);
    Err(DeviceError { kind: DeviceErrorKind::Unsupported, field: "mtu", detail })
}

fn host_error(action: &str, error: &io::Error) -> DeviceError {
    DeviceError {
        kind: DeviceErrorKind::Host,
        field: "socket",
        detail: format!("cannot {action} for the NIC: {error}"),
    }
}
