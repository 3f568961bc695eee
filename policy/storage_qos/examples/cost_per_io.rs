//! CPU time per request in the scheduler: submission, the poll that dispatches it if it was queued,
//! and completion. There is no device, and the time passed to the scheduler is simulated.
//!
//!     cargo run --release -p suimon-storage-qos --example cost_per_io

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use suimon_quantity::{ByteRate, DiskId, Iops, Time};
use suimon_storage_qos::{
    Capacity, DiskSlot, IoKind, Limits, LimitsSource, NextAction, Proposal, Store, StoreScheduler,
    StoreSpec, SubmitOutcome,
};

const REQUESTS: u64 = 2_000_000;
const SAMPLES: usize = 7;
const BYTES: u32 = 4096;
/// Time between completions in ns: a million operations per second.
const STEP_NS: u64 = 1000;
const LATENCY: Duration = Duration::from_micros(80);
/// Number of queued requests of each backlogged disk.
const BACKLOG: u32 = 4;

#[derive(Clone, Copy)]
enum Set {
    Nothing,
    /// Maximums that the load never reaches.
    Maximums,
    All,
}

impl Set {
    fn limits(self, disks: u32, disk: u32) -> Limits {
        let plenty = Iops::new(10_000_000);
        match self {
            Self::Nothing => Limits::default(),
            Self::Maximums => Limits { max_iops: plenty, ..Limits::default() },
            Self::All => Limits {
                min_iops: Iops::new(400_000 / u64::from(disks) + u64::from(disk)),
                max_iops: plenty,
                max_bandwidth: ByteRate::new(1 << 40),
                ..Limits::default()
            },
        }
    }
}

fn scheduler(disks: u32, set: Set) -> (StoreScheduler, Time) {
    let mut store = Store::new(Capacity::Declared(10_000_000));
    let proposals: Vec<Proposal> = (0..disks)
        .map(|disk| Proposal::SetDisk(DiskId(disk), LimitsSource::Own(set.limits(disks, disk))))
        .collect();
    let mut scheduler =
        StoreScheduler::new(StoreSpec { depth_min: 64, depth_max: 64, ..StoreSpec::default() });
    let now = Time::from_ns(1 << 40);
    for change in store.apply(&proposals, false).expect("the minimums are admissible") {
        scheduler.apply(now, change);
    }
    (scheduler, now)
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Measures requests that are dispatched without queueing, one at a time and round-robin over the
/// disks. Returns the time per request in ns.
fn nobody_waits(disks: u32, set: Set) -> f64 {
    let (mut scheduler, mut now) = scheduler(disks, set);
    let (mut disk, start) = (0, cpu_ns());
    for tag in 0..REQUESTS as u32 {
        now = now + Duration::from_nanos(STEP_NS);
        let submitted = scheduler.submit(now, DiskSlot(disk), BYTES, tag);
        assert_eq!(submitted, Ok(SubmitOutcome::Dispatch));
        scheduler.handle_completion(now, DiskSlot(disk), (IoKind::Read, BYTES), LATENCY);
        disk = if disk + 1 == disks { 0 } else { disk + 1 };
    }
    (cpu_ns() - start) as f64 / REQUESTS as f64
}

/// Measures requests of `backlogged` disks that always have queued requests, with a full device.
/// Returns the time per request in ns.
fn all_wait(disks: u32, backlogged: u32, set: Set) -> f64 {
    let (mut scheduler, mut now) = scheduler(disks, set);
    let mut in_device = std::collections::VecDeque::new();
    for number in 0..64 + BACKLOG * backlogged {
        let disk = DiskSlot(number % backlogged);
        if scheduler.submit(now, disk, BYTES, number) == Ok(SubmitOutcome::Dispatch) {
            in_device.push_back(disk);
        }
    }
    let start = cpu_ns();
    for tag in 0..REQUESTS as u32 {
        now = now + Duration::from_nanos(STEP_NS);
        let completed = in_device.pop_front().expect("the device is full");
        scheduler.handle_completion(now, completed, (IoKind::Read, BYTES), LATENCY);
        match scheduler.poll(now) {
            NextAction::Dispatch { disk, .. } => {
                in_device.push_back(disk);
                let submitted = scheduler.submit(now, disk, BYTES, tag);
                assert_eq!(submitted, Ok(SubmitOutcome::Queued));
            }
            other => panic!("{other:?}"),
        }
    }
    (cpu_ns() - start) as f64 / REQUESTS as f64
}

/// Formats the median, minimum and maximum of the samples.
fn sampled(mut sample: impl FnMut() -> f64) -> String {
    let mut samples: Vec<f64> = (0..SAMPLES).map(|_| sample()).collect();
    samples.sort_by(f64::total_cmp);
    format!("{:6.1} ns ({:.1} to {:.1})", samples[SAMPLES / 2], samples[0], samples[SAMPLES - 1])
}

fn main() {
    println!("CPU time per request; median of {SAMPLES} (least to most)");
    for (set, name) in [
        (Set::Nothing, "nothing set"),
        (Set::Maximums, "maximums"),
        (Set::All, "minimums, maximums, bandwidth"),
    ] {
        println!("\n{name}");
        for disks in [1, 10, 100, 1000] {
            println!("  {disks:4} disks, none waits    {}", sampled(|| nobody_waits(disks, set)));
            println!("  {disks:4} disks, 1 backlogged  {}", sampled(|| all_wait(disks, 1, set)));
            if disks > 1 {
                println!(
                    "  {disks:4} disks, all backlogged {}",
                    sampled(|| all_wait(disks, disks, set))
                );
            }
        }
    }
}
