//! TCP stream segments for tests.

use crate::{Sum, tcp_flags};

/// Returns a TCP/IPv4 frame with `payload` at stream offset `sent`, with a partial checksum.
pub(crate) fn tcp4_segment(sent: usize, identification: usize, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 54];
    bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&(40 + payload.len() as u16).to_be_bytes());
    bytes[18..20].copy_from_slice(&(identification as u16).to_be_bytes());
    bytes[23] = 6;
    let checksum = Sum::from_bytes(&bytes[14..34]).checksum();
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    bytes[38..42].copy_from_slice(&(sent as u32).to_be_bytes());
    bytes[46..48].copy_from_slice(&[0x50, tcp_flags::ACK]);
    let pseudo = Sum::pseudo_ipv4([0; 4], [0; 4], 6, 20 + payload.len() as u16);
    bytes[50..52].copy_from_slice(&pseudo.word().to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}
