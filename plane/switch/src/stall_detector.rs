//! Detection of stalled workers.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use suimon_ports::ServedDevice;
use suimon_quantity::Time;

use crate::notice::{Notices, SwitchNotice};
use crate::round_progress::STALLED_AFTER;
use crate::worker_mailbox::WorkerMailbox;

/// Workers to check for stalls. The lock is held for the check only, unlike that of the registry,
/// which is held while a change waits for a worker.
#[derive(Default)]
pub(crate) struct StallDetector(Mutex<Vec<Weak<WorkerMailbox>>>);

impl StallDetector {
    /// Adds a worker that has started.
    pub(crate) fn add(&self, link: &Arc<WorkerMailbox>) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(link));
    }

    /// Queues notices of workers that became stalled or proceed again. Returns the duration of the
    /// longest current round, and the device that its worker serves.
    pub(crate) fn check(&self, now: Time, notices: &Notices) -> (Duration, Option<ServedDevice>) {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut longest = (Duration::ZERO, None);
        for link in links.iter().filter_map(Weak::upgrade) {
            let (round, device) =
                (link.round_progress.round_duration(now), link.round_progress.served_device.get());
            let is_stalled = round >= STALLED_AFTER;
            if link.round_progress.is_stall_reported.swap(is_stalled, Relaxed) != is_stalled {
                let processor = link.id;
                notices.send(match is_stalled {
                    true => SwitchNotice::WorkerStalled {
                        worker: processor,
                        device,
                        round_duration: round,
                    },
                    false => SwitchNotice::WorkerResumed { worker: processor },
                });
            }
            if round > longest.0 {
                longest = (round, device);
            }
        }
        longest
    }
}
