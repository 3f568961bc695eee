//! Notices of the data plane to the control plane: rare, bounded in number, never blocking.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use suimon_frame::MacAddr;
use suimon_ports::{QueueFault, ServedDevice};
use suimon_quantity::{PortId, QueueId, Time, WorkerId};

use crate::attachment::{Attachment, DropReporter};

/// Notice to the control plane.
#[derive(Clone, Debug)]
pub enum SwitchNotice {
    /// A queue had a fault and was dropped. Not reported if the queue was detached or attached
    /// again since, because the fault does not concern the port's current device.
    QueueFault {
        /// Id of the queue that was dropped.
        queue: QueueId,
        /// Reason why the queue is not serviced any more.
        fault: QueueFault,
    },
    /// A worker has not finished a round for [`STALLED_AFTER`](crate::STALLED_AFTER): its queues
    /// are not served.
    WorkerStalled {
        /// Number of the worker.
        worker: WorkerId,
        /// Device that the worker serves, if it is known.
        device: Option<ServedDevice>,
        /// Time since the start of the round.
        round_duration: Duration,
    },
    /// A stalled worker proceeds.
    WorkerResumed {
        /// Number of the worker.
        worker: WorkerId,
    },
    /// A port reached its limit for flooded frames. Reported at most once per port in
    /// [`NOTICE_INTERVAL`].
    StormLimited {
        /// Id of the port that reached the limit.
        port: PortId,
    },
    /// A port sent from an address that it may not use. Reported at most once per port in
    /// [`NOTICE_INTERVAL`].
    SpoofedSource {
        /// Id of the port that sent the frame.
        port: PortId,
        /// Source address of the frame.
        mac: MacAddr,
    },
    /// An address that was learned on one port was observed on another. Reported at most once in
    /// [`NOTICE_INTERVAL`] for each port `to`.
    AddressMoved {
        /// Source MAC address that was learned.
        mac: MacAddr,
        /// Port of the previous observation.
        from: PortId,
        /// Port on which the address was observed last.
        to: PortId,
        /// Moves to the port `to` since the last report, this one included.
        move_count: u64,
    },
    /// A port with `binds_source` sent from an address that was not learned on any port. Reported
    /// at most once in [`NOTICE_INTERVAL`] per port, and at once if `binds_source` was set anew.
    NewSource {
        /// Id of the port that sent the frame.
        port: PortId,
        /// Source address of the frame.
        mac: MacAddr,
    },
}

/// Minimum interval between reports of a recurring condition of one port.
pub const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of queued notices; further ones are logged and dropped.
const NOTICES_MAX: usize = 1024;

/// Queue of notices to the control plane.
pub(crate) struct Notices {
    waiting: ArrayQueue<Queued>,
}

/// Queued notice.
#[derive(Debug)]
struct Queued {
    notice: SwitchNotice,
    /// Attachment of the queue that a fault concerns; `None` for other notices.
    attachment: Option<(QueueId, Arc<Attachment>)>,
}

impl Notices {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { waiting: ArrayQueue::new(NOTICES_MAX) })
    }

    pub(crate) fn send(&self, notice: SwitchNotice) {
        self.push(Queued { notice, attachment: None });
    }

    /// Queues the notice of a queue's fault, with the attachment of the queue that had it.
    pub(crate) fn report_fault(&self, queue: QueueId, attached: &DropReporter, fault: QueueFault) {
        let attachment = Some((queue, Arc::clone(attached.attachment())));
        self.push(Queued { notice: SwitchNotice::QueueFault { queue, fault }, attachment });
    }

    /// Returns the oldest notice; `None` if there is none. `is_current` returns true if a queue
    /// still has an attachment; faults of earlier attachments are dropped.
    pub(crate) fn poll(
        &self,
        is_current: impl Fn(QueueId, &Arc<Attachment>) -> bool,
    ) -> Option<SwitchNotice> {
        // Bounded, because workers may queue further notices meanwhile.
        for _ in 0..NOTICES_MAX {
            let Queued { notice, attachment } = self.waiting.pop()?;
            if attachment.is_none_or(|(queue, attachment)| is_current(queue, &attachment)) {
                return Some(notice);
            }
        }
        None
    }

    fn push(&self, queued: Queued) {
        if let Err(Queued { notice, .. }) = self.waiting.push(queued) {
            tracing::warn!(?notice, "too many notices are waiting; this one is not kept");
        }
    }
}

/// Rate limiter of one recurring report, in ns: the time from which the report is due again.
#[derive(Debug, Default)]
pub(crate) struct ReportLimiter(AtomicU64);

impl ReportLimiter {
    /// Makes the next report due at once.
    pub(crate) fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    /// Returns true if the condition must be reported now; the next report is then due after
    /// [`NOTICE_INTERVAL`].
    pub(crate) fn try_report(&self, now: Time) -> bool {
        let next = self.0.load(Relaxed);
        let after = (now + NOTICE_INTERVAL).as_ns();
        now.as_ns() >= next && self.0.compare_exchange(next, after, Relaxed, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guests cause notices while the control thread may be busy.
    #[test]
    fn notices_beyond_the_limit_are_dropped() {
        let notices = Notices::new();
        for _ in 0..2 * NOTICES_MAX {
            let mac = MacAddr::new([2, 0, 0, 0, 0, 1]);
            notices.send(SwitchNotice::NewSource { port: PortId(1), mac });
        }
        let polled = std::iter::from_fn(|| notices.poll(|_, _| true)).count();
        assert_eq!(polled, NOTICES_MAX);
    }
}
