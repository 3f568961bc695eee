//! Slots: numbers of the members in a distribution, sets of slots, and values by slot.

use serde::{Deserialize, Serialize};

/// Maximum number of members of a team, the same as in Hyper-V.
pub const MEMBERS_MAX: usize = 32;

/// Number of a member in a distribution, kept until the member leaves the team. Afterwards another
/// member may get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u8", into = "u8")]
pub struct MemberSlot(u8);

impl From<u8> for MemberSlot {
    fn from(number: u8) -> Self {
        Self::from_number(number)
    }
}

impl From<MemberSlot> for u8 {
    fn from(slot: MemberSlot) -> Self {
        slot.number()
    }
}

impl MemberSlot {
    /// Returns every slot in ascending order.
    pub(crate) fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..MEMBERS_MAX as u8).map(Self)
    }

    /// Returns the slot `number` modulo [`MEMBERS_MAX`].
    #[inline]
    pub(crate) const fn from_number(number: u8) -> Self {
        Self(number % MEMBERS_MAX as u8)
    }

    /// Returns the slot as a number.
    #[inline]
    pub(crate) const fn number(self) -> u8 {
        self.0
    }

    /// Returns the slot as an index below [`MEMBERS_MAX`] into tables of the caller.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Set of member slots, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct SlotSet(u32);

impl SlotSet {
    #[inline]
    pub(crate) const fn contains(self, slot: MemberSlot) -> bool {
        self.0 >> slot.0 & 1 != 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = MemberSlot> {
        MemberSlot::all().filter(move |slot| self.contains(*slot))
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the slots of this set that are not in `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl FromIterator<MemberSlot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = MemberSlot>>(slots: I) -> Self {
        Self(slots.into_iter().fold(0, |set, slot| set | 1 << slot.0))
    }
}

/// One value for each possible member slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct PerSlot<T>([T; MEMBERS_MAX]);

impl<T: Default> Default for PerSlot<T> {
    fn default() -> Self {
        Self(core::array::from_fn(|_| T::default()))
    }
}

impl<T> PerSlot<T> {
    #[inline]
    pub(crate) fn at(&self, slot: MemberSlot) -> &T {
        let [first, rest @ ..] = &self.0;
        rest.get(slot.index().wrapping_sub(1)).unwrap_or(first)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: MemberSlot) -> &mut T {
        let [first, rest @ ..] = &mut self.0;
        rest.get_mut(slot.index().wrapping_sub(1)).unwrap_or(first)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (MemberSlot, &T)> {
        MemberSlot::all().zip(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_its_own_value() {
        let mut values = PerSlot::<u8>::default();
        for slot in MemberSlot::all() {
            *values.at_mut(slot) = slot.number() + 1;
        }
        assert!(values.iter().all(|(slot, value)| *value == slot.number() + 1));
        assert!(MemberSlot::all().all(|slot| *values.at(slot) == slot.number() + 1));
    }

    #[test]
    fn sets_contain_their_slots() {
        let set: SlotSet = MemberSlot::all().filter(|slot| slot.index() % 3 == 1).collect();
        assert!(MemberSlot::all().all(|slot| set.contains(slot) == (slot.index() % 3 == 1)));
        assert_eq!(set.iter().count(), 11);
        assert!(set.without(set).is_empty() && !set.is_empty());
    }
}
