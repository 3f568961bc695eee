use std::collections::BTreeSet;

use super::*;

/// A UDP/IPv4 frame with this source port.
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
    frame.fill(bytes);
    flow_hash(&frame)
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
fn all_fragments_of_a_datagram_belong_together() {
    let mut first = udp(5);
    first[20] = 0x20;
    let mut later = udp(0xabcd);
    later[21] = 0x10;
    assert_eq!(hash(&first), hash(&later));
    assert_ne!(hash(&first), hash(&udp(5)));
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
fn addresses_protocol_and_link_addresses_matter_where_they_are_all_there_is() {
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

/// Hashes may be kept, in records and on other hosts: they must not change.
#[test]
fn the_hash_is_fixed() {
    assert_eq!(hash(&udp(5)), 4_165_901_848);
    assert_eq!(hash(&[]), 2_108_465_966);
}
