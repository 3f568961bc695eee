//! Lookup table of configured or bound addresses.

use crate::hash;
use crate::key::AddressKey;
use crate::slot::PortSlot;

const OCCUPIED: u64 = 1 << 63;
/// Marker for "every VLAN the port carries"; not a valid VLAN.
const ANY_VLAN: u64 = 4095 << 48;
const MAC_BITS: u64 = (1 << 48) - 1;

#[derive(Clone, Copy, Debug, Default)]
struct StaticPosition {
    word: u64,
    switch: u16,
    slot: u16,
}

/// Hash table from address and VLAN to port, with open addressing, at most a quarter full, never
/// changed once it is built.
///
/// The address of an access port is stored under its VLAN, that of a trunk once under [`ANY_VLAN`]:
/// a trunk that carries every VLAN must not use 4094 entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfiguredAddresses {
    /// Entries of the hash table; their number is 0 or a power of two.
    positions: Box<[StaticPosition]>,
}

impl ConfiguredAddresses {
    /// Creates a table for `count` addresses.
    pub(crate) fn with_capacity_for(count: usize) -> Self {
        if count == 0 {
            return Self::default();
        }
        Self { positions: vec![StaticPosition::default(); (count * 4).next_power_of_two()].into() }
    }

    /// Adds the address of the access port `slot`. The table must have been created with sufficient
    /// capacity.
    pub(crate) fn insert_access(&mut self, key: &AddressKey, slot: PortSlot) {
        self.insert(key.mac_and_vlan, key.hash, key.switch_index, slot);
    }

    /// Adds the address of the trunk port `slot` on all its VLANs; the VLAN of `key` is ignored.
    /// `salt` is the hash salt of the switch.
    pub(crate) fn insert_trunk(&mut self, key: &AddressKey, salt: u64, slot: PortSlot) {
        let word = key.mac_and_vlan & MAC_BITS | ANY_VLAN;
        self.insert(word, hash::mix(word, salt), key.switch_index, slot);
    }

    fn insert(&mut self, word: u64, hash: u64, switch: u16, slot: PortSlot) {
        let entry = StaticPosition { word: word | OCCUPIED, switch, slot: slot.0 };
        let mask = self.positions.len().wrapping_sub(1);
        for step in 0..self.positions.len() {
            let index = (hash as usize).wrapping_add(step) & mask;
            match self.positions.get_mut(index) {
                Some(free) if free.word == 0 => {
                    *free = entry;
                    return;
                }
                _ => {}
            }
        }
    }

    /// Returns the access port whose configured or bound address and VLAN are those of `key`.
    #[inline]
    pub(crate) fn access_port(&self, key: &AddressKey) -> Option<PortSlot> {
        self.find(key.mac_and_vlan, key.hash, key.switch_index, |_| true)
    }

    /// Returns the trunk port that has the address of `key`, if `carries` returns true for it,
    /// which checks the VLAN. `salt` is the hash salt of the switch.
    pub(crate) fn trunk_port(
        &self,
        key: &AddressKey,
        salt: u64,
        carries: impl Fn(PortSlot) -> bool,
    ) -> Option<PortSlot> {
        let word = key.mac_and_vlan & MAC_BITS | ANY_VLAN;
        self.find(word, hash::mix(word, salt), key.switch_index, carries)
    }

    #[inline]
    fn find(
        &self,
        word: u64,
        hash: u64,
        switch: u16,
        accept: impl Fn(PortSlot) -> bool,
    ) -> Option<PortSlot> {
        let mask = self.positions.len().wrapping_sub(1);
        // At most a quarter of the entries is occupied, so an empty one ends the search.
        for step in 0..self.positions.len() {
            let entry = self.positions.get((hash as usize).wrapping_add(step) & mask)?;
            if entry.word == 0 {
                return None;
            }
            if entry.word == word | OCCUPIED && entry.switch == switch {
                let slot = PortSlot(entry.slot);
                if accept(slot) {
                    return Some(slot);
                }
            }
        }
        None
    }
}
