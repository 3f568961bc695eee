//! Immutable hash map from a number to a member slot, with one lookup per frame.

use serde::Serialize;

use crate::MemberSlot;

/// Constant of Fibonacci hashing, which spreads neighbouring keys, as host addresses are.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Exclusive upper bound of keys.
const KEY_END: u64 = 1 << 55;

/// Hash map from keys below 2^55 to slots. Its load factor is at most one half, and only the
/// operator's configuration determines its keys. Lookups therefore stay short, whichever keys a
/// peer chooses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SlotMap {
    /// Entries: (key + 1) in the upper 56 bits, slot number in the lower eight; 0 if empty.
    entries: Box<[u64]>,
    shift: u32,
}

impl SlotMap {
    /// Creates the map from (key, slot) pairs. Of several slots for one key the last one is used;
    /// keys of 2^55 and above are left out.
    pub(crate) fn new(pairs: &[(u64, MemberSlot)]) -> Self {
        let bits = (pairs.len().max(1) * 2).next_power_of_two().trailing_zeros();
        let mut lookup =
            Self { entries: vec![0; 1 << bits].into_boxed_slice(), shift: u64::BITS - bits };
        for (key, slot) in pairs.iter().filter(|(key, _)| *key < KEY_END) {
            let found_entry =
                lookup.probe(*key).and_then(|(index, _)| lookup.entries.get_mut(index));
            if let Some(entry) = found_entry {
                *entry = (key + 1) << 8 | u64::from(slot.number());
            }
        }
        lookup
    }

    #[inline]
    pub(crate) fn find(&self, key: u64) -> Option<MemberSlot> {
        let (_, entry) = self.probe(key)?;
        (entry != 0).then_some(MemberSlot::from_number(entry as u8))
    }

    /// Returns the index at which the key is or would be stored, and the entry there; `None` for an
    /// empty map.
    #[inline]
    fn probe(&self, key: u64) -> Option<(usize, u64)> {
        let mask = self.entries.len().wrapping_sub(1);
        let mut index = (key.wrapping_mul(SPREAD) >> self.shift) as usize;
        // Half of the entries are 0, so the search ends before it has visited all entries.
        for _ in 0..self.entries.len() {
            let entry = *self.entries.get(index)?;
            if entry == 0 || entry >> 8 == key + 1 {
                return Some((index, entry));
            }
            index = (index + 1) & mask;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(key: u64) -> MemberSlot {
        MemberSlot::from_number(key as u8)
    }

    #[test]
    fn every_key_is_found_and_no_other() {
        for count in [0, 1, 2, 3, 100, 5000] {
            // Neighbouring keys, as port numbers are, and keys with one high bit, as addresses
            // have.
            let keys: Vec<u64> = (0..count).flat_map(|n| [n, 0x0250_0000_0000 | n << 8]).collect();
            let pairs: Vec<_> = keys.iter().map(|key| (*key, slot(*key ^ *key >> 8))).collect();
            let lookup = SlotMap::new(&pairs);
            for (key, slot) in pairs {
                assert_eq!(lookup.find(key), Some(slot));
            }
            for key in [count, 0x0250_0000_0001, 0xffff_ffff_ffff, u64::MAX >> 1] {
                assert_eq!(lookup.find(key), None, "{key:x}");
            }
        }
    }

    #[test]
    fn the_last_of_two_counts_and_keys_that_are_too_large_are_left_out() {
        let lookup = SlotMap::new(&[(7, slot(1)), (7, slot(2)), (KEY_END, slot(3))]);
        assert_eq!(lookup.find(7), Some(slot(2)));
        assert_eq!(lookup.find(KEY_END), None);
        assert_eq!(lookup.find(0), None);
    }
}
