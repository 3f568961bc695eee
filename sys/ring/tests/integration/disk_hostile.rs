//! Tests of hostile disk drivers and of front-ends that corrupt the in-flight region: each
//! violation is reported, ends the ring, and affects no other ring.

use crate::remains;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::disk::{DISK_BYTES, DISK_FEATURES, MemoryDisk, Wanted, facts};
use crate::remains::{SIZE, region_of, shape};
use crate::rig::any::AnyDriver;
use crate::rig::packed::{IN_ORDER, PackedDriver, RING_PACKED};
use crate::rig::{Driver, GUEST_BASE, INDIRECT, NEXT, Vm, WRITE, call_line, count};
use proptest::prelude::*;
use suimon_ports::{ArmResult, DiskOutcome, FaultKind};
use suimon_ring::{
    DISK_QUEUE_SIZE_MAX, DirtyLog, DiskRing, InflightLayout, InflightRegion, RingLog, RingSetup,
    RingTracking,
};
use vm_memory::{Bytes, GuestAddress};

const AVAIL: u16 = 1 << 7;
const AREA: u64 = GUEST_BASE + 0x10_0000;

/// Descriptors of a chain: address, length in bytes, and flags other than NEXT.
type Chain<'a> = &'a [(u64, u32, u16)];

/// Makes an invalid chain available after a valid one. Asserts that the valid one is received and
/// that the invalid one ends the ring permanently. Returns the fault's text.
fn fault_of(features: u64, chain: Chain<'_>) -> String {
    let vm = Vm::new(16);
    let (call, _far) = call_line();
    let (error, reported) = call_line();
    let mut driver = if features & RING_PACKED == 0 {
        AnyDriver::Split(Box::new(Driver::new(&vm, 16)))
    } else {
        AnyDriver::Packed(PackedDriver::new(&vm, 16))
    };
    let setup = RingSetup { error, ..driver.setup(features, &call) };
    let mut queue = DiskRing::new(vm.map(), &setup, facts()).unwrap().into_queue();
    let valid = Wanted::read(1, 512);
    let (lens, readable) = valid.usual();
    let head = driver.add_request(&lens, readable, false, &valid.readable()).unwrap();
    let next_flag = |number: usize| if number + 1 < chain.len() { NEXT } else { 0 };
    match &mut driver {
        AnyDriver::Split(driver) => {
            for (number, (addr, len, flags)) in chain.iter().enumerate() {
                let slot = number as u16 + 5;
                driver.store(slot, *addr, *len, flags | next_flag(number), slot + 1);
            }
            driver.offer(5);
        }
        AnyDriver::Packed(driver) => {
            for (number, (addr, len, flags)) in chain.iter().enumerate() {
                let index = number as u16 + lens.len() as u16;
                driver.store(index, *addr, *len, 9, flags | next_flag(number) | AVAIL);
            }
        }
    }
    let mut requests = Vec::new();
    let fault = queue.receive(8, &mut requests).unwrap_err();
    assert_eq!((fault.kind, requests.len()), (FaultKind::ProtocolViolation, 1));
    assert_eq!(queue.receive(8, &mut requests).unwrap_err().detail, fault.detail);
    assert_eq!(queue.arm(), ArmResult::Pending);
    assert_eq!(count(&reported), 1);
    // Completions after the fault are not reported to the driver.
    let status = driver.pieces(head)[lens.len() - 1].addr;
    vm.memory.write_obj(0xaa_u8, GuestAddress(status)).unwrap();
    queue.complete(requests[0].tag, DiskOutcome::Done);
    assert!(queue.flush().is_err());
    drop(queue);
    assert!(driver.reap_any_order().is_empty());
    assert_eq!(vm.memory.read_obj::<u8>(GuestAddress(status)).unwrap(), 0xaa);
    fault.detail
}

#[test]
fn chains_that_are_no_requests_are_named() {
    let header = (AREA, 16, 0);
    let status = (AREA + 100, 1, WRITE);
    let cases: [(&str, Chain<'_>); 11] = [
        ("fewer than a request header", &[(AREA, 15, 0), status]),
        ("fewer than a request header", &[(AREA, 100, WRITE), status]),
        ("fewer than a request header", &[status]),
        ("no device-writable byte", &[header]),
        ("no device-writable byte", &[header, (AREA, 512, 0)]),
        ("no device-writable byte", &[header, (AREA, 0, WRITE)]),
        ("a device-readable buffer in a", &[header, status, (AREA, 512, 0), status]),
        ("outside the VM's memory", &[header, (0xdead_0000_0000, 512, WRITE), status]),
        ("outside the VM's memory", &[header, (AREA, 512, 0), (u64::MAX, 1, WRITE)]),
        ("outside the VM's memory", &[header, (AREA, u32::MAX, WRITE), status]),
        ("not a multiple of 16 bytes", &[(AREA, 24, INDIRECT)]),
    ];
    for (expected, chain) in cases {
        for features in [DISK_FEATURES, DISK_FEATURES | RING_PACKED] {
            let detail = fault_of(features, chain);
            assert!(detail.contains(expected) && detail.starts_with("queue 0: "), "{detail}");
        }
    }
}

#[test]
fn a_descriptor_in_flight_is_not_received_again() {
    let vm = Vm::new(16);
    let mut driver = Driver::new(&vm, 16);
    let (call, _far) = call_line();
    let setup = driver.setup(DISK_FEATURES, None, &call);
    let mut queue = DiskRing::new(vm.map(), &setup, facts()).unwrap().into_queue();
    let mut disk = MemoryDisk::new(DISK_BYTES);
    let request = Wanted::flush();
    let head = driver.add_request(&[16, 1], 1, false, &request.readable()).unwrap();
    assert_eq!(disk.receive(&mut *queue, 8), 1);
    disk.carry_out(&mut *queue, 0);
    // The request was completed, but the used index was not published.
    driver.offer(head);
    let fault = queue.receive(8, &mut Vec::new()).unwrap_err();
    assert!(fault.detail.contains("made available again before its chain was returned"), "{fault}");
}

#[test]
fn a_driver_that_laps_a_packed_ring_is_not_followed() {
    let vm = Vm::new(4);
    let driver = PackedDriver::new(&vm, 4);
    let (call, _far) = call_line();
    let setup = driver.setup(DISK_FEATURES, None, &call);
    let mut queue = DiskRing::new(vm.map(), &setup, facts()).unwrap().into_queue();
    vm.memory.write_slice(&Wanted::flush().readable(), GuestAddress(AREA)).unwrap();
    let mut disk = MemoryDisk::new(DISK_BYTES);
    let offer = |wrap_flags: u16| {
        for pair in 0..2 {
            driver.store(2 * pair, AREA, 16, pair, wrap_flags | NEXT);
            driver.store(2 * pair + 1, AREA + 64, 1, pair, wrap_flags | WRITE);
        }
    };
    offer(AVAIL);
    assert_eq!(disk.receive(&mut *queue, 8), 2);
    offer(1 << 15);
    assert_eq!(disk.receive(&mut *queue, 8), 0, "not both requests are in flight");
    disk.carry_out(&mut *queue, 1);
    assert_eq!(disk.receive(&mut *queue, 8), 0, "nothing was returned yet");
}

#[test]
fn rings_that_no_disk_has_are_refused() {
    let vm = Vm::new(16);
    let (call, _far) = call_line();
    for features in [DISK_FEATURES, DISK_FEATURES | RING_PACKED] {
        let setup = AnyDriver::new(&vm, 16, features).setup(features, &call);
        let refused = |setup: &RingSetup| {
            DiskRing::new(vm.map(), setup, facts()).err().map(|fault| fault.detail)
        };
        assert_eq!(refused(&setup), None);
        let mut ordered = setup.clone();
        ordered.features.0 |= IN_ORDER;
        assert!(refused(&ordered).unwrap().contains("IN_ORDER"));
        let larger = RingSetup { size: u32::from(DISK_QUEUE_SIZE_MAX) * 2, ..setup.clone() };
        assert!(refused(&larger).unwrap().contains("1024"));
    }
}

/// Returns the numbers of the pages marked in a log.
fn logged(log: &File) -> Vec<u64> {
    let mut bytes = vec![0; log.metadata().unwrap().len() as usize];
    log.read_exact_at(&mut bytes, 0).unwrap();
    let bits = bytes.iter().enumerate().flat_map(|(index, byte)| {
        (0..8).filter(move |bit| byte >> bit & 1 != 0).map(move |bit| index as u64 * 8 + bit)
    });
    bits.collect()
}

#[test]
fn written_pages_are_in_the_dirty_log_before_the_completion() {
    for features in [DISK_FEATURES, DISK_FEATURES | RING_PACKED] {
        let vm = Vm::new(16);
        let file =
            File::from(rustix::fs::memfd_create("log", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        file.set_len(0x1000).unwrap();
        let log = Arc::new(DirtyLog::map(file.as_fd(), 0, 0x1000).unwrap());
        let mut driver = AnyDriver::new(&vm, 16, features);
        let (call, _far) = call_line();
        let setup = driver.setup(features, &call);
        let log = RingLog { log, used_addr: None };
        let records = RingTracking { log: Some(log), inflight: None };
        let mut queue =
            DiskRing::with_tracking(vm.map(), &setup, records, facts()).unwrap().into_queue();
        let mut disk = MemoryDisk::new(DISK_BYTES);
        let read = Wanted::read(0, 0x3000);
        let lens = [16, 0x1000, 0x2000, 1];
        let head = driver.add_request(&lens, 1, false, &read.readable()).unwrap();
        let write = Wanted::write(0, vec![1; 0x2000]);
        let write_head = driver.add_request(&[16, 0x2000, 1], 2, true, &write.readable()).unwrap();
        assert_eq!(disk.receive(&mut *queue, 8), 2);
        assert!(logged(&file).is_empty());
        let pages = |head, first| {
            let mut pages = Vec::new();
            for piece in &driver.pieces(head)[first..] {
                pages.extend(piece.addr / 4096..=(piece.addr + u64::from(piece.len) - 1) / 4096);
            }
            pages.dedup();
            pages
        };
        disk.carry_out(&mut *queue, 0);
        assert_eq!(logged(&file), pages(head, 1));
        disk.carry_out(&mut *queue, 0);
        let mut expected = [pages(head, 1), pages(write_head, 2)].concat();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(logged(&file), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// With any contents of the region, the ring is rejected, or serves requests until it ends.
    #[test]
    fn an_in_flight_region_of_any_content_is_tolerated(
        is_packed in any::<bool>(),
        bytes in prop::collection::vec(prop_oneof![4 => 0..20_u8, 1 => any::<u8>()], 0..700),
        from in 0..3_usize,
    ) {
        let features = if is_packed { DISK_FEATURES | RING_PACKED } else { DISK_FEATURES };
        let vm = Vm::new(SIZE);
        let mut driver = AnyDriver::new(&vm, SIZE, features);
        for sector in 0..4 {
            let request = Wanted::write(sector, vec![1; 512]);
            driver.add_request(&[16, 512, 1], 2, false, &request.readable()).unwrap();
        }
        let (call, _far) = call_line();
        let setup = driver.setup(features, &call);
        let (region, file) = region_of(&[], features);
        let part = (shape(features).bytes() / 2) as usize;
        let bytes = &bytes[..bytes.len().min(part - 16 * from)];
        file.write_all_at(bytes, (part + 16 * from) as u64).unwrap();
        file.write_all_at(&[1, 0], part as u64 + 8).unwrap();
        let ring =
            DiskRing::with_tracking(vm.map(), &setup, remains::records(&region), facts());
        let Ok(ring) = ring else { return Ok(()) };
        let mut queue = ring.into_queue();
        let mut requests = Vec::new();
        for _ in 0..4 {
            if queue.receive(100, &mut requests).is_err() {
                break;
            }
            prop_assert!(requests.len() <= usize::from(SIZE));
            for request in requests.drain(..) {
                queue.complete(request.tag, DiskOutcome::Failed);
            }
            if queue.flush().is_err() {
                break;
            }
        }
    }
}

#[test]
fn a_region_for_smaller_or_other_rings_is_refused() {
    let vm = Vm::new(16);
    let (call, _far) = call_line();
    for (is_packed, queue_size) in [(true, 16), (false, 8)] {
        let setup = AnyDriver::new(&vm, 16, DISK_FEATURES).setup(DISK_FEATURES, &call);
        let (region, _fd) =
            InflightRegion::create(InflightLayout { queues: 1, queue_size, is_packed }).unwrap();
        let records = RingTracking { log: None, inflight: region.queue(0) };
        let fault = DiskRing::with_tracking(vm.map(), &setup, records, facts()).err().unwrap();
        assert!(fault.detail.contains("in-flight region"), "{fault}");
    }
}
