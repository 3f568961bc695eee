//! Frames that are taken for the same flow have the same key, whatever the algorithm.

use proptest::prelude::*;
use suimon_frame::{Flow, FlowFields};

use super::*;

/// A TCP or UDP packet that has room for every header that is looked at.
fn packet(is_ipv6: bool, protocol: u8) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if is_ipv6 {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, protocol, 64]);
        bytes.extend([0xfd; 32]);
    } else {
        bytes.extend([0x08, 0x00, 0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, protocol, 0, 0]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    }
    bytes.extend([0, 68, 0, 67]);
    bytes.resize(80, 0);
    bytes
}

fn frame(bytes: &[u8], tag: Option<VlanTag>) -> Frame {
    let mut frame = Frame::new(0);
    frame.fill(bytes);
    frame.meta.tag = tag;
    frame
}

/// All that a key is made of but the port.
fn key_parts(frame: &Frame) -> (Vec<u32>, bool) {
    let flow = Flow::of(frame);
    let fields = [FlowFields::Ports, FlowFields::Addresses, FlowFields::Macs];
    (fields.into_iter().map(|of| flow.hash(of)).collect(), flow.binds_source())
}

#[test]
fn what_differs_in_every_packet_of_a_flow_does_not_matter() {
    for (is_ipv6, changing) in [(false, &[15, 18, 19, 22, 24, 25, 38, 42][..]), (true, &[15, 21])] {
        for protocol in [6, 17] {
            let bytes = packet(is_ipv6, protocol);
            let first = Alike::of(&frame(&bytes, None));
            assert!(first.is_some());
            for at in changing {
                let mut bytes = bytes.clone();
                bytes[*at] ^= 0x01;
                assert!(Alike::of(&frame(&bytes, None)) == first, "{at}");
            }
        }
    }
}

#[test]
fn what_is_neither_tcp_nor_udp_is_looked_at_each_time() {
    for (is_ipv6, protocol) in [(false, 1), (false, 2), (true, 0), (true, 58)] {
        assert!(Alike::of(&frame(&packet(is_ipv6, protocol), None)).is_none());
    }
    for kind in [[0x08, 0x06], [0x81, 0x00], [0x88, 0xa8]] {
        let mut bytes = packet(false, 6);
        bytes[12..14].copy_from_slice(&kind);
        assert!(Alike::of(&frame(&bytes, None)).is_none());
    }
    assert!(Alike::of(&frame(&packet(true, 6)[..57], None)).is_none());
    assert!(Alike::of(&frame(&packet(false, 6)[..37], None)).is_none());
}

proptest! {
    #[test]
    fn frames_that_are_alike_have_the_same_key(
        is_ipv6: bool,
        protocol in prop::sample::select(vec![6_u8, 17]),
        // The packet's length is left alone: a packet that says it is shorter than its
        // headers has no ports, and where it leaves does not matter.
        changes in prop::collection::vec((0_usize..80, 1_u8..), 0..3),
        tags in prop::array::uniform2(prop::option::of(0_u16..3)),
    ) {
        let bytes = packet(is_ipv6, protocol);
        let mut other = bytes.clone();
        let length = if is_ipv6 { 18..20 } else { 16..18 };
        for (at, change) in changes.into_iter().filter(|(at, _)| !length.contains(at)) {
            other[at] ^= change;
        }
        let [one, other] =
            [(bytes, tags[0]), (other, tags[1])].map(|(bytes, tag)| frame(&bytes, tag.map(VlanTag::from_tci)));
        if Alike::of(&one) == Alike::of(&other) {
            prop_assert_eq!(key_parts(&one), key_parts(&other));
        }
    }
}
