//! Tests of hostile drivers: each violation is reported, ends the ring, and affects no other ring.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::rig::{
    Driver, GUEST_BASE, INDIRECT, NEXT, USER_BASE, Vm, WRITE, call_line, count, event,
};
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use suimon_frame::{FRAME_BYTES_MAX, Frame, FrameBatch, Offloads};
use suimon_ports::{ArmResult, FaultKind, FrameSink, FrameSource, QueueFault, TransmitResult};
use suimon_ring::{
    DirtyLog, InterruptLine, OffloadMask, RingLog, RingSetup, RingTracking, RxRing, TxRing,
};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};
use vm_memory::{Bytes, GuestAddress};

const VERSION_1: u64 = 1 << VIRTIO_F_VERSION_1;
const FEATURES: u64 = VERSION_1 | 1 << VIRTIO_RING_F_INDIRECT_DESC;

fn tx(driver: &Driver<'_>, features: u64) -> TxRing {
    let setup = driver.setup(features, Some(&Arc::new(event())), &call_line().0);
    TxRing::new(driver.vm.map(), &setup).unwrap()
}

fn rx(driver: &Driver<'_>, features: u64) -> RxRing {
    let mask = Arc::new(OffloadMask::new(Offloads::TCP));
    RxRing::new(driver.vm.map(), &driver.setup(features, None, &call_line().0), mask).unwrap()
}

fn frame(len: usize) -> Frame {
    let mut frame = Frame::new(0);
    frame.set_bytes(&vec![0; len]);
    frame
}

/// Makes an invalid transmit chain available after a valid one. Asserts that the valid one is
/// received and that the invalid one ends the ring permanently. Returns the fault's text.
fn tx_fault(features: u64, build: impl FnOnce(&mut Driver<'_>)) -> String {
    let vm = Vm::new(16);
    let mut driver = Driver::new(&vm, 16);
    let (call, _far) = call_line();
    let (error, reported) = call_line();
    let kick = Arc::new(event());
    let setup = RingSetup { error, ..driver.setup(features, Some(&kick), &call) };
    let mut ring = TxRing::new(vm.map(), &setup).unwrap();
    let mut batch = FrameBatch::new();
    driver.add(&[12 + 60], false, false, &[]).unwrap();
    assert_eq!(ring.receive(&mut batch).unwrap(), 1);
    build(&mut driver);
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
    let area = GUEST_BASE + 0x10_0000;
    type Build<'a> = &'a dyn Fn(&mut Driver<'_>);
    let cases: [(&str, Build<'_>); 12] = [
        ("more than 16 descriptors", &|driver| {
            driver.store(3, area, 20, NEXT, 4);
            driver.store(4, area, 20, NEXT, 3);
            driver.offer(3);
        }),
        ("`next` names descriptor 16", &|driver| {
            driver.store(3, area, 20, NEXT, 16);
            driver.offer(3);
        }),
        ("available ring names descriptor 999", &|driver| driver.offer(999)),
        ("available index 18 is 17 ahead of 1, but the queue has 16", &|driver| {
            driver.available.idx().store(18);
        }),
        ("device-writable buffer", &|driver| {
            driver.store(3, area, 72, WRITE, 0);
            driver.offer(3);
        }),
        ("outside the VM's memory", &|driver| {
            driver.store(3, 0xdead_0000_0000, 72, 0, 0);
            driver.offer(3);
        }),
        ("outside the VM's memory", &|driver| {
            driver.store(3, u64::MAX - 5, 72, 0, 0);
            driver.offer(3);
        }),
        ("more than 65612 bytes", &|driver| {
            driver.store(3, area, 12 + FRAME_BYTES_MAX as u32 + 1, 0, 0);
            driver.offer(3);
        }),
        ("more than 65612 bytes", &|driver| {
            driver.store(3, area, 40_000, NEXT, 4);
            driver.store(4, area, u32::MAX, 0, 0);
            driver.offer(3);
        }),
        ("not a multiple of 16 bytes", &|driver| {
            driver.store(3, area, 24, INDIRECT, 0);
            driver.offer(3);
        }),
        ("a descriptor has both NEXT and INDIRECT", &|driver| {
            driver.store(3, area, 32, INDIRECT | NEXT, 4);
            driver.offer(3);
        }),
        ("more entries than the queue", &|driver| {
            driver.store(3, area, 16 * 1025, INDIRECT, 0);
            driver.offer(3);
        }),
    ];
    for (expected, build) in cases {
        let detail = tx_fault(FEATURES, build);
        assert!(detail.contains(expected) && detail.starts_with("queue 0: "), "{detail}");
    }
}

#[test]
fn indirect_tables_that_break_the_rules_are_named() {
    let table = GUEST_BASE + 0x10_0000;
    let entry = |driver: &Driver<'_>, index: u64, addr: u64, len: u32, flags: u16, next: u16| {
        let words = (addr, u64::from(len) | u64::from(flags) << 32 | u64::from(next) << 48);
        driver.vm.memory.write_obj(words.0, GuestAddress(table + 16 * index)).unwrap();
        driver.vm.memory.write_obj(words.1, GuestAddress(table + 16 * index + 8)).unwrap();
    };
    let loops = tx_fault(FEATURES, |driver| {
        entry(driver, 0, table, 4, NEXT, 1);
        entry(driver, 1, table, 4, NEXT, 0);
        driver.store(3, table, 32, INDIRECT, 0);
        driver.offer(3);
    });
    assert!(loops.contains("more than 2 descriptors"), "{loops}");
    let nested = tx_fault(FEATURES, |driver| {
        entry(driver, 0, table, 4, NEXT, 1);
        entry(driver, 1, table, 16, INDIRECT, 0);
        driver.store(3, table, 32, INDIRECT, 0);
        driver.offer(3);
    });
    assert!(nested.contains("inside another indirect table"), "{nested}");
    let nested_at_once = tx_fault(FEATURES, |driver| {
        entry(driver, 0, table, 16, INDIRECT, 0);
        driver.store(3, table, 32, INDIRECT, 0);
        driver.offer(3);
    });
    assert!(nested_at_once.contains("inside another indirect table"), "{nested_at_once}");
    let behind_a_chain = tx_fault(FEATURES, |driver| {
        driver.store(3, table, 12, NEXT, 4);
        driver.store(4, 0xffff_ffff_ffff_fff8, 32, INDIRECT, 0);
        driver.offer(3);
    });
    assert!(behind_a_chain.contains("outside the VM's memory"), "{behind_a_chain}");
    let not_negotiated = tx_fault(VERSION_1, |driver| {
        driver.store(3, table, 32, INDIRECT, 0);
        driver.offer(3);
    });
    assert!(not_negotiated.contains("was not negotiated"), "{not_negotiated}");
}

#[test]
fn an_invalid_header_affects_that_frame_only() {
    let vm = Vm::new(16);
    let mut driver = Driver::new(&vm, 16);
    let mut ring = tx(&driver, FEATURES);
    let mut batch = FrameBatch::new();
    let mut header = vec![0; 72];
    header[0] = 1;
    driver.add(&[72], false, false, &header).unwrap();
    driver.add(&[11], false, false, &[]).unwrap();
    driver.add(&[12 + 13], false, false, &[]).unwrap();
    driver.add(&[4, 7], false, false, &[]).unwrap();
    driver.add(&[72], false, false, &[0; 72]).unwrap();
    // The header claims a verified checksum: the frame is admitted, the claim removed.
    header[0] = 2;
    driver.add(&[72], false, false, &header).unwrap();
    assert_eq!(ring.receive(&mut batch).unwrap(), 2);
    assert_eq!(ring.malformed_frames(), 4);
    assert_eq!(batch.frames()[1].meta.checksum, suimon_frame::Checksum::Unknown);
    assert_eq!(driver.reap().len(), 6);
}

#[test]
fn receive_buffers_that_break_the_rules_are_named() {
    type Build<'a> = &'a dyn Fn(&mut Driver<'_>);
    let area = GUEST_BASE + 0x10_0000;
    let cases: [(&str, Build<'_>); 4] = [
        ("device-readable buffer in a device-writable chain", &|driver| {
            driver.store(0, area, 2000, 0, 0);
        }),
        ("outside the VM's memory", &|driver| driver.store(0, 1, 2000, WRITE, 0)),
        ("shorter than a virtio-net header", &|driver| driver.store(0, area, 0, WRITE, 0)),
        ("more than 16 descriptors", &|driver| driver.store(0, area, 0, WRITE | NEXT, 0)),
    ];
    for (expected, build) in cases {
        let vm = Vm::new(16);
        let mut driver = Driver::new(&vm, 16);
        let mut ring = rx(&driver, FEATURES | 1 << 15);
        build(&mut driver);
        driver.offer(0);
        let fault = ring.transmit(&frame(60)).unwrap_err();
        assert!(fault.detail.contains(expected), "{}", fault.detail);
        assert!(ring.transmit(&frame(60)).is_err());
        assert!(ring.flush().is_err());
        assert!(driver.reap().is_empty());
    }
}

#[test]
fn a_frame_that_does_not_fit_leaves_the_ring_as_it_was() {
    for features in [FEATURES, FEATURES | 1 << 15] {
        let vm = Vm::new(4);
        let mut driver = Driver::new(&vm, 4);
        let mut ring = rx(&driver, features);
        for _ in 0..4 {
            driver.add(&[100], false, true, &[]).unwrap();
        }
        assert_eq!(ring.transmit(&frame(500)).unwrap(), TransmitResult::Full);
        assert_eq!(ring.transmit(&frame(80)).unwrap(), TransmitResult::Accepted);
        ring.flush().unwrap();
        assert_eq!(driver.reap().len(), 1);
        assert_eq!(ring.state().next_avail(), 1);
    }
}

#[test]
fn rings_in_bad_places_are_refused() {
    let vm = Vm::new(16);
    let driver = Driver::new(&vm, 16);
    let valid = driver.setup(FEATURES, None, &Arc::new(InterruptLine::new()));
    let error = |change: &dyn Fn(&mut RingSetup)| {
        let mut setup = valid.clone();
        change(&mut setup);
        let QueueFault { detail, .. } = TxRing::new(vm.map(), &setup).err().unwrap();
        detail
    };
    for size in [0, 3, 65_536, u32::MAX] {
        assert!(error(&|setup| setup.size = size).contains("is not a power of two"));
    }
    assert!(error(&|setup| setup.addresses.descriptors += 8).contains("not aligned to 16 bytes"));
    assert!(error(&|setup| setup.addresses.available += 1).contains("not aligned to 2 bytes"));
    assert!(error(&|setup| setup.addresses.used += 2).contains("not aligned to 4 bytes"));
    for address in [0, USER_BASE - 16, u64::MAX - 15] {
        let text = error(&|setup| setup.addresses.descriptors = address);
        assert!(text.contains("descriptor table") && text.contains("not within one"), "{text}");
    }
}

#[test]
fn truncated_memory_ends_the_ring_and_not_the_process() {
    let vm = Vm::new(16);
    let mut driver = Driver::new(&vm, 16);
    let mut ring = tx(&driver, FEATURES);
    let mut batch = FrameBatch::new();
    driver.add(&[72], false, false, &[]).unwrap();
    assert_eq!(ring.receive(&mut batch).unwrap(), 1);
    ftruncate(&vm.file, 0).unwrap();
    // The rings themselves are truncated: every read returns zeros.
    let fault = loop {
        match ring.receive(&mut batch) {
            Ok(_) => batch.clear(),
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault.kind, FaultKind::ProtocolViolation);
    drop(ring);
}

/// A header is written before a buffer outside memory is detected. The write is logged; otherwise a
/// migrated copy of the VM would miss it.
#[test]
fn a_header_written_before_a_fault_is_logged() {
    let vm = Vm::new(16);
    let mut driver = Driver::new(&vm, 16);
    let end = vm.file.metadata().unwrap().len();
    driver.store(0, GUEST_BASE + end - 12, 500, WRITE, 0);
    vm.memory.write_slice(&[0xff; 12], GuestAddress(GUEST_BASE + end - 12)).unwrap();
    let bytes = (GUEST_BASE + end).div_ceil(8 * 4096);
    let file = File::from(memfd_create("log", MemfdFlags::CLOEXEC).unwrap());
    file.set_len(bytes).unwrap();
    let log = Arc::new(DirtyLog::map(file.as_fd(), 0, bytes).unwrap());
    let records =
        RingTracking { log: Some(RingLog { log, used_addr: None }), ..RingTracking::default() };
    let mask = Arc::new(OffloadMask::new(Offloads::TCP));
    let setup = driver.setup(VERSION_1, None, &call_line().0);
    let mut ring = RxRing::with_tracking(vm.map(), &setup, records, mask).unwrap();
    driver.offer(0);
    let fault = ring.transmit(&frame(60)).unwrap_err();
    assert!(fault.detail.contains("outside the VM's memory"), "{}", fault.detail);
    let mut header = [0; 12];
    vm.memory.read_slice(&mut header, GuestAddress(GUEST_BASE + end - 12)).unwrap();
    assert_ne!(header, [0xff; 12], "the header was written");
    let page = (GUEST_BASE + end - 12) / 4096;
    let mut byte = [0];
    file.read_exact_at(&mut byte, page / 8).unwrap();
    assert_eq!(byte[0], 1 << (page % 8));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// With arbitrary bytes in the rings, every call returns in bounded time.
    #[test]
    fn random_rings_never_hang_or_crash(
        bytes in prop::collection::vec(any::<u8>(), 16 * 8 + 64),
        descriptors in prop::collection::vec((0..8_usize, 0..0x30_0000_u64, 0..3000_u32, 0..8_u16, 0..9_u16), 0..8),
        avail in 0..20_u16,
        heads in prop::collection::vec(0..9_u16, 8),
        features in any::<u64>(),
    ) {
        let vm = Vm::new(8);
        let driver = Driver::new(&vm, 8);
        vm.memory.write_slice(&bytes, GuestAddress(GUEST_BASE)).unwrap();
        for (slot, addr, len, flags, next) in descriptors {
            driver.store(slot as u16, GUEST_BASE + addr, len, flags, next);
        }
        driver.available.idx().store(avail);
        for (index, head) in heads.iter().enumerate() {
            driver.available.ring().ref_at(index).unwrap().store(*head);
        }
        let features = features | 1 << VIRTIO_RING_F_EVENT_IDX;
        let mut source = tx(&driver, features);
        let mut batch = FrameBatch::new();
        for _ in 0..4 {
            batch.clear();
            if source.receive(&mut batch).is_err() { break; }
            let _ = source.arm();
            source.disarm();
        }
        let mut sink = rx(&driver, features);
        for len in [60, 1500, 60_000] {
            if sink.transmit(&frame(len)).is_err() { break; }
        }
        let _ = sink.flush();
    }
}
