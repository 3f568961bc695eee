//! Replacement source addresses for frames that leave by a member other than the one assigned to
//! their port.

use std::collections::BTreeSet;

use suimon_frame::MacAddr;

use crate::member_table::MemberTable;
use crate::slots::PerSlot;

/// Locally administered bit of the first octet of a MAC address (IEEE 802-2014, section 8.4).
const LOCAL: u8 = 2;

/// Returns by slot the replacement source address for frames that leave by this member although
/// another member is assigned to their port.
///
/// The replacement is the member's own address, unless a port of the switch has the same address (a
/// host NIC often has the address of its uplink): an upstream switch would then see one address on
/// two ports. In that case a locally administered address is derived that is unused on this host.
pub(crate) fn replacement_sources(
    roster: &MemberTable,
    ports: &BTreeSet<MacAddr>,
) -> PerSlot<MacAddr> {
    let mut sources = PerSlot::default();
    let members = roster.entries().map(|(_, entry)| entry.mac);
    let mut used: BTreeSet<MacAddr> = ports.iter().copied().chain(members).collect();
    for (slot, entry) in roster.entries() {
        *sources.at_mut(slot) = entry.mac;
        if ports.contains(&entry.mac) {
            // There is one candidate more than addresses in use, so that at least one is free.
            let mut candidates = (0..=used.len()).map(|number| local(entry.mac, number));
            if let Some(free) = candidates.find(|mac| !used.contains(mac)) {
                *sources.at_mut(slot) = free;
                used.insert(free);
            }
        }
    }
    sources
}

/// Returns the locally administered address with number `number` that is derived from `mac`.
/// Addresses differ if their numbers differ modulo 2^24.
fn local(mac: MacAddr, number: usize) -> MacAddr {
    let [first, second, third, last @ ..] = mac.octets();
    let [fourth, fifth, sixth] = last;
    let low = u32::from_be_bytes([0, fourth, fifth, sixth]).wrapping_add(number as u32);
    let [_, fourth, fifth, sixth] = low.to_be_bytes();
    MacAddr::new([first | LOCAL, second, third, fourth, fifth, sixth])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_teams::members;

    #[test]
    fn a_member_uses_its_own_address_unless_a_port_has_it() {
        let mut members = members(3);
        members[0].mac = MacAddr::new([0x00, 0x1b, 0x21, 0xff, 0xff, 0xff]);
        members[1].mac = MacAddr::new([0x02, 0x1b, 0x21, 0x00, 0x00, 0x00]);
        let mut roster = MemberTable::default();
        roster.set_members(&members);
        let slots: Vec<_> = roster.entries().map(|(slot, _)| slot).collect();
        let sources = replacement_sources(&roster, &BTreeSet::new());
        for (slot, member) in slots.iter().zip(&members) {
            assert_eq!(*sources.at(*slot), member.mac);
        }
        let ports = [members[0].mac, members[1].mac].into_iter().collect();
        let sources = replacement_sources(&roster, &ports);
        assert_eq!(*sources.at(slots[2]), members[2].mac);
        // The next local address; for the second member the one after it, because the next is
        // taken.
        assert_eq!(sources.at(slots[0]).to_string(), "02:1b:21:ff:ff:ff");
        assert_eq!(sources.at(slots[1]).to_string(), "02:1b:21:00:00:01");
    }
}
