//! Model tests of split network rings against an independent driver and, for interrupts and order,
//! against virtio-queue's device side on a second, identical VM.

use std::sync::Arc;

use crate::chains::{ChainSpec, chain, frame_bytes, pattern};
use crate::rig::{Driver, Vm, call_line, count, event};
use proptest::prelude::*;
use suimon_frame::{Checksum, Frame, FrameBatch, Gso, GsoKind, Offloads, VlanId, VlanTag};
use suimon_ports::{ArmResult, FrameSink, FrameSource, TransmitResult};
use suimon_ring::{OffloadMask, RxRing, TxRing, used_position};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_net::{VIRTIO_NET_F_GUEST_CSUM, VIRTIO_NET_F_MRG_RXBUF};
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};
use virtio_queue::{Queue, QueueT};
use vm_memory::Bytes;

const BASE: u64 = 1 << VIRTIO_RING_F_INDIRECT_DESC;
const EVENT_IDX: u64 = 1 << VIRTIO_RING_F_EVENT_IDX;
const VERSION_1: u64 = 1 << VIRTIO_F_VERSION_1;
const MERGEABLE: u64 = 1 << VIRTIO_NET_F_MRG_RXBUF;

fn header_bytes(features: u64) -> usize {
    if features & (VERSION_1 | MERGEABLE) == 0 { 10 } else { 12 }
}

fn features() -> impl Strategy<Value = u64> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(event_idx, v1, mergeable)| {
        BASE | if event_idx { EVENT_IDX } else { 0 }
            | if v1 { VERSION_1 } else { 0 }
            | if mergeable { MERGEABLE } else { 0 }
    })
}

#[derive(Clone, Debug)]
struct Round {
    chains: Vec<ChainSpec>,
    /// Distance from the driver's used index to `used_event`.
    event_ahead: u16,
    no_interrupt: bool,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let round = (prop::collection::vec(chain(), 0..40), 0..6_u16, any::<bool>()).prop_map(
        |(chains, event_ahead, no_interrupt)| Round { chains, event_ahead, no_interrupt },
    );
    prop::collection::vec(round, 1..6)
}

/// Executes the same round on the reference device. Returns true if it interrupts.
fn reference_round(
    queue: &mut Queue,
    driver: &Driver<'_>,
    event_idx: bool,
    flags: u16,
) -> (Vec<Vec<u8>>, bool) {
    let memory = &driver.vm.memory;
    let mut frames = Vec::new();
    let mut returned = false;
    while let Some(chain) = queue.pop_descriptor_chain(memory) {
        let head = chain.head_index();
        let mut bytes = Vec::new();
        for descriptor in chain {
            let mut part = vec![0; descriptor.len() as usize];
            memory.read_slice(&mut part, descriptor.addr()).unwrap();
            bytes.extend(part);
        }
        queue.add_used(memory, head, 0).unwrap();
        returned = true;
        frames.push(bytes);
    }
    let is_required =
        if event_idx { queue.needs_notification(memory).unwrap() } else { flags & 1 == 0 };
    (frames, returned && is_required)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn transmit_rings_agree_with_the_reference(
        size_log in 2..7_u32,
        base in prop_oneof![Just(0_u16), Just(0xfff0), any::<u16>()],
        features in features(),
        rounds in rounds(),
    ) {
        let size = 1 << size_log;
        let (local_vm, reference_vm) = (Vm::new(size), Vm::new(size));
        let mut driver = Driver::starting_at(&local_vm, size, base);
        let mut twin = Driver::starting_at(&reference_vm, size, base);
        let (call, interrupts) = call_line();
        let kick = Arc::new(event());
        let mut ring = TxRing::new(local_vm.map(), &driver.setup(features, Some(&kick), &call)).unwrap();
        let mut reference = twin.reference(features & EVENT_IDX != 0);
        let header = header_bytes(features);
        let mut batch = FrameBatch::new();
        let mut seed = 0;
        let mut is_first = true;
        for round in rounds {
            let mut sent = Vec::new();
            for spec in round.chains {
                let mut bytes = vec![0; header];
                bytes.extend(pattern(seed, spec.frame_bytes));
                seed += 1;
                let lens = spec.lens(bytes.len());
                let added = driver.add(&lens, spec.indirect, false, &bytes);
                prop_assert_eq!(added, twin.add(&lens, spec.indirect, false, &bytes));
                if added.is_some() { sent.push((added, bytes)); }
            }
            for side in [&driver, &twin] {
                side.set_used_event(side.used.wrapping_add(round.event_ahead));
                if features & EVENT_IDX == 0 { side.set_avail_flags(u16::from(round.no_interrupt)); }
            }
            let (frames, interrupt) = reference_round(&mut reference, &twin, features & EVENT_IDX != 0, u16::from(round.no_interrupt));
            let mut received = Vec::new();
            let mut calls = 0;
            loop {
                batch.clear();
                let many = ring.receive(&mut batch).unwrap();
                prop_assert_eq!(many, batch.len());
                calls += count(&interrupts);
                if many == 0 { break; }
                received.extend(batch.frames().iter().map(|f| f.bytes().to_vec()));
            }
            prop_assert_eq!(received.len(), frames.len());
            for ((actual, expected), (_, written)) in received.iter().zip(&frames).zip(&sent) {
                prop_assert_eq!(&expected[..], &written[..]);
                prop_assert_eq!(&actual[..], &expected[header..]);
            }
            prop_assert_eq!(driver.reap(), twin.reap());
            // The first interrupt after a start is unconditional. Several batches may interrupt
            // more than once where one interrupt would suffice.
            if !is_first || frames.is_empty() {
                prop_assert_eq!(calls > 0, interrupt);
            }
            is_first &= frames.is_empty();
            prop_assert_eq!(ring.state().next_avail(), driver.avail);
        }
        prop_assert_eq!(ring.malformed_frames(), 0);
    }

    #[test]
    fn receive_rings_deliver_complete_frames_or_nothing(
        size_log in 2..7_u32,
        base in prop_oneof![Just(0_u16), Just(0xfff0), any::<u16>()],
        features in features(),
        buffers in prop::collection::vec((chain(), 1..4000_usize), 1..100),
        frames in prop::collection::vec((frame_bytes(), any::<bool>(), any::<bool>()), 1..60),
    ) {
        let size = 1 << size_log;
        let vm = Vm::new(size);
        let mut driver = Driver::starting_at(&vm, size, base);
        let (call, _interrupts) = call_line();
        let mask = Arc::new(OffloadMask::new(Offloads::TCP));
        let mut ring = RxRing::new(vm.map(), &driver.setup(features, None, &call), mask).unwrap();
        let header = header_bytes(features);
        let mut expected: std::collections::VecDeque<Vec<u8>> = Default::default();
        let mut delivered = 0;
        let mut accepted = 0;
        let mut supply = buffers.iter().cycle();
        for (seed, (len, tagged, flush)) in frames.into_iter().enumerate() {
            while driver.free_slots() > 0 {
                let (spec, capacity) = supply.next().unwrap();
                let capacity = if spec.frame_bytes > 2000 { spec.frame_bytes + 16 } else { *capacity + header };
                let lens = spec.lens(capacity);
                if driver.add(&lens, spec.indirect, true, &[]).is_none() { break; }
            }
            let bytes = pattern(seed, len);
            let mut frame = Frame::new(seed);
            frame.set_bytes(&bytes);
            let mut wire = bytes.clone();
            if tagged && len + 4 <= 65_600 {
                frame.meta.tag = Some(VlanTag::for_vlan(VlanId::new(77).unwrap()));
                wire.splice(12..12, [0x81, 0, 0, 77]);
            }
            if ring.transmit(&frame).unwrap() == TransmitResult::Accepted {
                expected.push_back(wire);
                accepted += 1;
            }
            if flush {
                ring.flush().unwrap();
                delivered += check_delivery(&mut driver, header, features, &mut expected)?;
            }
        }
        drop(ring);
        delivered += check_delivery(&mut driver, header, features, &mut expected)?;
        prop_assert_eq!(delivered, accepted);
        prop_assert!(expected.is_empty());
    }
}

/// Reads frames back as a driver does, by `num_buffers`, and compares them with `expected`.
fn check_delivery(
    driver: &mut Driver<'_>,
    header: usize,
    features: u64,
    expected: &mut std::collections::VecDeque<Vec<u8>>,
) -> Result<usize, TestCaseError> {
    let used = driver.reap();
    let mut entries = used.iter();
    let mut frames = 0;
    while let Some(first) = entries.next() {
        let mut bytes = driver.contents(first.head, first.len as usize);
        prop_assert_eq!(bytes.len(), first.len as usize);
        let mut buffer_count = 1;
        if header == 12 {
            // A driver needs the whole header to obtain the number of buffers. If the first buffer
            // is shorter, it continues in the next one.
            let mut content = bytes.clone();
            let mut lookahead = entries.clone();
            while content.len() < 12 {
                let next = lookahead.next().expect("the header is incomplete");
                content.extend(driver.contents(next.head, next.len as usize));
            }
            buffer_count = usize::from(u16::from_le_bytes([content[10], content[11]]));
        }
        prop_assert!(buffer_count >= 1);
        prop_assert!(buffer_count == 1 || features & MERGEABLE != 0);
        for _ in 1..buffer_count {
            let next = entries.next().expect("num_buffers exceeds the number of used buffers");
            bytes.extend(driver.contents(next.head, next.len as usize));
        }
        let wire = expected.pop_front().expect("a received frame was not sent");
        prop_assert_eq!(&bytes[header..], &wire[..]);
        frames += 1;
    }
    Ok(frames)
}

#[test]
fn offloads_travel_in_the_header() {
    let vm = Vm::new(8);
    let mut driver = Driver::new(&vm, 8);
    let (call, _far) = call_line();
    let features = VERSION_1 | MERGEABLE | 1 << VIRTIO_NET_F_GUEST_CSUM | 1 << 7;
    let mask = Arc::new(OffloadMask::new(Offloads::TCP));
    let mut ring =
        RxRing::new(vm.map(), &driver.setup(features, None, &call), mask.clone()).unwrap();
    assert!(ring.offloads().checksum && ring.offloads().tcp4_segmentation);
    assert!(!ring.offloads().tcp6_segmentation);
    let head = driver.add(&[2000], false, true, &[]).unwrap();
    let mut frame = Frame::new(0);
    frame.set_bytes(&pattern(1, 1000));
    frame.meta.checksum = Checksum::Partial { start: 34, offset: 16 };
    frame.meta.gso = Some(Gso { kind: GsoKind::Tcp4, segment_bytes: 500, ecn: false });
    assert_eq!(ring.transmit(&frame).unwrap(), TransmitResult::Accepted);
    ring.flush().unwrap();
    let bytes = driver.contents(head, 12);
    assert_eq!((bytes[0], bytes[1]), (1, 1));
    assert_eq!(bytes[4..10], [0xf4, 1, 34, 0, 16, 0]);
    assert_eq!(bytes[10..12], [1, 0]);

    // DATA_VALID is passed to guests that negotiated it, while the mask permits it.
    for (offloads, flags) in [(Offloads::TCP, 2), (Offloads::NONE, 0)] {
        mask.set(offloads);
        let head = driver.add(&[2000], false, true, &[]).unwrap();
        frame.set_bytes(&pattern(2, 100));
        frame.meta.checksum = Checksum::Verified;
        assert_eq!(ring.transmit(&frame).unwrap(), TransmitResult::Accepted);
        ring.flush().unwrap();
        assert_eq!(driver.contents(head, 12)[0], flags);
    }
    assert_eq!(ring.offloads(), Offloads::NONE);
}

#[test]
fn a_polled_ring_suppresses_kicks_and_an_armed_one_requests_them() {
    for features in [VERSION_1, VERSION_1 | EVENT_IDX] {
        let vm = Vm::new(16);
        let mut driver = Driver::new(&vm, 16);
        let (call, _far) = call_line();
        let kick = Arc::new(event());
        let setup = driver.setup(features, Some(&kick), &call);
        let mut ring = TxRing::new(vm.map(), &setup).unwrap();
        let mut batch = FrameBatch::new();
        let wants_kick = |driver: &Driver<'_>, old: u16| {
            if features & EVENT_IDX == 0 {
                driver.used_flags() & 1 == 0
            } else {
                let new = driver.avail;
                new.wrapping_sub(driver.avail_event()).wrapping_sub(1) < new.wrapping_sub(old)
            }
        };
        let frame = [vec![0; 12], pattern(0, 60)].concat();
        // Over more than the whole index space while the ring is polled: no kick is due.
        for _ in 0..70_000 / 8 {
            let old = driver.avail;
            for _ in 0..8 {
                driver.add(&[72], false, false, &frame).unwrap();
            }
            assert!(!wants_kick(&driver, old));
            batch.clear();
            assert_eq!(ring.receive(&mut batch).unwrap(), 8);
            driver.reap();
        }
        assert_eq!(ring.arm(), ArmResult::Armed);
        let old = driver.avail;
        driver.add(&[72], false, false, &frame).unwrap();
        assert!(wants_kick(&driver, old));
        assert_eq!(ring.arm(), ArmResult::Pending);
        rustix::io::write(&*kick, &1_u64.to_ne_bytes()).unwrap();
        ring.disarm();
        assert_eq!(count(&kick), 0, "disarm empties the descriptor");
        let old = driver.avail;
        driver.add(&[72], false, false, &frame).unwrap();
        assert!(!wants_kick(&driver, old));
        batch.clear();
        assert_eq!(ring.receive(&mut batch).unwrap(), 2);
    }
}

#[test]
fn the_used_position_is_read_from_the_ring() {
    let vm = Vm::new(16);
    let mut driver = Driver::starting_at(&vm, 16, 0xffff);
    let (call, _far) = call_line();
    let setup = driver.setup(VERSION_1, None, &call);
    assert_eq!(used_position(&vm.map(), &setup).unwrap(), 0xffff);
    let mut ring = TxRing::new(vm.map(), &setup).unwrap();
    for _ in 0..3 {
        driver.add(&[72], false, false, &[]).unwrap();
    }
    assert_eq!(used_position(&vm.map(), &setup).unwrap(), 0xffff, "made available is not used");
    assert_eq!(ring.receive(&mut FrameBatch::new()).unwrap(), 3);
    assert_eq!(used_position(&vm.map(), &setup).unwrap(), 2);
    let mut outside = setup.clone();
    outside.addresses.used = 0;
    let fault = used_position(&vm.map(), &outside).unwrap_err().to_string();
    assert!(fault.contains("used ring"), "{fault}");
}
