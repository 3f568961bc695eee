use super::*;
use crate::checksum::checksum_field;
use crate::meta::EgressForm;
use crate::test_streams::tcp4_segment;
use crate::{GSO_SEGMENTS_MAX, Sum, VnetHeader, complete_checksum, segment};

const EGRESS: CoalesceTarget = CoalesceTarget::Egress(0, Offloads::TCP);

/// Returns a frame of a TCP/IPv4 stream, with a partial checksum: `payload_bytes` bytes from stream
/// offset `sent`. It is large if this exceeds `segment_bytes`.
fn part(sent: usize, payload_bytes: usize, segment_bytes: u16) -> Frame {
    let identification = sent / usize::from(segment_bytes);
    let bytes = tcp4_segment(sent, identification, &vec![7; payload_bytes]);
    let is_large = payload_bytes > usize::from(segment_bytes);
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: if is_large { VnetHeader::GSO_TCPV4 } else { 0 },
        gso_size: if is_large { segment_bytes } else { 0 },
        csum_start: 34,
        csum_offset: 16,
        ..VnetHeader::default()
    };
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    frame.validate_ingress(&header, Offloads::TCP).unwrap();
    frame
}

/// Two large frames of many tiny segments each would exceed the segment limit of ports.
#[test]
fn merged_frames_respect_the_segment_limit() {
    let mut frames = [0, 8000].map(|sent| part(sent, 8000, 1));
    coalesce(&mut frames, |_| EGRESS);
    for frame in &mut frames {
        let count = segment(frame, false).unwrap().remaining();
        assert!(count <= GSO_SEGMENTS_MAX, "{count} segments");
    }
}

#[test]
fn coalesced_reports_merged_and_absorbed_indices() {
    let mut frames: Vec<_> = (0..4).map(|index| part(index * 1000, 1000, 1000)).collect();
    let lanes = [
        CoalesceTarget::Excluded,
        EGRESS,
        CoalesceTarget::Excluded,
        CoalesceTarget::Egress(1, Offloads::TCP),
    ];
    assert!(coalesce(&mut frames, |index| lanes[index]).is_empty());
    let mut frames: Vec<_> = [0, 0, 1, 2].map(|index| part(index * 1000, 1000, 1000)).into();
    let lanes = [CoalesceTarget::Excluded, EGRESS, EGRESS, EGRESS];
    let coalesced = coalesce(&mut frames, |index| lanes[index]);
    let states = [0, 1, 2, 3, 32]
        .map(|index| (coalesced.is_merge_target(index), coalesced.was_merged_away(index)));
    assert_eq!(
        states,
        [(false, false), (true, false), (false, true), (false, true), (false, false)]
    );
    assert_eq!((coalesced.merged_count(), frames[1].len()), (2, 3054));
}

/// A batch of small frames costs one comparison per frame and no lookup of destinations.
#[test]
fn batches_without_mergeable_frames_are_unchanged() {
    let mut small: Vec<_> = (0..32).map(|index| part(index * 255, 255, 255)).collect();
    assert!(coalesce(&mut small, |_| panic!("small frames only")).is_empty());
    let mut single = [part(0, 1000, 1000)];
    assert!(coalesce(&mut single, |_| panic!("one frame only")).is_empty());
    let mut last = [part(0, 10, 10), part(10, 1000, 1000)];
    assert!(coalesce(&mut last, |_| panic!("nothing follows")).is_empty());
}

/// The first segment of a merge group is verified before a merge if it was not verified before.
#[test]
fn segments_with_wrong_checksum_are_not_merged() {
    for damaged in 0..3 {
        let mut frames: Vec<_> = (0..3).map(|index| part(index * 1000, 1000, 1000)).collect();
        for frame in &mut frames {
            complete_checksum(frame);
            frame.meta.checksum = Checksum::Unknown;
        }
        frames[damaged].bytes_mut()[500] ^= 1;
        let coalesced = coalesce(&mut frames, |_| EGRESS);
        let absorbed = [0, 1, 2].map(|index| coalesced.was_merged_away(index));
        let expected = [[false, false, true], [false, false, false], [false, true, false]][damaged];
        assert_eq!(absorbed, expected, "the damaged one is {damaged}");
    }
}

/// Merged frames are large and have a partial checksum. A segment that must not leave in this form
/// is not merged; it ends the merge group of its flow, so that no frame moves past it.
#[test]
fn segments_restricted_by_egress_form_are_not_merged() {
    use EgressForm::{Any, Complete, Segmented};
    for (egress_form, expected) in [
        ([Any, Any, Any], [false, true, true]),
        ([Complete, Complete, Complete], [false, false, false]),
        ([Segmented, Segmented, Segmented], [false, false, false]),
        ([Complete, Any, Any], [false, false, true]),
        ([Any, Complete, Any], [false, false, false]),
        ([Any, Any, Segmented], [false, true, false]),
    ] {
        let mut frames = [0, 1, 2].map(|index| part(index * 1000, 1000, 1000));
        for (frame, egress_form) in frames.iter_mut().zip(egress_form) {
            frame.meta.egress_form = egress_form;
        }
        let coalesced = coalesce(&mut frames, |_| EGRESS);
        let absorbed = [0, 1, 2].map(|index| coalesced.was_merged_away(index));
        assert_eq!(absorbed, expected, "{egress_form:?}");
        let forms = frames.each_ref().map(|frame| frame.meta.egress_form);
        assert_eq!(forms, egress_form);
    }
}

/// Segmentation stores a zero checksum as zero. A segment with 0xffff instead would be changed.
#[test]
fn segments_with_checksum_ffff_are_not_merged() {
    for checksum in [Checksum::Verified, Checksum::Unknown] {
        let mut frames = [0, 1].map(|index| part(index * 1000, 1000, 1000));
        let mut probe = part(0, 1000, 1000);
        complete_checksum(&mut probe);
        let stored = checksum_field(probe.bytes(), 50);
        let word = Sum::from_word(checksum_field(probe.bytes(), 60)).add_word(stored).word();
        put(frames[0].bytes_mut(), 60, &word.to_be_bytes());
        for frame in &mut frames {
            complete_checksum(frame);
            frame.meta.checksum = checksum;
        }
        assert_eq!(checksum_field(frames[0].bytes(), 50), 0);
        put(frames[0].bytes_mut(), 50, &[0xff, 0xff]);
        assert!(coalesce(&mut frames, |_| EGRESS).is_empty(), "{checksum:?}");
    }
}
