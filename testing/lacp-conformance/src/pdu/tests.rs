//! Tests of the codec with frames written manually, octet by octet.

use super::*;

/// Returns an LACPDU written from the figure in the standard, independent of the encoder.
fn by_hand() -> Vec<u8> {
    let mut frame = vec![
        0x01, 0x80, 0xc2, 0, 0, 0x02, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x88, 0x09, 1,
        1, // header
        1, 20, 0x80, 0x01, 2, 0, 0, 0, 0, 0xaa, 0x12, 0x34, 0, 0xff, 0x00, 0x07, 0x3d, 0, 0, 0, 2,
        20, 0x40, 0x02, 2, 0, 0, 0, 0, 0xbb, 0x56, 0x78, 0, 0x7f, 0x01, 0x08, 0xc2, 0, 0, 0, 3, 16,
        0x00, 0x32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    frame.extend([0; 50]);
    frame
}

fn expected_lacpdu() -> Lacpdu {
    Lacpdu {
        source: [0x02, 0x11, 0x22, 0x33, 0x44, 0x55],
        version: 1,
        actor: PortInfo {
            system_priority: 0x8001,
            system: [2, 0, 0, 0, 0, 0xaa],
            key: 0x1234,
            port_priority: 0xff,
            port: 7,
            state: State(0x3d),
        },
        partner: PortInfo {
            system_priority: 0x4002,
            system: [2, 0, 0, 0, 0, 0xbb],
            key: 0x5678,
            port_priority: 0x7f,
            port: 0x108,
            state: State(0xc2),
        },
        collector_max_delay: 50,
    }
}

#[test]
fn an_lacpdu_is_the_octets_of_the_figure() {
    assert_eq!(expected_lacpdu().encode(), by_hand());
    assert_eq!(Kind::decode(&by_hand()), Kind::Lacp(expected_lacpdu()));
    assert_eq!(by_hand().len(), FRAME_BYTES);
    assert_eq!(lacpdu_violations(&by_hand()), Vec::<String>::new());
}

#[test]
fn a_marker_is_the_octets_of_the_figure() {
    let mut frame = vec![
        0x01, 0x80, 0xc2, 0, 0, 0x02, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x88, 0x09, 2,
        1, // header
        2, 16, 0x01, 0x02, 2, 3, 4, 5, 6, 7, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0,
    ];
    frame.extend([0; 90]);
    let marker = Marker {
        source: [0x02, 0x11, 0x22, 0x33, 0x44, 0x55],
        is_response: true,
        requester_port: 0x0102,
        requester_system: [2, 3, 4, 5, 6, 7],
        transaction: 0xdead_beef,
    };
    assert_eq!(marker.encode(), frame);
    assert_eq!(Kind::decode(&frame), Kind::Marker(marker));
    assert_eq!(marker_response_violations(&frame), Vec::<String>::new());
}

#[test]
fn every_octet_that_is_fixed_is_judged() {
    let open = [6..12, 18..33, 38..53, 58..60];
    for offset in 0..FRAME_BYTES {
        let mut frame = by_hand();
        frame[offset] ^= 0x41;
        // The EtherType and the subtype determine whether the frame is an LACPDU.
        let is_open =
            open.iter().any(|range| range.contains(&offset)) || (12..16).contains(&offset);
        let violations = lacpdu_violations(&frame);
        if offset == 6 {
            assert_eq!(violations.len(), 1, "a group address as source: {violations:?}");
        } else {
            assert_eq!(violations.is_empty(), is_open, "octet {offset}: {violations:?}");
        }
    }
}

#[test]
fn no_beginning_of_a_frame_is_read_beyond_its_end() {
    for frame in [by_hand(), Marker::decode(&marker()).unwrap().encode()] {
        for len in 0..frame.len() {
            let cut = &frame[..len];
            assert!(!lacpdu_violations(cut).is_empty(), "{len}");
            assert!(!marker_response_violations(cut).is_empty(), "{len}");
            if len < 30 {
                assert_eq!(Kind::decode(cut), Kind::Other, "{len}");
            }
        }
    }
}

fn marker() -> Vec<u8> {
    let mut frame = by_hand();
    frame[14] = 2;
    frame
}

#[test]
fn version_two_may_carry_more() {
    let mut frame = by_hand();
    frame[15] = 2;
    frame[72..80].copy_from_slice(&[4, 6, 1, 2, 3, 4, 0, 0]);
    assert_eq!(lacpdu_violations(&frame), Vec::<String>::new());
    frame[15] = 1;
    assert_eq!(lacpdu_violations(&frame).len(), 2);
}

#[test]
fn states_have_names() {
    assert_eq!(
        State(0x3d).to_string(),
        "activity+aggregation+synchronization+collecting+distributing"
    );
    assert_eq!(State(0xc2).to_string(), "short-timeout+defaulted+expired");
    assert_eq!(State(0).to_string(), "none");
    assert_eq!(State(0).with(State::IN_USE).without(State::DISTRIBUTING).0, 0x18);
}
