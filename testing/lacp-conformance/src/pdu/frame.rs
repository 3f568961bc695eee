//! Fields of frames of the slow protocols.

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// Destination address of LACPDUs and Marker PDUs (IEEE 802.3 Annex 57A, Table 57A-1).
pub(crate) const SLOW_PROTOCOLS_MULTICAST: Mac = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x02];
/// EtherType of the slow protocols.
pub(crate) const SLOW_PROTOCOLS_TYPE: u16 = 0x8809;
/// Length of the Ethernet header: destination, source, type.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// Length of an LACPDU of version 1 or a Marker PDU with the Ethernet header, without FCS.
pub(crate) const FRAME_BYTES: usize = ETHERNET_BYTES + 110;
/// Subtype of LACP.
pub(crate) const SUBTYPE_LACP: u8 = 1;
/// Subtype of the Marker protocol.
pub(crate) const SUBTYPE_MARKER: u8 = 2;

/// Returns the header and subtype of a frame of the slow protocols.
pub(super) fn blank(source: Mac, subtype: u8, version: u8) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_BYTES);
    frame.extend(SLOW_PROTOCOLS_MULTICAST);
    frame.extend(source);
    frame.extend(SLOW_PROTOCOLS_TYPE.to_be_bytes());
    frame.extend([subtype, version]);
    frame
}

/// Returns the big-endian number at `offset`.
pub(crate) fn read_u16(frame: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_be_bytes(read(frame, offset)?))
}

/// Returns the bytes at `offset`.
pub(crate) fn read<const N: usize>(frame: &[u8], offset: usize) -> Option<[u8; N]> {
    frame.get(offset..)?.first_chunk().copied()
}

/// Returns an address as text.
pub(crate) fn mac_text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
