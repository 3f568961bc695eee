//! Tests of a process that dies while it uses a network ring, at every point at which the state it
//! leaves differs: the next process with the in-flight region does exactly the remaining work.
//!
//! The operation runs in a forked process, one store at a time. After each store that changed the
//! ring or the region, memory is copied and a new ring is created from the copy. Some of these new
//! rings are made to die as well.

use std::sync::Arc;

use crate::chains::pattern;
use crate::remains::{RING_BYTES, Remains, SIZE, crash_everywhere, records, region_of};
use crate::rig::any::AnyDriver;
use crate::rig::packed::{IN_ORDER, PackedDriver, RING_PACKED};
use crate::rig::stepper::{Watched, step_through};
use crate::rig::{Driver, GUEST_BASE, Vm, call_line};
use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_ports::{FrameSink, FrameSource, TransmitResult};
use suimon_ring::{OffloadMask, RingSetup, RxRing, TxRing};
use vm_memory::{Bytes, GuestAddress};

const VERSION_1: u64 = 1 << 32;
const EVENT_IDX: u64 = 1 << 29;
const MERGEABLE: u64 = 1 << 15;
const HEADER: usize = 12;

fn receive_all(ring: &mut TxRing, batch: &mut FrameBatch) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        batch.clear();
        if ring.receive(batch).unwrap() == 0 {
            return frames;
        }
        frames.extend(batch.frames().iter().map(|frame| frame.bytes().to_vec()));
    }
}

fn transmit_survives(features: u64) -> usize {
    let vm = Vm::new(SIZE);
    let mut driver = AnyDriver::new(&vm, SIZE, features);
    let (call, _far) = call_line();
    let mut setup = driver.setup(features, &call);
    let (region, file) = region_of(&[], features);
    let mut ring = TxRing::with_tracking(vm.map(), &setup, records(&region)).unwrap();
    let mut batch = FrameBatch::new();
    // A first batch, so that the region is not in its initial state.
    for seed in 0..3 {
        driver.add(&[12, 60], false, &[vec![0; HEADER], pattern(seed, 60)].concat()).unwrap();
    }
    assert_eq!(receive_all(&mut ring, &mut batch).len(), 3);
    assert_eq!(driver.reap(features).len(), 3);
    let sent: Vec<_> = (10..17).map(|seed| pattern(seed, 50 + seed)).collect();
    for (index, frame) in sent.iter().enumerate() {
        let total = (HEADER + frame.len()) as u32;
        let lens = if index % 3 == 0 { vec![12, 20, total - 32] } else { vec![total] };
        driver.add(&lens, false, &[vec![0; HEADER], frame.clone()].concat()).unwrap();
    }
    let snapshots = crash_everywhere(&vm, &file, || {
        ring.receive(&mut batch).unwrap();
    });
    // The ring belongs to the process that died.
    core::mem::forget(ring);
    // The front-end does not have the ring's position.
    setup.base = if features & RING_PACKED == 0 { 0x1234 } else { 0x8000 };
    let points = snapshots.len();
    for (index, remains) in snapshots.into_iter().enumerate() {
        if index % 3 == 2 {
            // The second process dies while it recovers.
            let (region, file) = region_of(&remains.region, features);
            let memory = remains.vm.map();
            let nested = crash_everywhere(&remains.vm, &file, || {
                let mut ring = TxRing::with_tracking(memory, &setup, records(&region)).unwrap();
                ring.receive(&mut batch).unwrap();
                core::mem::forget(ring);
            });
            for remains in nested {
                finish_transmit(&driver, &remains, features, &setup, &sent, &mut batch);
            }
        } else {
            finish_transmit(&driver, &remains, features, &setup, &sent, &mut batch);
        }
    }
    points
}

/// Acts as the next process: receives exactly the frames that were not returned to the guest, and
/// returns every chain.
fn finish_transmit(
    driver: &AnyDriver<'_>,
    remains: &Remains,
    features: u64,
    setup: &RingSetup,
    sent: &[Vec<u8>],
    batch: &mut FrameBatch,
) {
    let vm = remains.vm.copy();
    let mut driver = driver.in_copy(&vm);
    let returned = driver.reap(features).len();
    let (region, _file) = region_of(&remains.region, features);
    let memory = vm.map();
    let mut ring = TxRing::with_tracking(memory.clone(), setup, records(&region)).unwrap();
    assert_eq!(receive_all(&mut ring, batch), sent[returned..]);
    assert_eq!(driver.reap(features).len(), sent.len() - returned);
    assert!(region.queue(1).unwrap().was_in_use_at_crash());
    let state = ring.state();
    drop(ring);
    assert!(
        !region.queue(1).unwrap().was_in_use_at_crash(),
        "the part is not empty after the drop"
    );
    // The front-end determines the position again.
    let setup =
        RingSetup { base: setup.features.base_from_vring(state.vring_base()), ..setup.clone() };
    let mut ring = TxRing::with_tracking(memory, &setup, records(&region)).unwrap();
    for seed in 0..5 {
        driver.add(&[12, 60], false, &[vec![0; HEADER], pattern(seed, 60)].concat()).unwrap();
    }
    let frames: Vec<_> = (0..5).map(|seed| pattern(seed, 60)).collect();
    assert_eq!(receive_all(&mut ring, batch), frames);
    assert_eq!(driver.reap(features).len(), 5);
}

fn frame(bytes: &[u8]) -> Frame {
    let mut frame = Frame::new(0);
    frame.set_bytes(bytes);
    frame
}

fn receive_survives(features: u64) -> usize {
    let vm = Vm::new(SIZE);
    let mut driver = AnyDriver::new(&vm, SIZE, features);
    let (call, _far) = call_line();
    let mut setup = driver.setup(features, &call);
    let (region, file) = region_of(&[], features);
    let mask = || Arc::new(OffloadMask::new(Offloads::TCP));
    let mut ring = RxRing::with_tracking(vm.map(), &setup, records(&region), mask()).unwrap();
    let mut offered = 0;
    for lens in [&[300_u32][..], &[12, 200], &[300], &[250], &[40, 40, 200]].iter().cycle() {
        if driver.add(lens, true, &[]).is_none() {
            break;
        }
        offered += 1;
    }
    // The second frame fills several buffers, which become visible together or not at all.
    let frames: Vec<_> =
        [(1, 60), (2, 700), (3, 90)].iter().map(|(seed, len)| pattern(*seed, *len)).collect();
    let sent_frames: Vec<_> = frames.iter().map(|bytes| frame(bytes)).collect();
    let snapshots = crash_everywhere(&vm, &file, || {
        for frame in &sent_frames {
            assert_eq!(ring.transmit(frame).unwrap(), TransmitResult::Accepted);
        }
        ring.flush().unwrap();
    });
    core::mem::forget(ring);
    setup.base = if features & RING_PACKED == 0 { 0x1234 } else { 0x8000 };
    for remains in &snapshots {
        let vm = remains.vm.copy();
        let mut driver = driver.in_copy(&vm);
        let used = driver.reap(features);
        let delivered = driver.read_frames(&used);
        assert!(delivered.is_empty() || delivered == frames, "a batch is visible as a whole");
        let (region, _file) = region_of(&remains.region, features);
        let mut ring = RxRing::with_tracking(vm.map(), &setup, records(&region), mask()).unwrap();
        let mut accepted = Vec::new();
        for seed in 20..60 {
            let bytes = pattern(seed, 60);
            if ring.transmit(&frame(&bytes)).unwrap() == TransmitResult::Full {
                break;
            }
            accepted.push(bytes);
        }
        ring.flush().unwrap();
        let remaining_used = driver.reap(features);
        assert_eq!(used.len() + remaining_used.len(), offered, "every buffer is filled once");
        assert_eq!(driver.read_frames(&remaining_used), accepted);
    }
    snapshots.len()
}

#[test]
fn a_split_transmit_ring_continues_after_a_kill_at_any_point() {
    for features in [VERSION_1 | EVENT_IDX, VERSION_1 | IN_ORDER] {
        let points = transmit_survives(features);
        assert!(points > 30, "only {points} crash points");
    }
}

#[test]
fn a_packed_transmit_ring_continues_after_a_kill_at_any_point() {
    for features in [VERSION_1 | EVENT_IDX, VERSION_1 | IN_ORDER] {
        let points = transmit_survives(features | RING_PACKED);
        assert!(points > 60, "only {points} crash points");
    }
}

#[test]
fn a_split_receive_ring_continues_after_a_kill_at_any_point() {
    for features in [EVENT_IDX, IN_ORDER] {
        let points = receive_survives(VERSION_1 | MERGEABLE | features);
        assert!(points > 20, "only {points} crash points");
    }
}

#[test]
fn a_packed_receive_ring_continues_after_a_kill_at_any_point() {
    for features in [EVENT_IDX, IN_ORDER] {
        let points = receive_survives(VERSION_1 | MERGEABLE | features | RING_PACKED);
        assert!(points > 60, "only {points} crash points");
    }
}

/// Every store is a crash point, even one that does not change memory.
#[test]
fn every_store_is_a_crash_point() {
    let vm = Vm::new(SIZE);
    let watched = [Watched { file: &vm.file, bytes: RING_BYTES }];
    let ring_byte = |offset: u64| GuestAddress(GUEST_BASE + offset);
    let mut observed = Vec::new();
    let stores = step_through(
        &watched,
        || {
            for (index, value) in [(0, 1_u8), (1, 2), (1, 2), (RING_BYTES as u64 - 1, 3)] {
                vm.memory.write_obj(value, ring_byte(index)).unwrap();
            }
            vm.memory.write_obj(4_u8, ring_byte(0x10_0000)).unwrap();
        },
        || {
            let byte = |index| -> u8 { vm.memory.read_obj(ring_byte(index)).unwrap() };
            observed.push([byte(0), byte(1), byte(RING_BYTES as u64 - 1)]);
        },
    );
    assert_eq!(observed, [[1, 0, 0], [1, 2, 0], [1, 2, 0], [1, 2, 3]]);
    assert_eq!(stores, 4);
    assert_eq!(vm.memory.read_obj::<u8>(ring_byte(0x10_0000)).unwrap(), 4);
}

#[test]
fn rings_are_inside_the_watched_bytes() {
    let vm = Vm::new(SIZE);
    let packed = PackedDriver::new(&vm, SIZE);
    let split = Driver::new(&vm, SIZE);
    let split_end = split.used_at.0 + 6 + 8 * u64::from(SIZE);
    let end = split_end.max(packed.device_event_at() + 4);
    assert!(end - GUEST_BASE <= RING_BYTES as u64);
}
