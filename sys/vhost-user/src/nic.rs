//! A VM's NIC: its socket, its control thread and whoever is connected.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use suimon_ports::{
    DeviceError, DeviceErrorKind, DeviceNotice, DeviceStatus, PortDevice, PortObserver, PortSpec,
    QueueHost, VhostUserMode, VhostUserSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};

use crate::connection::{Connection, End};
use crate::device::{Device, DeviceLink};
use crate::endpoint::{self, Listener};
use crate::features::{Offer, egress_allowed};
use crate::reply::Reply;

/// First and longest wait between two attempts to connect.
const RETRY_MS_MIN: u32 = 50;
const RETRY_MS_MAX: u32 = 1000;

/// A NIC over vhost-user. Dropping it takes its queues back, closes the
/// connection and removes the socket.
pub struct VhostUserNic {
    shared: Arc<Shared>,
    control: Option<JoinHandle<()>>,
}

/// What the control thread and the NIC's owner both see.
struct Shared {
    port: PortId,
    host: Arc<dyn QueueHost>,
    observer: Arc<dyn PortObserver>,
    mask: Arc<OffloadMask>,
    /// Readable once the thread is to end.
    stop: OwnedFd,
    changing: Mutex<Changing>,
}

/// What changes while the NIC is open.
struct Changing {
    spec: VhostUserSpec,
    status: DeviceStatus,
    /// Features the VM has negotiated on an earlier connection.
    frozen: u64,
}

impl VhostUserNic {
    /// Opens the NIC of `port`: listens on its socket, or starts trying to
    /// connect to it. Rings go to `host` as front-ends bring them.
    ///
    /// # Errors
    /// The socket cannot be bound, or the host has no thread or descriptor left.
    pub fn open(
        port: PortId,
        spec: &VhostUserSpec,
        host: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Self, DeviceError> {
        check(spec)?;
        let door = match spec.mode {
            VhostUserMode::Server => Door::Listens(Listener::bind(&spec.socket)?),
            VhostUserMode::Client => Door::Connects,
        };
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| host_error("make an eventfd", &errno.into()))?;
        let status = DeviceStatus { mac: spec.mac, mtu: spec.mtu, ..DeviceStatus::default() };
        let shared = Arc::new(Shared {
            port,
            host,
            observer,
            mask: Arc::new(OffloadMask::new(egress_allowed(&spec.offload))),
            stop,
            changing: Mutex::new(Changing { spec: spec.clone(), status, frozen: 0 }),
        });
        let inside = Arc::clone(&shared);
        let control = std::thread::Builder::new()
            .name(format!("vhost-{}", port.0))
            .spawn(move || inside.run(&door))
            .map_err(|error| host_error("start a thread", &error))?;
        Ok(Self { shared, control: Some(control) })
    }

    /// Looks whether [`VhostUserNic::open`] could succeed, without changing
    /// anything.
    ///
    /// # Errors
    /// What `open` would say.
    pub fn probe(spec: &VhostUserSpec) -> Result<(), DeviceError> {
        check(spec)?;
        endpoint::probe(spec)
    }
}

impl PortDevice for VhostUserNic {
    fn status(&self) -> DeviceStatus {
        self.shared.changing().status.clone()
    }

    /// Offload switches change live: what was switched off is from now on done in
    /// software for the guest that runs, and not offered to the next one. The MTU
    /// changes live unless the guest was told the old one.
    fn change(&mut self, to: &PortSpec) -> Result<bool, DeviceError> {
        let PortSpec::VhostUser(to) = to else { return Ok(false) };
        check(to)?;
        let mut changing = self.shared.changing();
        let changed = VhostUserSpec { offload: to.offload, mtu: to.mtu, ..changing.spec.clone() };
        let knows_mtu = changing.status.features.is_some_and(|features| {
            RingFeatures(features).has(virtio_bindings::virtio_net::VIRTIO_NET_F_MTU)
        });
        if changed != *to || (to.mtu != changing.spec.mtu && knows_mtu) {
            return Ok(false);
        }
        changing.spec = changed;
        changing.status.mtu = to.mtu;
        self.shared.mask.set(egress_allowed(&to.offload));
        changing.refresh_offloads();
        Ok(true)
    }
}

impl Drop for VhostUserNic {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
        // The thread has taken its rings back; this covers one that panicked.
        self.shared.host.detach_port(self.shared.port);
    }
}

/// How front-ends come.
enum Door {
    Listens(Listener),
    Connects,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl Changing {
    fn refresh_offloads(&mut self) {
        let features = self.status.features.map(RingFeatures).unwrap_or_default();
        self.status.ingress = features.ingress();
        self.status.egress = features.egress().and(egress_allowed(&self.spec.offload));
    }
}

impl Shared {
    fn changing(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, notice: DeviceNotice) {
        self.observer.handle_notice(self.port, notice);
    }

    /// The control thread: one front-end after the other.
    fn run(&self, door: &Door) {
        match door {
            Door::Listens(listener) => loop {
                if self.sleep(Some(listener), None) == Next::Stop {
                    return;
                }
                match listener.accept() {
                    Ok(Some(socket)) => {
                        if self.serve(socket, Some(listener)) == Next::Stop {
                            return;
                        }
                    }
                    Ok(None) => {}
                    Err(error) => {
                        // Out of descriptors, most likely: the front-end still
                        // waits, so give the host a moment.
                        tracing::warn!(port = self.port.0, %error, "cannot accept a front-end");
                        if self.sleep(None, Some(RETRY_MS_MAX)) == Next::Stop {
                            return;
                        }
                    }
                }
            },
            Door::Connects => {
                let path = self.changing().spec.socket.clone();
                let mut retry_ms = RETRY_MS_MIN;
                loop {
                    if let Ok(socket) = endpoint::connect_to(&path) {
                        if self.serve(socket, None) == Next::Stop {
                            return;
                        }
                        retry_ms = RETRY_MS_MIN;
                    }
                    if self.sleep(None, Some(retry_ms)) == Next::Stop {
                        return;
                    }
                    retry_ms = (retry_ms * 2).min(RETRY_MS_MAX);
                }
            }
        }
    }

    /// Waits for a front-end, for a time, or for the end.
    fn sleep(&self, listener: Option<&Listener>, limit_ms: Option<u32>) -> Next {
        let mut fds = vec![PollFd::new(&self.stop, PollFlags::IN)];
        if let Some(listener) = listener {
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        let limit = limit_ms.map(|ms| Timespec {
            tv_sec: i64::from(ms / 1000),
            tv_nsec: i64::from(ms % 1000) * 1_000_000,
        });
        let _ = poll(&mut fds, limit.as_ref());
        let is_stopped = fds.first().is_some_and(|stop| !stop.revents().is_empty());
        if is_stopped { Next::Stop } else { Next::GoOn }
    }

    /// One front-end from its first message to its end.
    fn serve(&self, socket: OwnedFd, listener: Option<&Listener>) -> Next {
        let connection = Connection::new(socket, self.stop.as_fd());
        let mut device = Device::new(self.link());
        self.notify(DeviceNotice::LinkUp);
        let reason = loop {
            if let Err(reason) = self.step(&connection, listener, &mut device) {
                break reason;
            }
        };
        // The rings go before the notice: whoever hears of it finds them gone.
        device.stop_all();
        drop(device);
        let mut changing = self.changing();
        changing.status.link_up = false;
        changing.status.queue_pairs = 0;
        changing.status.features = None;
        changing.refresh_offloads();
        drop(changing);
        let next = match &reason {
            Reason::End(End::Stopped) => Next::Stop,
            _ => Next::GoOn,
        };
        let text = match reason {
            Reason::End(end) => {
                if end.is_violation() {
                    self.notify(DeviceNotice::Violation { detail: end.to_string() });
                }
                end.to_string()
            }
            Reason::Fault(detail) => {
                self.notify(DeviceNotice::Violation { detail: detail.clone() });
                detail
            }
        };
        self.notify(DeviceNotice::LinkDown { reason: text });
        next
    }

    /// Waits for one message, carries it out and answers it.
    fn step(
        &self,
        connection: &Connection<'_>,
        listener: Option<&Listener>,
        device: &mut Device,
    ) -> Result<(), Reason> {
        self.turn_away(connection, listener)?;
        let incoming = connection.receive()?;
        let request = incoming.header.request;
        // Decided before the message is carried out: the one that negotiates
        // acknowledgements is not acknowledged by that.
        let acknowledges = device.acknowledges() && incoming.header.needs_reply;
        let done = device.handle(incoming.message);
        self.publish(device);
        match done {
            Ok(Some(reply)) => connection.answer(request, &reply)?,
            Ok(None) => {
                if acknowledges {
                    connection.answer(request, &Reply::acknowledgement(true))?;
                }
            }
            Err(fault) => {
                if acknowledges {
                    connection.answer(request, &Reply::acknowledgement(false))?;
                }
                if fault.is_fatal() {
                    return Err(Reason::Fault(fault.to_string()));
                }
                tracing::warn!(port = self.port.0, %fault, "refused");
            }
        }
        Ok(())
    }

    /// Waits until the front-end says something, and closes the door on others.
    fn turn_away(
        &self,
        connection: &Connection<'_>,
        listener: Option<&Listener>,
    ) -> Result<(), End> {
        let Some(listener) = listener else { return Ok(()) };
        loop {
            let socket = connection.socket();
            let mut fds = [
                PollFd::new(&self.stop, PollFlags::IN),
                PollFd::new(&socket, PollFlags::IN),
                PollFd::new(listener, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
            let [stop, front_end, other] = fds.map(|fd| !fd.revents().is_empty());
            if stop {
                return Err(End::Stopped);
            }
            if front_end {
                return Ok(());
            }
            if other && listener.accept()?.is_some() {
                tracing::warn!(port = self.port.0, "a second front-end was turned away");
            }
        }
    }

    /// What the next front-end is offered.
    fn link(&self) -> DeviceLink {
        let changing = self.changing();
        let spec = &changing.spec;
        DeviceLink {
            port: self.port,
            host: Arc::clone(&self.host),
            mask: Arc::clone(&self.mask),
            offer: Offer::new(spec.queue_pairs, spec.mac.is_some(), &spec.offload, changing.frozen),
            mac: spec.mac,
            mtu: spec.mtu,
        }
    }

    /// Brings the status up to date, and tells when the guest's driver came up.
    fn publish(&self, device: &Device) {
        let queue_pairs = device.running_pairs();
        let features = Some(device.features()).filter(|bits| *bits != 0);
        let mut changing = self.changing();
        let status = &mut changing.status;
        let was = (status.queue_pairs, status.features);
        status.link_up = queue_pairs > 0;
        status.queue_pairs = queue_pairs;
        status.features = features;
        if was == (queue_pairs, features) {
            return;
        }
        let running = features.filter(|_| queue_pairs > 0);
        changing.frozen = running.unwrap_or(changing.frozen);
        changing.refresh_offloads();
        drop(changing);
        if let Some(features) = running {
            self.notify(DeviceNotice::Negotiated { features, queue_pairs });
        }
    }
}

/// Why a front-end's time is over.
enum Reason {
    End(End),
    Fault(String),
}

impl From<End> for Reason {
    fn from(end: End) -> Self {
        Self::End(end)
    }
}

/// Whether the numbers are ones a NIC can have.
fn check(spec: &VhostUserSpec) -> Result<(), DeviceError> {
    let refuse = |field, detail: String| {
        Err(DeviceError { kind: DeviceErrorKind::Unsupported, field, detail })
    };
    if !(1..=64).contains(&spec.queue_pairs) {
        return refuse("queues", format!("{} queue pairs; 1 to 64 are possible", spec.queue_pairs));
    }
    if !(68..=9216).contains(&spec.mtu) {
        return refuse("mtu", format!("an MTU of {} bytes; 68 to 9216 are possible", spec.mtu));
    }
    Ok(())
}

fn host_error(action: &str, error: &io::Error) -> DeviceError {
    DeviceError {
        kind: DeviceErrorKind::Host,
        field: "socket",
        detail: format!("cannot {action} for the NIC: {error}"),
    }
}
