//! Which flow a frame belongs to.

use crate::ip::{IpHeader, IpPacket, Network, ip_packet, protocol};
use crate::octets::{array, u16_at, u32_at};
use crate::source_binding::{DHCP_REQUEST, is_bound};
use crate::{Frame, VlanId, VlanTag};

/// Odd constants with well spread bits; fixed, so that a flow keeps its hash
/// across runs, hosts and versions.
const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

/// What tells flows apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum FlowFields {
    /// IP addresses, protocol, and the ports of TCP and UDP.
    Ports,
    /// IP addresses.
    Addresses,
    /// MAC addresses and VLAN.
    Macs,
}

/// A hash that is the same for all frames of a flow, so that they keep their
/// order on one queue or link: [`Flow::hash`] with [`FlowFields::Ports`].
pub fn flow_hash(frame: &Frame) -> u32 {
    FlowKey::of(frame, FlowFields::Ports).hash
}

/// What is to be known of a frame's flow to choose a link for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// See [`Flow::hash`].
    pub hash: u32,
    /// See [`Flow::binds_source`].
    pub binds_source: bool,
}

impl FlowKey {
    /// The same as [`Flow`] says, sooner for the packets that nearly all are.
    // Asked for each frame; the compiler by itself leaves it a call.
    #[inline(always)]
    pub fn of(frame: &Frame, fields: FlowFields) -> Self {
        let Some(plain) = Plain::of(frame.front()) else { return Self::of_any(frame, fields) };
        let hash = match fields {
            FlowFields::Ports => finish(mix(plain.addresses, plain.transport)),
            FlowFields::Addresses => finish(mix(plain.addresses, 0)),
            FlowFields::Macs => macs_hash(frame.front(), vlan_bits(frame.meta.tag)),
        };
        Self { hash, binds_source: plain.transport == DHCP_TRANSPORT }
    }

    #[inline(never)]
    fn of_any(frame: &Frame, fields: FlowFields) -> Self {
        let flow = Flow::of(frame);
        Self { hash: flow.hash(fields), binds_source: flow.binds_source() }
    }
}

/// What [`Flow::hash`] mixes of a TCP or UDP packet in one piece, with neither tags in
/// its bytes nor options or extensions. All there is to such a packet stands at fixed
/// places.
struct Plain {
    /// Mixed.
    addresses: u64,
    transport: u64,
}

impl Plain {
    #[inline(always)]
    fn of(bytes: &[u8]) -> Option<Self> {
        let kind = u32_at(bytes, 12)? >> 8;
        let (addresses, protocol, ports) = if kind == 0x08_0045 {
            let head = bytes.first_chunk::<38>()?;
            if u16_at(head, 20)? & 0x3fff != 0 {
                return None;
            }
            (mix(KEY, word(head, 26)?), head[23], u32_at(head, 34)?)
        } else if kind >> 4 == 0x8_6dd6 {
            let head = bytes.first_chunk::<58>()?;
            (mix_all(array(head, 22)?), head[20], u32_at(head, 54)?)
        } else {
            return None;
        };
        let is_ported = protocol == protocol::TCP || protocol == protocol::UDP;
        is_ported.then_some(Self { addresses, transport: transport_of(ports, protocol) })
    }
}

/// What of a frame says which flow it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    bytes: &'a [u8],
    tag: Option<VlanTag>,
    packet: Option<IpPacket>,
}

impl<'a> Flow<'a> {
    /// Reads the headers of a frame.
    #[inline]
    pub fn of(frame: &'a Frame) -> Self {
        let bytes = frame.front();
        Self { bytes, tag: frame.meta.tag, packet: ip_packet(bytes) }
    }

    /// A hash that is the same for all frames that have these fields in common. The
    /// two directions of a flow differ.
    ///
    /// Of fragments, and of packets whose headers cannot be read to the transport's,
    /// the addresses alone count, so that all fragments of a datagram stay together
    /// whatever the first one holds. Of what is not IP the MAC addresses and the type
    /// count.
    #[inline]
    pub fn hash(&self, fields: FlowFields) -> u32 {
        if fields == FlowFields::Macs {
            return macs_hash(self.bytes, vlan_bits(self.tag));
        }
        let Some(packet) = self.packet else { return link_hash(self.bytes) };
        let addresses = match packet.network {
            Network::Ipv4 => word(self.bytes, packet.at + 12).map(|pair| mix(KEY, pair)),
            Network::Ipv6 => array::<32>(self.bytes, packet.at + 8).map(mix_all),
            Network::Other => None,
        };
        let Some(addresses) = addresses else { return link_hash(self.bytes) };
        let transport = match packet.header {
            Some(header) if fields == FlowFields::Ports => transport_word(self.bytes, header),
            _ => 0,
        };
        finish(mix(addresses, transport))
    }

    /// Whether somebody goes by the frame's source address, so that a link that shows
    /// another one in its place must not be taken.
    ///
    /// True of everything that is not IP: ARP, and protocols that answer to the source.
    /// Of IP it is true of neighbour discovery (RFC 4861), of multicast listener
    /// discovery (RFC 3810) and IGMP (RFC 9776), by which switches learn where members
    /// of a group are, and of a DHCP client's requests, which switches compare with the
    /// address inside. IP hosts answer everything else to the address that ARP or
    /// neighbour discovery told them.
    ///
    /// Fragments of ICMPv6 and UDP all count as other packets do, so that they stay
    /// together: neighbour discovery is never fragmented (RFC 6980).
    #[inline]
    pub fn binds_source(&self) -> bool {
        let Some(packet) = self.packet else { return true };
        packet.header.is_some_and(|header| is_bound(self.bytes, packet.network, header))
    }
}

/// Ports and protocol; 0 for a fragment.
#[inline]
fn transport_word(bytes: &[u8], header: IpHeader) -> u64 {
    if header.fragment.is_some() {
        return 0;
    }
    let ports = match header.protocol {
        protocol::TCP | protocol::UDP => {
            array(bytes, header.end).map_or(0, |ports| u32::from_be_bytes(*ports))
        }
        _ => 0,
    };
    transport_of(ports, header.protocol)
}

#[inline]
const fn transport_of(ports: u32, protocol: u8) -> u64 {
    (ports as u64) << 8 | protocol as u64
}

/// A DHCP client's request.
const DHCP_TRANSPORT: u64 = transport_of(u32::from_be_bytes(DHCP_REQUEST), protocol::UDP);

#[inline]
fn vlan_bits(tag: Option<VlanTag>) -> u64 {
    u64::from(tag.and_then(VlanTag::vlan).map_or(0, VlanId::get)) << 48
}

fn link_hash(bytes: &[u8]) -> u32 {
    let kind = array(bytes, 12).map_or(0, |kind| u64::from(u16::from_be_bytes(*kind)));
    macs_hash(bytes, kind)
}

/// A hash of the two addresses and of what else is in `rest`, whose bits 16 to 47
/// are 0.
#[inline]
fn macs_hash(bytes: &[u8], rest: u64) -> u32 {
    let first = word(bytes, 0).unwrap_or_default();
    let second = array(bytes, 8).map_or(0, |tail| u64::from(u32::from_be_bytes(*tail)));
    finish(mix(mix(KEY, first), second << 16 | rest))
}

#[inline]
fn mix_all(addresses: &[u8; 32]) -> u64 {
    let words = addresses.chunks_exact(8).filter_map(|chunk| word(chunk, 0));
    words.fold(KEY, mix)
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(|word| u64::from_be_bytes(*word))
}

/// One multiplication whose high half is folded in, so that every bit of the
/// input reaches every bit of the output.
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
