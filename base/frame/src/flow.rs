//! Flow identification and hashing.

use crate::ip::{IpHeader, IpPacket, Network, locate_ip_packet, protocol};
use crate::octets::{array_at, u16_at, u32_at};
use crate::source_mac::{DHCP_REQUEST_PORTS, must_keep_source_mac};
use crate::{Frame, VlanId, VlanTag};

/// Odd constants with well-distributed bits; fixed, so that hashes are stable across runs, hosts
/// and versions.
const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

/// Header fields that distinguish flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum FlowFields {
    /// IP addresses, protocol, and TCP or UDP ports.
    Ports,
    /// IP source and destination address.
    Addresses,
    /// MAC addresses and VLAN of the frame.
    Macs,
}

/// Returns a hash common to all frames of a flow, so that they stay in order on one queue or link:
/// [`Flow::hash`] with [`FlowFields::Ports`].
pub fn flow_hash(frame: &Frame) -> u32 {
    FlowKey::new(frame, FlowFields::Ports).hash
}

/// Flow properties by which a team selects a link for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// Hash of the flow, from [`Flow::hash`].
    pub hash: u32,
    /// True if the source address must be preserved, from [`Flow::requires_source_mac`].
    pub requires_source_mac: bool,
}

impl FlowKey {
    /// Computes the same values as [`Flow`], with a fast path for the most common packets.
    // Called for each frame; the compiler does not inline it by itself.
    #[inline(always)]
    pub fn new(frame: &Frame, fields: FlowFields) -> Self {
        let Some(plain) = Plain::parse(frame.head()) else {
            return Self::from_headers(frame, fields);
        };
        let hash = match fields {
            FlowFields::Ports => finish(mix(plain.addresses, plain.transport)),
            FlowFields::Addresses => finish(mix(plain.addresses, 0)),
            FlowFields::Macs => macs_hash(frame.head(), vlan_bits(frame.meta.tag)),
        };
        Self { hash, requires_source_mac: plain.transport == DHCP_TRANSPORT }
    }

    #[inline(never)]
    fn from_headers(frame: &Frame, fields: FlowFields) -> Self {
        let flow = Flow::new(frame);
        Self { hash: flow.hash(fields), requires_source_mac: flow.requires_source_mac() }
    }
}

/// Input of [`Flow::hash`] for an unfragmented TCP or UDP packet without tags in its bytes, IP
/// options or extensions. The fields are at fixed offsets in such a packet.
struct Plain {
    /// Mixed hash state of the addresses.
    addresses: u64,
    transport: u64,
}

impl Plain {
    #[inline(always)]
    fn parse(bytes: &[u8]) -> Option<Self> {
        let kind = u32_at(bytes, 12)? >> 8;
        let (addresses, protocol, ports) = if kind == 0x08_0045 {
            let headers = bytes.first_chunk::<38>()?;
            if u16_at(headers, 20)? & 0x3fff != 0 {
                return None;
            }
            (mix(KEY, word(headers, 26)?), headers[23], u32_at(headers, 34)?)
        } else if kind >> 4 == 0x8_6dd6 {
            let headers = bytes.first_chunk::<58>()?;
            (mix_all(array_at(headers, 22)?), headers[20], u32_at(headers, 54)?)
        } else {
            return None;
        };
        let is_ported = protocol == protocol::TCP || protocol == protocol::UDP;
        is_ported.then_some(Self { addresses, transport: transport_key(ports, protocol) })
    }
}

/// Parsed headers that identify a frame's flow.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    bytes: &'a [u8],
    tag: Option<VlanTag>,
    packet: Option<IpPacket>,
}

impl<'a> Flow<'a> {
    /// Parses the headers of a frame.
    #[inline]
    pub fn new(frame: &'a Frame) -> Self {
        let bytes = frame.head();
        Self { bytes, tag: frame.meta.tag, packet: locate_ip_packet(bytes) }
    }

    /// Returns a hash common to all frames with equal fields. The two directions of a flow have
    /// different hashes.
    ///
    /// For fragments, and packets without a readable transport header, only the addresses count, so
    /// that the fragments of a datagram have the same hash. For frames other than IP, the MAC
    /// addresses and the type count.
    #[inline]
    pub fn hash(&self, fields: FlowFields) -> u32 {
        if fields == FlowFields::Macs {
            return macs_hash(self.bytes, vlan_bits(self.tag));
        }
        let Some(packet) = self.packet else { return link_hash(self.bytes) };
        let addresses = match packet.network {
            Network::Ipv4 => word(self.bytes, packet.offset + 12).map(|pair| mix(KEY, pair)),
            Network::Ipv6 => array_at::<32>(self.bytes, packet.offset + 8).map(mix_all),
            Network::Other => None,
        };
        let Some(addresses) = addresses else { return link_hash(self.bytes) };
        let transport = match packet.header {
            Some(header) if fields == FlowFields::Ports => transport_bits(self.bytes, header),
            _ => 0,
        };
        finish(mix(addresses, transport))
    }

    /// Returns true if receivers evaluate the frame's source MAC address, so that a link that
    /// replaces the address must not be used.
    ///
    /// True for every protocol other than IP, such as ARP. Of IP, true for neighbour discovery (RFC
    /// 4861), for multicast listener discovery (RFC 3810) and IGMP (RFC 9776), by which switches
    /// locate group members, and for DHCP client requests, which switches compare with the address
    /// inside. IP hosts send all other replies to the address obtained by ARP or neighbour
    /// discovery.
    ///
    /// Fragments of ICMPv6 and UDP are treated like other packets, so that they stay together:
    /// neighbour discovery is never fragmented (RFC 6980).
    #[inline]
    pub fn requires_source_mac(&self) -> bool {
        let Some(packet) = self.packet else { return true };
        packet.header.is_some_and(|header| must_keep_source_mac(self.bytes, packet.network, header))
    }
}

/// Returns the ports and the protocol as one number (`transport_key`); 0 for a fragment.
#[inline]
fn transport_bits(bytes: &[u8], header: IpHeader) -> u64 {
    if header.fragment.is_some() {
        return 0;
    }
    let ports = match header.protocol {
        protocol::TCP | protocol::UDP => {
            array_at(bytes, header.end).map_or(0, |ports| u32::from_be_bytes(*ports))
        }
        _ => 0,
    };
    transport_key(ports, header.protocol)
}

#[inline]
const fn transport_key(ports: u32, protocol: u8) -> u64 {
    (ports as u64) << 8 | protocol as u64
}

/// Value of `transport_key` for a DHCP client's request.
const DHCP_TRANSPORT: u64 = transport_key(u32::from_be_bytes(DHCP_REQUEST_PORTS), protocol::UDP);

#[inline]
fn vlan_bits(tag: Option<VlanTag>) -> u64 {
    u64::from(tag.and_then(VlanTag::vlan).map_or(0, VlanId::get)) << 48
}

fn link_hash(bytes: &[u8]) -> u32 {
    let kind = array_at(bytes, 12).map_or(0, |kind| u64::from(u16::from_be_bytes(*kind)));
    macs_hash(bytes, kind)
}

/// Returns a hash of the two addresses and `low_bits`, in which bits 16 to 47 must be 0.
#[inline]
fn macs_hash(bytes: &[u8], low_bits: u64) -> u32 {
    let first = word(bytes, 0).unwrap_or_default();
    let second = array_at(bytes, 8).map_or(0, |tail| u64::from(u32::from_be_bytes(*tail)));
    finish(mix(mix(KEY, first), second << 16 | low_bits))
}

#[inline]
fn mix_all(addresses: &[u8; 32]) -> u64 {
    let words = addresses.chunks_exact(8).filter_map(|chunk| word(chunk, 0));
    words.fold(KEY, mix)
}

#[inline]
fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(|word| u64::from_be_bytes(*word))
}

/// Multiplies `state ^ word` and folds the high half into the result, so that each input bit
/// affects each output bit.
#[inline]
fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word) * u128::from(SPREAD);
    (product as u64) ^ ((product >> 64) as u64) ^ state.rotate_left(23)
}

#[inline]
fn finish(state: u64) -> u32 {
    let state = (state ^ (state >> 32)).wrapping_mul(KEY);
    (state >> 32) as u32
}

#[cfg(test)]
mod tests;
