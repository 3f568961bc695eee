//! Model tests of packed network rings against an independent driver, written from the
//! specification.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::chains::{ChainSpec, chain, frame_bytes, pattern};
use crate::rig::packed::{IN_ORDER, PackedDriver, passes};
use crate::rig::{Vm, call_line, count, event};
use proptest::prelude::*;
use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_ports::{ArmResult, FrameSink, FrameSource, TransmitResult};
use suimon_ring::{OffloadMask, RxRing, TxRing};

const INDIRECT_DESC: u64 = 1 << 28;
const EVENT_IDX: u64 = 1 << 29;
const MERGEABLE: u64 = 1 << 15;
const BASE: u64 = 1 << 32 | INDIRECT_DESC;
const HEADER: usize = 12;

/// Generates any ring size, not only powers of two, and any position in the ring.
fn any_position() -> impl Strategy<Value = (u16, u16)> {
    (1..70_u16, any::<u16>(), any::<bool>())
        .prop_map(|(size, position, wrap)| (size, position % size | u16::from(wrap) << 15))
}

fn features() -> impl Strategy<Value = u64> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(event_idx, in_order, mergeable)| {
        BASE | if event_idx { EVENT_IDX } else { 0 }
            | if in_order { IN_ORDER } else { 0 }
            | if mergeable { MERGEABLE } else { 0 }
    })
}

#[derive(Clone, Debug)]
struct Round {
    chains: Vec<ChainSpec>,
    /// Distance from the driver's used position to the position at which it requests an interrupt.
    event_ahead: u16,
    event_flags: u16,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let round = (prop::collection::vec(chain(), 0..40), 0..70_u16, 0..3_u16)
        .prop_map(|(chains, event_ahead, event_flags)| Round { chains, event_ahead, event_flags });
    prop::collection::vec(round, 1..8)
}

/// Returns the position at `distance` descriptors from `start`.
fn advanced(size: u16, start: u16, distance: u16) -> u16 {
    let position = (start & 0x7fff) + distance % size;
    if position < size {
        position | start & 0x8000
    } else {
        (position - size) | (start & 0x8000 ^ 0x8000)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn transmit_rings_take_every_frame_and_return_every_chain(
        (size, base) in any_position(),
        features in features(),
        rounds in rounds(),
    ) {
        let vm = Vm::new(size);
        let mut driver = PackedDriver::starting_at(&vm, size, base);
        driver.in_order = features & IN_ORDER != 0;
        let (call, interrupts) = call_line();
        let kick = Arc::new(event());
        let mut ring = TxRing::new(vm.map(), &driver.setup(features, Some(&kick), &call)).unwrap();
        let mut batch = FrameBatch::new();
        let mut seed = 0;
        let mut is_first = true;
        for round in rounds {
            let mut sent = Vec::new();
            for spec in round.chains {
                let mut bytes = vec![0; HEADER];
                bytes.extend(pattern(seed, spec.frame_bytes));
                seed += 1;
                if driver.add(&spec.lens(bytes.len()), spec.indirect, false, &bytes).is_some() {
                    sent.push(bytes[HEADER..].to_vec());
                }
            }
            let before = driver.used_position();
            let wanted_at = advanced(size, before, round.event_ahead);
            let flags = if features & EVENT_IDX == 0 { round.event_flags % 2 } else { round.event_flags };
            driver.set_driver_event(wanted_at, flags);
            let mut received = Vec::new();
            let mut calls = 0;
            loop {
                batch.clear();
                let many = ring.receive(&mut batch).unwrap();
                prop_assert_eq!(many, batch.len());
                calls += count(&interrupts);
                if many == 0 { break; }
                received.extend(batch.frames().iter().map(|frame| frame.bytes().to_vec()));
            }
            prop_assert_eq!(&received, &sent);
            prop_assert_eq!(driver.reap().len(), sent.len());
            prop_assert_eq!(driver.free_descriptors, size);
            // The first interrupt after a start is unconditional.
            if !is_first || sent.is_empty() {
                let is_wanted = match flags {
                    0 => !sent.is_empty(),
                    1 => false,
                    // A whole lap in one round touches every position.
                    _ => passes(size, before, driver.used_position(), wanted_at),
                };
                prop_assert_eq!(calls > 0, is_wanted);
            }
            is_first &= sent.is_empty();
            prop_assert_eq!(ring.state().next_avail(), driver.base());
        }
        prop_assert_eq!(ring.malformed_frames(), 0);
        let (any_position, number) = (u32::from(driver.base()), ring.state().vring_base());
        prop_assert_eq!(number, any_position | any_position << 16);
    }

    #[test]
    fn receive_rings_deliver_complete_frames_or_nothing(
        (size, base) in any_position(),
        features in features(),
        buffers in prop::collection::vec((chain(), 1..4000_usize), 1..100),
        frames in prop::collection::vec((frame_bytes(), any::<bool>()), 1..60),
    ) {
        let vm = Vm::new(size);
        let mut driver = PackedDriver::starting_at(&vm, size, base);
        driver.in_order = features & IN_ORDER != 0;
        let (call, _interrupts) = call_line();
        let mask = Arc::new(OffloadMask::new(Offloads::TCP));
        let mut ring = RxRing::new(vm.map(), &driver.setup(features, None, &call), mask).unwrap();
        let mut expected: VecDeque<Vec<u8>> = VecDeque::new();
        let (mut delivered, mut accepted) = (0, 0);
        let mut supply = buffers.iter().cycle();
        for (seed, (len, flush)) in frames.into_iter().enumerate() {
            loop {
                let (spec, capacity) = supply.next().unwrap();
                let capacity = if spec.frame_bytes > 2000 { spec.frame_bytes + 16 } else { *capacity + HEADER };
                if driver.add(&spec.lens(capacity), spec.indirect, true, &[]).is_none() { break; }
            }
            let bytes = pattern(seed, len);
            let mut frame = Frame::new(seed);
            frame.set_bytes(&bytes);
            if ring.transmit(&frame).unwrap() == TransmitResult::Accepted {
                expected.push_back(bytes);
                accepted += 1;
            }
            if flush {
                ring.flush().unwrap();
                delivered += check_delivery(&mut driver, features, &mut expected)?;
            }
        }
        let state = ring.state();
        drop(ring);
        delivered += check_delivery(&mut driver, features, &mut expected)?;
        prop_assert_eq!(delivered, accepted);
        prop_assert!(expected.is_empty());
        prop_assert_eq!(state.next_avail(), driver.used_position());
    }

    /// A ring that is dropped and created again from its position continues there.
    #[test]
    fn a_ring_continues_from_its_position(
        (size, base) in any_position(),
        steps in prop::collection::vec(0..20_usize, 1..30),
    ) {
        let vm = Vm::new(size);
        let memory = vm.map();
        let mut driver = PackedDriver::starting_at(&vm, size, base);
        let (call, _far) = call_line();
        let mut setup = driver.setup(BASE | EVENT_IDX, None, &call);
        let mut batch = FrameBatch::new();
        let mut seed = 0;
        for step in steps {
            let mut ring = TxRing::new(memory.clone(), &setup).unwrap();
            let mut sent = Vec::new();
            for _ in 0..step {
                let bytes = [vec![0; HEADER], pattern(seed, 60)].concat();
                seed += 1;
                if driver.add(&[12, 60], false, false, &bytes).is_some() { sent.push(pattern(seed - 1, 60)); }
            }
            batch.clear();
            ring.receive(&mut batch).unwrap();
            let received: Vec<_> = batch.frames().iter().map(|frame| frame.bytes().to_vec()).collect();
            prop_assert_eq!(received, sent);
            let state = ring.state();
            drop(ring);
            prop_assert_eq!(setup.features.base_from_vring(state.vring_base()), driver.base());
            setup.base = setup.features.base_from_vring(state.vring_base());
            driver.reap();
        }
    }
}

/// Reads frames back as a driver does, by `num_buffers`, and compares them with `expected`.
fn check_delivery(
    driver: &mut PackedDriver<'_>,
    features: u64,
    expected: &mut VecDeque<Vec<u8>>,
) -> Result<usize, TestCaseError> {
    let used = driver.reap();
    let mut frames = 0;
    let mut entries = used.iter();
    while let Some(first) = entries.next() {
        let mut bytes = driver.contents(first.head, first.len as usize);
        let mut buffers = 1;
        while bytes.len() < HEADER {
            let next = entries.next().expect("the header is incomplete");
            bytes.extend(driver.contents(next.head, next.len as usize));
            buffers += 1;
        }
        let buffer_count = u16::from_le_bytes([bytes[10], bytes[11]]);
        prop_assert!(buffer_count >= buffers);
        prop_assert!(buffer_count == 1 || features & MERGEABLE != 0);
        for _ in buffers..buffer_count {
            let next = entries.next().expect("num_buffers exceeds the number of used buffers");
            bytes.extend(driver.contents(next.head, next.len as usize));
        }
        let wire = expected.pop_front().expect("a received frame was not sent");
        prop_assert_eq!(&bytes[HEADER..], &wire[..]);
        frames += 1;
    }
    Ok(frames)
}

#[test]
fn a_polled_ring_suppresses_kicks_and_an_armed_one_requests_them() {
    for features in [BASE, BASE | EVENT_IDX] {
        let vm = Vm::new(13);
        let mut driver = PackedDriver::new(&vm, 13);
        let (call, _far) = call_line();
        let kick = Arc::new(event());
        let setup = driver.setup(features, Some(&kick), &call);
        let mut ring = TxRing::new(vm.map(), &setup).unwrap();
        let mut batch = FrameBatch::new();
        let frame = [vec![0; HEADER], pattern(0, 60)].concat();
        for _ in 0..40 {
            for _ in 0..3 {
                let old = driver.base();
                for _ in 0..5 {
                    driver.add(&[72], false, false, &frame).unwrap();
                }
                assert!(!driver.wants_kick(old), "polled");
                batch.clear();
                assert_eq!(ring.receive(&mut batch).unwrap(), 5);
                driver.reap();
            }
            assert_eq!(ring.arm(), ArmResult::Armed);
            let old = driver.base();
            driver.add(&[72], false, false, &frame).unwrap();
            assert!(driver.wants_kick(old), "armed");
            assert_eq!(ring.arm(), ArmResult::Pending);
            let old = driver.base();
            driver.add(&[72], false, false, &frame).unwrap();
            assert!(!driver.wants_kick(old), "the kick request was withdrawn");
            ring.disarm();
            batch.clear();
            assert_eq!(ring.receive(&mut batch).unwrap(), 2);
            driver.reap();
        }
    }
}

#[test]
fn with_in_order_one_element_returns_a_batch() {
    let vm = Vm::new(64);
    let mut driver = PackedDriver::new(&vm, 64);
    driver.in_order = true;
    let (call, _far) = call_line();
    let setup = driver.setup(BASE | IN_ORDER, None, &call);
    let mut ring = TxRing::new(vm.map(), &setup).unwrap();
    let frame = [vec![0; HEADER], pattern(0, 60)].concat();
    let ids: Vec<_> =
        (0..10).map(|_| driver.add(&[12, 60], false, false, &frame).unwrap()).collect();
    let mut batch = FrameBatch::new();
    assert_eq!(ring.receive(&mut batch).unwrap(), 10);
    let tail = |index| {
        let address = vm_memory::GuestAddress(driver.descriptor_at(index).0 + 8);
        u64::from_le(vm_memory::Bytes::read_obj::<u64>(&vm.memory, address).unwrap())
    };
    assert_eq!(tail(0) >> 32 & 0xffff, u64::from(ids[9]));
    assert_eq!(tail(0) >> 48, 0x8080, "used, nothing written");
    assert!(
        (1..20).all(|index| tail(index) >> 48 & 0x8080 == 0x80),
        "the other elements are written"
    );
    assert_eq!(driver.reap().len(), 10);
}
