//! A device's control thread: one front-end after the other, from its first message
//! to its end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use suimon_ports::{
    DeviceNotice, DeviceStatus, DiskObserver, PortObserver, QueueHost, VhostUserDiskSpec,
    VhostUserPromise, VhostUserSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};

use crate::connection::{Connection, End, Incoming};
use crate::device::{Device, DeviceLink};
use crate::door::{Door, pause};
use crate::features::{Offer, egress_allowed, protocol};
use crate::model::{DeviceName, DiskModel, Model, NicModel};
use crate::pace::{Pace, Turn};
use crate::reply::Reply;

/// After a front-end that broke the protocol the next one waits, longer each time.
const PENANCE_MS_MIN: u32 = 5;
const PENANCE_MS_MAX: u32 = 100;

/// What the control thread and the device's owner both see.
pub(crate) struct Shared {
    pub(crate) subject: Subject,
    /// Readable once the thread is to end.
    pub(crate) stop: Arc<OwnedFd>,
    /// Readable when what is desired has changed.
    pub(crate) wake: OwnedFd,
    /// Readable when a ring met a fault.
    pub(crate) faults: Arc<OwnedFd>,
    pub(crate) changing: Mutex<Changing>,
}

/// Whose device it is.
pub(crate) enum Subject {
    Nic(NicSubject),
    Disk(DiskSubject),
}

/// A NIC.
pub(crate) struct NicSubject {
    pub(crate) port: PortId,
    pub(crate) host: Arc<dyn QueueHost>,
    pub(crate) observer: Arc<dyn PortObserver>,
    pub(crate) mask: Arc<OffloadMask>,
    /// Changes while the NIC is open. Locked after [`Shared::changing`] if both are.
    pub(crate) spec: Mutex<VhostUserSpec>,
}

/// A disk. Of what is desired only its length changes.
pub(crate) struct DiskSubject {
    pub(crate) model: DiskModel,
    pub(crate) observer: Arc<dyn DiskObserver>,
    pub(crate) spec: VhostUserDiskSpec,
}

/// What changes while the device is open.
pub(crate) struct Changing {
    pub(crate) status: DeviceStatus,
    /// What the VM has negotiated and must find again.
    pub(crate) promise: VhostUserPromise,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
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

/// A front-end that is served.
struct Session<'stop> {
    connection: Connection<'stop>,
    device: Device,
    pace: Pace,
    began: Instant,
    /// Its first message made sense, and it was announced.
    is_announced: bool,
    /// Its rings have run.
    has_run: bool,
}

impl Subject {
    pub(crate) fn name(&self) -> DeviceName {
        match self {
            Self::Nic(nic) => DeviceName::Nic(nic.port),
            Self::Disk(disk) => DeviceName::Disk(disk.model.disk),
        }
    }

    /// Takes all its queues back.
    pub(crate) fn detach(&self) {
        match self {
            Self::Nic(nic) => nic.host.detach_port(nic.port),
            Self::Disk(disk) => disk.model.host.detach_disk(disk.model.disk),
        }
    }

    fn notify(&self, notice: DeviceNotice) {
        match self {
            Self::Nic(nic) => nic.observer.handle_notice(nic.port, notice),
            Self::Disk(disk) => disk.observer.handle_notice(disk.model.disk, notice),
        }
    }

    /// What a front-end is offered whose VM relies on `promised` features.
    fn offer(&self, promised: u64) -> (Model, Offer) {
        match self {
            Self::Nic(nic) => {
                let spec = nic.spec();
                let has_mac = spec.mac.is_some();
                let offer = Offer::new(spec.queue_pairs, has_mac, &spec.offload, promised);
                let model = NicModel {
                    port: nic.port,
                    host: Arc::clone(&nic.host),
                    mask: Arc::clone(&nic.mask),
                    mac: spec.mac,
                    mtu: spec.mtu,
                };
                (Model::Nic(model), offer)
            }
            Self::Disk(disk) => {
                let spec = &disk.spec;
                let offer = Offer::disk(spec.queues, spec.is_read_only, promised);
                (Model::Disk(disk.model.clone()), offer)
            }
        }
    }

    /// Has a device hear of what was changed.
    fn refresh(&self, device: &mut Device) {
        match self {
            Self::Nic(nic) => {
                let mtu = nic.spec().mtu;
                device.set_mtu(mtu);
            }
            Self::Disk(_) => device.tell_config_changed(),
        }
    }

    /// Brings what a NIC's status says of offloads up to date.
    pub(crate) fn refresh_offloads(&self, status: &mut DeviceStatus) {
        let Self::Nic(nic) = self else { return };
        let features = status.features.map(RingFeatures).unwrap_or_default();
        status.ingress = features.ingress();
        status.egress = features.egress().and(egress_allowed(&nic.spec().offload));
    }
}

impl NicSubject {
    pub(crate) fn spec(&self) -> MutexGuard<'_, VhostUserSpec> {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    pub(crate) fn changing(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the control thread look at what is desired.
    pub(crate) fn wake_control(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn notify(&self, notice: DeviceNotice) {
        self.subject.notify(notice);
    }

    /// The control thread.
    pub(crate) fn run(&self, door: &mut Door) {
        let mut penance_ms = 0;
        while let Some(socket) = door.next(self.subject.name(), &self.stop) {
            let mut session = Session {
                connection: Connection::new(socket, self.stop.as_fd()),
                device: Device::new(self.link()),
                pace: Pace::new(0),
                began: Instant::now(),
                is_announced: false,
                has_run: false,
            };
            let reason = loop {
                if let Err(reason) = self.step(door, &mut session) {
                    break reason;
                }
            };
            let has_sinned = is_violation(&reason);
            let has_run = session.has_run;
            if self.finish(session, reason) == Next::Stop {
                return;
            }
            penance_ms = match (has_sinned, has_run) {
                (true, false) => (penance_ms * 2).clamp(PENANCE_MS_MIN, PENANCE_MS_MAX),
                (true, true) => PENANCE_MS_MIN,
                (false, _) => 0,
            };
            if penance_ms > 0 && !pause(&self.stop, penance_ms) {
                return;
            }
        }
    }

    /// Takes everything back from a front-end and tells why.
    fn finish(&self, session: Session<'_>, reason: Reason) -> Next {
        let Session { mut device, is_announced, has_run, .. } = session;
        // One that stopped its rings before it left gave its VM up or put it
        // elsewhere; whoever comes next is somebody new.
        let left_in_order = has_run && !device.runs() && matches!(reason, Reason::End(End::Left));
        // The rings go before the notice: whoever hears of it finds them gone.
        device.stop_all();
        drop(device);
        let mut changing = self.changing();
        changing.status.link_up = false;
        changing.status.queue_pairs = 0;
        changing.status.features = None;
        self.subject.refresh_offloads(&mut changing.status);
        drop(changing);
        if left_in_order {
            self.promise(VhostUserPromise::default());
        }
        let next = match &reason {
            Reason::End(End::Stopped) => Next::Stop,
            _ => Next::GoOn,
        };
        let has_sinned = is_violation(&reason);
        let text = match reason {
            Reason::End(end) => end.to_string(),
            Reason::Fault(text) => text,
        };
        if has_sinned {
            self.notify(DeviceNotice::Violation { detail: text.clone() });
        }
        if is_announced {
            self.notify(DeviceNotice::LinkDown { reason: text });
        }
        next
    }

    /// Waits for one message, carries it out and answers it.
    fn step(&self, door: &Door, session: &mut Session<'_>) -> Result<(), Reason> {
        self.wait_for_message(door, session)?;
        self.keep_pace(session)?;
        let Incoming { header, message } = session.connection.receive()?;
        if !session.is_announced {
            session.is_announced = true;
            self.notify(DeviceNotice::LinkUp);
        }
        let Session { connection, device, .. } = session;
        // Decided before the message is carried out: the one that negotiates
        // acknowledgements is not acknowledged by that.
        let acknowledges = device.acknowledges() && header.needs_reply;
        let done = device.handle(message);
        session.has_run |= device.runs();
        self.publish(device);
        match done {
            Ok(Some(reply)) => connection.answer(header.request, &reply)?,
            Ok(None) => {
                if acknowledges {
                    connection.answer(header.request, &Reply::acknowledgement(true))?;
                }
            }
            Err(fault) => {
                if acknowledges {
                    connection.answer(header.request, &Reply::acknowledgement(false))?;
                }
                if fault.is_fatal() {
                    return Err(Reason::Fault(fault.to_string()));
                }
                tracing::warn!(device = %self.subject.name(), %fault, "refused");
            }
        }
        Ok(())
    }

    /// Waits until the front-end says something. Meanwhile turns others away,
    /// hears of its rings' faults and of changes of what is desired.
    fn wait_for_message(&self, door: &Door, session: &mut Session<'_>) -> Result<(), End> {
        let mut is_door_open = true;
        loop {
            let socket = session.connection.socket();
            let other = door.other_fd().filter(|_| is_door_open);
            let mut fds = vec![
                PollFd::new(&self.stop, PollFlags::IN),
                PollFd::new(&self.faults, PollFlags::IN),
                PollFd::new(&self.wake, PollFlags::IN),
                PollFd::new(&socket, PollFlags::IN),
            ];
            fds.extend(other.as_ref().map(|other| PollFd::new(other, PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
            let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
            let mut is_ready = || ready.next() == Some(true);
            let (stop, fault, wake) = (is_ready(), is_ready(), is_ready());
            let (front_end, other) = (is_ready(), is_ready());
            if stop {
                return Err(End::Stopped);
            }
            if fault {
                self.take_fault(&mut session.device);
            }
            if wake {
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                self.subject.refresh(&mut session.device);
            }
            if front_end {
                return Ok(());
            }
            if other {
                is_door_open = door.turn_away(self.subject.name());
            }
        }
    }

    /// A ring of the device cannot go on: all of them stop, and the reason is told.
    /// The connection stays, so that the guest can start its driver anew.
    fn take_fault(&self, device: &mut Device) {
        let Some(fault) = device.take_fault() else { return };
        self.publish(device);
        self.notify(DeviceNotice::Violation { detail: fault.to_string() });
    }

    /// Slows a front-end down that sends more messages than any VM does.
    fn keep_pace(&self, session: &mut Session<'_>) -> Result<(), Reason> {
        loop {
            let now_ms = u64::try_from(session.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            match session.pace.take(now_ms) {
                Turn::Now => return Ok(()),
                Turn::Wait(ms) => {
                    if !pause(&self.stop, ms) {
                        return Err(End::Stopped.into());
                    }
                }
                Turn::Flood => {
                    let text = format!(
                        "a flood of messages: more than {} a second for {} seconds",
                        Pace::PER_SECOND,
                        Pace::PATIENCE_MS / 1000
                    );
                    return Err(Reason::Fault(text));
                }
            }
        }
    }

    /// What the next front-end is offered.
    fn link(&self) -> DeviceLink {
        let promised = self.changing().promise.features;
        let (model, offer) = self.subject.offer(promised);
        DeviceLink { model, offer, faults: Arc::clone(&self.faults) }
    }

    /// Brings the status up to date, and tells when the guest's driver came up.
    fn publish(&self, device: &Device) {
        let queue_pairs = device.running_queues();
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
        self.subject.refresh_offloads(status);
        drop(changing);
        if let Some(features) = features.filter(|_| queue_pairs > 0) {
            self.promise(VhostUserPromise { features: lasting(features), queue_pairs });
            self.notify(DeviceNotice::Negotiated { features, queue_pairs });
        }
    }

    /// From now on the VM relies on this.
    fn promise(&self, promise: VhostUserPromise) {
        let mut changing = self.changing();
        if changing.promise == promise {
            return;
        }
        changing.promise = promise;
        drop(changing);
        self.notify(DeviceNotice::Promised(promise));
    }
}

/// What of the negotiated features the guest has for good: a log of written pages
/// comes and goes with a migration.
fn lasting(features: u64) -> u64 {
    features & !(1 << protocol::LOG_ALL_BIT)
}

fn is_violation(reason: &Reason) -> bool {
    match reason {
        Reason::End(end) => end.is_violation(),
        Reason::Fault(_) => true,
    }
}
