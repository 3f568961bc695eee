use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Returns a UDP/IPv4 frame with this source port.
fn udp(port: u16) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[23] = 17;
    bytes[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[34..36].copy_from_slice(&port.to_be_bytes());
    bytes
}

fn hash(bytes: &[u8]) -> u32 {
    let mut frame = Frame::new(0);
    frame.set_bytes(bytes);
    flow_hash(&frame)
}

fn hash_by(bytes: &[u8], fields: FlowFields) -> u32 {
    let mut frame = Frame::new(0);
    frame.set_bytes(bytes);
    Flow::new(&frame).hash(fields)
}

#[test]
fn flows_spread_evenly_over_few_queues() {
    for queues in [2, 3, 4, 7, 8, 16] {
        let mut counts = vec![0u32; queues];
        for port in 0..8000 {
            counts[hash(&udp(port)) as usize % queues] += 1;
        }
        let even = 8000 / queues as u32;
        assert!(counts.iter().all(|count| count.abs_diff(even) < even / 5), "{counts:?}");
    }
    let hashes: BTreeSet<u32> = (0..8000).map(|port| hash(&udp(port))).collect();
    assert!(hashes.len() > 7980);
}

#[test]
fn fragments_of_a_datagram_share_a_hash() {
    let mut first = udp(5);
    first[20] = 0x20;
    let mut later = udp(0xabcd);
    later[21] = 0x10;
    assert_eq!(hash(&first), hash(&later));
    assert_ne!(hash(&first), hash(&udp(5)));
}

/// The first fragment may end within the transport header or the extension headers.
#[test]
fn truncated_first_fragments_share_the_hash_of_their_datagram() {
    let mut first = udp(5);
    first[20] = 0x20;
    first[23] = 6;
    first.truncate(42);
    let mut later = udp(0xabcd);
    later[21] = 0x10;
    later[23] = 6;
    for fields in [FlowFields::Ports, FlowFields::Addresses] {
        assert_eq!(hash_by(&first, fields), hash_by(&later, fields));
    }
}

/// Returns a fragment of a UDP/IPv6 packet with destination options.
fn ipv6_fragment(offset_and_more: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 54];
    bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
    bytes[14] = 0x60;
    bytes[20] = 44;
    bytes[22..54].fill(7);
    bytes.extend_from_slice(&[60, 0, offset_and_more[0], offset_and_more[1], 0, 0, 0, 9]);
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn ipv6_fragments_share_a_hash_regardless_of_extension_headers() {
    let header = [17, 0, 1, 4, 0, 0, 0, 0, 0, 53, 0, 53, 0, 16, 0, 0];
    let first = ipv6_fragment([0, 1], &header);
    let cut_in_options = ipv6_fragment([0, 1], &[17, 9, 1, 4]);
    let later = ipv6_fragment([0, 8], &[0xab; 40]);
    for fields in [FlowFields::Ports, FlowFields::Addresses] {
        assert_eq!(hash_by(&first, fields), hash_by(&later, fields));
        assert_eq!(hash_by(&cut_in_options, fields), hash_by(&later, fields));
    }
}

#[test]
fn hash_depends_only_on_selected_fields() {
    let mut other_address = udp(5);
    other_address[29] = 9;
    let mut other_mac = udp(5);
    other_mac[11] = 9;
    let mut icmp = udp(5);
    icmp[23] = 1;
    for (fields, frame, differs) in [
        (FlowFields::Ports, &udp(6), true),
        (FlowFields::Ports, &other_address, true),
        (FlowFields::Ports, &icmp, true),
        (FlowFields::Ports, &other_mac, false),
        (FlowFields::Addresses, &udp(6), false),
        (FlowFields::Addresses, &other_address, true),
        (FlowFields::Addresses, &icmp, false),
        (FlowFields::Addresses, &other_mac, false),
        (FlowFields::Macs, &udp(6), false),
        (FlowFields::Macs, &other_address, false),
        (FlowFields::Macs, &icmp, false),
        (FlowFields::Macs, &other_mac, true),
    ] {
        assert_eq!(hash_by(&udp(5), fields) != hash_by(frame, fields), differs, "{fields:?}");
    }
}

#[test]
fn the_vlan_matters_to_mac_addresses_and_its_priority_does_not() {
    let mut frame = Frame::new(0);
    frame.set_bytes(&udp(5));
    let hashes: Vec<u32> = [None, Some(0x0000), Some(0x0007), Some(0xe007), Some(0x0008)]
        .into_iter()
        .map(|tci| {
            frame.meta.tag = tci.map(crate::VlanTag::from_tci);
            Flow::new(&frame).hash(FlowFields::Macs)
        })
        .collect();
    assert_eq!((hashes[0], hashes[2]), (hashes[1], hashes[3]));
    assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn payload_checksum_and_identification_do_not_matter() {
    let mut other = udp(5);
    other[18] = 9;
    other[40] = 9;
    other[59] = 9;
    assert_eq!(hash(&udp(5)), hash(&other));
}

#[test]
fn hash_falls_back_to_addresses_and_macs() {
    let mut icmp = udp(5);
    icmp[23] = 1;
    let mut far = icmp.clone();
    far[29] = 9;
    let mut arp = udp(5);
    arp[13] = 0x06;
    let mut other_station = arp.clone();
    other_station[11] = 1;
    let hashes: BTreeSet<u32> =
        [&udp(5), &icmp, &far, &arp, &other_station].iter().map(|bytes| hash(bytes)).collect();
    assert_eq!(hashes.len(), 5);
}

/// Hashes may be stored in records and on other hosts and must not change.
#[test]
fn the_hash_is_fixed() {
    assert_eq!(hash(&udp(5)), 4_165_901_848);
    assert_eq!(hash(&[]), 2_108_465_966);
}

/// Returns a TCP or UDP packet with space for every header evaluated.
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

/// The fast path reads fields at fixed offsets.
#[test]
fn fast_path_accepts_only_plain_packets() {
    let is_plain = |bytes: &[u8]| Plain::parse(bytes).is_some();
    for is_ipv6 in [false, true] {
        assert!(is_plain(&packet(is_ipv6, 6)) && is_plain(&packet(is_ipv6, 17)));
        let end = if is_ipv6 { 58 } else { 38 };
        assert!(is_plain(&packet(is_ipv6, 6)[..end]));
        assert!(!is_plain(&packet(is_ipv6, 6)[..end - 1]));
        for protocol in [0, 1, 2, 44, 58] {
            assert!(!is_plain(&packet(is_ipv6, protocol)));
        }
    }
    for (index, byte) in [(12, 0x81), (13, 0x06), (14, 0x46), (14, 0x65), (20, 0x20), (21, 1)] {
        let mut bytes = packet(false, 6);
        bytes[index] = byte;
        assert!(!is_plain(&bytes), "{index}");
    }
}

proptest! {
    #[test]
    fn fast_path_equals_full_parser(
        is_ipv6: bool,
        protocol in prop::sample::select(vec![6_u8, 17, 17, 1, 44, 58]),
        changes in prop::collection::vec((12_usize..64, any::<u8>()), 0..3),
        tci in prop::option::of(0_u16..3),
        bytes in 0_usize..=80,
        is_whole: bool,
    ) {
        let mut packet = packet(is_ipv6, protocol);
        for (index, byte) in changes {
            packet[index] = byte;
        }
        let mut frame = Frame::new(0);
        frame.set_bytes(&packet[..if is_whole { packet.len() } else { bytes }]);
        frame.meta.tag = tci.map(VlanTag::from_tci);
        for fields in [FlowFields::Ports, FlowFields::Addresses, FlowFields::Macs] {
            prop_assert_eq!(FlowKey::new(&frame, fields), FlowKey::from_headers(&frame, fields));
        }
    }
}
