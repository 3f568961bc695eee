//! Announcement frames, which update a network's switches after a station has moved.

use std::net::Ipv4Addr;

use crate::ethernet::{VLAN_TAG_BYTES, ethertype};
use crate::{MacAddr, VlanTag};

/// Minimum length of an Ethernet frame in bytes, without FCS (IEEE 802.3-2022, 4A.4.2).
const FRAME_BYTES_MIN: usize = 60;
/// Maximum length of an announcement in bytes. A tag lengthens the frame without reducing its
/// padding, so that the frame has the minimum length after removal of the tag.
const BYTES_MAX: usize = FRAME_BYTES_MIN + VLAN_TAG_BYTES;

/// Hardware type Ethernet, protocol type IPv4, address lengths 6 and 4 (RFC 826, "Packet format").
const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 0x08, 0, 6, 4];
const ARP_REQUEST: [u8; 2] = [0, 1];
const REVERSE_REQUEST: [u8; 2] = [0, 3];

/// Broadcast frame from a station's address, without FCS: 60 bytes, or 64 with a tag. Switches that
/// forward it learn the new location of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    bytes: [u8; BYTES_MAX],
    is_tagged: bool,
}

impl Announcement {
    /// Creates a Reverse ARP request (RFC 903) in which `mac` requests its own IP address. It
    /// updates switches but no station's neighbour table, so that no IP address is required.
    pub fn reverse_arp(mac: MacAddr, tag: Option<VlanTag>) -> Self {
        let octets = mac.octets();
        let unknown = [0; 4];
        let fields =
            [&ETHERNET_AND_IPV4[..], &REVERSE_REQUEST, &octets, &unknown, &octets, &unknown];
        Self::new(mac, tag, ethertype::RARP, &fields)
    }

    /// Creates an ARP Announcement (RFC 5227, section 3): a request from `mac` with `address` as
    /// sender and target. Stations with an entry for the address update it.
    pub fn gratuitous_arp(mac: MacAddr, address: Ipv4Addr, tag: Option<VlanTag>) -> Self {
        let address = address.octets();
        let (octets, target_mac) = (mac.octets(), [0; 6]);
        let fields =
            [&ETHERNET_AND_IPV4[..], &ARP_REQUEST, &octets, &address, &target_mac, &address];
        Self::new(mac, tag, ethertype::ARP, &fields)
    }

    /// Returns the complete frame, starting with the destination address.
    pub fn bytes(&self) -> &[u8] {
        let len = if self.is_tagged { BYTES_MAX } else { FRAME_BYTES_MIN };
        self.bytes.get(..len).unwrap_or_default()
    }

    fn new(mac: MacAddr, tag: Option<VlanTag>, ethertype: u16, fields: &[&[u8]]) -> Self {
        let addresses = [MacAddr::BROADCAST.octets(), mac.octets()];
        let tag_fields = tag.map(|tag| [ethertype::VLAN.to_be_bytes(), tag.tci().to_be_bytes()]);
        let kind = ethertype.to_be_bytes();
        let octets = addresses
            .iter()
            .flatten()
            .chain(tag_fields.iter().flatten().flatten())
            .chain(&kind)
            .chain(fields.iter().copied().flatten())
            .copied();
        let mut bytes = [0; BYTES_MAX];
        bytes.iter_mut().zip(octets).for_each(|(to, from)| *to = from);
        Self { bytes, is_tagged: tag.is_some() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VlanId;

    const MAC: MacAddr = MacAddr::new([2, 0, 0, 0xaa, 0xbb, 0xcc]);

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the expected frame, padded with zeros to `len` bytes.
    fn padded(parts: &[&str], len: usize) -> String {
        let mut text = parts.concat();
        text.extend(std::iter::repeat_n('0', len * 2 - text.len()));
        text
    }

    #[test]
    fn a_reverse_arp_requests_its_own_address() {
        let addresses = ["ffffffffffff", "020000aabbcc"];
        let body =
            ["8035", "0001080006040003", "020000aabbcc", "00000000", "020000aabbcc", "00000000"];
        let plain = Announcement::reverse_arp(MAC, None);
        assert_eq!(hex(plain.bytes()), padded(&[&addresses[..], &body].concat(), 60));
        let tag = VlanId::new(0x0123).map(VlanTag::for_vlan);
        let tagged = Announcement::reverse_arp(MAC, tag);
        let expected = padded(&[&addresses[..], &["81000123"], &body].concat(), 64);
        assert_eq!(hex(tagged.bytes()), expected);
    }

    #[test]
    fn a_gratuitous_arp_is_a_request_for_its_own_address() {
        let addresses = ["ffffffffffff", "020000aabbcc"];
        let body =
            ["0806", "0001080006040001", "020000aabbcc", "c0a80207", "000000000000", "c0a80207"];
        let address = Ipv4Addr::new(192, 168, 2, 7);
        let plain = Announcement::gratuitous_arp(MAC, address, None);
        assert_eq!(hex(plain.bytes()), padded(&[&addresses[..], &body].concat(), 60));
        // The priority is part of the tag.
        let tag = Some(VlanTag::from_tci(0xe005));
        let tagged = Announcement::gratuitous_arp(MAC, address, tag);
        let expected = padded(&[&addresses[..], &["8100e005"], &body].concat(), 64);
        assert_eq!(hex(tagged.bytes()), expected);
    }
}
