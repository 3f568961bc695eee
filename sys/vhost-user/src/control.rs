//! Task that serves a device: one front-end after another, each from its first message to its end.
//!
//! The task itself only waits for sockets. Messages are executed in threads for blocking calls,
//! because they may wait for a worker. Rings that a message stops are detached before it is
//! executed. The ring of a disk whose store has stalled may take arbitrarily long to detach: the
//! task sleeps between short attempts, so that it occupies no thread meanwhile.

mod publication;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_ports::{DeviceNotice, DeviceStatus, NegotiatedFeatures};
use suimon_socket_runtime::{BlockingCallFailed, TaskStop, WatchedFd, run_blocking_on};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::acceptor::{Acceptor, RejectionEnd};
use crate::connection::{Connection, ConnectionEnd, IncomingMessage};
use crate::device::{RingSet, VhostUserDevice};
use crate::device_owner::DeviceOwner;
use crate::fault::DeviceFault;
use crate::peer_limits::PeerLimits;
use crate::rate_limits::{Decision, MessageRateLimit};
use crate::reply::VhostUserReply;

/// Maximum time for which the first attempt to detach rings blocks. Stores that respond complete
/// requests within this time.
const STOP_WAIT: Duration = Duration::from_millis(50);
/// Initial interval between further attempts to detach rings. It doubles up to
/// `STOP_POLL_INTERVAL_MAX`.
const STOP_POLL_INTERVAL_MIN: Duration = Duration::from_millis(5);
/// Maximum interval between attempts to detach rings.
const STOP_POLL_INTERVAL_MAX: Duration = Duration::from_millis(500);
/// Interval between attempts to execute a call while the host has no thread available.
const SHORTAGE: Duration = Duration::from_millis(200);

/// Interval of checks whether the front-end's descriptors are closed.
const CLOSING: Duration = Duration::from_millis(100);

/// State shared by a device's task and its owner.
pub(crate) struct SharedDeviceState {
    pub(crate) owner: DeviceOwner,
    /// Notified when the specification has changed.
    pub(crate) spec_changed: Notify,
    /// Eventfd that becomes readable when a ring has a fault.
    pub(crate) fault_eventfd: Arc<OwnedFd>,
    pub(crate) changeable_state: Mutex<ChangeableState>,
}

/// Status and negotiated features of a device, which change while it is open.
pub(crate) struct ChangeableState {
    pub(crate) status: DeviceStatus,
    /// Features and queues that the VM has negotiated, and that the device must offer to its next
    /// connection.
    pub(crate) negotiated: NegotiatedFeatures,
}

/// Reason why a front-end is not served any more.
enum Reason {
    End(ConnectionEnd),
    Fault(String),
    /// The host could not execute the message: no thread was available, or the call panicked.
    Host(BlockingCallFailed),
}

impl From<ConnectionEnd> for Reason {
    fn from(end: ConnectionEnd) -> Self {
        Self::End(end)
    }
}

impl From<BlockingCallFailed> for Reason {
    fn from(interrupted: BlockingCallFailed) -> Self {
        Self::Host(interrupted)
    }
}

/// Front-end that is being served, and its device.
struct MessageSession {
    connection: Connection,
    /// `None` after a call on it panicked: the device is lost.
    device: Option<Box<VhostUserDevice>>,
    pace: MessageRateLimit,
    started: Instant,
    /// True once the front-end's first valid message was executed and the connection was reported.
    is_announced: bool,
    /// True once at least one ring has run.
    has_run: bool,
}

/// State of a front-end whose connection has ended, for cleanup and report.
struct Ended {
    device: Option<Box<VhostUserDevice>>,
    reason: Reason,
    is_announced: bool,
    /// True if the front-end stopped its rings before it disconnected, so that the next front-end
    /// belongs to another VM.
    was_orderly: bool,
}

/// Result of executing a message: the reply, if the request has one.
type Done = Result<Option<VhostUserReply>, DeviceFault>;

impl SharedDeviceState {
    pub(crate) fn changeable_state(&self) -> MutexGuard<'_, ChangeableState> {
        self.changeable_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the task that the specification has changed.
    pub(crate) fn wake_control(&self) {
        self.spec_changed.notify_one();
    }

    fn notify(&self, notice: DeviceNotice) {
        self.owner.notify(notice);
    }

    /// Serves front-ends until `stop` is set. `faults` watches [`SharedDeviceState::faults`].
    pub(crate) async fn run(
        self: Arc<Self>,
        mut acceptor: Acceptor,
        faults: WatchedFd,
        mut stop: TaskStop,
    ) {
        let mut limits = PeerLimits::default();
        loop {
            let next = tokio::select! {
                biased;
                () = stop.wait() => None,
                next = async {
                    sleep(limits.pause.duration()).await;
                    acceptor.next(self.owner.name()).await
                } => next,
            };
            let Some(connection) = next else { return };
            let mut session = MessageSession {
                connection,
                device: Some(Box::new(VhostUserDevice::new(self.device_parameters()))),
                pace: MessageRateLimit::new(0),
                started: Instant::now(),
                is_announced: false,
                has_run: false,
            };
            let reason = loop {
                let context = (&acceptor, &faults, &mut limits);
                if let Err(reason) = self.step(context, &mut stop, &mut session).await {
                    break reason;
                }
            };
            limits.pause.record_end(session.started.elapsed(), is_violation(&reason));
            let closing = session.connection.closing_descriptors();
            self.end(session, reason).await;
            while closing.is_pending() && !stop.is_set() {
                tokio::select! {
                    () = stop.wait() => {}
                    () = sleep(CLOSING) => {}
                }
            }
            if stop.is_set() {
                return;
            }
        }
    }

    /// Detaches the rings of a front-end, reports why it is no longer served, and closes its
    /// connection.
    async fn end(self: &Arc<Self>, mut session: MessageSession, reason: Reason) {
        let runs = session.device.as_ref().is_none_or(|device| device.has_running_ring());
        let left_in_order =
            session.has_run && !runs && matches!(reason, Reason::End(ConnectionEnd::PeerClosed));
        // Fails only if the device is lost; `finish` then detaches the rings.
        let _ = self.reclaim(&mut session, |_| RingSet::All).await;
        let MessageSession { connection, device, is_announced, .. } = session;
        let mut ended = Some(Ended { device, reason, is_announced, was_orderly: left_in_order });
        while ended.is_some() {
            let shared = Arc::clone(self);
            let result = run_blocking_on(&mut ended, move |ended| shared.finish(ended)).await;
            match result {
                Ok(()) => break,
                Err(BlockingCallFailed) => sleep(SHORTAGE).await,
            }
        }
        drop(connection);
    }

    /// Detaches the remaining rings, and reports the end of the front-end.
    fn finish(&self, ended: &mut Ended) {
        let Ended { device, reason, is_announced, was_orderly: left_in_order } = ended;
        // The rings are detached before the notice is sent.
        match device.take() {
            Some(device) => drop(device),
            None => self.owner.detach(),
        }
        let mut changing = self.changeable_state();
        changing.status.link_up = false;
        changing.status.queue_pairs = 0;
        changing.status.virtio_features = None;
        self.owner.refresh_offloads(&mut changing.status);
        drop(changing);
        if *left_in_order {
            self.report_negotiated(NegotiatedFeatures::default());
        }
        let text = match reason {
            Reason::End(end) => end.to_string(),
            Reason::Fault(text) => text.clone(),
            Reason::Host(interrupted) => interrupted.to_string(),
        };
        if is_violation(reason) {
            self.notify(DeviceNotice::ProtocolViolation { detail: text.clone() });
        }
        if *is_announced {
            self.notify(DeviceNotice::LinkDown { reason: text });
        }
    }

    /// Detaches the rings that `stops` returns. Sleeps between short attempts, so that it occupies
    /// no thread.
    ///
    /// # Errors
    /// The device is lost, because a call panicked.
    async fn reclaim(
        self: &Arc<Self>,
        session: &mut MessageSession,
        stops: impl FnOnce(&VhostUserDevice) -> RingSet,
    ) -> Result<(), BlockingCallFailed> {
        let stops = session.device.as_deref().map_or(RingSet::None, stops);
        let (mut wait, mut poll_interval) = (STOP_WAIT, STOP_POLL_INTERVAL_MIN);
        loop {
            match &session.device {
                None => return Err(BlockingCallFailed),
                Some(device) if !device.is_any_running(stops) => return Ok(()),
                Some(_) => {}
            }
            let stopped = self.with_device(session, move |_, device| device.try_stop(stops, wait));
            match stopped.await {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    (wait, poll_interval) =
                        (Duration::ZERO, (poll_interval * 2).min(STOP_POLL_INTERVAL_MAX));
                }
                Err(BlockingCallFailed) => poll_interval = SHORTAGE,
            }
            sleep(poll_interval).await;
        }
    }

    /// Waits for one message, executes it and replies to it.
    async fn step(
        self: &Arc<Self>,
        (acceptor, faults, limits): (&Acceptor, &WatchedFd, &mut PeerLimits),
        stop: &mut TaskStop,
        session: &mut MessageSession,
    ) -> Result<(), Reason> {
        self.wait_for_message((acceptor, faults, limits), stop, session).await?;
        let IncomingMessage { header, message } = tokio::select! {
            biased;
            () = stop.wait() => return Err(ConnectionEnd::Stopped.into()),
            received = async {
                limit_rate(session).await?;
                Ok::<_, Reason>(session.connection.receive().await?)
            } => received?,
        };
        let rings = session
            .device
            .as_deref()
            .map_or(0, |device| device.running_switch_rings(device.rings_to_stop(&message)));
        tokio::select! {
            biased;
            () = stop.wait() => return Err(ConnectionEnd::Stopped.into()),
            () = limits.limit_ring_rate(rings) => {}
        }
        let is_first = !session.is_announced;
        session.is_announced = true;
        self.reclaim(session, |device| device.rings_to_stop(&message)).await?;
        let executed = self.with_device(session, move |shared, device| {
            if is_first {
                shared.notify(DeviceNotice::LinkUp);
            }
            // Read before the message is executed: the message that negotiates REPLY_ACK is not
            // itself acknowledged.
            let acknowledges = device.has_reply_ack() && header.requires_ack;
            let outcome: Done = device.handle(message);
            shared.publish_status(device);
            (outcome, acknowledges, device.has_running_ring(), device.take_log_overruns())
        });
        let (outcome, acknowledges, runs, log_overruns) = executed.await?;
        session.has_run |= runs;
        if let Some(writes) = log_overruns {
            self.log_short_log(writes, limits);
        }
        let (reply, fault) = match outcome {
            Ok(None) => (acknowledges.then(|| VhostUserReply::acknowledgement(true)), None),
            Ok(reply) => (reply, None),
            Err(fault) => {
                (acknowledges.then(|| VhostUserReply::acknowledgement(false)), Some(fault))
            }
        };
        if let Some(reply) = reply {
            tokio::select! {
                biased;
                () = stop.wait() => return Err(ConnectionEnd::Stopped.into()),
                sent = session.connection.send_reply(header.request, &reply) => sent?,
            }
        }
        match fault {
            Some(fault) if fault.is_fatal() => Err(Reason::Fault(fault.to_string())),
            Some(fault) => {
                if let Some(left_out) = limits.warnings_log.try_log(Instant::now()) {
                    let device = self.owner.name();
                    tracing::warn!(%device, %fault, left_out, "a message was rejected");
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Waits until data from the front-end can be received. Meanwhile closes other connections, and
    /// handles faults of rings and changes of the specification.
    ///
    /// # Errors
    /// The front-end is not served any more.
    async fn wait_for_message(
        self: &Arc<Self>,
        (acceptor, faults, limits): (&Acceptor, &WatchedFd, &mut PeerLimits),
        stop: &mut TaskStop,
        session: &mut MessageSession,
    ) -> Result<(), Reason> {
        let name = self.owner.name();
        let mut is_door_open = true;
        loop {
            // Only a socket that the front-end passed can keep its connection open without a
            // process.
            let may_replace =
                session.device.as_ref().is_some_and(|device| device.has_backend_channel());
            tokio::select! {
                biased;
                () = stop.wait() => return Err(ConnectionEnd::Stopped.into()),
                fault = fault_reported(faults) => {
                    fault.map_err(ConnectionEnd::Socket)?;
                    self.reclaim(session, VhostUserDevice::rings_to_detach).await?;
                    self.with_device(session, |shared, device| shared.take_fault(device)).await?;
                }
                () = self.spec_changed.notified() => {
                    self.with_device(session, |shared, device| shared.owner.apply_spec(device))
                        .await?;
                }
                _pending = session.connection.wait() => return Ok(()),
                turned_away = acceptor.reject(name, (&session.connection, may_replace), limits),
                    if is_door_open =>
                {
                    if turned_away == RejectionEnd::Replaced {
                        return Err(ConnectionEnd::Replaced.into());
                    }
                    is_door_open = false;
                }
            }
        }
    }

    /// Executes `call` with the session's device in a thread for blocking calls.
    ///
    /// # Errors
    /// No thread was available, or `call` panicked and the device is lost.
    async fn with_device<T: Send + 'static>(
        self: &Arc<Self>,
        session: &mut MessageSession,
        call: impl FnOnce(&Self, &mut VhostUserDevice) -> T + Send + 'static,
    ) -> Result<T, BlockingCallFailed> {
        let shared = Arc::clone(self);
        run_blocking_on(&mut session.device, move |device| call(&shared, device)).await
    }

    /// Logs a warning, at a limited rate, that `writes` writes were beyond the end of the log of
    /// written pages. The front-end's copy of the guest's memory may then be incomplete.
    fn log_short_log(&self, writes: u64, limits: &mut PeerLimits) {
        let Some(left_out) = limits.warnings_log.try_log(Instant::now()) else { return };
        let device = self.owner.name();
        tracing::warn!(
            %device, writes, left_out,
            "writes beyond the end of the front-end's log of dirty pages; the migrated memory may \
             be incomplete"
        );
    }
}

/// Delays a front-end that exceeds [`MessageRateLimit::PER_SECOND`].
///
/// # Errors
/// The front-end has exceeded the rate for [`MessageRateLimit::FLOOD_AFTER_MS`].
async fn limit_rate(session: &mut MessageSession) -> Result<(), Reason> {
    loop {
        let now_ms = u64::try_from(session.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match session.pace.take(now_ms) {
            Decision::Now => return Ok(()),
            Decision::Wait(ms) => sleep(Duration::from_millis(u64::from(ms))).await,
            Decision::Disconnect => {
                let text = format!(
                    "more than {} messages a second for {} seconds",
                    MessageRateLimit::PER_SECOND,
                    MessageRateLimit::FLOOD_AFTER_MS / 1000
                );
                return Err(Reason::Fault(text));
            }
        }
    }
}

/// Waits until a ring has reported a fault. Cancel safe.
async fn fault_reported(faults: &WatchedFd) -> io::Result<()> {
    faults.read(|faults| Ok(rustix::io::read(faults, &mut [0; 8])?)).await.map(drop)
}

fn is_violation(reason: &Reason) -> bool {
    match reason {
        Reason::End(end) => end.is_violation(),
        Reason::Fault(_) => true,
        Reason::Host(_) => false,
    }
}
