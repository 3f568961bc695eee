//! The task that serves a device: one front-end after another, from its first message to its end.
//!
//! Only sockets are awaited in the task itself. Messages are executed, and rings are taken back, in
//! threads for blocking calls, because both may wait for a worker or for a store that stalls.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_ports::{
    DeviceNotice, DeviceStatus, DiskObserver, PortObserver, QueueHost, VhostUserDiskSpec,
    VhostUserPromise, VhostUserSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};
use suimon_socket_runtime::{Interrupted, Stop, Watched, blocking};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::connection::{Connection, End, Incoming};
use crate::device::{Device, DeviceLink};
use crate::door::Door;
use crate::fault::DeviceFault;
use crate::features::{Offer, egress_allowed, protocol};
use crate::model::{DeviceName, DiskModel, Model, NicModel};
use crate::pace::{Pace, Turn};
use crate::reply::Reply;

/// Time until the next front-end is served after one that broke the protocol before its rings ran. It
/// doubles each time.
const PENANCE_MIN: Duration = Duration::from_millis(5);
const PENANCE_MAX: Duration = Duration::from_millis(100);

/// State of a device that its task and its owner share.
pub(crate) struct Shared {
    pub(crate) subject: Subject,
    /// Notified when the specification has changed.
    pub(crate) wake: Notify,
    /// Eventfd that becomes readable when a ring met a fault.
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

/// Why a front-end is no longer served.
enum Reason {
    End(End),
    Fault(String),
    /// The host could not execute one of its messages.
    Host(Interrupted),
}

impl From<End> for Reason {
    fn from(end: End) -> Self {
        Self::End(end)
    }
}

impl From<Interrupted> for Reason {
    fn from(interrupted: Interrupted) -> Self {
        Self::Host(interrupted)
    }
}

/// A front-end that is served.
struct Session {
    connection: Connection,
    /// `None` after a call that the host could not execute, which has dropped it.
    device: Option<Box<Device>>,
    pace: Pace,
    began: Instant,
    /// Its first message was valid, and its connection was reported.
    is_announced: bool,
    /// Its rings have run.
    has_run: bool,
}

/// Result of a message.
type Done = Result<Option<Reply>, DeviceFault>;

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

    /// Makes the task apply a changed specification.
    pub(crate) fn wake_control(&self) {
        self.wake.notify_one();
    }

    fn notify(&self, notice: DeviceNotice) {
        self.subject.notify(notice);
    }

    /// Serves front-ends until `stop` is set. `faults` watches [`Shared::faults`].
    pub(crate) async fn run(self: Arc<Self>, mut door: Door, faults: Watched, mut stop: Stop) {
        let mut penance = Duration::ZERO;
        loop {
            let next = tokio::select! {
                biased;
                () = stop.wait() => None,
                next = async {
                    sleep(penance).await;
                    door.next(self.subject.name()).await
                } => next,
            };
            let Some(connection) = next else { return };
            let mut session = Session {
                connection,
                device: Some(Box::new(Device::new(self.link()))),
                pace: Pace::new(0),
                began: Instant::now(),
                is_announced: false,
                has_run: false,
            };
            let reason = loop {
                if let Err(reason) = self.step(&door, &faults, &mut stop, &mut session).await {
                    break reason;
                }
            };
            penance = match (is_violation(&reason), session.has_run) {
                (true, false) => (penance * 2).clamp(PENANCE_MIN, PENANCE_MAX),
                (true, true) => PENANCE_MIN,
                (false, _) => Duration::ZERO,
            };
            let shared = Arc::clone(&self);
            // If this cannot be executed, what it owns is dropped, and the rings with it.
            let _ = blocking(move || shared.finish(session, reason)).await;
            if stop.is_set() {
                return;
            }
        }
    }

    /// Takes the rings back from a front-end and reports why. Blocks.
    fn finish(&self, session: Session, reason: Reason) {
        let Session { device, is_announced, has_run, .. } = session;
        let mut left_in_order = false;
        match device {
            Some(mut device) => {
                // A front-end that stopped its rings before it left shut its VM down or moved it:
                // the next one is another VM.
                left_in_order =
                    has_run && !device.runs() && matches!(reason, Reason::End(End::Left));
                // The rings are gone before the notice is sent.
                device.stop_all();
            }
            None => self.subject.detach(),
        }
        let mut changing = self.changing();
        changing.status.link_up = false;
        changing.status.queue_pairs = 0;
        changing.status.features = None;
        self.subject.refresh_offloads(&mut changing.status);
        drop(changing);
        if left_in_order {
            self.promise(VhostUserPromise::default());
        }
        let has_sinned = is_violation(&reason);
        let text = match reason {
            Reason::End(end) => end.to_string(),
            Reason::Fault(text) => text,
            Reason::Host(interrupted) => interrupted.to_string(),
        };
        if has_sinned {
            self.notify(DeviceNotice::Violation { detail: text.clone() });
        }
        if is_announced {
            self.notify(DeviceNotice::LinkDown { reason: text });
        }
    }

    /// Waits for one message, executes it and replies to it.
    async fn step(
        self: &Arc<Self>,
        door: &Door,
        faults: &Watched,
        stop: &mut Stop,
        session: &mut Session,
    ) -> Result<(), Reason> {
        self.wait_for_message(door, faults, stop, session).await?;
        let Incoming { header, message } = tokio::select! {
            biased;
            () = stop.wait() => return Err(End::Stopped.into()),
            received = async {
                keep_pace(session).await?;
                Ok::<_, Reason>(session.connection.receive().await?)
            } => received?,
        };
        let is_first = !session.is_announced;
        session.is_announced = true;
        let executed = self.with_device(session, move |shared, device| {
            if is_first {
                shared.notify(DeviceNotice::LinkUp);
            }
            // Read before the message is executed: the message that negotiates acknowledgements is
            // not acknowledged by that.
            let acknowledges = device.acknowledges() && header.needs_reply;
            let done: Done = device.handle(message);
            shared.publish(device);
            (done, acknowledges, device.runs())
        });
        let (done, acknowledges, runs) = executed.await?;
        session.has_run |= runs;
        let (reply, fault) = match done {
            Ok(None) => (acknowledges.then(|| Reply::acknowledgement(true)), None),
            Ok(reply) => (reply, None),
            Err(fault) => (acknowledges.then(|| Reply::acknowledgement(false)), Some(fault)),
        };
        if let Some(reply) = reply {
            tokio::select! {
                biased;
                () = stop.wait() => return Err(End::Stopped.into()),
                sent = session.connection.answer(header.request, &reply) => sent?,
            }
        }
        match fault {
            Some(fault) if fault.is_fatal() => Err(Reason::Fault(fault.to_string())),
            Some(fault) => {
                tracing::warn!(device = %self.subject.name(), %fault, "refused");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Waits until the front-end has sent something. Meanwhile turns other connections away and
    /// handles faults of rings and changes of the specification.
    async fn wait_for_message(
        self: &Arc<Self>,
        door: &Door,
        faults: &Watched,
        stop: &mut Stop,
        session: &mut Session,
    ) -> Result<(), Reason> {
        let mut is_door_open = true;
        loop {
            tokio::select! {
                biased;
                () = stop.wait() => return Err(End::Stopped.into()),
                fault = fault_reported(faults) => {
                    fault.map_err(End::Socket)?;
                    self.with_device(session, |shared, device| shared.take_fault(device)).await?;
                }
                () = self.wake.notified() => {
                    self.with_device(session, |shared, device| shared.subject.refresh(device))
                        .await?;
                }
                _pending = session.connection.wait() => return Ok(()),
                () = door.turn_away(self.subject.name()), if is_door_open => is_door_open = false,
            }
        }
    }

    /// Executes `call` with the session's device in a thread for blocking calls.
    async fn with_device<T: Send + 'static>(
        self: &Arc<Self>,
        session: &mut Session,
        call: impl FnOnce(&Self, &mut Device) -> T + Send + 'static,
    ) -> Result<T, Interrupted> {
        let mut device = session.device.take().ok_or(Interrupted)?;
        let shared = Arc::clone(self);
        let (device, result) = blocking(move || {
            let result = call(&shared, &mut device);
            (device, result)
        })
        .await?;
        session.device = Some(device);
        Ok(result)
    }

    /// Stops all rings of a device of which one met a fault, and reports the fault. The connection
    /// stays, so that the guest can start its driver again.
    fn take_fault(&self, device: &mut Device) {
        let Some(fault) = device.take_fault() else { return };
        self.publish(device);
        self.notify(DeviceNotice::Violation { detail: fault.to_string() });
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

/// Delays a front-end that sends more messages than any VM does.
async fn keep_pace(session: &mut Session) -> Result<(), Reason> {
    loop {
        let now_ms = u64::try_from(session.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match session.pace.take(now_ms) {
            Turn::Now => return Ok(()),
            Turn::Wait(ms) => sleep(Duration::from_millis(u64::from(ms))).await,
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

/// Completes when a ring has reported a fault. Cancel safe.
async fn fault_reported(faults: &Watched) -> io::Result<()> {
    faults.read(|faults| Ok(rustix::io::read(faults, &mut [0; 8])?)).await.map(drop)
}

fn is_violation(reason: &Reason) -> bool {
    match reason {
        Reason::End(end) => end.is_violation(),
        Reason::Fault(_) => true,
        Reason::Host(_) => false,
    }
}
