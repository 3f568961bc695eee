//! Detection of workers that do not proceed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use suimon_frame::FrameBatch;
use suimon_ports::{QueueFault, QueueHost, ServedDevice};
use suimon_processor_tests::{Supply, TestClockRuntime, plane_of_nics, queue, sleep_briefly};
use suimon_quantity::{Direction, PortId, Time};
use suimon_switch::{DataPlane, STALLED_AFTER, SwitchNotice};

/// Source that blocks the worker until it is released, as a system call or a page fault does.
struct Blocking {
    is_entered: Arc<AtomicBool>,
    released: Arc<(Mutex<bool>, Condvar)>,
}

impl Supply for Blocking {
    fn fill(&mut self, _: &mut FrameBatch) -> Result<usize, QueueFault> {
        self.is_entered.store(true, Ordering::SeqCst);
        let (released, condvar) = &*self.released;
        let guard = released.lock().unwrap();
        drop(condvar.wait_while(guard, |released| !*released).unwrap());
        Ok(0)
    }
}

fn wait_until(description: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < Duration::from_secs(120), "{description}");
        sleep_briefly();
    }
}

fn notice(plane: &DataPlane) -> Option<SwitchNotice> {
    let _ = plane.check_workers();
    plane.poll_notice()
}

#[test]
fn a_worker_that_does_not_proceed_is_reported_with_the_device_that_it_serves() {
    let clock = Arc::new(AtomicU64::new(1));
    let reads = Arc::clone(&clock);
    let runtime = TestClockRuntime::new(move || Time::from_ns(reads.load(Ordering::SeqCst)));
    let plane = plane_of_nics(Arc::new(runtime), 2);
    let is_entered = Arc::new(AtomicBool::new(false));
    let released = Arc::new((Mutex::new(false), Condvar::new()));
    let source = Blocking { is_entered: Arc::clone(&is_entered), released: Arc::clone(&released) };
    // An idle worker is not stalled, however long it sleeps.
    clock.fetch_add(2 * u64::try_from(STALLED_AFTER.as_nanos()).unwrap(), Ordering::SeqCst);
    wait_until("a round begins", || plane.check_workers().0 < STALLED_AFTER);
    while plane.poll_notice().is_some() {}
    plane.attach_source(queue(1, Direction::Ingress), source.source());
    wait_until("the worker serves the queue", || is_entered.load(Ordering::SeqCst));
    assert!(notice(&plane).is_none(), "the round has just begun");
    clock.fetch_add(u64::try_from(STALLED_AFTER.as_nanos()).unwrap(), Ordering::SeqCst);
    match notice(&plane) {
        Some(SwitchNotice::WorkerStalled { device, round_duration: round, .. }) => {
            assert_eq!(device, Some(ServedDevice::Port(PortId(1))));
            assert!(round >= STALLED_AFTER);
        }
        other => panic!("{other:?}"),
    }
    assert!(notice(&plane).is_none(), "it is reported once");
    *released.0.lock().unwrap() = true;
    released.1.notify_all();
    let mut notice_seen = None;
    wait_until("the worker proceeds", || {
        notice_seen = notice(&plane);
        notice_seen.is_some()
    });
    assert!(matches!(notice_seen, Some(SwitchNotice::WorkerResumed { .. })), "{notice_seen:?}");
    plane.stop();
}
