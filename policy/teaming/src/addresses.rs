//! The addresses that members show in place of others'.

use std::collections::BTreeSet;

use suimon_frame::MacAddr;

use crate::roster::Roster;
use crate::slots::PerSlot;

/// The bit of the first octet that says that an address was not given by a maker
/// (IEEE 802-2014, section 8.4).
const LOCAL: u8 = 2;

/// For each member the address that frames have whose own source it must not show.
///
/// It is the member's own, unless a port of the switch has that too, as a host's NIC
/// often has its uplink's: then an upstream switch would see one address on two
/// ports. In its place comes a local address made from it that nobody here has.
pub(crate) fn shown(roster: &Roster, ports: &BTreeSet<MacAddr>) -> PerSlot<MacAddr> {
    let mut shown = PerSlot::default();
    let members = roster.seats().map(|(_, seat)| seat.mac);
    let mut taken: BTreeSet<MacAddr> = ports.iter().copied().chain(members).collect();
    for (slot, seat) in roster.seats() {
        *shown.at_mut(slot) = seat.mac;
        if ports.contains(&seat.mac) {
            // One more than there are addresses, so that one of them is free.
            let mut candidates = (0..=taken.len()).map(|number| local(seat.mac, number));
            if let Some(free) = candidates.find(|mac| !taken.contains(mac)) {
                *shown.at_mut(slot) = free;
                taken.insert(free);
            }
        }
    }
    shown
}

/// The local address with this number made from `mac`; different for numbers that
/// differ in their last 24 bits.
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
    fn a_member_shows_its_own_address_unless_a_port_has_it() {
        let mut members = members(3);
        members[0].mac = MacAddr::new([0x00, 0x1b, 0x21, 0xff, 0xff, 0xff]);
        members[1].mac = MacAddr::new([0x02, 0x1b, 0x21, 0x00, 0x00, 0x00]);
        let mut roster = Roster::default();
        roster.set_members(&members);
        let slots: Vec<_> = roster.seats().map(|(slot, _)| slot).collect();
        let found = shown(&roster, &BTreeSet::new());
        for (slot, member) in slots.iter().zip(&members) {
            assert_eq!(*found.at(*slot), member.mac);
        }
        let ports = [members[0].mac, members[1].mac].into_iter().collect();
        let found = shown(&roster, &ports);
        assert_eq!(*found.at(slots[2]), members[2].mac);
        // The next local address, and behind the other member's the next but one.
        assert_eq!(found.at(slots[0]).to_string(), "02:1b:21:ff:ff:ff");
        assert_eq!(found.at(slots[1]).to_string(), "02:1b:21:00:00:01");
    }
}
