use super::*;
use crate::VLAN_TAG_BYTES;

/// Returns an IPv6 frame with these extension headers before 20 bytes of TCP.
fn ipv6(extensions: &[&[u8]], first: u8) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, first, 64]);
    bytes.extend([0; 32]);
    bytes.extend(extensions.concat());
    bytes.extend([0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

fn ipv4(ihl: u8, fragment: u16, protocol: u8) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend([0x08, 0x00, 0x40 | ihl, 0, 0, 0, 0, 0]);
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol]);
    bytes.extend([0; 90]);
    bytes[14 + 4 * usize::from(ihl) + 12] = 0x50;
    bytes
}

#[test]
fn offsets_follow_tags_options_and_extensions() {
    let plain = Headers::parse(&ipv4(5, 0, 6)).unwrap();
    assert_eq!((plain.network_at, plain.transport_at, plain.payload_at), (14, 34, 54));
    assert_eq!((plain.network, plain.transport), (Network::Ipv4, Transport::Tcp));
    let optional = Headers::parse(&ipv4(8, 0, 17)).unwrap();
    assert_eq!((optional.transport_at, optional.payload_at), (46, 54));

    let mut tagged = ipv4(5, 0, 6);
    tagged.splice(12..12, [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2]);
    let tagged = Headers::parse(&tagged).unwrap();
    assert_eq!((tagged.network_at, tagged.payload_at), (14 + 2 * VLAN_TAG_BYTES, 62));

    let extended =
        ipv6(&[&[60, 0, 0, 0, 0, 0, 0, 0], &[6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]], 0);
    let extended = Headers::parse(&extended).unwrap();
    assert_eq!((extended.transport_at, extended.payload_at), (78, 98));
    assert_eq!(extended.transport, Transport::Tcp);
}

#[test]
fn fragments_are_recognised_and_later_ones_have_no_transport_header() {
    let part = |frame: &[u8]| Headers::parse(frame).map(|h| (h.fragment, h.transport)).unwrap();
    assert_eq!(part(&ipv4(5, 0x4000, 6)), (None, Transport::Tcp));
    assert_eq!(part(&ipv4(5, 0x2000, 6)), (Some(Fragment::First), Transport::Tcp));
    assert_eq!(part(&ipv4(5, 0x2001, 6)), (Some(Fragment::Later), Transport::Other(6)));
    assert_eq!(part(&ipv4(5, 0x0001, 6)), (Some(Fragment::Later), Transport::Other(6)));
    let v6 = |word: u8| ipv6(&[&[6, 0, 0, word, 0, 0, 0, 0]], 44);
    assert_eq!(part(&v6(0)), (None, Transport::Tcp));
    assert_eq!(part(&v6(1)), (Some(Fragment::First), Transport::Tcp));
    assert_eq!(part(&v6(8)), (Some(Fragment::Later), Transport::Other(6)));
    // Data after a later fragment's header is payload, even if the header announces another
    // extension.
    let hop_by_hop = ipv6(&[&[0, 0, 0, 8, 0, 0, 0, 0]], 44);
    assert_eq!(part(&hop_by_hop), (Some(Fragment::Later), Transport::Other(0)));
}

#[test]
fn extension_header_count_is_limited() {
    let hop: &[u8] = &[60, 0, 0, 0, 0, 0, 0, 0];
    let last: &[u8] = &[6, 0, 0, 0, 0, 0, 0, 0];
    let mut chain = vec![hop; 7];
    chain.push(last);
    assert_eq!(Headers::parse(&ipv6(&chain, 60)).unwrap().transport, Transport::Tcp);
    chain.insert(0, hop);
    assert_eq!(
        Headers::parse(&ipv6(&chain, 60)),
        Err(FrameHeaderError::TooManyExtensions { parsed_count: 8 })
    );
}

#[test]
fn inconsistent_headers_return_specific_errors() {
    let mut invalid = ipv4(5, 0, 6);
    invalid[14] = 0x65;
    assert_eq!(Headers::parse(&invalid), Err(FrameHeaderError::Version { expected: 4, found: 6 }));
    invalid[14] = 0x44;
    let too_small = FrameHeaderError::HeaderLength { layer: "IPv4", bytes: 16 };
    assert_eq!(Headers::parse(&invalid), Err(too_small));
    let mut short_tcp = ipv4(5, 0, 6);
    short_tcp[46] = 0x40;
    let too_small = FrameHeaderError::HeaderLength { layer: "TCP", bytes: 16 };
    assert_eq!(Headers::parse(&short_tcp), Err(too_small));
    assert_eq!(too_small.to_string(), "the TCP header has a length of 16 bytes, below the minimum");
}

#[test]
fn truncated_headers_are_rejected() {
    for frame in [ipv4(15, 0, 6), ipv6(&[&[6, 0, 0, 0, 0, 0, 0, 0]], 0)] {
        let complete = Headers::parse(&frame).unwrap();
        for len in 0..complete.payload_at {
            assert!(Headers::parse(&frame[..len]).is_err(), "{len}");
        }
        assert_eq!(Headers::parse(&frame[..complete.payload_at]), Ok(complete));
    }
}
