//! A NIC's control thread: one front-end after the other, from its first message
//! to its end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use suimon_ports::{
    DeviceNotice, DeviceStatus, PortObserver, QueueHost, VhostUserPromise, VhostUserSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};

use crate::connection::{Connection, End, Incoming};
use crate::device::{Device, DeviceLink};
use crate::door::{Door, pause};
use crate::features::{Offer, egress_allowed, protocol};
use crate::pace::{Pace, Turn};
use crate::reply::Reply;

/// After a front-end that broke the protocol the next one waits, longer each time.
const PENANCE_MS_MIN: u32 = 5;
const PENANCE_MS_MAX: u32 = 100;

/// What the control thread and the NIC's owner both see.
pub(crate) struct Shared {
    pub(crate) port: PortId,
    pub(crate) host: Arc<dyn QueueHost>,
    pub(crate) observer: Arc<dyn PortObserver>,
    pub(crate) mask: Arc<OffloadMask>,
    /// Readable once the thread is to end.
    pub(crate) stop: Arc<OwnedFd>,
    /// Readable when what is desired has changed.
    pub(crate) wake: OwnedFd,
    /// Readable when a ring met a fault.
    pub(crate) faults: Arc<OwnedFd>,
    pub(crate) changing: Mutex<Changing>,
}

/// What changes while the NIC is open.
pub(crate) struct Changing {
    pub(crate) spec: VhostUserSpec,
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

impl Changing {
    pub(crate) fn refresh_offloads(&mut self) {
        let features = self.status.features.map(RingFeatures).unwrap_or_default();
        self.status.ingress = features.ingress();
        self.status.egress = features.egress().and(egress_allowed(&self.spec.offload));
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
        self.observer.handle_notice(self.port, notice);
    }

    /// The control thread.
    pub(crate) fn run(&self, door: &mut Door) {
        let mut penance_ms = 0;
        while let Some(socket) = door.next(self.port, &self.stop) {
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
        changing.refresh_offloads();
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
                tracing::warn!(port = self.port.0, %fault, "refused");
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
                let mtu = self.changing().spec.mtu;
                session.device.set_mtu(mtu);
            }
            if front_end {
                return Ok(());
            }
            if other {
                is_door_open = door.turn_away(self.port);
            }
        }
    }

    /// A ring of the NIC cannot go on: all of them stop, and the reason is told.
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
        let changing = self.changing();
        let spec = &changing.spec;
        let promised = changing.promise.features;
        DeviceLink {
            port: self.port,
            host: Arc::clone(&self.host),
            mask: Arc::clone(&self.mask),
            offer: Offer::new(spec.queue_pairs, spec.mac.is_some(), &spec.offload, promised),
            mac: spec.mac,
            mtu: spec.mtu,
            faults: Arc::clone(&self.faults),
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
        changing.refresh_offloads();
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
