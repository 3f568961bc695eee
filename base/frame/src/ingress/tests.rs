use super::*;
use crate::{Sum, VlanId};

const ALL: Offloads = Offloads { udp_segmentation: true, ..Offloads::TCP };

/// Returns a TCP/IPv4 frame with 1000 bytes of payload.
fn tcp() -> Vec<u8> {
    let mut bytes = vec![0; 1054];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[23] = 6;
    bytes[46] = 0x50;
    bytes
}

fn large() -> VnetHeader {
    VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        gso_size: 400,
        csum_start: 34,
        csum_offset: 16,
        ..VnetHeader::default()
    }
}

fn partial() -> VnetHeader {
    VnetHeader { gso_type: VnetHeader::GSO_NONE, gso_size: 0, ..large() }
}

fn admit(bytes: &[u8], header: &VnetHeader, allowed: Offloads) -> Result<Frame, IngressError> {
    let mut frame = Frame::new(0);
    frame.set_bytes(bytes);
    frame.validate_ingress(header, allowed).map(|()| frame)
}

fn refusal(bytes: &[u8], header: &VnetHeader) -> IngressError {
    admit(bytes, header, ALL).map(|frame| frame.meta).unwrap_err()
}

#[test]
fn admission_sets_metadata_of_large_frames() {
    let frame = admit(&tcp(), &large(), ALL).unwrap();
    assert_eq!(frame.meta.checksum, Checksum::Partial { start: 34, offset: 16 });
    let gso = Gso { kind: GsoKind::Tcp4, segment_bytes: 400, ecn: false };
    assert_eq!(frame.meta.gso, Some(gso));
    let fitting = admit(&tcp(), &VnetHeader { gso_size: 1000, ..large() }, ALL).unwrap();
    assert_eq!((fitting.meta.gso, fitting.meta.checksum), (None, frame.meta.checksum));
}

#[test]
fn metadata_of_an_earlier_frame_do_not_survive() {
    let mut frame = admit(&tcp(), &large(), ALL).unwrap();
    frame.validate_ingress(&VnetHeader::default(), ALL).unwrap();
    assert_eq!((frame.meta.gso, frame.meta.checksum), (None, Checksum::Unknown));
}

#[test]
fn a_tag_moves_from_the_bytes_to_the_metadata() {
    let mut bytes = tcp();
    bytes[..12].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let untagged = bytes.clone();
    bytes.splice(12..12, [0x81, 0x00, 0x60, 0x64]);
    let frame = admit(&bytes, &VnetHeader { csum_start: 38, ..partial() }, ALL).unwrap();
    assert_eq!(frame.bytes(), untagged);
    assert_eq!(frame.meta.tag, Some(VlanTag::from_tci(0x6064)));
    assert_eq!(frame.meta.checksum, Checksum::Partial { start: 34, offset: 16 });
    assert_eq!(
        refusal(&bytes, &VnetHeader { csum_start: 3, ..partial() }).to_string(),
        "csum_start 3 and csum_offset 16 exceed a frame of 1054 bytes"
    );
}

#[test]
fn metadata_tag_and_inner_tag_are_kept() {
    let mut bytes = tcp();
    bytes.splice(12..12, [0x81, 0x00, 0, 7]);
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    let outer = VlanId::new(100).map(VlanTag::for_vlan);
    frame.meta.tag = outer;
    frame.validate_ingress(&VnetHeader { csum_start: 38, ..large() }, ALL).unwrap();
    assert_eq!((frame.meta.tag, frame.bytes()), (outer, &bytes[..]));
    assert_eq!(frame.meta.checksum, Checksum::Partial { start: 38, offset: 16 });
}

#[test]
fn lengths_are_checked_with_and_without_header() {
    for len in [0, 13] {
        assert_eq!(refusal(&tcp()[..len], &VnetHeader::default()), IngressError::TooShort { len });
        let mut frame = Frame::new(0);
        frame.set_bytes(&tcp()[..len]);
        assert_eq!(frame.validate_ingress_plain(), Err(IngressError::TooShort { len }));
    }
    let mut tag_only = tcp();
    tag_only[12] = 0x81;
    tag_only[13] = 0x00;
    for len in [14, 17] {
        let error = refusal(&tag_only[..len], &VnetHeader::default());
        assert_eq!(error, IngressError::TooShort { len });
    }
    assert_eq!(admit(&tag_only[..18], &VnetHeader::default(), ALL).unwrap().len(), 14);
}

#[test]
fn checksum_fields_are_ignored_without_needs_csum() {
    let nonsense = VnetHeader {
        hdr_len: u16::MAX,
        csum_start: u16::MAX,
        csum_offset: u16::MAX,
        gso_size: 9,
        ..VnetHeader::default()
    };
    assert_eq!(admit(&tcp(), &nonsense, Offloads::NONE).unwrap().meta, Default::default());
    let valid = VnetHeader { flags: VnetHeader::DATA_VALID, ..nonsense };
    let frame = admit(&tcp(), &valid, Offloads::NONE).unwrap();
    assert_eq!(frame.meta.checksum, Checksum::Verified);
    let hinted = VnetHeader { hdr_len: u16::MAX, ..large() };
    assert!(admit(&tcp(), &hinted, ALL).is_ok());
}

#[test]
fn offloads_not_negotiated_are_rejected() {
    let not_allowed = |header: VnetHeader, allowed| {
        let text = admit(&tcp(), &header, allowed).map(|frame| frame.meta).unwrap_err().to_string();
        text.replace(" requests an offload that was not negotiated", "")
    };
    assert_eq!(not_allowed(partial(), Offloads::NONE), "flags 0x1");
    let checksum = Offloads { checksum: true, ..Offloads::NONE };
    assert_eq!(not_allowed(large(), checksum), "gso_type 0x1");
    let no_ecn = Offloads { tcp_ecn_segmentation: false, ..ALL };
    let ecn = VnetHeader { gso_type: 0x81, ..large() };
    assert_eq!(not_allowed(ecn, no_ecn), "gso_type 0x81");
    assert!(admit(&tcp(), &ecn, ALL).unwrap().meta.gso.is_some_and(|gso| gso.ecn));
    // UFO is never accepted.
    assert_eq!(not_allowed(VnetHeader { gso_type: 3, ..large() }, ALL), "gso_type 0x3");
}

#[test]
fn inconsistent_large_frames_are_rejected() {
    let plain = VnetHeader { flags: 0, ..large() };
    assert_eq!(refusal(&tcp(), &plain), IngressError::GsoWithoutChecksum { gso_type: 1 });
    for value in [2, 6, 0x80, 0x85] {
        let error = refusal(&tcp(), &VnetHeader { gso_type: value, ..large() });
        assert_eq!(error, IngressError::GsoType { value });
    }
    let no_size = VnetHeader { gso_size: 0, ..large() };
    let error = IngressError::GsoSize { gso_size: 0, payload_bytes: 1000 };
    assert_eq!(refusal(&tcp(), &no_size), error);
    for kind in [VnetHeader::GSO_TCPV6, VnetHeader::GSO_UDP_L4] {
        let error = refusal(&tcp(), &VnetHeader { gso_type: kind, ..large() });
        assert!(matches!(error, IngressError::GsoHeaders { .. }), "{error}");
    }
    let mut fragment = tcp();
    fragment[20] = 0x20;
    assert!(matches!(refusal(&fragment, &large()), IngressError::GsoHeaders { .. }));
    let mut short_tcp = tcp();
    short_tcp[46] = 0x40;
    assert!(matches!(refusal(&short_tcp, &large()), IngressError::Headers(_)));
    assert!(matches!(refusal(&tcp()[..53], &large()), IngressError::Headers(_)));
}

#[test]
fn segment_count_and_header_length_are_limited() {
    let mut bytes = tcp();
    bytes.resize(65_000, 0);
    let tiny = VnetHeader { gso_size: 7, ..large() };
    let payload_bytes = 65_000 - 54;
    let error = IngressError::GsoSize { gso_size: 7, payload_bytes };
    assert_eq!(refusal(&bytes, &tiny), error);
    assert!(admit(&bytes, &VnetHeader { gso_size: 8, ..large() }, ALL).is_ok());
    // IPv4 packets are limited to 65 535 bytes.
    bytes.resize(14 + 65_535, 0);
    assert!(admit(&bytes, &large(), ALL).is_ok());
    bytes.push(0);
    let error = IngressError::GsoLength { len: 65_550, header_bytes: 54 };
    assert_eq!(refusal(&bytes, &large()), error);
}

#[test]
fn a_partial_checksum_must_be_that_of_the_transport_header() {
    let header_with = |csum_start, csum_offset| VnetHeader { csum_start, csum_offset, ..partial() };
    for (start, offset) in [(34, 6), (35, 16), (33, 16), (14, 10), (54, 16), (54, 0)] {
        let error = refusal(&tcp(), &header_with(start, offset));
        assert!(
            matches!(error, IngressError::ChecksumPosition { .. }),
            "{start}+{offset}: {error}"
        );
        let header = VnetHeader { gso_type: 1, gso_size: 400, ..header_with(start, offset) };
        assert!(matches!(refusal(&tcp(), &header), IngressError::ChecksumPosition { .. }));
    }
    for (start, offset) in [(0, 16), (13, 16), (1053, 0), (34, 1019), (u16::MAX, u16::MAX)] {
        let error = refusal(&tcp(), &header_with(start, offset));
        assert!(matches!(error, IngressError::ChecksumOutside { .. }), "{start}+{offset}");
    }
    let mut fragment = tcp();
    fragment[20] = 0x20;
    assert_eq!(refusal(&fragment, &partial()), IngressError::ChecksumOnFragment);
}

#[test]
fn a_tunnels_inner_checksum_may_be_partial() {
    let mut vxlan = tcp();
    vxlan[23] = 17;
    let inner = VnetHeader { csum_start: 84, csum_offset: 16, ..partial() };
    let frame = admit(&vxlan, &inner, ALL).unwrap();
    assert_eq!(frame.meta.checksum, Checksum::Partial { start: 84, offset: 16 });
    let in_header = VnetHeader { csum_start: 38, csum_offset: 0, ..partial() };
    assert!(matches!(refusal(&vxlan, &in_header), IngressError::ChecksumPosition { .. }));
    // The same applies to unknown protocols.
    vxlan[12] = 0x99;
    assert!(admit(&vxlan, &inner, ALL).is_ok());
}

/// A tag inserted at the egress moves the start by four; the result must fit into 16 bits.
#[test]
fn checksum_start_leaves_room_for_a_tag() {
    let mut bytes = vec![0; FRAME_BYTES_MAX];
    bytes[12] = 0x99;
    let header_at = |csum_start| VnetHeader { csum_start, csum_offset: 0, ..partial() };
    let mut frame = admit(&bytes, &header_at(u16::MAX - 4), ALL).unwrap();
    frame.meta.tag = VlanId::new(1).map(VlanTag::for_vlan);
    assert_eq!(frame.wire_format().header.csum_start, u16::MAX);
    assert!(matches!(
        refusal(&bytes, &header_at(u16::MAX - 3)),
        IngressError::ChecksumOutside { csum_start: 0xfffc, .. }
    ));
}

/// Returns a UDP datagram of 301 bytes with a partial checksum, and its virtio-net header.
fn datagram(is_ipv6: bool, from: u16, to: u16) -> (Vec<u8>, VnetHeader) {
    let (header, offset) = if is_ipv6 { (40, 54) } else { (20, 34) };
    let mut bytes: Vec<u8> = (0..14 + header + 301).map(|index| index as u8).collect();
    if is_ipv6 {
        bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
        bytes[14..22].copy_from_slice(&[0x60, 0, 0, 0, 1, 45, 17, 64]);
    } else {
        bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        bytes[14..24].copy_from_slice(&[0x45, 0, 1, 65, 0, 0, 0, 0, 64, 17]);
    }
    bytes[offset..offset + 2].copy_from_slice(&from.to_be_bytes());
    bytes[offset + 2..offset + 4].copy_from_slice(&to.to_be_bytes());
    bytes[offset + 4..offset + 6].copy_from_slice(&301_u16.to_be_bytes());
    // Sum of the pseudo-header: both addresses, protocol and length.
    let addresses = if is_ipv6 { 22..54 } else { 26..34 };
    let sum = Sum::from_bytes(&bytes[addresses]).add_word(17).add_word(301);
    bytes[offset + 6..offset + 8].copy_from_slice(&(!sum.checksum()).to_be_bytes());
    let header = VnetHeader { csum_start: offset as u16, csum_offset: 6, ..partial() };
    (bytes, header)
}

#[test]
fn dhcp_checksums_are_completed_on_admission() {
    for (is_ipv6, from, to) in
        [(false, 67, 68), (false, 68, 67), (false, 67, 67), (true, 546, 547), (true, 547, 546)]
    {
        let (bytes, header) = datagram(is_ipv6, from, to);
        let frame = admit(&bytes, &header, ALL).unwrap();
        assert_eq!(frame.meta.checksum, Checksum::Verified);
        let (offset, addresses) = if is_ipv6 { (54, 22..54) } else { (34, 26..34) };
        // With a complete checksum, the total sum is 0 (RFC 768).
        let sum = Sum::from_bytes(&bytes[addresses]).add_word(17).add_word(301);
        assert_eq!(
            sum.concat(Sum::from_bytes(&frame.bytes()[offset..])).checksum(),
            0,
            "{from} to {to}"
        );
        let (mut tagged, header) = datagram(is_ipv6, from, to);
        tagged.splice(12..12, [0x81, 0x00, 0, 5]);
        let start = header.csum_start + 4;
        let tagged = admit(&tagged, &VnetHeader { csum_start: start, ..header }, ALL).unwrap();
        assert_eq!((tagged.meta.checksum, tagged.bytes()), (Checksum::Verified, frame.bytes()));
    }
    for (from, to) in [(1000, 2000), (53, 53), (69, 66)] {
        let (bytes, header) = datagram(false, from, to);
        let frame = admit(&bytes, &header, ALL).unwrap();
        assert_eq!(frame.meta.checksum, Checksum::Partial { start: 34, offset: 6 });
        assert_eq!(frame.bytes(), bytes);
    }
    // TCP with such a port is unchanged.
    let mut bytes = tcp();
    bytes[34..36].copy_from_slice(&67_u16.to_be_bytes());
    let frame = admit(&bytes, &partial(), ALL).unwrap();
    assert_eq!(frame.meta.checksum, Checksum::Partial { start: 34, offset: 16 });
}
