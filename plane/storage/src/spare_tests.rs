use core::time::Duration;

use suimon_ports::DiskOutcome;

use super::CHECK_INTERVAL;
use crate::fakes::FakeQueue;
use crate::kinds::KINDS;
use crate::queue_state::QueueKind;
use crate::work_tests::{Bench, SECTOR, WRITE, range};

#[test]
fn connections_release_unused_buffers_until_none_is_left_and_rings_do_not() {
    let mut bench = Bench::new(KINDS[0], 5, 16);
    bench.client.lock().unwrap().spares = 9;
    let queue = FakeQueue::new(4);
    let client = queue.client.clone();
    client.lock().unwrap().spares = 3;
    bench.work.insert_queue(bench.disk, Box::new(queue), QueueKind::Client).unwrap();
    let released = |bench: &mut Bench, after: Duration| {
        bench.now = bench.now + after;
        for _ in 0..9 {
            bench.poll();
        }
        client.lock().unwrap().spare_looks
    };
    assert_eq!(released(&mut bench, Duration::ZERO), 0);
    assert_eq!(released(&mut bench, CHECK_INTERVAL / 2), 0);
    assert!(bench.work.next_deadline().is_some());
    assert_eq!(released(&mut bench, CHECK_INTERVAL), 1);
    assert_eq!(released(&mut bench, CHECK_INTERVAL), 2);
    assert!(bench.work.arm(), "the queue is waited for");
    assert_eq!(released(&mut bench, CHECK_INTERVAL), 3);
    assert_eq!(bench.work.spares_deadline(), None);
    assert_eq!(released(&mut bench, 9 * CHECK_INTERVAL), 3, "nothing is left");
    // Requests of a virtqueue cause no checks.
    bench.work.wake_queue(bench.queue);
    let outcome = bench.run(WRITE, range(0, SECTOR as u64), vec![9; SECTOR]);
    assert_eq!(outcome, DiskOutcome::Done);
    assert_eq!(bench.work.spares_deadline(), None);
    assert_eq!(bench.client.lock().unwrap().spare_looks, 0);
}
