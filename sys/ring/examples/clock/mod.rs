//! CPU clock of the benchmarks.
#![allow(unreachable_pub, reason = "shared by the examples")]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of one reading of the clock. Each measured span contains one reading.
pub fn clock_cost() -> Duration {
    let calls = 100_000;
    let start = cpu_time();
    for _ in 0..calls {
        std::hint::black_box(cpu_time());
    }
    (cpu_time() - start) / calls
}

/// Returns the CPU time used by this thread.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
