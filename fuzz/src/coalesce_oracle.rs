//! Fuzz oracle of receive coalescing (`suimon-frame`).
//!
//! The input is a list of records of [`ORDER_BYTES`] bytes, one per frame: flow, payload size,
//! flags, whether a header field is altered (with correct checksums) or damaged (with wrong
//! checksums), and egress. The batch is coalesced. Before and after that, the oracle segments all
//! frames and completes their checksums, as for an egress without offloads. Each flow must contain
//! the same bytes in the same order.

use suimon_frame::{
    BATCH_FRAMES_MAX, Checksum, CoalesceResult, CoalesceTarget, Frame, Offloads, VnetHeader,
    coalesce, complete_checksum, segment,
};

use super::frame_oracle::naive_sum;
use super::frame_sample::Sample;

/// Length of an input record, which describes one frame, in bytes.
pub const ORDER_BYTES: usize = 8;

const FLOWS: usize = 4;
const ALL: Offloads = Offloads { udp_segmentation: true, ..Offloads::TCP };

/// Number of frames in the batch, and number of frames that coalescing removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// Frames that ingress validation admitted to the batch.
    pub frames: usize,
    /// Frames that were merged into an earlier frame.
    pub absorbed: usize,
}

/// Header fields of the next frame of a flow, and payload bytes per segment.
#[derive(Clone, Copy)]
struct Flow {
    sequence: u32,
    identification: u16,
    segment_bytes: u16,
}

/// Frame as an egress without offloads sends it: VLAN tag (TCI) and bytes.
type FrameContent = (Option<u16>, Vec<u8>);

/// Builds the batch that `input` describes, coalesces it and checks the result.
///
/// # Panics
///
/// The result violates a rule of coalescing.
pub fn check(input: &[u8]) -> Joined {
    let mut flows: [Flow; FLOWS] = std::array::from_fn(|index| Flow {
        // The sequence numbers and IPv4 identifications of one flow wrap around.
        sequence: [7, u32::MAX - 3000, 1 << 31, 0][index],
        identification: [0xfffe, 0, 77, 0][index],
        segment_bytes: [1448, 300, 1428, 257][index],
    });
    let (mut frames, mut lanes) = (Vec::new(), Vec::new());
    for order in input.chunks_exact(ORDER_BYTES).take(BATCH_FRAMES_MAX + 3) {
        let order: &[u8; ORDER_BYTES] = order.try_into().expect("a complete record");
        if let Some(frame) = frame_of(order, &mut flows, frames.len()) {
            frames.push(frame);
            lanes.push(lane_of(order));
        }
    }
    let before: Vec<Vec<FrameContent>> = frames.iter_mut().map(show).collect();
    let coalesced = coalesce(&mut frames, |index| lanes[index]);
    check_forms(&frames, &lanes, coalesced);
    let after: Vec<Vec<FrameContent>> = frames
        .iter_mut()
        .enumerate()
        .map(
            |(index, frame)| {
                if coalesced.was_merged_away(index) { Vec::new() } else { show(frame) }
            },
        )
        .collect();
    check_order(&lanes, &before, &after);
    Joined { frames: frames.len(), absorbed: coalesced.merged_count() as usize }
}

fn lane_of(order: &[u8; ORDER_BYTES]) -> CoalesceTarget {
    match order[7] {
        0..=0xdf => CoalesceTarget::Egress(1, ALL),
        0xe0..=0xe7 => CoalesceTarget::Egress(2, ALL),
        0xe8..=0xeb => CoalesceTarget::Egress(3, Offloads { tcp_ecn_segmentation: false, ..ALL }),
        0xec..=0xef => CoalesceTarget::Egress(4, Offloads { tcp6_segmentation: false, ..ALL }),
        0xf0..=0xf3 => CoalesceTarget::Egress(5, Offloads::NONE),
        0xf4..=0xf9 => CoalesceTarget::Excluded,
        _ => CoalesceTarget::Multiple,
    }
}

/// Returns the next frame of a flow; `None` if ingress validation rejects it.
fn frame_of(
    order: &[u8; ORDER_BYTES],
    flows: &mut [Flow; FLOWS],
    position: usize,
) -> Option<Frame> {
    let [selector, size, flags, state, alter_at, alter_by, damage, _] = *order;
    let index = usize::from(selector & 3);
    let flow = &mut flows[index];
    let step = usize::from(flow.segment_bytes);
    // Most sizes are one whole segment; others are a large frame or a partial segment.
    let (payload_bytes, segment_bytes) = match size {
        0..=0x9f => (step, None),
        0xa0..=0xaf => (step * usize::from(size - 0x9d), Some(flow.segment_bytes)),
        0xb0..=0xb7 => (step * usize::from(size - 0xae) - 9, Some(flow.segment_bytes)),
        0xb8..=0xbb => (65_000 - step, Some(flow.segment_bytes)),
        _ => (usize::from(size - 0xbc) * step / 60, None),
    };
    let sample = Sample {
        is_ipv6: index >= 2,
        is_udp: selector & 0xf0 == 0xf0,
        tags: if selector & 0x0c == 0x0c {
            vec![(0x8100, u16::from(index == 0) + 5)]
        } else {
            Vec::new()
        },
        tcp_flags: match flags {
            0..=0x9f => 0x10,
            0xa0..=0xbf => 0x18,
            0xc0..=0xc7 => 0x11,
            0xc8..=0xcf => 0x90,
            0xd0..=0xd7 => 0x50,
            _ => flags,
        },
        source_port: 1000 + index as u16,
        sequence: flow.sequence,
        identification: flow.identification,
        segment_bytes,
        payload: (0..payload_bytes).map(|offset| (offset * 7 + position) as u8).collect(),
        ..Sample::default()
    };
    flow.sequence = flow.sequence.wrapping_add(payload_bytes as u32);
    if selector & 0x40 == 0 {
        let segments = segment_bytes.map_or(1, |step| payload_bytes.div_ceil(step.into()));
        flow.identification = flow.identification.wrapping_add(segments as u16);
    }
    let mut header = sample.header();
    let mut bytes = sample.bytes();
    let transport_at = usize::from(header.csum_start);
    if alter_at >= 0xc0 {
        let network_bytes = if sample.is_ipv6 { 40 } else { 20 };
        let offset = usize::from(alter_at - 0xc0) + transport_at - network_bytes - 14;
        if let Some(byte) = bytes.get_mut(offset) {
            *byte ^= alter_by;
        }
    }
    let is_large = segment_bytes.is_some_and(|step| payload_bytes > usize::from(step));
    let is_partial = is_large || state & 1 == 0;
    seal(&mut bytes, &sample, transport_at, is_partial);
    let mut is_intact = true;
    if damage >= 0xf0 {
        let offset = usize::from(damage & 15) * 5 + transport_at - 20;
        if let Some(byte) = bytes.get_mut(offset) {
            *byte ^= alter_by;
            is_intact = alter_by == 0;
        }
    }
    if !is_partial {
        let flags = if state & 2 == 0 && is_intact { VnetHeader::DATA_VALID } else { 0 };
        header = VnetHeader { flags, gso_type: 0, ..header };
    }
    let mut frame = Frame::new(position);
    frame.set_bytes(&bytes);
    frame.validate_ingress(&header, ALL).ok().map(|()| frame)
}

/// Writes the correct IPv4 and transport checksums for the current headers; with `is_partial` the
/// transport field contains the sum of the pseudo-header only.
fn seal(bytes: &mut [u8], sample: &Sample, transport_at: usize, is_partial: bool) {
    let network_at = 14 + 4 * sample.tags.len();
    let mut addresses = network_at + 8..network_at + 40;
    if !sample.is_ipv6 {
        addresses = network_at + 12..network_at + 20;
        put(bytes, network_at + 10, 0);
        put(bytes, network_at + 10, !naive_sum(&bytes[network_at..network_at + 20]));
    }
    let (protocol, field_at) = if sample.is_udp { (17, 6) } else { (6, 16) };
    let length = ((bytes.len() - transport_at) as u32).to_be_bytes();
    let pseudo = [&bytes[addresses], &length, &[0, 0, 0, protocol]].concat();
    put(bytes, transport_at + field_at, 0);
    let sum = match is_partial {
        true => naive_sum(&pseudo),
        false => !naive_sum(&[&pseudo, &bytes[transport_at..]].concat()),
    };
    put(bytes, transport_at + field_at, sum);
}

fn put(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
}

/// Returns the frames that an egress without offloads sends for `frame`, which is not changed.
fn show(frame: &mut Frame) -> Vec<FrameContent> {
    let tag = frame.meta.tag.map(suimon_frame::VlanTag::tci);
    if frame.meta.gso.is_none() {
        let mut plain = Frame::new(0);
        plain.copy_from(frame);
        complete_checksum(&mut plain);
        return vec![(tag, plain.bytes().to_vec())];
    }
    let mut observed = Vec::new();
    let mut segments =
        segment(frame, false).expect("an admitted or coalesced frame can be segmented");
    while let Some(segment) = segments.next_segment() {
        observed.push((tag, segment.bytes().to_vec()));
    }
    observed
}

/// Checks that each coalesced frame is accepted by its egress and passes ingress validation at a
/// peer.
fn check_forms(frames: &[Frame], lanes: &[CoalesceTarget], coalesced: CoalesceResult) {
    for (index, frame) in frames.iter().enumerate() {
        assert_eq!(frame.meta.is_coalesced, coalesced.is_merge_target(index), "at {index}");
        if !frame.meta.is_coalesced {
            continue;
        }
        assert!(!coalesced.was_merged_away(index), "a coalesced frame was merged into another");
        let CoalesceTarget::Egress(_, offloads) = lanes[index] else {
            panic!("coalesced without an egress")
        };
        let gso = frame.meta.gso.expect("a coalesced frame is a large one");
        assert!(offloads.accepts(gso), "a frame that its egress does not accept");
        assert!(matches!(frame.meta.checksum, Checksum::Partial { .. }));
        let wire = frame.wire_format();
        let tag = wire.tag.iter().flatten().copied();
        let bytes: Vec<u8> = wire
            .before_tag
            .iter()
            .copied()
            .chain(tag)
            .chain(wire.after_tag.iter().copied())
            .collect();
        let mut readmitted = Frame::new(0);
        readmitted.set_bytes(&bytes);
        readmitted.validate_ingress(&wire.header, ALL).expect("a peer admits a coalesced frame");
        assert_eq!((readmitted.bytes(), readmitted.meta.gso), (frame.bytes(), frame.meta.gso));
        assert_eq!(readmitted.meta.checksum, frame.meta.checksum);
    }
}

/// Checks per egress that each flow has the same frames in the same order before and after. Frames
/// to several egresses and IP fragments, which no frame may overtake, belong to every flow.
fn check_order(
    lanes: &[CoalesceTarget],
    before: &[Vec<FrameContent>],
    after: &[Vec<FrameContent>],
) {
    let keys: Vec<Key> = before.iter().map(|frame_segments| Key::of(frame_segments)).collect();
    for (lane, key) in lanes.iter().zip(&keys) {
        let of_flow = |observed: &[Vec<FrameContent>]| -> Vec<FrameContent> {
            let indices = (0..observed.len()).filter(|index| {
                lanes[*index] == CoalesceTarget::Multiple
                    || (lanes[*index] == *lane
                        && (keys[*index] == *key || keys[*index] == Key::Fragment))
            });
            indices.flat_map(|index| observed[index].clone()).collect()
        };
        let (expected, actual) = (of_flow(before), of_flow(after));
        assert_eq!(expected.len(), actual.len(), "frames of {key:?} to {lane:?}");
        for (index, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
            assert_eq!(expected, actual, "frame {index} of {key:?} to {lane:?}");
        }
    }
    let count = |observed: &[Vec<FrameContent>]| observed.iter().map(Vec::len).sum::<usize>();
    assert_eq!(count(before), count(after));
}

/// Flow whose frames must keep their order.
#[derive(Debug, PartialEq, Eq)]
enum Key {
    /// One direction of a TCP connection: IP addresses and ports.
    Tcp(Vec<u8>),
    Fragment,
    Other,
}

impl Key {
    fn of(observed: &[FrameContent]) -> Self {
        let Some((_, bytes)) = observed.first() else { return Self::Other };
        let mut offset = 12;
        while matches!(bytes.get(offset..offset + 2), Some([0x81, 0x00] | [0x88, 0xa8])) {
            offset += 4;
        }
        match bytes.get(offset..offset + 2) {
            Some([0x08, 0x00]) => {
                let ip = &bytes[offset + 2..];
                let header_bytes = 4 * usize::from(ip[0] & 15);
                match (ip[9], ip[6] & 0x3f, ip[7], ip[0] >> 4) {
                    (6, 0, 0, 4) if header_bytes >= 20 && ip.len() >= header_bytes + 20 => {
                        Self::Tcp([&ip[12..20], &ip[header_bytes..header_bytes + 4]].concat())
                    }
                    (6, ..) => Self::Fragment,
                    _ => Self::Other,
                }
            }
            Some([0x86, 0xdd]) if bytes.get(offset + 8) == Some(&6) => {
                let ip = &bytes[offset + 2..];
                Self::Tcp(ip[8..44].to_vec())
            }
            _ => Self::Other,
        }
    }
}
