//! Notices of the data plane to the control plane: rare, bounded in number, never blocking.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use suimon_frame::MacAddr;
use suimon_ports::{PortFault, ServedDevice};
use suimon_quantity::{PortId, ProcessorId, QueueId, Time};

/// Notice to the control plane.
#[derive(Clone, Debug)]
pub enum PlaneNotice {
    /// A queue had a fault and was dropped.
    QueueFault {
        /// Id of the queue that was dropped.
        queue: QueueId,
        /// Cause of the fault.
        fault: PortFault,
    },
    /// A worker has not finished a round for [`STALLED_AFTER`](crate::STALLED_AFTER): its queues are
    /// not served.
    WorkerStalled {
        /// Number of the worker.
        processor: ProcessorId,
        /// Device that the worker serves, if it is known.
        device: Option<ServedDevice>,
        /// Time since the start of the round.
        round: Duration,
    },
    /// A stalled worker proceeds.
    WorkerResumed {
        /// Number of the worker.
        processor: ProcessorId,
    },
    /// A port reached its limit for flooded frames. Reported at most once per port in
    /// [`NOTICE_EVERY`].
    StormLimited {
        /// Id of the port that reached the limit.
        port: PortId,
    },
    /// A port sent from an address that it may not use. Reported at most once per port in
    /// [`NOTICE_EVERY`].
    SpoofedSource {
        /// Id of the port that sent the frame.
        port: PortId,
        /// Source address of the frame.
        mac: MacAddr,
    },
    /// An address that was learned on one port was observed on another. Reported at most once in
    /// [`NOTICE_EVERY`] per port on which addresses arrive.
    AddressMoved {
        /// MAC address that moved.
        mac: MacAddr,
        /// Port of the previous observation.
        from: PortId,
        /// Port of this observation.
        to: PortId,
        /// Moves to the port `to` since the last report, this one included.
        moves: u64,
    },
    /// A port with `binds_source` sent from an address that was not learned on any port. Reported
    /// at most once in [`NOTICE_EVERY`] per port, and at once after tables without `binds_source`.
    SourceSeen {
        /// Id of the port that sent the frame.
        port: PortId,
        /// Source address of the frame.
        mac: MacAddr,
    },
}

/// Minimum interval between reports of a recurring condition of one port.
pub const NOTICE_EVERY: Duration = Duration::from_secs(10);

/// Maximum number of queued notices; further ones are logged and dropped.
const NOTICES_MAX: usize = 1024;

/// Queue of notices to the control plane.
pub(crate) struct Notices {
    waiting: ArrayQueue<PlaneNotice>,
}

impl Notices {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { waiting: ArrayQueue::new(NOTICES_MAX) })
    }

    pub(crate) fn tell(&self, notice: PlaneNotice) {
        if let Err(notice) = self.waiting.push(notice) {
            tracing::warn!(?notice, "the queue of notices is full; a notice was dropped");
        }
    }

    pub(crate) fn poll(&self) -> Option<PlaneNotice> {
        self.waiting.pop()
    }
}

/// Time from which a recurring condition may be reported again.
#[derive(Debug, Default)]
pub(crate) struct Told(AtomicU64);

impl Told {
    /// Makes the next report due at once.
    pub(crate) fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    /// Returns true if the condition must be reported now; the next report is then due after
    /// [`NOTICE_EVERY`].
    pub(crate) fn is_due(&self, now: Time) -> bool {
        let next = self.0.load(Relaxed);
        let after = (now + NOTICE_EVERY).as_ns();
        now.as_ns() >= next && self.0.compare_exchange(next, after, Relaxed, Relaxed).is_ok()
    }
}
