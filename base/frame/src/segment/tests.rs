use super::*;
use crate::{Gso, Offloads, VlanId, VlanTag, VnetHeader};

/// A TCP/IPv4 frame with all flags set and 1000 bytes of payload, as admitted.
fn large() -> Frame {
    let mut bytes = vec![0; 1054];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[23] = 6;
    bytes[46..48].copy_from_slice(&[0x50, 0xff]);
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        gso_size: 400,
        csum_start: 34,
        csum_offset: 16,
        ..VnetHeader::default()
    };
    let mut frame = Frame::new(0);
    frame.fill(&bytes);
    frame.admit(&header, Offloads::TCP).unwrap();
    frame.meta.tag = VlanId::new(5).map(VlanTag::of);
    frame
}

#[test]
fn fin_and_psh_stand_on_the_last_and_cwr_on_the_first() {
    let (frame, mut scratch) = (large(), Frame::new(1));
    let mut segments = segment(&frame, &mut scratch, false).unwrap();
    let mut seen = Vec::new();
    while let Some(piece) = segments.next_segment() {
        seen.push((piece.len(), piece.bytes()[47], piece.meta.tag));
    }
    let tag = frame.meta.tag;
    assert_eq!(seen, [(454, 0xf6, tag), (454, 0x76, tag), (254, 0x7f, tag)]);
    assert!(segments.next_segment().is_none());
}

#[test]
fn metadata_that_are_not_true_are_errors() {
    let mut scratch = Frame::new(1);
    let mut try_with = |gso| {
        let mut frame = large();
        frame.meta.gso = gso;
        segment(&frame, &mut scratch, false).map(|_| ()).unwrap_err()
    };
    assert_eq!(try_with(None), SegmentError::NotLarge);
    let gso = Gso { kind: GsoKind::Tcp6, segment_bytes: 400, ecn: false };
    assert!(matches!(try_with(Some(gso)), SegmentError::Headers { .. }));
    let no_size = Gso { kind: GsoKind::Tcp4, segment_bytes: 0, ecn: false };
    assert_eq!(try_with(Some(no_size)), SegmentError::NotLarge);
    let mut cut = large();
    cut.set_len(40);
    let error = segment(&cut, &mut scratch, false).map(|_| ()).unwrap_err();
    assert!(matches!(error, SegmentError::Malformed(_)));
    cut.set_len(54);
    let error = segment(&cut, &mut scratch, false).map(|_| ()).unwrap_err();
    assert!(matches!(error, SegmentError::Headers { .. }));
}

/// A checksum that comes out as zero means "none" in UDP and nothing special in
/// TCP. Adding the complement of a sum to the bytes makes it come out so.
#[test]
fn a_checksum_of_zero_is_ones_in_udp_only() {
    for (kind, protocol, payload_at, field_at, zero) in
        [(GsoKind::Udp, 17, 42, 40, 0xffff), (GsoKind::Tcp4, 6, 54, 50, 0)]
    {
        let mut frame = large();
        frame.bytes_mut()[23] = protocol;
        frame.meta.gso = Some(Gso { kind, segment_bytes: 400, ecn: false });
        frame.meta.tag = None;
        let first_checksum = |frame: &Frame| {
            let mut scratch = Frame::new(1);
            let mut segments = segment(frame, &mut scratch, false).unwrap();
            segments.next_segment().map(|piece| field(piece.bytes(), field_at)).unwrap()
        };
        let checksum = first_checksum(&frame);
        assert!(checksum != 0 && checksum != 0xffff);
        put(frame.bytes_mut(), payload_at, &checksum.to_be_bytes());
        assert_eq!(first_checksum(&frame), zero, "{kind:?}");
    }
}
