//! Tests of large frames between the memories of two VMs. Only the beginning is copied when a frame
//! is taken; the remainder, the tail, stays in the sender's memory until the batch is released.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::rig::any::AnyDriver;
use crate::rig::packed::{IN_ORDER, RING_PACKED};
use crate::rig::{Driver, GUEST_BASE, Piece, Used, Vm, call_line};
use rustix::fs::ftruncate;
use suimon_frame::{Frame, FrameBatch, GSO_HEADER_BYTES_MAX, Offloads, VnetHeader};
use suimon_ports::{FaultKind, FrameSink, FrameSource, TransmitResult};
use suimon_ring::{InflightLayout, InflightRegion, OffloadMask, RingTracking, RxRing, TxRing};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_net::{
    VIRTIO_NET_F_CSUM, VIRTIO_NET_F_GUEST_CSUM, VIRTIO_NET_F_GUEST_TSO4, VIRTIO_NET_F_HOST_TSO4,
    VIRTIO_NET_F_HOST_TSO6, VIRTIO_NET_F_MRG_RXBUF,
};
use vm_memory::{Bytes, GuestAddress};

const SIZE: u16 = 64;
const SENDS: u64 = 1 << VIRTIO_F_VERSION_1 | 1 << VIRTIO_NET_F_CSUM | 1 << VIRTIO_NET_F_HOST_TSO4;
const RECEIVES: u64 =
    1 << VIRTIO_F_VERSION_1 | 1 << VIRTIO_NET_F_GUEST_CSUM | 1 << VIRTIO_NET_F_GUEST_TSO4;
const MERGEABLE: u64 = 1 << VIRTIO_NET_F_MRG_RXBUF;
const HEADER: usize = 12;
/// Minimum number of bytes that are copied at once of a frame with a tail.
const FRONT_BYTES: usize = 576;

/// Returns a virtio-net header followed by a TCP/IPv4 frame of `len` bytes.
fn large_frame(seed: usize, len: usize) -> Vec<u8> {
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        gso_size: 1448,
        hdr_len: 54,
        csum_start: 34,
        csum_offset: 16,
        num_buffers: 1,
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend((0..len).map(|position| (position * 31 + seed * 7 + position / 251) as u8));
    let frame = &mut bytes[HEADER..];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[20..22].copy_from_slice(&[0, 0]);
    frame[23] = 6;
    frame[46..48].copy_from_slice(&[0x50, 0x10]);
    bytes
}

fn plain(seed: usize, len: usize) -> Vec<u8> {
    let mut bytes = large_frame(seed, len);
    bytes[..HEADER].fill(0);
    bytes
}

fn sender(driver: &AnyDriver<'_>, vm: &Vm, features: u64) -> TxRing {
    TxRing::new(vm.map(), &driver.setup(features, &call_line().0)).unwrap()
}

fn receiver(driver: &AnyDriver<'_>, vm: &Vm, features: u64) -> RxRing {
    let mask = Arc::new(OffloadMask::new(Offloads::TCP));
    RxRing::new(vm.map(), &driver.setup(features, &call_line().0), mask).unwrap()
}

/// Returns a sender's driver and ring, and the batch with the only frame `bytes`, sent in buffers
/// of the lengths `lens`.
fn taken_frames<'vm>(
    vm: &'vm Vm,
    form: u64,
    lens: &[usize],
    bytes: &[u8],
) -> (AnyDriver<'vm>, TxRing, FrameBatch) {
    let mut driver = AnyDriver::new(vm, SIZE, form);
    let mut ring = sender(&driver, vm, SENDS | form);
    let mut batch = FrameBatch::new();
    driver.add(&cut(bytes.len(), lens), false, bytes).unwrap();
    assert_eq!(ring.receive(&mut batch).unwrap(), 1);
    (driver, ring, batch)
}

/// Returns buffer lengths with the sum `total`: `lens` repeated cyclically, the last one shortened.
fn cut(total: usize, lens: &[usize]) -> Vec<u32> {
    let mut remaining = total;
    let mut cut = Vec::new();
    for len in lens.iter().cycle() {
        cut.push((*len).min(remaining) as u32);
        remaining -= (*len).min(remaining);
        if remaining == 0 {
            return cut;
        }
    }
    unreachable!("lengths were given")
}

/// Makes receive buffers available until the ring is full.
fn offer_all(driver: &mut AnyDriver<'_>, lens: &[u32]) {
    while driver.add(lens, true, &[]).is_some() {}
}

/// Forwards the available frames through the switch, and returns the chains that the sender gets
/// back. Asserts that none is returned before the release.
fn carry(
    tx: &mut TxRing,
    driver: &mut AnyDriver<'_>,
    rx: &mut RxRing,
    batch: &mut FrameBatch,
    features: u64,
) -> Vec<Used> {
    batch.clear();
    let count = tx.receive(batch).unwrap();
    assert_eq!(count, batch.len());
    assert!(batch.has_tails());
    assert_eq!(driver.reap(features), [], "the chains are still needed");
    for frame in batch.frames() {
        assert_eq!(rx.transmit(frame).unwrap(), TransmitResult::Accepted);
    }
    rx.flush().unwrap();
    assert_eq!(driver.reap(features), []);
    batch.clear();
    tx.release();
    driver.reap(features)
}

/// The longest permitted headers of a large frame are among the bytes that are copied at once, also
/// with a VLAN tag.
#[test]
fn the_longest_headers_are_copied_at_once() {
    const TAGS: [&[u8]; 2] = [&[], &[0x81, 0x00, 0x00, 0x07]];
    for tag in TAGS {
        let mut front = vec![2; 12];
        front.extend(tag);
        // IPv6 without a length, three destination options headers, TCP.
        front.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 60, 64]);
        front.extend([7; 32]);
        for (next, bytes) in [(60, 256), (60, 160), (6, 16)] {
            front.extend([next, (bytes / 8 - 1) as u8]);
            front.resize(front.len() + bytes - 2, 0);
        }
        let transport_at = front.len();
        front.extend([0; 12]);
        front.extend([0x60, 0x10]);
        front.resize(front.len() + 10, 0);
        // Two more bytes would exceed the maximum; headers have multiples of four bytes.
        assert_eq!(front.len(), GSO_HEADER_BYTES_MAX - 2 + tag.len());
        let header = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: VnetHeader::GSO_TCPV6,
            gso_size: 1200,
            hdr_len: 0,
            csum_start: transport_at as u16,
            csum_offset: 16,
            num_buffers: 1,
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend(&front);
        bytes.resize(HEADER + 40_000, 0x5a);
        let vm = Vm::new(SIZE);
        let features = 1 << VIRTIO_NET_F_HOST_TSO6;
        let mut driver = AnyDriver::new(&vm, SIZE, features);
        let mut ring = sender(&driver, &vm, SENDS | features);
        let mut batch = FrameBatch::new();
        driver.add(&cut(bytes.len(), &[bytes.len()]), false, &bytes).unwrap();
        assert_eq!((ring.receive(&mut batch).unwrap(), ring.malformed_frames()), (1, 0));
        let frame = &batch.frames()[0];
        assert!(frame.has_tail() && frame.meta.gso.is_some());
        assert_eq!(frame.meta.tag.is_some(), !tag.is_empty());
    }
}

/// All forms of rings, chain layouts and kinds of receive buffers, several times around the rings.
#[test]
fn large_frames_arrive_complete_and_their_chains_are_returned_at_the_release() {
    let forms = [0, RING_PACKED, IN_ORDER, RING_PACKED | IN_ORDER];
    // One buffer; header separate; virtio and frame headers separate; pages; more pieces than a
    // tail holds.
    let cuts: [&[usize]; 5] = [&[90_000], &[12, 90_000], &[12, 54, 32_768], &[4096], &[3000, 1]];
    let kinds = [(MERGEABLE, 2000, &[2000][..]), (0, 66_000, &[66_000]), (0, 66_000, &[700, 5000])];
    for form in forms {
        for (mergeable, space, room_cuts) in kinds {
            let (from_vm, to_vm) = (Vm::new(SIZE), Vm::new(SIZE));
            let mut source_driver = AnyDriver::new(&from_vm, SIZE, form);
            let mut target_driver = AnyDriver::new(&to_vm, SIZE, form);
            let mut tx = sender(&source_driver, &from_vm, SENDS | form);
            let mut rx = receiver(&target_driver, &to_vm, RECEIVES | mergeable | form);
            let mut batch = FrameBatch::new();
            for round in 0..40 {
                let sent = [large_frame(round, 30_000 + 900 * round), plain(round, 60)];
                let mut offered = Vec::new();
                for bytes in &sent {
                    let lens = cut(bytes.len(), cuts[round % cuts.len()]);
                    offered.extend(source_driver.add(&lens, false, bytes));
                }
                assert_eq!(offered.len(), 2);
                offer_all(&mut target_driver, &cut(space, room_cuts));
                let used = carry(&mut tx, &mut source_driver, &mut rx, &mut batch, form);
                assert_eq!(used.iter().map(|used| used.head).collect::<Vec<_>>(), offered);
                // Receive buffers are always returned individually.
                let used = target_driver.reap(form & !IN_ORDER);
                let frames = target_driver.read_frames(&used);
                assert_eq!(frames.len(), 2);
                for (frame, bytes) in frames.iter().zip(&sent) {
                    assert!(frame[..] == bytes[HEADER..], "round {round}, form {form:#x}");
                }
            }
            assert_eq!(tx.malformed_frames(), 0);
        }
    }
}

/// A consumer that needs the whole frame in one buffer gets the tail from the sender's memory.
#[test]
fn a_gathered_frame_is_the_one_that_was_sent() {
    let vm = Vm::new(SIZE);
    let bytes = large_frame(1, 65_000);
    let (_driver, _ring, mut batch) = taken_frames(&vm, 0, &[5000], &bytes);
    let frame = &mut batch.frames_mut()[0];
    let mut copy = Frame::new(0);
    copy.copy_from(frame);
    frame.linearize();
    assert!(frame.bytes() == &bytes[HEADER..]);
    assert!(copy.bytes() == frame.bytes());
}

#[test]
fn chains_of_frames_without_tails_are_returned_at_once() {
    for form in [0, RING_PACKED] {
        let vm = Vm::new(SIZE);
        let mut driver = AnyDriver::new(&vm, SIZE, form);
        let mut ring = sender(&driver, &vm, SENDS | form);
        let mut batch = FrameBatch::new();
        // A large frame that is short, a long frame without segmentation, and a rejected one that
        // uses an offload that was not offered.
        let mut refused = large_frame(3, 40_000);
        refused[1] = VnetHeader::GSO_TCPV6;
        for bytes in [large_frame(1, 8000), plain(2, 65_000), refused] {
            for lens in [&[90_000][..], &[12, 3000]] {
                batch.clear();
                driver.add(&cut(bytes.len(), lens), false, &bytes).unwrap();
                ring.receive(&mut batch).unwrap();
                assert_eq!(driver.reap(form).len(), 1);
                assert!(!batch.has_tails());
                assert!(batch.frames().iter().all(|frame| frame.bytes() == &bytes[HEADER..]));
            }
        }
        assert_eq!(ring.malformed_frames(), 2);
    }
}

/// A sender that modifies a frame after it was taken changes only its payload; headers and metadata
/// are those that were validated.
#[test]
fn a_guest_that_modifies_a_sent_frame_changes_only_its_payload() {
    for form in [0, RING_PACKED] {
        let (from_vm, to_vm) = (Vm::new(SIZE), Vm::new(SIZE));
        let mut source_driver = AnyDriver::new(&from_vm, SIZE, form);
        let mut target_driver = AnyDriver::new(&to_vm, SIZE, form);
        let mut tx = sender(&source_driver, &from_vm, SENDS | form);
        let mut rx = receiver(&target_driver, &to_vm, RECEIVES | form);
        let mut batch = FrameBatch::new();
        let bytes = large_frame(1, 40_000);
        let head = source_driver.add(&[bytes.len() as u32], false, &bytes).unwrap();
        offer_all(&mut target_driver, &[66_000]);
        tx.receive(&mut batch).unwrap();
        let Piece { addr, len } = source_driver.pieces(head)[0];
        from_vm.memory.write_slice(&vec![0xff; len as usize], GuestAddress(addr)).unwrap();
        let frame = &batch.frames()[0];
        assert_eq!(frame.len(), 40_000);
        assert_eq!(rx.transmit(frame).unwrap(), TransmitResult::Accepted);
        rx.flush().unwrap();
        let used = target_driver.reap(form);
        let received = target_driver.contents(used[0].head, used[0].len as usize);
        assert_eq!(received.len(), bytes.len());
        assert!(received[..HEADER + FRONT_BYTES] == bytes[..HEADER + FRONT_BYTES]);
        assert!(received[HEADER + FRONT_BYTES..].iter().all(|byte| *byte == 0xff));
    }
}

#[test]
fn a_frame_that_did_not_fit_is_complete_when_it_fits() {
    for (form, mergeable) in [(0, MERGEABLE), (RING_PACKED, MERGEABLE), (0, 0), (RING_PACKED, 0)] {
        let (from_vm, to_vm) = (Vm::new(SIZE), Vm::new(SIZE));
        let mut source_driver = AnyDriver::new(&from_vm, SIZE, form);
        let mut target_driver = AnyDriver::new(&to_vm, SIZE, form);
        let mut tx = sender(&source_driver, &from_vm, SENDS | form);
        let mut rx = receiver(&target_driver, &to_vm, RECEIVES | mergeable | form);
        let mut batch = FrameBatch::new();
        let bytes = large_frame(1, 60_000);
        source_driver.add(&cut(bytes.len(), &[4096]), false, &bytes).unwrap();
        // Buffers for a large part of the frame.
        for _ in 0..3 {
            target_driver.add(&[17_000], true, &[]).unwrap();
        }
        tx.receive(&mut batch).unwrap();
        for _ in 0..2 {
            assert_eq!(rx.transmit(&batch.frames()[0]).unwrap(), TransmitResult::Full);
            rx.flush().unwrap();
            assert_eq!(target_driver.reap(form), [], "the ring has changed");
        }
        if mergeable == 0 {
            // Only a chain that holds the whole frame suffices, so this ring cannot receive it.
            continue;
        }
        target_driver.add(&[17_000], true, &[]).unwrap();
        assert_eq!(rx.transmit(&batch.frames()[0]).unwrap(), TransmitResult::Accepted);
        rx.flush().unwrap();
        let used = target_driver.reap(form);
        assert_eq!(used.len(), 4);
        assert!(target_driver.read_frames(&used)[0] == bytes[HEADER..]);
    }
}

/// A frame is delivered even after its ring was dropped and its chains were returned.
#[test]
fn a_tail_outlives_its_ring() {
    for form in [0, RING_PACKED] {
        let vm = Vm::new(SIZE);
        let bytes = large_frame(1, 50_000);
        let (mut driver, ring, mut batch) = taken_frames(&vm, form, &[bytes.len()], &bytes);
        let state = ring.state();
        let before = state.next_avail();
        drop(ring);
        assert_eq!(driver.reap(form).len(), 1);
        assert_ne!(state.next_avail(), before);
        let frame = &mut batch.frames_mut()[0];
        assert!(frame.has_tail());
        frame.linearize();
        assert!(frame.bytes() == &bytes[HEADER..]);
    }
}

/// A batch that was not released is released by the next call, as a separate batch.
#[test]
fn the_next_batch_releases_the_one_before() {
    for form in [0, RING_PACKED, IN_ORDER, RING_PACKED | IN_ORDER] {
        let vm = Vm::new(SIZE);
        let mut driver = AnyDriver::new(&vm, SIZE, form);
        let mut ring = sender(&driver, &vm, SENDS | form);
        let mut batch = FrameBatch::new();
        let bytes = large_frame(1, 9000);
        for round in 0..50 {
            batch.clear();
            driver.add(&[bytes.len() as u32], false, &bytes).unwrap();
            assert_eq!(ring.receive(&mut batch).unwrap(), 1);
            assert_eq!(driver.reap(form).len(), usize::from(round > 0));
        }
        batch.clear();
        assert_eq!(ring.receive(&mut batch).unwrap(), 0);
        assert_eq!(driver.reap(form).len(), 1);
    }
}

/// A process that dies before the release leaves the chain in flight; one that dies after it does
/// not.
#[test]
fn chains_are_in_flight_until_they_are_released() {
    for form in [0, RING_PACKED, IN_ORDER, RING_PACKED | IN_ORDER] {
        let vm = Vm::new(SIZE);
        let mut driver = AnyDriver::new(&vm, SIZE, form);
        let layout =
            InflightLayout { queues: 1, queue_size: SIZE, is_packed: form & RING_PACKED != 0 };
        let (_, fd) = InflightRegion::create(layout).unwrap();
        let file = File::from(fd);
        let setup = driver.setup(SENDS | form, &call_line().0);
        let open = || {
            let region = InflightRegion::map(file.as_fd(), 0, layout.bytes(), layout).unwrap();
            let records = RingTracking { log: None, inflight: region.queue(0) };
            TxRing::with_tracking(vm.map(), &setup, records).unwrap()
        };
        let bytes = large_frame(1, 40_000);
        for _ in 0..2 {
            driver.add(&cut(bytes.len(), &[9000]), false, &bytes).unwrap();
        }
        for is_released in [false, true] {
            let (mut ring, mut batch) = (open(), FrameBatch::new());
            assert_eq!(ring.receive(&mut batch).unwrap(), 2);
            assert!(batch.has_tails());
            if is_released {
                batch.clear();
                ring.release();
            }
            // The process died.
            core::mem::forget(ring);
            assert_eq!(driver.reap(form).len(), if is_released { 2 } else { 0 });
        }
        assert_eq!(open().receive(&mut FrameBatch::new()).unwrap(), 0);
    }
}

#[test]
fn a_tail_that_leaves_memory_ends_its_ring() {
    let vm = Vm::with_regions(vec![0x100_0000]);
    let mut driver = Driver::new(&vm, 16);
    let (call, _far) = call_line();
    let mut ring = TxRing::new(vm.map(), &driver.setup(SENDS, None, &call)).unwrap();
    let bytes = large_frame(1, 40_000);
    let start = GUEST_BASE + 0x100_0000 - 10_000;
    vm.memory.write_slice(&bytes[..10_000], GuestAddress(start)).unwrap();
    driver.store(3, start, 40_012, 0, 0);
    driver.offer(3);
    let mut batch = FrameBatch::new();
    let fault = ring.receive(&mut batch).unwrap_err();
    assert_eq!(fault.kind, FaultKind::ProtocolViolation);
    assert!(fault.detail.contains("40012"), "{fault}");
    assert!(batch.is_empty());
}

/// The sender's memory is truncated while its frame is in flight: the receiver gets a frame of
/// zeros and continues.
#[test]
fn memory_truncated_under_a_tail_affects_its_owner_only() {
    let (from_vm, to_vm) = (Vm::new(SIZE), Vm::new(SIZE));
    let bytes = large_frame(1, 40_000);
    let (_from, mut tx, mut batch) = taken_frames(&from_vm, 0, &[bytes.len()], &bytes);
    let mut target_driver = AnyDriver::new(&to_vm, SIZE, 0);
    let mut rx = receiver(&target_driver, &to_vm, RECEIVES);
    offer_all(&mut target_driver, &[66_000]);
    ftruncate(&from_vm.file, 0).unwrap();
    for _ in 0..2 {
        assert_eq!(rx.transmit(&batch.frames()[0]).unwrap(), TransmitResult::Accepted);
        rx.flush().unwrap();
    }
    let used = target_driver.reap(0);
    assert_eq!(used.len(), 2);
    let received = target_driver.contents(used[0].head, used[0].len as usize);
    assert!(received[..FRONT_BYTES] == bytes[..FRONT_BYTES]);
    assert!(received[HEADER + FRONT_BYTES..].iter().all(|byte| *byte == 0));
    batch.clear();
    tx.release();
    let fault = loop {
        match tx.receive(&mut batch) {
            Ok(_) => batch.clear(),
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault.kind, FaultKind::ProtocolViolation);
}
