//! Tests that the dirty page log is complete: after each operation of a ring it contains every page
//! of the VM's memory that the operation changed. An unmarked page would be stale at a migration's
//! destination.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::disk::{DISK_BYTES, DISK_FEATURES, MemoryDisk, Wanted, facts, offer};
use crate::rig::any::AnyDriver;
use crate::rig::packed::{IN_ORDER, RING_PACKED};
use crate::rig::{GUEST_BASE, Vm, call_line};
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, memfd_create};
use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_ports::TransmitResult;
use suimon_ring::{DirtyLog, DiskRing, OffloadMask, RingLog, RingTracking, RxRing, TxRing};

const SIZE: u16 = 16;
const PAGE: u64 = 4096;
const VERSION_1: u64 = 1 << 32;
const EVENT_IDX: u64 = 1 << 29;
const MERGEABLE: u64 = 1 << 15;

/// Contents of a VM's memory before an operation, and its dirty page log.
struct Watched<'a> {
    vm: &'a Vm,
    log: File,
    before: Vec<u8>,
}

impl<'a> Watched<'a> {
    fn new(vm: &'a Vm) -> Self {
        let log = File::from(memfd_create("log", MemfdFlags::CLOEXEC).unwrap());
        let bytes = vm.file.metadata().unwrap().len();
        log.set_len((GUEST_BASE + bytes).div_ceil(8 * PAGE)).unwrap();
        Self { vm, log, before: vec![0; bytes as usize] }
    }

    /// Returns the records of a ring. Writes to the used ring or event structure of `driver` are
    /// logged.
    fn records(&self, driver: &AnyDriver<'_>) -> RingTracking {
        let bytes = self.log.metadata().unwrap().len();
        let log = Arc::new(DirtyLog::map(self.log.as_fd(), 0, bytes).unwrap());
        let used_addr = match driver {
            AnyDriver::Split(driver) => driver.used_at.0,
            AnyDriver::Packed(driver) => driver.device_event_at(),
        };
        let log = RingLog { log, used_addr: Some(used_addr) };
        RingTracking { log: Some(log), inflight: None }
    }

    /// Executes an operation of the device. Returns its result, and the pages that it changed
    /// without marking them.
    fn unmarked<T>(&mut self, operation: impl FnOnce() -> T) -> (T, BTreeSet<u64>) {
        self.vm.file.read_exact_at(&mut self.before, 0).unwrap();
        let result = operation();
        let mut after = vec![0; self.before.len()];
        self.vm.file.read_exact_at(&mut after, 0).unwrap();
        let pages = self.before.chunks(PAGE as usize).zip(after.chunks(PAGE as usize));
        let changed = pages.enumerate().filter(|(_, (before, after))| before != after);
        let mut changed: BTreeSet<u64> =
            changed.map(|(page, _)| GUEST_BASE / PAGE + page as u64).collect();
        let mut bits = vec![0; self.log.metadata().unwrap().len() as usize];
        self.log.read_exact_at(&mut bits, 0).unwrap();
        changed.retain(|page| bits[(page / 8) as usize] >> (page % 8) & 1 == 0);
        bits.fill(0);
        self.log.write_all_at(&bits, 0).unwrap();
        (result, changed)
    }
}

fn features() -> impl Strategy<Value = u64> {
    (any::<bool>(), any::<bool>()).prop_map(|(is_packed, has_events)| {
        let packed = if is_packed { RING_PACKED } else { 0 };
        VERSION_1 | packed | if has_events { EVENT_IDX } else { 0 }
    })
}

fn frame(len: usize, byte: u8) -> Frame {
    let mut frame = Frame::new(0);
    frame.set_bytes(&vec![byte; len]);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_that_a_receive_ring_changes_are_marked(
        features in features(),
        steps in prop::collection::vec((1..4_usize, prop::collection::vec(14..9000_usize, 0..4)), 1..6),
    ) {
        let vm = Vm::new(SIZE);
        let mut watched = Watched::new(&vm);
        let features = features | MERGEABLE;
        let mut driver = AnyDriver::new(&vm, SIZE, features);
        let (setup, records) = (driver.setup(features, &call_line().0), watched.records(&driver));
        let mask = Arc::new(OffloadMask::new(Offloads::TCP));
        let (ring, missing) =
            watched.unmarked(|| RxRing::with_tracking(vm.map(), &setup, records, mask).unwrap());
        prop_assert_eq!(missing, BTreeSet::new(), "when it starts");
        let mut sink = ring.into_sink();
        for (index, (buffers, lens)) in steps.iter().enumerate() {
            for _ in 0..*buffers {
                driver.add(&[3000, 2000], true, &[]);
            }
            let (accepted, mut missing) = watched.unmarked(|| {
                let mut accepted = 0;
                for len in lens {
                    let sent = sink.transmit(&frame(*len, index as u8 + 1)).unwrap();
                    accepted += usize::from(sent == TransmitResult::Accepted);
                }
                sink.flush().unwrap();
                accepted
            });
            if accepted == 0 {
                // Entries beyond the used index have no meaning and are rewritten before they get
                // one.
                missing.remove(&(GUEST_BASE / PAGE));
            }
            prop_assert_eq!(missing, BTreeSet::new(), "step {}", index);
            driver.reap(features);
        }
        driver.add(&[3000], true, &[]);
        let ((), missing) = watched.unmarked(|| {
            sink.transmit(&frame(60, 0xff)).unwrap();
            drop(sink);
        });
        prop_assert_eq!(missing, BTreeSet::new(), "when it ends");
    }

    #[test]
    fn pages_that_a_transmit_ring_changes_are_marked(
        features in (features(), any::<bool>()),
        steps in prop::collection::vec((0..4_usize, any::<bool>()), 1..8),
    ) {
        let features = features.0 | if features.1 { IN_ORDER } else { 0 };
        let vm = Vm::new(SIZE);
        let mut watched = Watched::new(&vm);
        let mut driver = AnyDriver::new(&vm, SIZE, features);
        let (setup, records) = (driver.setup(features, &call_line().0), watched.records(&driver));
        let (ring, missing) =
            watched.unmarked(|| TxRing::with_tracking(vm.map(), &setup, records).unwrap());
        prop_assert_eq!(missing, BTreeSet::new(), "when it starts");
        let mut source = ring.into_source();
        let mut batch = FrameBatch::new();
        for (frames, arms) in steps {
            for _ in 0..frames {
                driver.add(&[112], false, &[vec![0; 12], vec![7; 100]].concat());
            }
            let ((), missing) = watched.unmarked(|| {
                batch.clear();
                source.receive(&mut batch).unwrap();
            });
            prop_assert_eq!(missing, BTreeSet::new(), "frames");
            let ((), missing) = watched.unmarked(|| if arms { source.arm(); } else { source.disarm() });
            prop_assert_eq!(missing, BTreeSet::new(), "notifications");
            driver.reap(features);
        }
        let ((), missing) = watched.unmarked(|| drop(source));
        prop_assert_eq!(missing, BTreeSet::new(), "when it ends");
    }

    #[test]
    fn pages_that_a_disk_ring_changes_are_marked(
        features in features(),
        steps in prop::collection::vec((0..5_u8, any::<bool>(), any::<usize>()), 1..10),
    ) {
        let features = features | DISK_FEATURES;
        let vm = Vm::new(SIZE);
        let mut watched = Watched::new(&vm);
        let mut driver = AnyDriver::new(&vm, SIZE, features);
        let (setup, records) = (driver.setup(features, &call_line().0), watched.records(&driver));
        let (ring, missing) =
            watched.unmarked(|| DiskRing::with_tracking(vm.map(), &setup, records, facts()).unwrap());
        prop_assert_eq!(missing, BTreeSet::new(), "when it starts");
        let mut queue = ring.into_queue();
        let mut disk = MemoryDisk::new(DISK_BYTES);
        for (kind, arms, number) in steps {
            let request = match kind {
                0 => Wanted::read(1, 0x3000),
                1 => Wanted::write(2, vec![3; 0x1200]),
                2 => Wanted::flush(),
                3 => Wanted { kind: crate::disk::T_GET_ID, ..Wanted::read(0, 20) },
                // Unknown request type.
                _ => Wanted { kind: 99, ..Wanted::read(0, 512) },
            };
            offer(&mut driver, &(request, Vec::new(), number % 2 == 0));
            let (_, missing) = watched.unmarked(|| disk.receive(&mut *queue, 8));
            prop_assert_eq!(missing, BTreeSet::new(), "taken");
            let ((), missing) = watched.unmarked(|| {
                if !disk.under_way.is_empty() && number % 3 != 0 {
                    disk.carry_out(&mut *queue, number % disk.under_way.len());
                }
                queue.flush().unwrap();
            });
            prop_assert_eq!(missing, BTreeSet::new(), "completed");
            let ((), missing) = watched.unmarked(|| if arms { queue.arm(); } else { queue.disarm_lazily() });
            prop_assert_eq!(missing, BTreeSet::new(), "notifications");
            driver.reap_any_order();
        }
        let ((), missing) = watched.unmarked(|| {
            while !disk.under_way.is_empty() {
                disk.carry_out(&mut *queue, 0);
            }
            drop(queue);
        });
        prop_assert_eq!(missing, BTreeSet::new(), "when it ends");
    }
}
