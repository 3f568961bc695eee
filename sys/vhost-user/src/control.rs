//! The task that serves a device: one front-end after another, from its first message to its end.
//!
//! Only sockets are awaited in the task itself. Messages are executed in threads for blocking calls,
//! because they may wait for a worker. Rings that a message stops are taken back before it is executed.
//! The ring of a disk whose store stalls may take for ever: the task sleeps between short looks at it,
//! so that it occupies no thread meanwhile.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_ports::{DeviceNotice, DeviceStatus, VhostUserPromise};
use suimon_socket_runtime::{
    Interrupted, LogPace, ReconnectPause, Stop, TurnAwayPace, Watched, blocking_on,
};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::connection::{Connection, End, Incoming};
use crate::device::{Device, DeviceLink, Stops};
use crate::door::Door;
use crate::fault::DeviceFault;
use crate::features::protocol;
use crate::pace::{Pace, Turn};
use crate::reply::Reply;
use crate::subject::Subject;

/// Longest time for which a thread waits for rings to come back, the first time. Stores that work
/// complete requests within this time.
const STOP_WAIT: Duration = Duration::from_millis(50);
/// First and longest time until the next look at rings that are not back. The interval doubles.
const STOP_LOOK_MIN: Duration = Duration::from_millis(5);
const STOP_LOOK_MAX: Duration = Duration::from_millis(500);
/// Time until the next attempt to execute a call if the host has no thread left.
const SHORTAGE: Duration = Duration::from_millis(200);

/// State of a device that its task and its owner share.
pub(crate) struct Shared {
    pub(crate) subject: Subject,
    /// Notified when the specification has changed.
    pub(crate) wake: Notify,
    /// Eventfd that becomes readable when a ring met a fault.
    pub(crate) faults: Arc<OwnedFd>,
    pub(crate) changing: Mutex<Changing>,
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
    /// `None` after a call that has panicked, which has dropped it.
    device: Option<Box<Device>>,
    pace: Pace,
    began: Instant,
    /// Its first message was valid, and its connection was reported.
    is_announced: bool,
    /// Its rings have run.
    has_run: bool,
}

/// Limits on what front-ends of the device and other connections cost and log.
#[derive(Default)]
pub(crate) struct PeerLimits {
    pause: ReconnectPause,
    /// Other connections while a front-end is served.
    pub(crate) turned_away: TurnAwayPace,
    pub(crate) turned_away_log: LogPace,
    refused_log: LogPace,
}

/// What is to be done and reported at the end of a front-end.
struct Ended {
    device: Option<Box<Device>>,
    reason: Reason,
    is_announced: bool,
    /// It stopped its rings before it left: the next one is another VM.
    left_in_order: bool,
}

/// Result of a message.
type Done = Result<Option<Reply>, DeviceFault>;

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
        let mut limits = PeerLimits::default();
        loop {
            let next = tokio::select! {
                biased;
                () = stop.wait() => None,
                next = async {
                    sleep(limits.pause.duration()).await;
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
                let around = (&door, &faults, &mut limits);
                if let Err(reason) = self.step(around, &mut stop, &mut session).await {
                    break reason;
                }
            };
            limits.pause.note_end(session.began.elapsed(), is_violation(&reason));
            self.end(session, reason).await;
            if stop.is_set() {
                return;
            }
        }
    }

    /// Takes the rings back from a front-end, reports why it is served no longer, and closes its
    /// connection.
    async fn end(self: &Arc<Self>, mut session: Session, reason: Reason) {
        let runs = session.device.as_ref().is_none_or(|device| device.runs());
        let left_in_order = session.has_run && !runs && matches!(reason, Reason::End(End::Left));
        // Fails only if the device is lost; then `finish` takes the rings back.
        let _ = self.take_back(&mut session, |_| Stops::All).await;
        let Session { connection, device, is_announced, .. } = session;
        let mut ended = Some(Ended { device, reason, is_announced, left_in_order });
        while ended.is_some() {
            let shared = Arc::clone(self);
            let finished = blocking_on(&mut ended, move |ended| shared.finish(ended)).await;
            match finished {
                Ok(()) => break,
                Err(Interrupted) => sleep(SHORTAGE).await,
            }
        }
        drop(connection);
    }

    /// Reports the end of a front-end whose rings are back.
    fn finish(&self, ended: &mut Ended) {
        let Ended { device, reason, is_announced, left_in_order } = ended;
        // The rings are gone before the notice is sent.
        match device.take() {
            Some(device) => drop(device),
            None => self.subject.detach(),
        }
        let mut changing = self.changing();
        changing.status.link_up = false;
        changing.status.queue_pairs = 0;
        changing.status.features = None;
        self.subject.refresh_offloads(&mut changing.status);
        drop(changing);
        if *left_in_order {
            self.promise(VhostUserPromise::default());
        }
        let text = match reason {
            Reason::End(end) => end.to_string(),
            Reason::Fault(text) => text.clone(),
            Reason::Host(interrupted) => interrupted.to_string(),
        };
        if is_violation(reason) {
            self.notify(DeviceNotice::Violation { detail: text.clone() });
        }
        if *is_announced {
            self.notify(DeviceNotice::LinkDown { reason: text });
        }
    }

    /// Takes the rings of a device back that `stops` returns. Sleeps while they are not back.
    async fn take_back(
        self: &Arc<Self>,
        session: &mut Session,
        stops: impl FnOnce(&Device) -> Stops,
    ) -> Result<(), Interrupted> {
        let stops = session.device.as_deref().map_or(Stops::Nothing, stops);
        let (mut wait, mut look) = (STOP_WAIT, STOP_LOOK_MIN);
        loop {
            match &session.device {
                None => return Err(Interrupted),
                Some(device) if !device.has_running(stops) => return Ok(()),
                Some(_) => {}
            }
            let stopped = self.with_device(session, move |_, device| device.try_stop(stops, wait));
            match stopped.await {
                Ok(true) => return Ok(()),
                Ok(false) => (wait, look) = (Duration::ZERO, (look * 2).min(STOP_LOOK_MAX)),
                Err(Interrupted) => look = SHORTAGE,
            }
            sleep(look).await;
        }
    }

    /// Waits for one message, executes it and replies to it.
    async fn step(
        self: &Arc<Self>,
        (door, faults, limits): (&Door, &Watched, &mut PeerLimits),
        stop: &mut Stop,
        session: &mut Session,
    ) -> Result<(), Reason> {
        self.wait_for_message((door, faults, limits), stop, session).await?;
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
        self.take_back(session, |device| device.stops(&message)).await?;
        let executed = self.with_device(session, move |shared, device| {
            if is_first {
                shared.notify(DeviceNotice::LinkUp);
            }
            // Read before the message is executed: the message that negotiates acknowledgements is
            // not acknowledged by that.
            let acknowledges = device.acknowledges() && header.needs_reply;
            let done: Done = device.handle(message);
            shared.publish(device);
            (done, acknowledges, device.runs(), device.take_short_log())
        });
        let (done, acknowledges, runs, short_log) = executed.await?;
        session.has_run |= runs;
        if let Some(writes) = short_log {
            self.log_short_log(writes, limits);
        }
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
                if let Some(left_out) = limits.refused_log.next(Instant::now()) {
                    let device = self.subject.name();
                    tracing::warn!(%device, %fault, left_out, "a message is refused");
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Waits until the front-end has sent something. Meanwhile turns other connections away and
    /// handles faults of rings and changes of the specification.
    async fn wait_for_message(
        self: &Arc<Self>,
        (door, faults, limits): (&Door, &Watched, &mut PeerLimits),
        stop: &mut Stop,
        session: &mut Session,
    ) -> Result<(), Reason> {
        let name = self.subject.name();
        let mut is_door_open = true;
        loop {
            tokio::select! {
                biased;
                () = stop.wait() => return Err(End::Stopped.into()),
                fault = fault_reported(faults) => {
                    fault.map_err(End::Socket)?;
                    self.take_back(session, Device::stops_of_fault).await?;
                    self.with_device(session, |shared, device| shared.take_fault(device)).await?;
                }
                () = self.wake.notified() => {
                    self.with_device(session, |shared, device| shared.subject.refresh(device))
                        .await?;
                }
                _pending = session.connection.wait() => return Ok(()),
                () = door.turn_away(name, &session.connection, limits), if is_door_open => {
                    is_door_open = false;
                }
            }
        }
    }

    /// Executes `call` with the session's device in a thread for blocking calls.
    async fn with_device<T: Send + 'static>(
        self: &Arc<Self>,
        session: &mut Session,
        call: impl FnOnce(&Self, &mut Device) -> T + Send + 'static,
    ) -> Result<T, Interrupted> {
        let shared = Arc::clone(self);
        blocking_on(&mut session.device, move |device| call(&shared, device)).await
    }

    /// A front-end whose log of written pages is too short has copied its guest incompletely.
    fn log_short_log(&self, writes: u64, limits: &mut PeerLimits) {
        let Some(left_out) = limits.refused_log.next(Instant::now()) else { return };
        let device = self.subject.name();
        tracing::warn!(
            %device, writes, left_out,
            "writes behind the end of the front-end's log of written pages; the guest's memory may \
             arrive incomplete"
        );
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
