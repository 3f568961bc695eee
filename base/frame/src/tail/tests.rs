use std::sync::Mutex;

use super::*;
use crate::checksum::Sum;
use crate::meta::{Checksum, Offloads};
use crate::test_streams::tcp4_segment;
use crate::{
    BATCH_FRAMES_MAX, CoalesceTarget, FRAME_BYTES_MAX, Frame, FrameBatch, IngressError, VnetHeader,
    coalesce, complete_checksum, flow_hash, segment,
};

const EGRESS: CoalesceTarget = CoalesceTarget::Egress(0, Offloads::TCP);
const FRONT_BYTES: usize = 200;

/// Test memory in which addresses are offsets.
struct Memory(Mutex<Vec<u8>>);

impl TailMemory for Memory {
    fn read(&self, address: u64, buffer: &mut [u8]) {
        let from = address as usize;
        buffer.copy_from_slice(&self.0.lock().unwrap()[from..from + buffer.len()]);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Stores the bytes in spans of odd lengths at separate addresses, in reverse order.
fn scatter(bytes: &[u8]) -> (Arc<Memory>, Vec<Span>) {
    let mut memory = Vec::new();
    let mut spans = Vec::new();
    let mut end = bytes.len();
    while end > 0 {
        let start = end.saturating_sub(1 + (end * 7) % 5000);
        memory.extend([0xee; 3]);
        spans.insert(0, Span { address: memory.len() as u64, bytes: end - start });
        memory.extend_from_slice(&bytes[start..end]);
        end = start;
    }
    (Arc::new(Memory(Mutex::new(memory))), spans)
}

/// Returns a frame of these bytes, not admitted, with the first `front` of them in its buffer and
/// the others in a tail.
fn tailed(bytes: &[u8], front: usize) -> Frame {
    let mut frame = Frame::new(3);
    frame.set_bytes(&bytes[..front]);
    let (memory, spans) = scatter(&bytes[front..]);
    frame.set_tail(memory, &spans);
    frame
}

/// Returns a frame of a TCP/IPv4 stream: `payload_bytes` bytes from stream offset `sent`.
fn window_bytes(sent: usize, payload_bytes: usize) -> Vec<u8> {
    let payload = (sent..sent + payload_bytes).map(|index| (index * 31 + index / 251) as u8);
    tcp4_segment(sent, sent / 1000, &payload.collect::<Vec<_>>())
}

fn header(segment_bytes: u16) -> VnetHeader {
    VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        gso_size: segment_bytes,
        csum_start: 34,
        csum_offset: 16,
        ..VnetHeader::default()
    }
}

/// Returns the same admitted frame without and with a tail.
fn both(sent: usize, payload_bytes: usize, segment_bytes: u16) -> [Frame; 2] {
    let bytes = window_bytes(sent, payload_bytes);
    let mut contiguous = Frame::new(0);
    contiguous.set_bytes(&bytes);
    [contiguous, tailed(&bytes, FRONT_BYTES)].map(|mut frame| {
        frame.validate_ingress(&header(segment_bytes), Offloads::TCP).unwrap();
        frame
    })
}

#[test]
fn a_tail_is_read_in_pieces_of_any_length() {
    let bytes = window_bytes(0, 40_000);
    let frame = tailed(&bytes, FRONT_BYTES);
    assert_eq!((frame.len(), frame.head()), (bytes.len(), &bytes[..FRONT_BYTES]));
    for step in [1, 999, 5000, 100_000] {
        let (mut tail, mut read) = (frame.tail(), Vec::new());
        while tail.remaining() > 0 {
            let mut buffer = vec![0; step];
            let remaining = tail.remaining();
            let count = tail.read(&mut buffer);
            assert_eq!(count, remaining.min(step));
            assert_eq!(tail.remaining(), remaining - count);
            read.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(tail.read(&mut [0; 9]), 0);
        assert!(read == bytes[FRONT_BYTES..], "pieces of {step} bytes");
    }
}

#[test]
fn gathered_and_copied_frames_equal_frames_without_tail() {
    let [contiguous, mut frame] = both(0, 40_000, 1000);
    assert!(frame.has_tail());
    assert_eq!((frame.len(), frame.meta), (contiguous.len(), contiguous.meta));
    assert_eq!(flow_hash(&frame), flow_hash(&contiguous));
    assert_eq!(
        (frame.source(), frame.destination()),
        (contiguous.source(), contiguous.destination())
    );
    assert_eq!(frame.wire_head().header, contiguous.wire_format().header);
    assert_eq!(frame.plain_vnet_header_words(), None);
    let mut copy = Frame::new(9);
    copy.copy_from(&frame);
    assert!(frame.has_tail() && !copy.has_tail());
    frame.linearize();
    assert!(!frame.has_tail());
    for same in [&copy, &frame] {
        assert_eq!(same.meta, contiguous.meta);
        assert!(same.bytes() == contiguous.bytes());
        assert_eq!(same.tail().remaining(), 0);
    }
}

#[test]
fn segments_with_and_without_tail_are_equal() {
    let [mut contiguous, mut frame] = both(0, 40_000, 1448);
    let [expected, actual] = [&mut contiguous, &mut frame].map(|frame| {
        let mut segments = segment(frame, false).unwrap();
        let mut observed = Vec::new();
        while let Some(segment) = segments.next_segment() {
            observed.push((segment.bytes().to_vec(), segment.meta));
        }
        observed
    });
    assert_eq!(actual.len(), 28);
    assert!(actual == expected);
}

/// A frame that fits into one segment is not large but may have a tail.
#[test]
fn checksums_with_and_without_tail_are_equal() {
    let [mut contiguous, mut frame] = both(0, 9000, 9000);
    assert!(frame.has_tail() && frame.meta.gso.is_none());
    assert_eq!(
        frame.plain_vnet_header_words(),
        None,
        "the header words would be followed by the buffer only"
    );
    complete_checksum(&mut contiguous);
    complete_checksum(&mut frame);
    assert_eq!(frame.meta.checksum, Checksum::Verified);
    assert!(frame.bytes() == contiguous.bytes());
}

#[test]
fn large_frames_are_joined_as_without_tails() {
    let pairs = [0, 8000, 16_000].map(|sent| both(sent, 8000, 1000));
    let (mut contiguous, mut frames) = (Vec::new(), Vec::new());
    for [without, with] in pairs {
        contiguous.push(without);
        frames.push(with);
    }
    let expected = coalesce(&mut contiguous, |_| EGRESS);
    assert_eq!(coalesce(&mut frames, |_| EGRESS), expected);
    assert_eq!(expected.merged_count(), 2);
    assert_eq!(frames[0].meta, contiguous[0].meta);
    assert!(frames[0].bytes() == contiguous[0].bytes());
}

/// The headers of frames without GSO may extend beyond the buffer.
#[test]
fn frames_without_gso_are_gathered_on_admission() {
    let bytes = window_bytes(0, 9000);
    let plain = VnetHeader::default();
    let mut frame = tailed(&bytes, 20);
    assert_eq!(frame.validate_ingress(&plain, Offloads::TCP), Ok(()));
    assert!(frame.bytes() == bytes);
    let mut frame = tailed(&bytes, 20);
    assert_eq!(frame.validate_ingress_plain(), Ok(()));
    assert!(frame.bytes() == bytes);
    // A large frame with incomplete headers in the buffer is rejected.
    let mut frame = tailed(&bytes, 40);
    let refused = frame.validate_ingress(&header(1000), Offloads::TCP);
    assert!(matches!(refused, Err(IngressError::Headers(_))), "{refused:?}");
}

#[test]
fn tag_is_removed_from_frames_with_tail() {
    let bytes = window_bytes(0, 30_000);
    let mut tagged = bytes.clone();
    tagged.splice(12..12, [0x81, 0x00, 0x00, 0x07]);
    let mut frame = tailed(&tagged, FRONT_BYTES);
    let header = VnetHeader { csum_start: 38, ..header(1000) };
    frame.validate_ingress(&header, Offloads::TCP).unwrap();
    assert_eq!(frame.meta.tag.map(|tag| tag.tci()), Some(7));
    assert_eq!(frame.len(), bytes.len());
    frame.linearize();
    assert!(frame.bytes() == bytes);
}

#[test]
fn length_limit_includes_the_tail() {
    let bytes = vec![0; FRAME_BYTES_MAX + 200];
    for len in [FRAME_BYTES_MAX + 1, FRAME_BYTES_MAX + 200] {
        let mut frame = tailed(&bytes[..len], FRONT_BYTES);
        let refused = frame.validate_ingress(&header(1000), Offloads::TCP);
        assert_eq!(refused, Err(IngressError::TooLong { len: frame.len() }));
        frame.linearize();
        assert_eq!(frame.bytes().len(), frame.len());
    }
}

#[test]
fn reset_releases_the_tail_memory() {
    let bytes = window_bytes(0, 20_000);
    let (memory, spans) = scatter(&bytes[FRONT_BYTES..]);
    let mut batch = FrameBatch::new();
    for _ in 0..BATCH_FRAMES_MAX {
        let Some(frame) = batch.next_free_frame() else { break };
        frame.set_bytes(&bytes[..FRONT_BYTES]);
        frame.set_tail(memory.clone(), &spans);
        batch.commit();
    }
    assert!(batch.has_tails());
    assert_eq!(batch.total_bytes(), batch.len() * bytes.len());
    assert_eq!(Arc::strong_count(&memory), 1 + batch.len());
    batch.frames_mut()[0].linearize();
    batch.frames_mut()[1].reset();
    assert_eq!(Arc::strong_count(&memory), 1 + batch.len() - 2);
    batch.clear();
    assert_eq!(Arc::strong_count(&memory), 1);
    assert!(!batch.has_tails());
}

/// The source can modify the payload until the tail is copied into the buffer.
#[test]
fn checksum_covers_the_gathered_bytes() {
    let [_, mut frame] = both(0, 9000, 9000);
    complete_checksum(&mut frame);
    let sum = Sum::pseudo_ipv4([0; 4], [0; 4], 6, 9020);
    let [before, after] = [sum, sum.concat(Sum::from_bytes(&frame.bytes()[34..]))];
    assert_ne!(before.word(), after.word());
    assert_eq!(after.word(), 0xffff);
    assert!(!frame.has_tail(), "a verified checksum covers bytes that the source cannot modify");
}

#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "tail was forgotten")]
fn bytes_panics_on_a_frame_with_tail() {
    let [_, frame] = both(0, 9000, 1000);
    let _ = frame.bytes();
}

#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "tail was forgotten")]
fn wire_panics_on_a_frame_with_tail() {
    let [_, frame] = both(0, 9000, 1000);
    let _ = frame.wire_format();
}
