//! What a request costs a processor besides the system's part: CPU time from its queue to
//! its answer, on files that take no time, without Storage QoS and with it.
//!
//!     cargo run --release -p suimon-storage --example engine_cost_per_io

#[path = "../tests/effortless/mod.rs"]
mod effortless;

use std::sync::Arc;
use std::time::Duration;

use effortless::{Client, NoIo, disk, nothing};
use rustix::time::{ClockId, clock_gettime};
use suimon_quantity::{ByteRate, DiskId, Iops, StoreId, Time};
use suimon_storage::{DiskPlace, StorageWork, StoreRole};
use suimon_storage_qos::{Assignment, Capability, Limits, Proposal, Store, StoreSpec};

const TURNS: u64 = 20_000;
const SAMPLES: usize = 9;
const STORE: StoreId = StoreId(1);
/// Requests under way in all.
const REQUESTS: u32 = 128;
#[derive(Clone, Copy)]
enum Set {
    /// Disks without a store.
    NoStore,
    /// A store whose disks have no limits.
    Nothing,
    /// Minimums, and maximums that are never reached.
    All,
    /// The same where the device has as many requests as it gets, and all others wait.
    AllWait,
}

impl Set {
    fn limits(self, disks: u32) -> Limits {
        let plenty = Iops::new(10_000_000);
        match self {
            Self::NoStore | Self::Nothing => Limits::default(),
            Self::All | Self::AllWait => Limits {
                min_iops: Iops::new(400_000 / u64::from(disks)),
                max_iops: plenty,
                max_bandwidth: ByteRate::new(1 << 40),
                ..Limits::default()
            },
        }
    }

    fn depth(self) -> u32 {
        if matches!(self, Self::AllWait) { 64 } else { 4096 }
    }
}

fn processor(disks: u32, set: Set, busy: u32) -> (StorageWork, Time) {
    let mut work = StorageWork::new(Box::new(NoIo::new()));
    let now = Time::from_ns(1 << 40);
    let fd = Arc::new(nothing());
    let (depth_min, depth_max) = (set.depth(), set.depth());
    let spec = StoreSpec { depth_min, depth_max, ..StoreSpec::default() };
    work.add_store(now, STORE, spec, StoreRole::Sole);
    let mut store = Store::new(Capability::Declared(10_000_000));
    let limits = Assignment::Own(set.limits(disks));
    let all: Vec<Proposal> = (0..disks).map(|disk| Proposal::Disk(DiskId(disk), limits)).collect();
    for change in store.propose(&all, false).expect("promises fit") {
        work.apply(now, STORE, change);
    }
    for number in 0..disks {
        let slot = store.slot(DiskId(number)).expect("it was proposed");
        let place = Some(DiskPlace { store: STORE, slot });
        let place = place.filter(|_| !matches!(set, Set::NoStore));
        let added = work.add_disk(disk(), place).expect("it can be added");
        if number < busy {
            let depth = (REQUESTS / busy).max(1);
            let queue = Client::new(depth, Arc::clone(&fd));
            work.add_queue(added, Box::new(queue)).expect("it is there");
        }
    }
    (work, now)
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of a request in nanoseconds.
fn cost(disks: u32, set: Set, busy: u32) -> f64 {
    let (mut work, mut now) = processor(disks, set, busy);
    let mut turn = |work: &mut StorageWork| {
        now = now + Duration::from_micros(16);
        work.poll(now);
    };
    (0..TURNS / 10).for_each(|_| turn(&mut work));
    let done = |work: &StorageWork| -> u64 {
        (0..busy).filter_map(|disk| work.tally(disk as usize)).map(|of| of.reads.requests).sum()
    };
    let (before, began) = (done(&work), cpu_ns());
    (0..TURNS).for_each(|_| turn(&mut work));
    let spent = cpu_ns() - began;
    spent as f64 / (done(&work) - before) as f64
}

fn main() {
    println!("CPU time per request, in ns: median of {SAMPLES} (least to most)");
    for (disks, busy) in [(1, 1), (1000, 1), (1000, 128)] {
        println!("\n{disks} disks, {busy} busy");
        let sets = [
            (Set::NoStore, "no store"),
            (Set::Nothing, "no limits"),
            (Set::All, "all limits"),
            (Set::AllWait, "all limits, all wait"),
        ];
        let mut samples = vec![Vec::new(); sets.len()];
        for _ in 0..SAMPLES {
            for (of, (set, _)) in samples.iter_mut().zip(sets) {
                of.push(cost(disks, set, busy));
            }
        }
        for (of, (_, name)) in samples.iter_mut().zip(sets) {
            of.sort_by(f64::total_cmp);
            let (least, median, most) = (of[0], of[SAMPLES / 2], of[SAMPLES - 1]);
            println!("  {name:22} {median:7.1} ({least:.1} to {most:.1})");
        }
    }
}
