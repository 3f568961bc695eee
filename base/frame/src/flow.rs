//! Which flow a frame belongs to.

use crate::Frame;
use crate::headers::{Headers, Transport};
use crate::ip::Network;
use crate::octets::array;

/// Odd constants with well spread bits; fixed, so that a flow keeps its hash
/// across runs, hosts and versions.
const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

/// A hash that is the same for all frames of a flow, so that they keep their
/// order on one queue or link.
///
/// TCP and UDP: addresses, ports and protocol. Fragments and other IP packets:
/// addresses and protocol, so that all fragments of a datagram stay together.
/// Everything else: MAC addresses and type. The two directions of a flow differ.
pub fn flow_hash(frame: &Frame) -> u32 {
    let bytes = frame.front();
    let Ok(headers) = Headers::parse(bytes) else { return link_hash(bytes) };
    let addresses = match headers.network {
        Network::Ipv4 => word(bytes, headers.network_at + 12).map(|pair| mix(KEY, pair)),
        Network::Ipv6 => array::<32>(bytes, headers.network_at + 8).map(mix_all),
        Network::Other => None,
    };
    let Some(addresses) = addresses else { return link_hash(bytes) };
    let ports = match headers.transport {
        Transport::Tcp | Transport::Udp if headers.fragment.is_none() => {
            array(bytes, headers.transport_at).map_or(0, |ports| u32::from_be_bytes(*ports))
        }
        _ => 0,
    };
    let protocol = match headers.transport {
        Transport::Tcp => crate::protocol::TCP,
        Transport::Udp => crate::protocol::UDP,
        Transport::Other(protocol) => protocol,
        Transport::None => 0,
    };
    finish(mix(addresses, u64::from(ports) << 8 | u64::from(protocol)))
}

fn link_hash(bytes: &[u8]) -> u32 {
    let first = word(bytes, 0).unwrap_or_default();
    let second = array(bytes, 8).map_or(0, |tail| u64::from(u32::from_be_bytes(*tail)));
    let kind = array(bytes, 12).map_or(0, |kind| u64::from(u16::from_be_bytes(*kind)));
    finish(mix(mix(KEY, first), second << 16 | kind))
}

fn mix_all(addresses: &[u8; 32]) -> u64 {
    let words = addresses.chunks_exact(8).filter_map(|chunk| word(chunk, 0));
    words.fold(KEY, mix)
}

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
