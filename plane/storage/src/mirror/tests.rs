//! Tests of disk copies: concurrent writes, failures and waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use suimon_image::ByteRange;
use suimon_image::testing::first_difference;
use suimon_storage_engine::DirtyMap;
use suimon_storage_engine::testing::random_numbers::RandomNumbers;

use super::fake_disk::{BLOCK, FakeClient, FakeDisk};
use super::{Mirror, MirrorError};

const REGION: u64 = 64 << 10;
const SIZE: u64 = 40 * REGION + 512;
/// Time limit for conditions to become true, generous because the machine may be loaded.
const PATIENCE: Duration = Duration::from_secs(90);

/// Disk, its copy and the map of changes.
struct Bench {
    disk: Arc<FakeDisk>,
    copy: Arc<FakeDisk>,
    dirty: Arc<DirtyMap>,
}

impl Bench {
    fn new() -> Self {
        let dirty = Arc::new(DirtyMap::new(SIZE));
        Self { disk: FakeDisk::new(SIZE), copy: FakeDisk::new(SIZE), dirty }
    }

    fn start(&self) -> Mirror {
        let (disk, copy) = (FakeClient(self.disk.clone()), FakeClient(self.copy.clone()));
        Mirror::start(Box::new(disk), Box::new(copy), self.dirty.clone()).unwrap()
    }

    /// Writes like a client of the disk.
    fn write(&self, offset: u64, len: u64, byte: u8) {
        let range = ByteRange::new(offset, len).unwrap();
        self.disk.put(range, byte);
        self.dirty.mark(range);
    }

    fn assert_same(&self) {
        let (disk, copy) = (self.disk.bytes(), self.copy.bytes());
        let differs = first_difference(&disk, &copy);
        assert_eq!(
            differs.map(|region_offset| (
                region_offset as u64 / REGION,
                disk[region_offset],
                copy[region_offset]
            )),
            None
        );
    }
}

fn finish(mirror: &Mirror) -> Result<(), MirrorError> {
    mirror.finish(Instant::now() + PATIENCE, || Ok(0))
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not in time");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_disk_is_copied_with_later_writes() {
    let bench = Bench::new();
    bench.disk.put(ByteRange::new(3 * REGION, 2 * REGION).unwrap(), 7);
    bench.disk.put(ByteRange::new(SIZE - 512, 512).unwrap(), 8);
    let mirror = bench.start();
    wait_until(|| mirror.progress().has_copied_all && mirror.progress().remaining_bytes == 0);
    bench.assert_same();
    assert_eq!(mirror.progress().copied_bytes, 2 * REGION + 512);
    bench.write(9 * REGION, 100 * 512, 9);
    wait_until(|| mirror.progress().copied_bytes == 3 * REGION + 512);
    assert_eq!(bench.copy.flushes.load(Ordering::Relaxed), 0);
    finish(&mirror).unwrap();
    bench.assert_same();
    assert_eq!(bench.copy.flushes.load(Ordering::Relaxed), 1);
    // The copy continues, and may be finished again.
    bench.write(0, BLOCK, 1);
    finish(&mirror).unwrap();
    bench.assert_same();
}

#[test]
fn unallocated_ranges_are_not_copied_and_zeros_are_not_transferred() {
    let bench = Bench::new();
    let mirror = bench.start();
    finish(&mirror).unwrap();
    let moved = |fake_disk: &FakeDisk| {
        [&fake_disk.reads, &fake_disk.writes, &fake_disk.zeroes]
            .map(|count| count.load(Ordering::Relaxed))
    };
    assert_eq!((moved(&bench.disk), moved(&bench.copy)), ([0; 3], [0; 3]));
    bench.write(2 * REGION, REGION, 5);
    finish(&mirror).unwrap();
    bench.write(2 * REGION, REGION, 0);
    finish(&mirror).unwrap();
    bench.assert_same();
    assert_eq!((moved(&bench.disk), moved(&bench.copy)), ([1, 0, 0], [0, 1, 1]));
    // Allocated zeros are not transferred either.
    bench.disk.put(ByteRange::new(0, REGION).unwrap(), 1);
    bench.write(0, REGION - 512, 0);
    bench.write(REGION - 512, 512, 0);
    finish(&mirror).unwrap();
    bench.assert_same();
    assert_eq!(moved(&bench.copy)[1], 1);
}

/// A region changes after a thread has read it, and the change completes. If the mark were cleared
/// only after that, the change would be lost.
#[test]
fn changes_during_the_read_of_a_region_are_copied() {
    let bench = Bench::new();
    bench.write(5 * REGION, BLOCK, 1);
    let (disk, dirty) = (bench.disk.clone(), bench.dirty.clone());
    let mut has_written = false;
    *bench.disk.on_read.lock().unwrap() = Some(Box::new(move |range: ByteRange| {
        if !std::mem::replace(&mut has_written, true) {
            let range = ByteRange::new(range.offset(), BLOCK).unwrap();
            disk.put(range, 2);
            dirty.mark(range);
        }
    }));
    let mirror = bench.start();
    finish(&mirror).unwrap();
    bench.assert_same();
    assert_eq!(bench.copy.bytes()[5 * REGION as usize], 2);
}

/// A region is written while a thread copies its old bytes: the old bytes must not overwrite the
/// new ones.
#[test]
fn a_region_is_copied_by_one_thread_at_a_time() {
    let bench = Bench::new();
    bench.write(5 * REGION, BLOCK, 1);
    let (disk, dirty) = (bench.disk.clone(), bench.dirty.clone());
    *bench.copy.on_write.lock().unwrap() = Some(Box::new(move |range| {
        let range = ByteRange::new(range.offset(), BLOCK).unwrap();
        disk.put(range, 2);
        dirty.mark(range);
        // Other threads had enough time to copy the region.
        std::thread::sleep(Duration::from_millis(300));
    }));
    let mirror = bench.start();
    finish(&mirror).unwrap();
    bench.assert_same();
}

#[test]
fn an_error_ends_the_copy_and_not_the_clients_of_the_disk() {
    for breaks_disk in [true, false] {
        let bench = Bench::new();
        bench.write(0, REGION, 1);
        let mirror = bench.start();
        wait_until(|| mirror.progress().has_copied_all);
        let broken = if breaks_disk { &bench.disk } else { &bench.copy };
        broken.fails.store(true, Ordering::Relaxed);
        bench.write(REGION, REGION, 2);
        wait_until(|| mirror.progress().failure.is_some());
        let failure = mirror.progress().failure.unwrap();
        match breaks_disk {
            true => assert!(matches!(failure, MirrorError::Read(_)), "{failure}"),
            false => assert!(matches!(failure, MirrorError::Write(_)), "{failure}"),
        }
        assert!(failure.to_string().contains("broken"), "{failure}");
        bench.write(2 * REGION, REGION, 2);
        assert_eq!(
            mirror.progress().remaining_bytes,
            2 * REGION,
            "the bytes that were not copied are reported"
        );
        assert_eq!(finish(&mirror), Err(failure));
    }
}

#[test]
fn a_connection_that_does_not_reply_does_not_block_the_end_of_a_copy() {
    for at_finish in [false, true] {
        let bench = Bench::new();
        bench.write(0, REGION, 1);
        if !at_finish {
            bench.copy.hang();
        }
        let mirror = bench.start();
        if at_finish {
            wait_until(|| mirror.progress().remaining_bytes == 0);
            bench.copy.hang();
        }
        let until = Instant::now() + Duration::from_millis(50);
        let remaining = if at_finish { 0 } else { REGION };
        assert_eq!(mirror.finish(until, || Ok(0)), Err(MirrorError::BytesRemaining(remaining)));
        let before = Instant::now();
        drop(mirror);
        assert!(
            before.elapsed() < PATIENCE,
            "the end of the copy waits for a connection that never replies"
        );
    }
}

#[test]
fn finishing_waits_for_requests_in_flight_and_copies_their_changes() {
    let bench = Bench::new();
    let mirror = bench.start();
    let until = Instant::now() + Duration::from_millis(20);
    assert_eq!(mirror.finish(until, || Ok(3)), Err(MirrorError::RequestsInFlight(3)));
    let mut remaining = 3;
    let in_flight = || {
        remaining -= usize::from(remaining > 0);
        bench.write(u64::try_from(remaining).unwrap() * REGION, 512, 7);
        Ok(remaining)
    };
    // A write follows each query of the requests in flight, so the copy cannot be finished.
    let until = Instant::now() + Duration::from_millis(200);
    let result = mirror.finish(until, in_flight);
    // The time limit may also pass before the last of the three requests has completed.
    let is_late =
        matches!(result, Err(MirrorError::BytesRemaining(_) | MirrorError::RequestsInFlight(_)));
    assert!(is_late, "{result:?}");
    let mut remaining = 3;
    let in_flight = || {
        if remaining > 0 {
            remaining -= 1;
            bench.write(u64::try_from(remaining).unwrap() * REGION, 512, 8);
        }
        Ok(remaining)
    };
    mirror.finish(Instant::now() + PATIENCE, in_flight).unwrap();
    bench.assert_same();
    let end_error = || Err(MirrorError::ConnectionClosed("it is gone".to_owned()));
    assert_eq!(mirror.finish(Instant::now() + PATIENCE, end_error), end_error().map(drop));
}

#[test]
fn a_copy_of_another_size_is_refused() {
    let disk = Box::new(FakeClient(FakeDisk::new(SIZE)));
    let copy = Box::new(FakeClient(FakeDisk::new(SIZE + 512)));
    let error = Mirror::start(disk, copy, Arc::new(DirtyMap::new(SIZE))).err().unwrap();
    assert_eq!(error, MirrorError::SizesDiffer { disk_bytes: SIZE, copy_bytes: SIZE + 512 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Clients write continuously during the copy. After they stop, disk and copy are equal.
    #[test]
    fn disk_and_copy_are_equal_after_clients_stop(seed in any::<u64>()) {
        let bench = Bench::new();
        let mut random = RandomNumbers(seed);
        for _ in 0..8 {
            let at = random.below(SIZE / BLOCK) * BLOCK;
            let len = (random.below(60) * 512 + 512).min(SIZE - at);
            bench.disk.put(ByteRange::new(at, len).unwrap(), 1 + random.below(255) as u8);
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (bench, stop) = (&bench, &stop);
            let mut clients = Vec::new();
            for client in 0..2 {
                // Each client has its own sectors: the result of concurrent writes to the same
                // sector is undefined.
                clients.push(scope.spawn(move || {
                    let mut random = RandomNumbers(seed ^ client);
                    while !stop.load(Ordering::Relaxed) {
                        let half = SIZE / 1024 * 512;
                        let at = client * half + random.below(half / 512) * 512;
                        let len = (512 << random.below(8)).min((client + 1) * half - at);
                        bench.write(at, len, random.below(4) as u8);
                        if random.below(16) == 0 {
                            std::thread::sleep(Duration::from_micros(random.below(300)));
                        }
                    }
                }));
            }
            let mirror = bench.start();
            std::thread::sleep(Duration::from_millis(100 + random.below(150)));
            stop.store(true, Ordering::Relaxed);
            clients.into_iter().for_each(|client| client.join().unwrap());
            finish(&mirror).unwrap();
        });
        bench.assert_same();
    }
}
