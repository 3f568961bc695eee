//! Waits for replies to commands for a disk, whose store may be stalled.
//!
//! A stalled disk keeps its queues and files until the device completes the operation in flight.
//! Callers do not wait for that.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use suimon_quantity::DiskId;

use crate::command::channel::WorkerChannel;
use crate::plane::StoragePlane;
use crate::plane::error::PlaneError;

/// Interval at which a caller that waits for a worker's reply checks whether the disk is stalled.
pub(crate) const STALL_CHECK_INTERVAL: Duration = Duration::from_millis(500);

impl StoragePlane {
    /// Blocks until a worker replies to a command for a disk. Fails if the disk is stalled, or if
    /// the worker does not respond in time or has ended.
    pub(crate) fn wait_for_disk_reply<T>(
        &self,
        disk: DiskId,
        worker: &Arc<WorkerChannel>,
        answer: &Receiver<T>,
    ) -> Result<T, PlaneError> {
        let waits = &self.0.wait_limits;
        let mut responded = Instant::now();
        loop {
            let late_for = |since: Instant| worker.overdue_for().max(since.elapsed());
            let limit = match worker.has_overdue_reply() {
                true => waits
                    .command_wait_max
                    .saturating_sub(late_for(responded))
                    .min(STALL_CHECK_INTERVAL),
                false => STALL_CHECK_INTERVAL,
            };
            let mut probe = None;
            match waits.receive_with_delay_hook(answer, limit, || {
                probe = Some(self.begin_responsiveness_check());
            }) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(PlaneError::NoWorker),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(probe) = probe {
                probe.end(None);
            }
            if self.is_stalled(disk) {
                return Err(PlaneError::Stalled);
            }
            if !worker.has_overdue_reply() {
                // The caller may hold the sender of `answer`, so that it is not disconnected.
                if worker.has_ended() {
                    return Err(PlaneError::NoWorker);
                }
                responded = Instant::now();
            } else if late_for(responded) >= waits.command_wait_max {
                return Err(PlaneError::NoResponse(worker.id));
            }
        }
    }

    /// Returns true if the last known state of a disk is stalled.
    pub(crate) fn is_stalled(&self, disk: DiskId) -> bool {
        self.disks().iter().any(|view| view.disk == disk && view.stalled_for.is_some())
    }
}
