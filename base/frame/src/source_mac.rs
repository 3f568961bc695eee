//! Detection of frames whose source MAC address must be preserved, because receivers evaluate it:
//! IGMP, ICMPv6 multicast listener and neighbour discovery, and requests of DHCP clients.

use crate::ip::{IpHeader, Network, protocol};
use crate::octets::{array_at, u8_at};

/// Ports of a DHCP client and server, as in the UDP header (RFC 2131, section 4.1).
pub(crate) const DHCP_REQUEST_PORTS: [u8; 4] = [0, 68, 0, 67];

/// Returns true if an IP packet with this header must keep its source MAC address; see
/// [`Flow::requires_source_mac`](crate::Flow::requires_source_mac).
#[inline]
pub(crate) fn must_keep_source_mac(bytes: &[u8], network: Network, header: IpHeader) -> bool {
    match header.protocol {
        // Only in IPv4, where each fragment contains the protocol of the datagram.
        protocol::IGMP => network == Network::Ipv4,
        protocol::ICMPV6 if header.fragment.is_none() => {
            // Multicast listener discovery: 130 to 132 and 143. Neighbour discovery: 133 to 137.
            matches!(u8_at(bytes, header.end), Some(130..=137 | 143))
        }
        protocol::UDP if header.fragment.is_none() => {
            array_at(bytes, header.end) == Some(&DHCP_REQUEST_PORTS)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Flow, Frame};

    const IPV4: [u8; 2] = [0x08, 0x00];
    const IPV6: [u8; 2] = [0x86, 0xdd];

    fn binds(bytes: &[u8]) -> bool {
        let mut frame = Frame::new(0);
        frame.set_bytes(bytes);
        Flow::new(&frame).requires_source_mac()
    }

    /// Returns a frame of this type with a packet of this protocol and payload.
    fn packet(kind: [u8; 2], protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; if kind == IPV4 { 34 } else { 54 }];
        bytes[12..14].copy_from_slice(&kind);
        bytes[14] = if kind == IPV4 { 0x45 } else { 0x60 };
        bytes[if kind == IPV4 { 23 } else { 20 }] = protocol;
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn address_announcing_protocols_require_the_source_mac() {
        for (kind, protocol, payload, bound) in [
            (IPV4, 6, &[0, 68, 0, 67][..], false),
            (IPV4, 17, &[0, 68, 0, 67], true),
            (IPV4, 17, &[0, 67, 0, 68], false),
            (IPV4, 17, &[0, 53, 0, 67], false),
            (IPV4, 17, &[], false),
            (IPV4, 2, &[0x16], true),
            (IPV4, 1, &[8], false),
            (IPV6, 58, &[128], false),
            (IPV6, 58, &[129], false),
            (IPV6, 58, &[130], true),
            (IPV6, 58, &[133], true),
            (IPV6, 58, &[135], true),
            (IPV6, 58, &[136], true),
            (IPV6, 58, &[137], true),
            (IPV6, 58, &[138], false),
            (IPV6, 58, &[143], true),
            (IPV6, 58, &[], false),
            (IPV6, 17, &[0, 53, 0, 53], false),
        ] {
            assert_eq!(binds(&packet(kind, protocol, payload)), bound, "{protocol} {payload:?}");
        }
        // A listener report follows a hop-by-hop header (RFC 3810, section 5).
        assert!(binds(&packet(IPV6, 0, &[58, 0, 5, 2, 0, 0, 1, 0, 143])));
    }

    #[test]
    fn non_ip_frames_require_the_source_mac() {
        for kind in [[0x08, 0x06], [0x80, 0x35], [0x88, 0x63], [0x88, 0xcc]] {
            assert!(binds(&packet(kind, 6, &[0; 20])));
        }
        assert!(binds(&[]));
        let mut other_version = packet(IPV4, 6, &[0; 20]);
        other_version[14] = 0x65;
        assert!(binds(&other_version));
        let tagged_arp = [&[0; 12][..], &[0x81, 0, 0, 5, 0x08, 0x06], &[0; 28]].concat();
        assert!(binds(&tagged_arp));
    }

    #[test]
    fn all_fragments_of_a_datagram_are_treated_alike() {
        let dhcp = packet(IPV4, 17, &[0, 68, 0, 67]);
        for fragment_field in [[0x20, 0], [0, 1], [0x20, 9]] {
            let mut fragment = dhcp.clone();
            fragment[20..22].copy_from_slice(&fragment_field);
            assert!(!binds(&fragment));
        }
        let later = packet(IPV6, 44, &[58, 0, 0, 8, 0, 0, 0, 1, 135]);
        let first = packet(IPV6, 44, &[58, 0, 0, 1, 0, 0, 0, 1, 135]);
        assert_eq!((binds(&first), binds(&later)), (false, false));
        // After destination options, only the first fragment would be recognized as IGMP.
        let later = packet(IPV6, 44, &[60, 0, 0, 8, 0, 0, 0, 1, 2]);
        let first = packet(IPV6, 44, &[60, 0, 0, 1, 0, 0, 0, 1, 2, 0, 1, 4, 0, 0, 0, 0, 0x16]);
        assert_eq!((binds(&first), binds(&later)), (false, false));
    }
}
