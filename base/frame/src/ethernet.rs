//! Ethernet header (IEEE 802.3-2022, section 3).

use crate::octets::{array_at, put, u16_at};
use crate::{Frame, MacAddr};

/// Length of the header in bytes: two addresses and the type.
pub const ETHERNET_HEADER_BYTES: usize = 14;

/// Length of an 802.1Q tag in bytes: type and control information.
pub const VLAN_TAG_BYTES: usize = 4;

/// Length of the two addresses in bytes; a tag follows them.
pub(crate) const ADDRESSES_BYTES: usize = 12;

/// Values of the type field (EtherType).
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// Address Resolution Protocol (RFC 826).
    pub const ARP: u16 = 0x0806;
    /// Reverse ARP (RFC 903).
    pub const RARP: u16 = 0x8035;
    /// 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// 802.1ad service tag.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// Types of outer tags that switches before 802.1ad, and Linux (`ETH_P_QINQ1` to `3`), use.
    pub const OLD_OUTER_VLANS: [u16; 3] = [0x9100, 0x9200, 0x9300];
    /// Slow protocols: LACP, Marker (IEEE 802.3-2022, Table 57A-2).
    pub const SLOW: u16 = 0x8809;
}

impl Frame {
    /// Returns the destination address; all zero if the frame is too short.
    #[inline]
    pub fn destination(&self) -> MacAddr {
        MacAddr::new(array_at(self.head(), 0).copied().unwrap_or_default())
    }

    /// Returns the source address; all zero if the frame is too short.
    #[inline]
    pub fn source(&self) -> MacAddr {
        MacAddr::new(array_at(self.head(), 6).copied().unwrap_or_default())
    }

    /// Sets the source address; no-op if the frame is too short. No checksum covers the address.
    #[inline]
    pub fn set_source(&mut self, mac: MacAddr) {
        put(self.head_mut(), 6, &mac.octets());
    }

    /// Returns true if a VLAN tag, of any type that switches interpret, follows the addresses in
    /// the bytes: without a tag in the metadata it is the frame's first tag, otherwise the second.
    #[inline]
    pub fn has_tag_in_bytes(&self) -> bool {
        let ethertype = self.ethertype();
        ethertype == ethertype::VLAN
            || ethertype == ethertype::SERVICE_VLAN
            || ethertype::OLD_OUTER_VLANS.contains(&ethertype)
    }

    /// Returns the type field, which follows the tag stored in the metadata; 0 if the frame is too
    /// short.
    #[inline]
    pub fn ethertype(&self) -> u16 {
        u16_at(self.head(), ADDRESSES_BYTES).unwrap_or_default()
    }
}

/// Returns the type after all tags in the bytes, and the offset of the payload. `None` if the bytes
/// end before. Skips at most two tags; a third is returned as the type.
#[inline]
pub(crate) fn innermost_type(bytes: &[u8]) -> Option<(u16, usize)> {
    let mut offset = ADDRESSES_BYTES;
    let mut ethertype = u16_at(bytes, offset)?;
    for _ in 0..2 {
        if ethertype != ethertype::VLAN && ethertype != ethertype::SERVICE_VLAN {
            break;
        }
        offset += VLAN_TAG_BYTES;
        ethertype = u16_at(bytes, offset)?;
    }
    Some((ethertype, offset + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_source_changes_only_the_source_address() {
        let mac = MacAddr::new([2, 4, 6, 8, 10, 12]);
        let mut frame = Frame::new(3);
        frame.set_bytes(&[0xaa; 60]);
        frame.set_source(mac);
        assert_eq!(frame.source(), mac);
        assert_eq!(frame.destination(), MacAddr::new([0xaa; 6]));
        assert_eq!(frame.bytes()[12..], [0xaa; 48]);
        frame.set_bytes(&[0xaa; 11]);
        frame.set_source(mac);
        assert_eq!(frame.bytes(), [0xaa; 11]);
    }
}
