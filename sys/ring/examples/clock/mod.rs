//! The clock by which examples measure.
#![allow(unreachable_pub, reason = "shared by the examples")]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What reading the clock costs. Each span measured contains one
/// reading.
pub fn clock_cost() -> Duration {
    let calls = 100_000;
    let start = cpu_time();
    for _ in 0..calls {
        std::hint::black_box(cpu_time());
    }
    (cpu_time() - start) / calls
}

/// Processor time that this thread has used.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
