//! Requested kill of a VM, which the driver or another thread executes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::migration_limits::{FINAL_COPY_TIMEOUT, SWITCHOVER_TIMEOUT};
use crate::operations::OperationHandle;

/// Time within which the driver must begin a kill.
const GRACE: Duration = Duration::from_millis(250);

/// Time for which a kill that was left to the driver waits for another attempt: a switchover that
/// fails takes at most this long until the VM continues on the source, and requests take 10 s.
const RETRY_MAX: Duration =
    FINAL_COPY_TIMEOUT.saturating_add(SWITCHOVER_TIMEOUT).saturating_add(Duration::from_secs(10));

/// Interval at which a kill that was left to the driver is checked.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

// SPECIFICATION.md, row 612.
const _: () = assert!(GRACE.as_millis() == 250);

/// Requested kill of a VM. Either the driver or another thread executes it.
pub(crate) struct PendingKill {
    operation: OperationHandle,
    stage: Mutex<Stage>,
    changed: Condvar,
    /// True if the driver has waited for the other thread.
    #[cfg(test)]
    has_waited: std::sync::atomic::AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No thread has begun the kill.
    Queued,
    /// The driver executes the kill.
    Begun,
    /// The other thread kills the process.
    Killing,
    /// The other thread has killed the process, or has failed.
    Ended { is_killed: bool },
}

/// Kill that another thread than the driver executes. When it is dropped, also by a panic of that
/// thread, the driver continues and gets the result.
pub(super) struct DirectKill<'k> {
    kill: &'k PendingKill,
    is_killed: bool,
}

impl PendingKill {
    /// Returns a kill that no thread has begun.
    pub(super) fn new(operation: OperationHandle) -> Self {
        Self {
            operation,
            stage: Mutex::new(Stage::Queued),
            changed: Condvar::new(),
            #[cfg(test)]
            has_waited: false.into(),
        }
    }

    /// Returns the operation of the request.
    pub(super) const fn operation(&self) -> &OperationHandle {
        &self.operation
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the kill in the driver. Blocks while the other thread kills the process. Returns true
    /// if that thread has killed it.
    pub(super) fn begin(&self) -> bool {
        let is_killing = |stage: &mut Stage| {
            let is_killing = *stage == Stage::Killing;
            #[cfg(test)]
            self.has_waited.fetch_or(is_killing, std::sync::atomic::Ordering::AcqRel);
            is_killing
        };
        let stage = self.changed.wait_while(self.lock(), is_killing);
        let mut stage = stage.unwrap_or_else(PoisonError::into_inner);
        let is_killed = *stage == Stage::Ended { is_killed: true };
        *stage = Stage::Begun;
        self.changed.notify_all();
        is_killed
    }

    /// Waits until the driver begins the kill. Returns the kill if the driver has not done so in
    /// time.
    pub(super) fn wait_driver_timeout(&self) -> Option<DirectKill<'_>> {
        let is_queued = |stage: &mut Stage| *stage == Stage::Queued;
        let wait_result = self.changed.wait_timeout_while(self.lock(), GRACE, is_queued);
        let (mut stage, _) = wait_result.unwrap_or_else(PoisonError::into_inner);
        if *stage != Stage::Queued || !self.operation.begin() {
            return None;
        }
        *stage = Stage::Killing;
        Some(DirectKill { kill: self, is_killed: false })
    }

    /// Waits until a kill that was left to the driver is not blocked any more. Returns the kill
    /// unless the driver has begun it, it was cancelled, or it stays blocked for `RETRY_MAX`.
    pub(super) fn wait_unblocked(&self, is_blocked: impl Fn() -> bool) -> Option<DirectKill<'_>> {
        let deadline = Instant::now() + RETRY_MAX;
        let ended_stage = Stage::Ended { is_killed: false };
        let mut stage = self.lock();
        while *stage == ended_stage && is_blocked() {
            if Instant::now() >= deadline || self.operation.is_cancelled() {
                return None;
            }
            let wait_result = self.changed.wait_timeout(stage, RETRY_INTERVAL);
            (stage, _) = wait_result.unwrap_or_else(PoisonError::into_inner);
        }
        if *stage != ended_stage || self.operation.is_cancelled() || !self.operation.begin() {
            return None;
        }
        *stage = Stage::Killing;
        Some(DirectKill { kill: self, is_killed: false })
    }
}

impl DirectKill<'_> {
    /// Records that the process was killed. The driver completes the operation.
    pub(super) const fn set_killed(&mut self) {
        self.is_killed = true;
    }

    /// Returns the operation of the request.
    pub(super) const fn operation(&self) -> &OperationHandle {
        &self.kill.operation
    }
}

impl Drop for DirectKill<'_> {
    fn drop(&mut self) {
        *self.kill.lock() = Stage::Ended { is_killed: self.is_killed };
        self.kill.changed.notify_all();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::channel;
    use std::thread;

    use suimon_contract::OperationState;

    use super::*;
    use crate::NoListener;
    use crate::operations::Operations;
    use crate::testing::{DEADLINE, wait_until};

    /// Returns a kill that no thread has begun, and the table of its operation.
    pub(in crate::vms) fn kill() -> (Arc<PendingKill>, Arc<Operations>) {
        let table = Arc::new(Operations::new(Arc::new(|| 0), Arc::new(NoListener)));
        let operation = table.add("vm kill", "vm/web", false).unwrap();
        (Arc::new(PendingKill::new(operation)), table)
    }

    #[test]
    fn a_kill_that_the_driver_begins_in_time_is_not_late() {
        let (kill, _table) = kill();
        let driver = Arc::clone(&kill);
        let driver = thread::spawn(move || driver.begin());
        // The driver begins at any time, before or after the other thread waits.
        drop(kill.wait_driver_timeout());
        assert!(!driver.join().unwrap());
        assert!(kill.wait_driver_timeout().is_none(), "the driver has begun it");
    }

    #[test]
    fn the_driver_waits_for_a_late_kill_and_gets_its_result() {
        for is_killed in [false, true] {
            let (kill, _table) = kill();
            let mut late_kill = kill.wait_driver_timeout().expect("no driver");
            let (report, begun_receiver) = channel();
            let driver = Arc::clone(&kill);
            thread::spawn(move || report.send(driver.begin()));
            if is_killed {
                late_kill.set_killed();
            }
            // A driver that did not wait would not set it, or would have returned.
            wait_until("the driver waits", || kill.has_waited.load(Ordering::Acquire));
            assert_eq!(*kill.lock(), Stage::Killing, "the driver has not begun the kill");
            assert!(begun_receiver.try_recv().is_err(), "the process is being killed");
            drop(late_kill);
            assert_eq!(begun_receiver.recv_timeout(DEADLINE), Ok(is_killed));
        }
    }

    #[test]
    fn the_driver_does_not_wait_for_a_thread_that_has_panicked() {
        let (kill, _table) = kill();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let _late = kill.wait_driver_timeout();
            panic!("a defect");
        }));
        assert!(result.is_err());
        let (report, begun_receiver) = channel();
        let driver = Arc::clone(&kill);
        thread::spawn(move || report.send(driver.begin()));
        assert_eq!(begun_receiver.recv_timeout(DEADLINE), Ok(false));
    }

    #[test]
    fn a_kill_that_was_left_to_the_driver_is_executed_when_it_is_not_blocked() {
        let (kill, _table) = kill();
        drop(kill.wait_driver_timeout().expect("no driver"));
        let checks = std::sync::atomic::AtomicU32::new(0);
        let is_blocked = || checks.fetch_add(1, Ordering::AcqRel) < 2;
        let mut late_kill = kill.wait_unblocked(is_blocked).expect("the driver has not begun it");
        late_kill.set_killed();
        drop(late_kill);
        assert!(kill.begin(), "the other thread has killed the process");
    }

    #[test]
    fn a_kill_that_the_driver_has_begun_is_not_executed_again() {
        let (kill, _table) = kill();
        drop(kill.wait_driver_timeout().expect("no driver"));
        let driver = Arc::clone(&kill);
        let is_blocked = || {
            let driver = Arc::clone(&driver);
            thread::spawn(move || driver.begin());
            true
        };
        assert!(kill.wait_unblocked(is_blocked).is_none());
    }

    #[test]
    fn a_kill_that_was_cancelled_is_not_executed() {
        let (kill, table) = kill();
        let id = kill.operation().id();
        assert_eq!(table.cancel(id).unwrap().state, OperationState::Cancelled);
        assert!(kill.wait_driver_timeout().is_none());
        assert!(!kill.begin());
    }
}
