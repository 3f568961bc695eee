//! Tests the maximums of many disks at once on a real worker: sizes from 512 bytes to 1 MB, depths
//! from 1 to 128, in every window of 5 s.
//!
//! That no maximum is exceeded is asserted, because load on the machine cannot break it. The
//! shortfall of the disks is printed; that they reach their maximums is tested in virtual time
//! (`plane/storage_engine/src/scheduling/tests.rs`).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_disk_tests::{
    Client, ClientSpec, CompletionCounters, DiskWorker, OpenedDisk, RequestPattern, StoreFolder,
    never_readable, new_disk,
};
use suimon_image_files::{DiskFormat, DiskKind};
use suimon_ports::{CpuAffinity, FileName};
use suimon_quantity::Iops;
use suimon_rig::wait_until;
use suimon_storage_qos::Limits;

const DISKS: usize = 64;
const MAX: u64 = 1000;
/// Bytes that count as one operation.
const UNIT: u32 = 8192;
const DISK_BYTES: u64 = 4 << 20;
const SIZES: [u32; 5] = [512, 4096, 8192, 65_536, 1 << 20];
const DEPTHS: [u32; 3] = [1, 8, 128];
const WINDOW: Duration = Duration::from_secs(5);
const SAMPLES: usize = 28;
const PATIENCE: Duration = Duration::from_secs(120);
/// Time in seconds whose share of a maximum may be caught up.
const CATCH_UP_S: f64 = 0.02;
const PAUSE: Duration = Duration::from_millis(250);
/// Alternating maximums of the one disk whose maximum changes every second.
const CHANGING: [u64; 2] = [500, 1500];

struct LimitedDisk {
    client: ClientSpec,
    disk: OpenedDisk,
    answers: Arc<CompletionCounters>,
}

impl LimitedDisk {
    /// Returns the number of operations that a request counts as.
    fn cost(&self) -> u64 {
        u64::from(self.client.bytes.div_ceil(UNIT))
    }
}

fn limits(max: u64) -> Limits {
    Limits { max_iops: Iops::new(max), ..Limits::default() }
}

/// Returns the parameters of client `number`: first every combination of size and depth, then a
/// common one.
fn client(number: usize) -> ClientSpec {
    let combinations = SIZES.len() * DEPTHS.len();
    let (bytes, depth) = match number {
        index if index < combinations => (SIZES[index % SIZES.len()], DEPTHS[index / SIZES.len()]),
        _ => (4096, 4),
    };
    let pattern = [RequestPattern::RandomReads, RequestPattern::RandomWrites][number % 2];
    ClientSpec { pattern, depth, bytes, disk_bytes: DISK_BYTES }
}

fn serve(worker: &DiskWorker, folder: &Path) -> Vec<LimitedDisk> {
    let store = StoreFolder::open(folder).unwrap();
    let add = |number: usize| {
        let mut plan = new_disk(DiskFormat::Raw, DiskKind::Fixed, Some(DISK_BYTES));
        plan.file = FileName::new(&format!("{number}.raw")).ok();
        store.make(&plan).unwrap();
        plan.size_bytes = None;
        let disk = store.disk(&plan).unwrap();
        let disk = worker.add_disk(disk, Some(limits(MAX))).unwrap();
        let spec = client(number);
        let queue = Client::new(spec, Arc::new(never_readable().unwrap()));
        let answers = queue.answers();
        worker.add_queue(disk, Box::new(queue)).unwrap();
        LimitedDisk { client: spec, disk, answers }
    };
    (0..DISKS).map(add).collect()
}

/// Counters of all disks, read between the times `before` and `after`.
struct Seen {
    before: Instant,
    after: Instant,
    answers: Vec<u64>,
}

fn take_sample(disks: &[LimitedDisk]) -> Seen {
    let before = Instant::now();
    let answers = disks.iter().map(|disk| disk.answers.done()).collect();
    Seen { before, after: Instant::now(), answers }
}

/// Asserts that in no window of 5 s a disk exceeds its maximum by more than 2 %, the catch-up, and
/// one request at each end of the window.
fn check(number: usize, disk: &LimitedDisk, samples: &[Seen]) {
    let (mut lowest, mut highest) = (f64::MAX, 0.0_f64);
    for (first, from) in samples.iter().enumerate() {
        let is_whole = |to: &&Seen| to.before - from.after >= WINDOW;
        let Some(to) = samples[first..].iter().find(is_whole) else { break };
        // All counted requests were completed between these two times.
        let expected = MAX as f64 * (to.after - from.before).as_secs_f64();
        let delivered = ((to.answers[number] - from.answers[number]) * disk.cost()) as f64;
        let spare = MAX as f64 * CATCH_UP_S + 2.0 * disk.cost() as f64;
        let allowed = expected * 1.02 + spare;
        assert!(delivered <= allowed, "{:?}: {delivered} where {expected} are due", disk.client);
        (lowest, highest) = (lowest.min(delivered / expected), highest.max(delivered / expected));
    }
    if number < SIZES.len() * DEPTHS.len() {
        let ClientSpec { bytes, depth, .. } = disk.client;
        let (lowest, highest) = (lowest * 100.0, highest * 100.0);
        println!("{bytes} bytes at depth {depth}: {lowest:.2} to {highest:.2} % of the maximum");
    }
}

#[test]
fn sixty_four_disks_get_their_maximum_in_every_window() {
    // In memory, so that other use of the machine's disk has no effect.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let worker = DiskWorker::start(CpuAffinity::Floating).unwrap();
    let disks = serve(&worker, folder.path());
    let last = disks.last().unwrap();
    let is_served = |disk: &LimitedDisk| disk.answers.done() > 0;
    wait_until("a completed request of each disk", PATIENCE, || Ok(disks.iter().all(is_served)))
        .unwrap();
    let (started, mut due) = (Instant::now(), 0.0);
    let (mut since, mut max, before) = (started, MAX, last.answers.done());
    let mut samples = vec![take_sample(&disks)];
    for sample in 1..=SAMPLES {
        if sample % 4 == 0 {
            let next = CHANGING[(sample / 4) % 2];
            // The change takes effect between these two times; the higher maximum counts until
            // then.
            let before = Instant::now();
            worker.set_limits(last.disk, limits(next)).unwrap();
            let now = if next > max { before } else { Instant::now() };
            due += max as f64 * (now - since).as_secs_f64();
            (since, max) = (now, next);
        }
        std::thread::sleep(
            (started + PAUSE * sample as u32).saturating_duration_since(Instant::now()),
        );
        samples.push(take_sample(&disks));
    }
    let delivered = (last.answers.done() - before) as f64;
    due += max as f64 * since.elapsed().as_secs_f64();
    println!("a maximum that changes every second: {delivered} of {due:.0}");
    assert!(delivered <= due * 1.02 + 30.0, "{delivered} of {due} where the maximum changes");
    for (number, disk) in disks.iter().enumerate().take(DISKS - 1) {
        check(number, disk, &samples);
    }
    for disk in &disks {
        worker.detach_clients(disk.disk);
        worker.close_disk(disk.disk).unwrap();
        assert_eq!(disk.answers.failed(), 0);
    }
}
