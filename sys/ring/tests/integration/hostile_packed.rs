//! Tests of hostile drivers of packed rings and of front-ends that corrupt the in-flight region:
//! each violation is reported, ends the ring, and affects no other ring.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::rig::packed::{PackedDriver, RING_PACKED};
use crate::rig::{
    Driver, GUEST_BASE, INDIRECT, NEXT, USER_BASE, Used, Vm, WRITE, call_line, count, event,
};
use proptest::prelude::*;
use suimon_frame::{FRAME_BYTES_MAX, Frame, FrameBatch, Offloads};
use suimon_ports::{ArmResult, FaultKind, FrameSink, FrameSource, TransmitResult};
use suimon_ring::{
    InflightLayout, InflightRegion, OffloadMask, RingSetup, RingTracking, RxRing, TxRing,
};
use vm_memory::{Bytes, GuestAddress};

const FEATURES: u64 = 1 << 32 | 1 << 28;
const AVAIL: u16 = 1 << 7;
const USED: u16 = 1 << 15;
const AREA: u64 = GUEST_BASE + 0x10_0000;

/// Makes an invalid transmit chain available after a valid one. `build` writes descriptors from 1
/// on. Asserts that the valid one is received and that the invalid one ends the ring permanently.
/// Returns the fault's text.
fn tx_fault(features: u64, build: impl FnOnce(&PackedDriver<'_>)) -> String {
    let vm = Vm::new(16);
    let mut driver = PackedDriver::new(&vm, 16);
    let (call, _far) = call_line();
    let (error, reported) = call_line();
    let kick = Arc::new(event());
    let setup = RingSetup { error, ..driver.setup(features, Some(&kick), &call) };
    let mut ring = TxRing::new(vm.map(), &setup).unwrap();
    let mut batch = FrameBatch::new();
    driver.add(&[12 + 60], false, false, &[]).unwrap();
    assert_eq!(ring.receive(&mut batch).unwrap(), 1);
    build(&driver);
    let fault = ring.receive(&mut batch).unwrap_err();
    assert_eq!(fault.kind, FaultKind::ProtocolViolation);
    assert_eq!(ring.receive(&mut batch).unwrap_err().detail, fault.detail);
    assert_eq!(ring.arm(), ArmResult::Pending);
    assert!(ring.state().is_faulted());
    assert_eq!(count(&reported), 1);
    assert_eq!(batch.len(), 1);
    fault.detail
}

#[test]
fn transmit_chains_that_break_the_rules_are_named() {
    type Build<'a> = &'a dyn Fn(&PackedDriver<'_>);
    let cases: [(&str, Build<'_>); 9] = [
        ("more than 16 descriptors", &|driver| {
            // The last descriptor is followed by the first: a loop.
            for index in 0..16 {
                driver.store(index, AREA, 20, 0, AVAIL | NEXT);
            }
        }),
        ("device-writable buffer", &|driver| driver.store(1, AREA, 72, 0, AVAIL | WRITE)),
        ("outside the VM's memory", &|driver| {
            driver.store(1, 0xdead_0000_0000, 72, 0, AVAIL);
        }),
        ("outside the VM's memory", &|driver| driver.store(1, u64::MAX - 5, 72, 0, AVAIL)),
        ("more than 65612 bytes", &|driver| {
            driver.store(1, AREA, 12 + FRAME_BYTES_MAX as u32 + 1, 0, AVAIL);
        }),
        ("more than 65612 bytes", &|driver| {
            driver.store(1, AREA, 40_000, 0, AVAIL | NEXT);
            driver.store(2, AREA, u32::MAX, 0, AVAIL);
        }),
        ("not a multiple of 16 bytes", &|driver| {
            driver.store(1, AREA, 24, 0, AVAIL | INDIRECT);
        }),
        ("a descriptor has both NEXT and INDIRECT", &|driver| {
            driver.store(1, AREA, 32, 0, AVAIL | INDIRECT | NEXT);
            driver.store(2, AREA, 32, 0, AVAIL);
        }),
        ("more entries than the queue", &|driver| {
            driver.store(1, AREA, 16 * 1025, 0, AVAIL | INDIRECT);
        }),
    ];
    for (expected, build) in cases {
        let detail = tx_fault(FEATURES, build);
        assert!(detail.contains(expected) && detail.starts_with("queue 0: "), "{detail}");
    }
    let plain = tx_fault(1 << 32, |driver| driver.store(1, AREA, 32, 0, AVAIL | INDIRECT));
    assert!(plain.contains("the feature was not negotiated"), "{plain}");
}

#[test]
fn a_descriptor_offered_twice_is_not_taken_twice() {
    let vm = Vm::new(4);
    let driver = PackedDriver::new(&vm, 4);
    let (call, _far) = call_line();
    let mask = Arc::new(OffloadMask::new(Offloads::TCP));
    let mut ring = RxRing::new(vm.map(), &driver.setup(FEATURES, None, &call), mask).unwrap();
    // All descriptors are available for this lap; the first two also for the next lap, as soon as
    // they were read.
    for index in 0..4 {
        driver.store(index, AREA, 500, index, AVAIL | WRITE);
    }
    let mut frame = Frame::new(0);
    frame.set_bytes(&[0; 60]);
    for _ in 0..4 {
        assert_eq!(ring.transmit(&frame).unwrap(), TransmitResult::Accepted);
    }
    for index in 0..4 {
        driver.store(index, AREA, 500, index, USED | WRITE);
    }
    assert_eq!(ring.transmit(&frame).unwrap(), TransmitResult::Full, "nothing was returned yet");
    ring.flush().unwrap();
}

#[test]
fn rings_in_bad_places_are_refused() {
    let vm = Vm::new(16);
    let driver = PackedDriver::new(&vm, 16);
    let (call, _far) = call_line();
    let valid = driver.setup(FEATURES, None, &call);
    let refuse = |change: &dyn Fn(&mut RingSetup)| {
        let mut setup = valid.clone();
        change(&mut setup);
        TxRing::new(vm.map(), &setup).err().expect("a bad setup").detail
    };
    let cases: [(&str, String); 8] = [
        ("size 0", refuse(&|setup| setup.size = 0)),
        ("size 32769", refuse(&|setup| setup.size = 32_769)),
        ("size 65552", refuse(&|setup| setup.size = 65_552)),
        ("base 0x8010", refuse(&|setup| setup.base = 0x8010)),
        ("descriptor ring", refuse(&|setup| setup.addresses.descriptors += 8)),
        ("driver event suppression", refuse(&|setup| setup.addresses.available += 2)),
        ("device event suppression", refuse(&|setup| setup.addresses.used = USER_BASE - 4)),
        ("descriptor ring", refuse(&|setup| setup.addresses.descriptors = u64::MAX - 15)),
    ];
    for (expected, detail) in cases {
        assert!(detail.contains(expected) && detail.starts_with("queue 0: "), "{detail}");
    }
}

fn layout_of(is_packed: bool) -> InflightLayout {
    InflightLayout { queues: 1, queue_size: 16, is_packed }
}

/// Length in bytes of a region for one ring of 16 entries, in the longer of the two layouts.
const REGION_BYTES: usize = 32 + 16 * 32 + 32;

fn region_of(bytes: &[u8], is_packed: bool) -> RingTracking {
    let (region, fd) = InflightRegion::create(layout_of(is_packed)).unwrap();
    File::from(fd).write_all_at(bytes, 0).unwrap();
    RingTracking { log: None, inflight: region.queue(0) }
}

#[test]
fn regions_that_cannot_be_are_refused_by_name() {
    let vm = Vm::new(16);
    let (call, _far) = call_line();
    let packed = PackedDriver::new(&vm, 16).setup(FEATURES, None, &call);
    let refuse = |setup: &RingSetup, records| {
        TxRing::with_tracking(vm.map(), setup, records).err().expect("a bad region").detail
    };
    assert!(refuse(&packed, region_of(&[], false)).contains("for the other ring format"));
    let (small, _) =
        InflightRegion::create(InflightLayout { queue_size: 8, ..layout_of(true) }).unwrap();
    let small = RingTracking { log: None, inflight: small.queue(0) };
    assert!(refuse(&packed, small).contains("smaller ring"));
    assert!(refuse(&packed, region_of(&[0, 0, 0, 0, 0, 0, 0, 0, 2, 0], true)).contains("version"));
    let mut bytes = vec![0; 32 + 16 * 32];
    bytes[8] = 1;
    bytes[18] = 16;
    assert!(refuse(&packed, region_of(&bytes, true)).contains("used index"));
    bytes[18] = 0;
    bytes[14] = 16;
    bytes[32] = 1;
    assert!(refuse(&packed, region_of(&bytes, true)).contains("no entries"));
    bytes[38] = 2;
    assert!(refuse(&packed, region_of(&bytes, true)).contains("of another chain"));
    let split = Driver::new(&vm, 16).setup(FEATURES, None, &call);
    let mut bytes = vec![0; 16 + 16 * 16];
    (bytes[8], bytes[16]) = (1, 1);
    assert!(refuse(&split, region_of(&bytes, false)).contains("more buffers are in flight"));
    let error =
        InflightRegion::create(InflightLayout { queues: 0, ..layout_of(true) }).unwrap_err();
    assert!(error.to_string().contains("0 queues"), "{error}");
    let (_, fd) = InflightRegion::create(layout_of(true)).unwrap();
    let error = InflightRegion::map(fd.as_fd(), 0, 100, layout_of(true)).unwrap_err();
    assert!(error.to_string().contains("0x64"), "{error}");
    assert!(rustix::fs::ftruncate(&fd, 0).is_err(), "the region's length is sealed");
}

/// A device returned buffers out of order and died: the buffers still in flight are processed again
/// from the region's copies, although the ring was overwritten.
#[test]
fn buffers_of_a_device_without_order_are_taken_from_the_region() {
    let vm = Vm::new(16);
    let driver = PackedDriver::new(&vm, 16);
    let (call, _far) = call_line();
    let frame = |byte: u8| [vec![0; 12], vec![byte; 60]].concat();
    for (index, byte) in [1_u8, 2, 3].into_iter().enumerate() {
        vm.memory.write_slice(&frame(byte), GuestAddress(AREA + 0x1000 * index as u64)).unwrap();
    }
    // Three buffers were made available with ids 5, 6 and 7; 7 was returned, at the first position.
    driver.store(0, AREA, 0, 7, AVAIL | USED);
    driver.store(1, AREA + 0x1000, 72, 6, AVAIL);
    driver.store(2, AREA + 0x2000, 72, 7, AVAIL);
    let mut region = vec![0; 32 + 16 * 32];
    // Version 1, 16 entries, free list from 2, position 1 on the first lap.
    region[8..24].copy_from_slice(&[1, 0, 16, 0, 2, 0, 2, 0, 1, 0, 1, 0, 1, 1, 0, 0]);
    for (entry, id, counter) in [(0_usize, 5_u8, 9_u8), (1, 6, 10)] {
        let offset = 32 + 32 * entry;
        region[offset] = 1;
        region[offset + 4] = entry as u8;
        region[offset + 6] = 1;
        region[offset + 8] = counter;
        region[offset + 16] = id;
        region[offset + 18..offset + 20].copy_from_slice(&AVAIL.to_le_bytes());
        region[offset + 20] = 72;
        let addr = AREA + 0x1000 * entry as u64;
        region[offset + 24..offset + 32].copy_from_slice(&addr.to_le_bytes());
    }
    for entry in 2..16 {
        region[32 + 32 * entry + 2] = entry as u8 + 1;
    }
    let setup = driver.setup(FEATURES, None, &call);
    let mut ring = TxRing::with_tracking(vm.map(), &setup, region_of(&region, true)).unwrap();
    let mut batch = FrameBatch::new();
    assert_eq!(ring.receive(&mut batch).unwrap(), 2);
    let bytes: Vec<u8> = batch.frames().iter().map(|frame| frame.bytes()[30]).collect();
    assert_eq!(bytes, [1, 2]);
    let tail = |index| -> u64 {
        let address = GuestAddress(driver.descriptor_at(index).0 + 8);
        u64::from_le(vm.memory.read_obj(address).unwrap())
    };
    // The buffers are returned after the first one, in the order in which they were taken.
    assert_eq!([tail(1) >> 32 & 0xffff, tail(2) >> 32 & 0xffff], [5, 6]);
    assert_eq!([tail(1) >> 48, tail(2) >> 48], [0x8080, 0x8080]);
    assert_eq!(ring.state().next_avail(), 0x8003);
}

/// As the previous test, for a split ring, whose available ring may contain other heads.
#[test]
fn heads_of_a_device_without_order_are_taken_from_the_region() {
    let vm = Vm::new(16);
    let mut driver = Driver::new(&vm, 16);
    let (call, _far) = call_line();
    let frame = |byte: u8| [vec![0; 12], vec![byte; 60]].concat();
    let heads: Vec<u16> =
        (1..4).map(|byte| driver.add(&[72], false, false, &frame(byte)).unwrap()).collect();
    // The second head was returned; the first and the third were not.
    let offset = driver.used_at.0;
    vm.memory.write_obj([u32::from(heads[1]), 0], GuestAddress(offset + 4)).unwrap();
    vm.memory.write_obj(1_u16, GuestAddress(offset + 2)).unwrap();
    let mut region = vec![0; 16 + 16 * 16];
    (region[8], region[10], region[14]) = (1, 16, 1);
    for (head, counter) in [(heads[0], 4_u8), (heads[2], 6)] {
        let offset = 16 + 16 * usize::from(head);
        (region[offset], region[offset + 8]) = (1, counter);
    }
    let setup = RingSetup { base: 0x55, ..driver.setup(FEATURES, None, &call) };
    let mut ring = TxRing::with_tracking(vm.map(), &setup, region_of(&region, false)).unwrap();
    let mut batch = FrameBatch::new();
    assert_eq!(ring.receive(&mut batch).unwrap(), 2);
    let bytes: Vec<u8> = batch.frames().iter().map(|frame| frame.bytes()[30]).collect();
    assert_eq!(bytes, [1, 3]);
    let used: Vec<u16> = driver.reap().iter().map(|used| used.head).collect();
    assert_eq!(used, [heads[1], heads[0], heads[2]]);
}

/// Heads from the region are taken once, even after the ring's indices have wrapped around to their
/// position.
#[test]
fn heads_from_the_region_are_taken_once() {
    let vm = Vm::new(16);
    let mut driver = Driver::new(&vm, 16);
    let (call, _far) = call_line();
    let mut region = vec![0; 16 + 16 * 16];
    (region[8], region[10]) = (1, 16);
    let head = driver.add(&[72], false, false, &[]).unwrap();
    region[16 + 16 * usize::from(head)] = 1;
    let setup = driver.setup(FEATURES, None, &call);
    let records = region_of(&region, false);
    let part = records.inflight.clone().unwrap();
    let mut ring = TxRing::with_tracking(vm.map(), &setup, records).unwrap();
    let mut batch = FrameBatch::new();
    for chain in 0..=1 << 16 {
        if chain > 0 {
            // A chain of two slots changes the heads of the following chains.
            let lens: &[u32] = if chain == 5 { &[12, 60] } else { &[72] };
            driver.add(lens, false, false, &[]).unwrap();
        }
        let head = driver.outstanding()[0];
        assert_eq!(ring.receive(&mut batch).unwrap(), 1);
        batch.clear();
        assert_eq!(driver.reap(), [Used { head, len: 0 }], "chain {chain}");
    }
    drop(ring);
    assert!(!part.was_in_use_at_crash(), "nothing is in flight");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// With arbitrary contents of the region, no call hangs or crashes, and recovered descriptors
    /// are checked as any others.
    #[test]
    fn random_regions_never_hang_or_crash(
        mut region in prop::collection::vec(prop_oneof![4 => 0..20_u8, 1 => any::<u8>()], REGION_BYTES),
        is_packed in any::<bool>(),
        writable in any::<bool>(),
    ) {
        (region[8], region[9]) = (1, 0);
        let region = &region[..layout_of(is_packed).bytes() as usize];
        let vm = Vm::new(16);
        let (call, _far) = call_line();
        let setup = if is_packed {
            let mut driver = PackedDriver::new(&vm, 16);
            for _ in 0..9 { driver.add(&[12, 100], false, writable, &[]); }
            driver.setup(FEATURES | RING_PACKED, None, &call)
        } else {
            let mut driver = Driver::new(&vm, 16);
            for _ in 0..9 { driver.add(&[112], false, writable, &[]); }
            driver.setup(FEATURES, None, &call)
        };
        let records = region_of(region, is_packed);
        if writable {
            let mask = Arc::new(OffloadMask::new(Offloads::TCP));
            let Ok(mut ring) = RxRing::with_tracking(vm.map(), &setup, records, mask) else { return Ok(()) };
            let mut frame = Frame::new(0);
            frame.set_bytes(&[0; 60]);
            for _ in 0..40 {
                if !matches!(ring.transmit(&frame), Ok(TransmitResult::Accepted)) { break; }
                if ring.flush().is_err() { break; }
            }
        } else {
            let Ok(mut ring) = TxRing::with_tracking(vm.map(), &setup, records) else { return Ok(()) };
            let mut batch = FrameBatch::new();
            let mut calls = 0;
            while ring.receive(&mut batch).is_ok_and(|count| count > 0) {
                batch.clear();
                calls += 1;
                prop_assert!(calls < 40);
            }
        }
    }
}
