//! Members of a team, with their slots and link states.

use suimon_frame::MacAddr;

use crate::slots::PerSlot;
use crate::{MemberId, MemberLink, MemberSlot, MemberSpec};

/// Member of a team with its link state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberEntry {
    pub(crate) id: MemberId,
    pub(crate) mac: MacAddr,
    pub(crate) link: MemberLink,
}

/// Assignment of members to slots. A member keeps its slot while it is in the team.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberTable {
    entries: PerSlot<Option<MemberEntry>>,
    /// Generation of each slot: never 0 for a slot that has been used. It changes when a new member
    /// gets the slot or its member stops carrying frames, which invalidates the flowlet states
    /// recorded for the slot.
    generations: PerSlot<u8>,
}

impl MemberTable {
    /// Sets the members, at most [`MEMBERS_MAX`](crate::MEMBERS_MAX). Members that stay keep their
    /// slots and links; the links of new ones are down.
    pub(crate) fn set_members(&mut self, members: &[MemberSpec]) {
        for slot in MemberSlot::all() {
            let entry = self.entries.at_mut(slot);
            let spec = entry.and_then(|entry| members.iter().find(|spec| spec.id == entry.id));
            *entry = spec.zip(*entry).map(|(spec, entry)| MemberEntry { mac: spec.mac, ..entry });
        }
        for spec in members {
            if self.slot(spec.id).is_some() {
                continue;
            }
            let free = MemberSlot::all().find(|slot| self.entries.at(*slot).is_none());
            if let Some(slot) = free {
                let link = MemberLink::default();
                *self.entries.at_mut(slot) = Some(MemberEntry { id: spec.id, mac: spec.mac, link });
                self.invalidate_flowlets(slot);
            }
        }
    }

    /// Changes the generation of the slot, which invalidates the flowlet states recorded for it.
    pub(crate) fn invalidate_flowlets(&mut self, slot: MemberSlot) {
        let generation = self.generations.at_mut(slot);
        *generation = if *generation == u8::MAX { 1 } else { *generation + 1 };
    }

    pub(crate) fn generation(&self, slot: MemberSlot) -> u8 {
        *self.generations.at(slot)
    }

    pub(crate) fn slot(&self, member: MemberId) -> Option<MemberSlot> {
        self.entries().find(|(_, entry)| entry.id == member).map(|(slot, _)| slot)
    }

    pub(crate) fn entry(&self, slot: MemberSlot) -> Option<&MemberEntry> {
        self.entries.at(slot).as_ref()
    }

    /// Sets the link of a member. Returns `false` if the member is not in the team.
    pub(crate) fn set_link(&mut self, member: MemberId, link: MemberLink) -> bool {
        let entry = self.slot(member).and_then(|slot| self.entries.at_mut(slot).as_mut());
        let Some(entry) = entry else { return false };
        entry.link = link;
        true
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (MemberSlot, &MemberEntry)> {
        self.entries.iter().filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_teams::members;

    #[test]
    fn members_keep_their_slots_and_free_slots_are_reused() {
        let specs = members(32);
        let mut roster = MemberTable::default();
        roster.set_members(&specs);
        let slots: Vec<_> = specs.iter().map(|spec| roster.slot(spec.id)).collect();
        assert!(slots.iter().all(Option::is_some));
        let link = MemberLink { up: true, ..MemberLink::default() };
        assert!(roster.set_link(specs[5].id, link));

        let before = roster.generation(slots[3].unwrap());
        let mut changed = specs.clone();
        changed[3] = members(40)[39];
        changed.reverse();
        roster.set_members(&changed);
        assert_eq!(roster.slot(changed[28].id), slots[3]);
        assert_ne!(roster.generation(slots[3].unwrap()), before);
        for index in (0..32).filter(|index| *index != 3) {
            assert_eq!(roster.slot(specs[index].id), slots[index]);
        }
        assert_eq!(roster.entry(slots[5].unwrap()).unwrap().link, link);
        assert!(!roster.set_link(specs[3].id, link));
    }

    #[test]
    fn generations_wrap_without_zero() {
        let mut roster = MemberTable::default();
        roster.set_members(&members(1));
        let slot = roster.slot(MemberId(0)).unwrap();
        for _ in 0..600 {
            let before = roster.generation(slot);
            roster.invalidate_flowlets(slot);
            assert!(roster.generation(slot) != 0 && roster.generation(slot) != before);
        }
    }
}
