use proptest::prelude::*;

use super::super::{MarkerKind, PortInfo, PortState, SLOW_FRAME_BYTES};
use super::*;

const SOURCE: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 9]);

fn lacpdu() -> Lacpdu {
    let end = |n: u8| PortInfo {
        system_priority: 0x8000,
        system: MacAddr::new([2, 0, 0, 0, 1, n]),
        key: 0x1100 + u16::from(n),
        port_priority: 0x00ff,
        port: 0x0700 + u16::from(n),
        state: PortState::from_octet(0x3d),
    };
    Lacpdu { version: 1, actor: end(1), partner: end(2), collector_max_delay: 0x1388 }
}

fn marker() -> Marker {
    Marker {
        kind: MarkerKind::Information,
        requester_port: 0x0012,
        requester_system: MacAddr::new([0, 4, 0x96, 0x1f, 0x50, 0x6a]),
        transaction: 0x0102_0304,
    }
}

/// Octets by offset: 802.1AX-2014, Figure 6-7, after an Ethernet header.
#[test]
fn a_lacpdu_has_every_field_where_the_figure_has_it() {
    let frame = lacpdu().to_frame(SOURCE);
    let bytes = frame.bytes();
    assert_eq!(bytes[..14], [1, 0x80, 0xc2, 0, 0, 2, 2, 0, 0, 0, 0, 9, 0x88, 0x09]);
    assert_eq!(bytes[14..18], [1, 1, 1, 20]);
    let actor = [0x80, 0, 2, 0, 0, 0, 1, 1, 0x11, 1, 0, 0xff, 7, 1, 0x3d, 0, 0, 0];
    assert_eq!(bytes[18..36], actor);
    assert_eq!(bytes[36..38], [2, 20]);
    assert_eq!(bytes[38..46], [0x80, 0, 2, 0, 0, 0, 1, 2]);
    assert_eq!(bytes[56..60], [3, 16, 0x13, 0x88]);
    assert!(bytes[60..].iter().all(|octet| *octet == 0));
    assert_eq!(bytes.len(), 124);
    assert_eq!(parse_exact(bytes), Ok(SlowPdu::Lacp(lacpdu())));
}

/// 802.1AX-2014, Figures 6-27 and 6-28.
#[test]
fn a_marker_has_every_field_where_the_figure_has_it_and_its_response_echoes_it() {
    let frame = marker().to_frame(SOURCE);
    let bytes = frame.bytes();
    assert_eq!(bytes[14..18], [2, 1, 1, 16]);
    assert_eq!(bytes[18..30], [0, 0x12, 0, 4, 0x96, 0x1f, 0x50, 0x6a, 1, 2, 3, 4]);
    assert!(bytes[30..].iter().all(|octet| *octet == 0));
    // Version, pad, terminator and reserved octets are echoed unchanged (6.5.4.2).
    let mut odd = *bytes;
    for index in [15, 30, 33, 100] {
        odd[index] = 0xa5;
    }
    assert_eq!(parse(&odd), Ok(SlowPdu::Marker(marker())));
    let source = MacAddr::new([2, 0, 0, 0, 0, 1]);
    let response = Marker::response(&odd, source);
    let mut expected = odd;
    expected[6..12].copy_from_slice(&source.octets());
    expected[16] = 2;
    assert_eq!(*response.bytes(), expected);
    let answer = Marker { kind: MarkerKind::Response, ..marker() };
    assert_eq!(parse(response.bytes()), Ok(SlowPdu::Marker(answer)));
}

/// Row: modification of a valid frame, and the results of `parse` and `parse_exact`.
type Case = (&'static str, bool, fn(&mut Vec<u8>), Result<(), PduError>, Result<(), PduError>);

fn length(field: &'static str, offset: usize, found: u8, expected: u8) -> Result<(), PduError> {
    Err(PduError::TlvLength { field, offset, found, expected })
}

fn wrong_type(field: &'static str, offset: usize, found: u8, expected: u8) -> Result<(), PduError> {
    Err(PduError::TlvType { field, offset, found, expected })
}

fn cut(field: &'static str, offset: usize, bytes: usize) -> Result<(), PduError> {
    Err(PduError::Truncated { field, offset, bytes })
}

fn reserved(field: &'static str, offset: usize) -> Result<(), PduError> {
    Err(PduError::Reserved { field, offset })
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    const ACTOR: &str = "actor information length";
    const PARTNER: &str = "partner information length";
    const COLLECTOR: &str = "collector information length";
    const MARKER: &str = "marker information length";
    let other = MacAddr::new([1, 0x80, 0xc2, 0, 0, 3]);
    let both = |error: Result<(), PduError>| (error, error);
    let mut cases: Vec<Case> = Vec::new();
    let mut case = |clause, is_lacp, change, (receiver, judge)| {
        cases.push((clause, is_lacp, change, receiver, judge));
    };
    // 6.4.12: version, TLV types and reserved fields are not validated.
    case("6.4.12 version 0", true, |f| f[15] = 0, (Ok(()), Err(PduError::Version { found: 0 })));
    case("6.4.12 version 2", true, |f| f[15] = 2, (Ok(()), Err(PduError::Version { found: 2 })));
    case("6.4.12 version 255", true, |f| f[15] = 255, (Ok(()), Err(PduError::Version { found: 255 })));
    case("6.4.12 actor TLV type", true, |f| f[16] = 7, (Ok(()), wrong_type("actor TLV type", 16, 7, 1)));
    case("6.4.12 partner TLV type", true, |f| f[36] = 7, (Ok(()), wrong_type("partner TLV type", 36, 7, 2)));
    case("6.4.12 collector TLV type", true, |f| f[56] = 7, (Ok(()), wrong_type("collector TLV type", 56, 7, 3)));
    case("6.4.12 terminator TLV type", true, |f| f[72] = 7, (Ok(()), wrong_type("terminator TLV type", 72, 7, 0)));
    case("6.4.12 actor reserved", true, |f| f[34] = 1, (Ok(()), reserved("actor reserved octets", 34)));
    case("6.4.12 partner reserved", true, |f| f[55] = 1, (Ok(()), reserved("partner reserved octets", 55)));
    case("6.4.12 collector reserved", true, |f| f[60] = 1, (Ok(()), reserved("collector reserved octets", 60)));
    case("6.4.12 last reserved", true, |f| f[123] = 1, (Ok(()), reserved("reserved octets", 123)));
    // 6.4.12: lengths may be validated; a PDU that contradicts the layout is rejected.
    case("6.4.12 actor length", true, |f| f[17] = 19, both(length(ACTOR, 17, 19, 20)));
    case("6.4.12 partner length", true, |f| f[37] = 0, both(length(PARTNER, 37, 0, 20)));
    case("6.4.12 collector length", true, |f| f[57] = 255, both(length(COLLECTOR, 57, 255, 16)));
    case("6.4.12 terminator length", true, |f| f[73] = 2, both(length("terminator length", 73, 2, 0)));
    // 6.4.2.4: version 2 has further TLVs where version 1 has its terminator.
    case("6.4.2.4 port algorithm TLV", true, |f| { f[15] = 2; f[72] = 4; f[73] = 6; f[76] = 9; },
         (Ok(()), Err(PduError::Version { found: 2 })));
    case("6.4.2.3 trailing octets", true, |f| f.resize(1514, 0xff), (Ok(()), Ok(())));
    case("57A.3 oversize", true, |f| f.resize(1515, 0), both(Err(PduError::Oversize { bytes: 1515, max: 1514 })));
    case("57A.3 destination", true, |f| f[5] = 3, both(Err(PduError::Destination { found: other })));
    case("57A.4 type", true, |f| f[13] = 0, both(Err(PduError::EtherType { found: 0x8800 })));
    case("57A.4 subtype 0", true, |f| f[14] = 0, both(Err(PduError::Subtype { found: 0 })));
    case("57A.4 subtype 11", true, |f| f[14] = 11, both(Err(PduError::Subtype { found: 11 })));
    case("empty", true, Vec::clear, both(cut("destination", 0, 0)));
    case("cut in source", true, |f| f.truncate(11), both(cut("source", 6, 11)));
    case("cut in type", true, |f| f.truncate(13), both(cut("type", 12, 13)));
    case("cut before subtype", true, |f| f.truncate(14), both(cut("subtype", 14, 14)));
    case("cut before version", true, |f| f.truncate(15), both(cut("version", 15, 15)));
    case("cut in actor", true, |f| f.truncate(32), both(cut("actor information", 18, 32)));
    case("cut in partner", true, |f| f.truncate(38), both(cut("partner information", 38, 38)));
    case("cut in collector", true, |f| f.truncate(59), both(cut("collector max delay", 58, 59)));
    case("cut in actor's reserved", true, |f| f.truncate(35), both(cut("actor reserved octets", 33, 35)));
    case("cut in partner's reserved", true, |f| f.truncate(54), both(cut("partner reserved octets", 53, 54)));
    case("cut in collector's reserved", true, |f| f.truncate(62), both(cut("collector reserved octets", 60, 62)));
    case("cut before terminator", true, |f| f.truncate(72), both(cut("terminator TLV type", 72, 72)));
    case("cut in reserved", true, |f| f.truncate(123), both(cut("reserved octets", 74, 123)));
    case("cut in reserved, version 2", true, |f| { f[15] = 2; f.truncate(100); }, both(cut("reserved octets", 74, 100)));
    case("cut after collector, version 2", true, |f| { f[15] = 2; f.truncate(72); }, both(cut("TLV after the collector's", 72, 72)));
    case("cut in the next TLV, version 2", true, |f| { f[15] = 2; f.truncate(73); }, both(cut("TLV after the collector's", 72, 73)));
    case("6.5.3.3 marker TLV type", false, |f| f[16] = 3, both(wrong_type("marker TLV type", 16, 3, 1)));
    case("6.5.3.3 marker length", false, |f| f[17] = 14, both(length(MARKER, 17, 14, 16)));
    case("6.5.3.3 marker version", false, |f| f[15] = 9, (Ok(()), Err(PduError::Version { found: 9 })));
    case("6.5.3.3 marker pad", false, |f| f[31] = 9, (Ok(()), reserved("pad", 31)));
    case("6.5.3.3 marker terminator", false, |f| f[32] = 9, (Ok(()), wrong_type("terminator TLV type", 32, 9, 0)));
    case("6.5.3.3 marker terminator length", false, |f| f[33] = 9, (Ok(()), length("terminator length", 33, 9, 0)));
    case("6.5.3.3 marker reserved", false, |f| f[34] = 9, (Ok(()), reserved("reserved octets", 34)));
    case("cut in transaction", false, |f| f.truncate(27), both(cut("requester transaction", 26, 27)));
    case("cut in marker's reserved", false, |f| f.truncate(120), both(cut("pad and reserved octets", 30, 120)));
    cases
}

#[test]
fn errors_contain_their_position_and_ignored_fields_may_differ() {
    for (name, is_lacp, change, receiver, judge) in cases() {
        let frame = if is_lacp { lacpdu().to_frame(SOURCE) } else { marker().to_frame(SOURCE) };
        let mut bytes = frame.bytes().to_vec();
        change(&mut bytes);
        assert_eq!(parse(&bytes).map(drop), receiver, "{name}");
        assert_eq!(parse_exact(&bytes).map(drop), judge, "{name}");
        if let (true, Ok(SlowPdu::Lacp(pdu))) = (is_lacp, parse(&bytes)) {
            assert_eq!(pdu, Lacpdu { version: pdu.version, ..lacpdu() }, "{name}");
        }
    }
}

#[test]
fn other_slow_protocols_are_distinguished() {
    for subtype in 3..=10 {
        let mut bytes = *lacpdu().to_frame(SOURCE).bytes();
        bytes[14] = subtype;
        assert_eq!(parse(&bytes[..15]), Ok(SlowPdu::Other { subtype }));
    }
}

#[test]
fn a_recorded_frame_is_read_back_and_one_of_another_length_is_refused() {
    let frame = lacpdu().to_frame(SOURCE);
    let json = serde_json::to_string(&frame).unwrap();
    assert_eq!(serde_json::from_str::<super::super::SlowFrame>(&json).unwrap(), frame);
    let error = serde_json::from_str::<super::super::SlowFrame>("[1,2,3]").unwrap_err();
    assert!(error.to_string().contains("has 3 bytes instead of 124"), "{error}");
}

fn end() -> impl Strategy<Value = PortInfo> {
    any::<[u8; 15]>().prop_map(PortInfo::from_octets)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..1600)) {
        let _ = parse(&bytes);
        let _ = parse_exact(&bytes);
    }

    #[test]
    fn a_modified_frame_is_read_or_refused_at_a_position_within_it(
        changes in proptest::collection::vec((0..SLOW_FRAME_BYTES, any::<u8>()), 0..8),
        bytes in 0..=SLOW_FRAME_BYTES,
    ) {
        let mut frame = *lacpdu().to_frame(SOURCE).bytes();
        for (index, octet) in changes {
            frame[index] = octet;
        }
        match parse_exact(&frame[..bytes]) {
            Err(PduError::Truncated { offset, .. }) => prop_assert!(offset <= bytes),
            Err(
                PduError::TlvType { offset, .. }
                | PduError::TlvLength { offset, .. }
                | PduError::Reserved { offset, .. },
            ) => prop_assert!(offset < bytes),
            _ => {}
        }
    }

    #[test]
    fn encoded_frames_decode_to_the_same_pdu(
        (version, collector_max_delay) in any::<(u8, u16)>(),
        (actor, partner) in (end(), end()),
        (requester_port, transaction, system) in any::<(u16, u32, [u8; 6])>(),
        is_response in any::<bool>(),
    ) {
        let pdu = Lacpdu { version, actor, partner, collector_max_delay };
        prop_assert_eq!(parse(pdu.to_frame(SOURCE).bytes()), Ok(SlowPdu::Lacp(pdu)));
        let kind = if is_response { MarkerKind::Response } else { MarkerKind::Information };
        let requester_system = MacAddr::new(system);
        let marker = Marker { kind, requester_port, requester_system, transaction };
        prop_assert_eq!(parse_exact(marker.to_frame(SOURCE).bytes()), Ok(SlowPdu::Marker(marker)));
    }
}
