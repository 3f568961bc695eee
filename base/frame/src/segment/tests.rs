use super::*;
use crate::{Gso, Offloads, VlanId, VlanTag, VnetHeader};

/// Returns an admitted TCP/IPv4 frame with all flags set and 1000 bytes of payload.
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
    frame.set_bytes(&bytes);
    frame.validate_ingress(&header, Offloads::TCP).unwrap();
    frame.meta.tag = VlanId::new(5).map(VlanTag::for_vlan);
    frame
}

#[test]
fn fin_and_psh_are_in_the_last_segment_cwr_in_the_first() {
    let mut frame = large();
    let tag = frame.meta.tag;
    let mut segments = segment(&mut frame, false).unwrap();
    let mut observed = Vec::new();
    while let Some(segment) = segments.next_segment() {
        observed.push((segment.len(), segment.bytes()[47], segment.meta.tag));
    }
    assert_eq!(observed, [(454, 0xf6, tag), (454, 0x76, tag), (254, 0x7f, tag)]);
    assert!(segments.next_segment().is_none());
}

#[test]
fn segmentation_rejects_wrong_metadata() {
    let try_with = |gso| {
        let mut frame = large();
        frame.meta.gso = gso;
        segment(&mut frame, false).map(|_| ()).unwrap_err()
    };
    assert_eq!(try_with(None), SegmentError::NotLarge);
    let gso = Gso { kind: GsoKind::Tcp6, segment_bytes: 400, ecn: false };
    assert!(matches!(try_with(Some(gso)), SegmentError::Headers { .. }));
    let no_size = Gso { kind: GsoKind::Tcp4, segment_bytes: 0, ecn: false };
    assert_eq!(try_with(Some(no_size)), SegmentError::NotLarge);
    let mut cut = large();
    cut.set_len(40);
    let error = segment(&mut cut, false).map(|_| ()).unwrap_err();
    assert!(matches!(error, SegmentError::Malformed(_)));
    cut.set_len(54);
    let error = segment(&mut cut, false).map(|_| ()).unwrap_err();
    assert!(matches!(error, SegmentError::Headers { .. }));
}

/// A computed checksum of zero means "none" in UDP and has no special meaning in TCP. Adding the
/// complement of the sum to the bytes produces it.
#[test]
fn zero_checksum_is_replaced_in_udp_only() {
    for (kind, protocol, payload_at, field_at, zero) in
        [(GsoKind::Udp, 17, 42, 40, 0xffff), (GsoKind::Tcp4, 6, 54, 50, 0)]
    {
        let mut frame = large();
        frame.bytes_mut()[23] = protocol;
        frame.meta.gso = Some(Gso { kind, segment_bytes: 400, ecn: false });
        frame.meta.tag = None;
        let first_checksum = |frame: &mut Frame| {
            let mut segments = segment(frame, false).unwrap();
            segments
                .next_segment()
                .map(|segment| checksum_field(segment.bytes(), field_at))
                .unwrap()
        };
        let checksum = first_checksum(&mut frame);
        assert!(checksum != 0 && checksum != 0xffff);
        put(frame.bytes_mut(), payload_at, &checksum.to_be_bytes());
        assert_eq!(first_checksum(&mut frame), zero, "{kind:?}");
    }
}

/// Segments are windows of the large frame; headers longer than a segment's payload overwrite
/// several previous segments. The large frame is restored wherever the caller stops.
#[test]
fn dropping_segments_restores_the_large_frame() {
    for segment_bytes in [8, 53, 54, 55, 400, 999] {
        let mut frame = large();
        frame.meta.gso = Some(Gso { kind: GsoKind::Tcp4, segment_bytes, ecn: true });
        for (index, byte) in frame.bytes_mut().iter_mut().skip(54).enumerate() {
            *byte = index as u8;
        }
        let (bytes, meta) = (frame.bytes().to_vec(), frame.meta);
        let count = segment(&mut frame, false).unwrap().remaining();
        assert_eq!(count, 1000_usize.div_ceil(usize::from(segment_bytes)));
        for stop in 0..=count + 1 {
            let mut segments = segment(&mut frame, stop % 2 == 0).unwrap();
            let mut payload: Vec<u8> = Vec::new();
            for _ in 0..stop {
                payload.extend(
                    segments.next_segment().map_or(&[][..], |segment| &segment.bytes()[54..]),
                );
            }
            drop(segments);
            assert_eq!((frame.bytes(), frame.meta), (&bytes[..], meta), "stopped after {stop}");
            assert_eq!(payload, bytes[54..54 + payload.len()]);
        }
    }
}

#[test]
fn a_fixed_identification_stays_on_every_segment() {
    for (is_fixed, expected) in [(false, [0xffff, 0, 1]), (true, [0xffff; 3])] {
        let mut frame = large();
        put(frame.bytes_mut(), 18, &[0xff, 0xff]);
        frame.meta.has_fixed_identification = is_fixed;
        let mut segments = segment(&mut frame, false).unwrap();
        for identification in expected {
            let segment = segments.next_segment().unwrap();
            assert_eq!(checksum_field(segment.bytes(), 18), identification);
            assert_eq!(Sum::from_bytes(&segment.bytes()[14..34]).word(), 0xffff);
            assert!(!segment.meta.has_fixed_identification);
        }
    }
}

#[test]
fn overlong_headers_are_rejected() {
    let mut frame = Frame::new(0);
    let mut bytes = vec![0; 14 + 40 + 600 + 20 + 1000];
    bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
    bytes[14] = 0x60;
    // One destination options header of 600 bytes before TCP.
    bytes[20] = 60;
    bytes[54..56].copy_from_slice(&[6, 74]);
    bytes[54 + 600 + 12] = 0x50;
    frame.set_bytes(&bytes);
    frame.meta.checksum = Checksum::Partial { start: 654, offset: 16 };
    frame.meta.gso = Some(Gso { kind: GsoKind::Tcp6, segment_bytes: 100, ecn: false });
    let error = segment(&mut frame, false).map(|_| ()).unwrap_err();
    assert!(matches!(error, SegmentError::Headers { .. }), "{error}");
}
