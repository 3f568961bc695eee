//! Disks of clients that write and never flush, in virtual time.

use core::time::Duration;
use std::io;

use suimon_ports::DiskOutcome;
use suimon_quantity::Time;

use crate::testing::fake_io::FaultInjection;
use crate::testing::image_kinds::KINDS;
use crate::testing::requests::{SIZE, WRITE, range};
use crate::tests::disk_bench::{Bench, SECTOR};
use crate::{IDLE_AFTER, StorageNotice};

/// Runs the worker until the given time without requests of clients. Returns the number of
/// wake-ups.
fn sleep(bench: &mut Bench, until: Time) -> usize {
    let mut wake_count = 0;
    loop {
        // Runs until no operation is in flight.
        for _ in 0..200 {
            bench.poll();
        }
        let Some(deadline) = bench.engine.next_deadline().filter(|deadline| *deadline <= until)
        else {
            bench.now = bench.now.max(until);
            return wake_count;
        };
        bench.now = bench.now.max(deadline);
        wake_count += 1;
    }
}

fn write(bench: &mut Bench, sector: u64) {
    let outcome = bench.run(WRITE, range(sector * SECTOR as u64, SECTOR as u64), vec![9; SECTOR]);
    assert_eq!(outcome, DiskOutcome::Done);
}

fn commits(bench: &Bench) -> u64 {
    bench.engine.counters(bench.disk).unwrap().commits
}

#[test]
fn data_of_a_client_that_never_flushes_survives_a_crash_once_the_disk_was_idle() {
    let mut dynamic = 0;
    for kind in KINDS {
        let mut bench = Bench::new(kind, 5, 16);
        bench.now = Time::from_ns(1 << 40);
        write(&mut bench, 3);
        if bench.engine.uncommitted_bytes(bench.disk) == 0 {
            continue;
        }
        dynamic += 1;
        // No commit is urgent while the client writes.
        let mut before = commits(&bench);
        for _ in 0..10 {
            let until = bench.now + IDLE_AFTER / 2;
            sleep(&mut bench, until);
            assert_eq!(commits(&bench), before, "{}", kind.name);
            write(&mut bench, 3);
            // Some formats need a commit before they can continue.
            before = commits(&bench);
        }
        let has_uncommitted = bench.engine.uncommitted_bytes(bench.disk) > 0;
        let until = bench.now + IDLE_AFTER + Duration::from_secs(2);
        sleep(&mut bench, until);
        assert_eq!(commits(&bench), before + u64::from(has_uncommitted), "{}", kind.name);
        assert_eq!(bench.engine.uncommitted_bytes(bench.disk), 0);
        // No further wake-up is due.
        assert_eq!(bench.engine.next_deadline(), None, "{}", kind.name);
        // A crash loses the memory of the process.
        let remaining = bench.file.memory().bytes();
        let mut reopened =
            Bench::with_memory(kind, suimon_image::testing::MemoryFile::new(remaining), 6, 16);
        let content = reopened.read(range(3 * SECTOR as u64, SECTOR as u64));
        assert_eq!(content, vec![9; SECTOR], "{}", kind.name);
    }
    assert!(dynamic >= 2, "{dynamic} formats have metadata");
}

#[test]
fn commits_to_a_failing_device_are_repeated_rarely() {
    let kind = *KINDS.iter().find(|kind| kind.name.contains("VHDX")).unwrap();
    let mut bench = Bench::new(kind, 5, 16);
    bench.now = Time::from_ns(1 << 40);
    write(&mut bench, 3);
    *bench.faults.lock().unwrap() =
        FaultInjection { one_in: 1, kind: Some(io::ErrorKind::Other), ..FaultInjection::default() };
    let until = bench.now + Duration::from_secs(50);
    sleep(&mut bench, until);
    assert_eq!(commits(&bench), 1);
    let notices = bench.notices();
    assert!(matches!(&notices[..], [StorageNotice::DiskFault { .. }]), "{notices:?}");
    *bench.faults.lock().unwrap() = FaultInjection::default();
    let until = bench.now + Duration::from_secs(120);
    sleep(&mut bench, until);
    assert_eq!((commits(&bench), bench.engine.uncommitted_bytes(bench.disk)), (2, 0));
    // After that, the behaviour is the same as before the failure.
    bench.engine.wake_queue(bench.queue);
    write(&mut bench, SIZE / SECTOR as u64 - 1);
    assert!(bench.engine.uncommitted_bytes(bench.disk) > 0);
    let until = bench.now + IDLE_AFTER + Duration::from_secs(2);
    sleep(&mut bench, until);
    assert_eq!((commits(&bench), bench.engine.uncommitted_bytes(bench.disk)), (3, 0));
}
