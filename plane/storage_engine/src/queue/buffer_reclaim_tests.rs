use core::time::Duration;

use suimon_ports::DiskOutcome;

use super::CHECK_INTERVAL;
use crate::queue::QueueKind;
use crate::testing::fake_queue::FakeQueue;
use crate::testing::image_kinds::KINDS;
use crate::testing::requests::{WRITE, range};
use crate::tests::disk_bench::{Bench, SECTOR};

#[test]
fn connections_release_unused_buffers_until_none_is_left_and_rings_do_not() {
    let mut bench = Bench::new(KINDS[0], 5, 16);
    bench.client.lock().unwrap().unused_buffers = 9;
    let queue = FakeQueue::new(4);
    let client = queue.client.clone();
    client.lock().unwrap().unused_buffers = 3;
    bench.engine.add_queue_of_kind(bench.disk, Box::new(queue), QueueKind::Client).unwrap();
    let released = |bench: &mut Bench, after: Duration| {
        bench.now = bench.now + after;
        for _ in 0..9 {
            bench.poll();
        }
        client.lock().unwrap().release_calls
    };
    assert_eq!(released(&mut bench, Duration::ZERO), 0);
    assert_eq!(released(&mut bench, CHECK_INTERVAL / 2), 0);
    assert!(bench.engine.next_deadline().is_some());
    assert_eq!(released(&mut bench, CHECK_INTERVAL), 1);
    assert_eq!(released(&mut bench, CHECK_INTERVAL), 2);
    assert!(bench.engine.arm(), "the queue is waited for");
    assert_eq!(released(&mut bench, CHECK_INTERVAL), 3);
    assert_eq!(bench.engine.buffer_reclaim_deadline(), None);
    assert_eq!(released(&mut bench, 9 * CHECK_INTERVAL), 3, "nothing is left");
    // Requests of a virtqueue cause no checks.
    bench.engine.wake_queue(bench.queue);
    let outcome = bench.run(WRITE, range(0, SECTOR as u64), vec![9; SECTOR]);
    assert_eq!(outcome, DiskOutcome::Done);
    assert_eq!(bench.engine.buffer_reclaim_deadline(), None);
    assert_eq!(bench.client.lock().unwrap().release_calls, 0);
}
