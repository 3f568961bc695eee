//! Detaching of queues whose worker does not respond.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use suimon_frame::FrameBatch;
use suimon_ports::{QueueFault, QueueHost};
use suimon_processor_tests::Supply;
use suimon_quantity::{Direction, PortId, QueueId};

use crate::bench::{Bench, wait_for};

/// Longer than the data plane waits for a worker in any call.
const LONG: Duration = Duration::from_millis(11_500);

/// Queue that blocks its worker, as a host does that does not schedule it.
struct Blocking {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_entered: AtomicBool,
    is_dropped: AtomicBool,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl State {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Unblocks the worker when dropped, also if the test panics.
struct OpensAtEnd(Arc<State>);

impl Drop for OpensAtEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Supply for Blocking {
    fn fill(&mut self, _batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        self.state.is_entered.store(true, Ordering::SeqCst);
        let is_open = self.state.is_open.lock().unwrap();
        drop(self.state.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
        Ok(0)
    }

    fn is_over(&self) -> bool {
        true
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        self.state.is_dropped.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_queue_is_detached_only_when_its_worker_has_dropped_it() {
    let bench = Bench::new(1, 2);
    let state = Arc::new(State::default());
    let _end = OpensAtEnd(Arc::clone(&state));
    let id = QueueId { port: PortId(0), direction: Direction::Ingress, index: 1 };
    bench.plane.attach_source(id, Blocking { state: Arc::clone(&state) }.source());
    wait_for("the worker to be blocked", || state.is_entered.load(Ordering::SeqCst));
    // The calls are sequential: the second finds the queue already requested back.
    let detach = |call: fn(&suimon_switch::DataPlane, QueueId)| {
        let (plane, state) = (bench.plane.clone(), Arc::clone(&state));
        thread::spawn(move || {
            call(&plane, id);
            assert!(state.is_dropped.load(Ordering::SeqCst), "the worker still has the queue");
        })
    };
    let calls = [
        detach(|plane, id| plane.detach(id)),
        detach(|plane, _| plane.detach_port(PortId(0))),
        detach(|plane, id| while !plane.begin_detach(id).wait(Duration::from_secs(60)) {}),
    ];
    let started = Instant::now();
    while started.elapsed() < LONG {
        // The lock is not held meanwhile: counters are readable.
        let queried = Instant::now();
        let _ = bench.plane.port_counters(PortId(1));
        // A call that waits for the worker lasts longer than this.
        assert!(queried.elapsed() < Duration::from_secs(10), "{:?}", queried.elapsed());
        assert!(!calls[0].is_finished() && !calls[2].is_finished());
        thread::sleep(Duration::from_millis(100));
    }
    state.open();
    for call in calls {
        call.join().unwrap();
    }
    assert!(bench.plane.queues().iter().all(|queue| queue.id != id));
}
