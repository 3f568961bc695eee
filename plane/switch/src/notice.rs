//! What the data plane has to tell: rare, bounded, never waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use suimon_frame::MacAddr;
use suimon_ports::PortFault;
use suimon_quantity::{PortId, QueueId, Time};

/// News for the control plane.
#[derive(Clone, Debug)]
pub enum PlaneNotice {
    /// A queue can carry no more frames and was given up.
    QueueFault {
        /// Which queue.
        queue: QueueId,
        /// Why.
        fault: PortFault,
    },
    /// A port reached its limit for flooded frames. Told at most once per port
    /// in [`NOTICE_EVERY`].
    StormLimited {
        /// Which port.
        port: PortId,
    },
    /// A port sent from an address that is not its own. Told at most once per
    /// port in [`NOTICE_EVERY`].
    SpoofedSource {
        /// Which port.
        port: PortId,
        /// The address.
        mac: MacAddr,
    },
    /// An address that was learned on one port was seen on another. Reported at most once in
    /// [`NOTICE_EVERY`] per port on which addresses arrive.
    AddressMoved {
        /// The address.
        mac: MacAddr,
        /// The port of the previous sighting.
        from: PortId,
        /// The port of this sighting.
        to: PortId,
        /// Moves to the port `to` since the last report, this one included.
        moves: u64,
    },
    /// A port with `binds_source` sent from an address that was not learned on any port. Reported at
    /// most once in [`NOTICE_EVERY`] per port, and at once after tables without `binds_source`.
    SourceSeen {
        /// The port.
        port: PortId,
        /// The address.
        mac: MacAddr,
    },
}

/// A recurring condition of one port is told at most this often.
pub const NOTICE_EVERY: Duration = Duration::from_secs(10);

/// Notices that wait for the control plane; more than this are not kept.
const NOTICES_MAX: usize = 1024;

/// The way of notices to the control plane.
pub(crate) struct Notices {
    waiting: ArrayQueue<PlaneNotice>,
}

impl Notices {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { waiting: ArrayQueue::new(NOTICES_MAX) })
    }

    pub(crate) fn tell(&self, notice: PlaneNotice) {
        if let Err(notice) = self.waiting.push(notice) {
            tracing::warn!(?notice, "too many notices are waiting; this one is not kept");
        }
    }

    pub(crate) fn poll(&self) -> Option<PlaneNotice> {
        self.waiting.pop()
    }
}

/// When a recurring condition was last told.
#[derive(Debug, Default)]
pub(crate) struct Told(AtomicU64);

impl Told {
    /// Makes the next report due at once.
    pub(crate) fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    /// Whether to tell now; if so, not again for [`NOTICE_EVERY`].
    pub(crate) fn is_due(&self, now: Time) -> bool {
        let next = self.0.load(Relaxed);
        let after = (now + NOTICE_EVERY).as_ns();
        now.as_ns() >= next && self.0.compare_exchange(next, after, Relaxed, Relaxed).is_ok()
    }
}
