//! Sets of VLANs.

use core::fmt;

use suimon_frame::VlanId;

const WORDS: usize = 64;

/// Set of VLANs: any of 1 to 4094, and the untagged VLAN.
///
/// The untagged VLAN is the one of ports without a configured VLAN. It has no number, so on a trunk
/// its frames are untagged.
#[derive(Clone, PartialEq, Eq)]
pub struct VlanSet {
    // Bit n represents VLAN n, bit 0 the untagged VLAN; bit 4095 is always 0.
    words: Box<[u64; WORDS]>,
}

impl VlanSet {
    /// Returns the empty set of VLANs.
    pub fn empty() -> Self {
        Self { words: Box::new([0; WORDS]) }
    }

    /// Returns VLANs 1 to 4094, without the untagged VLAN.
    pub fn all_tagged() -> Self {
        let mut set = Self { words: Box::new([u64::MAX; WORDS]) };
        set.set_number(0, false);
        set.set_number(4095, false);
        set
    }

    /// Returns every VLAN including the untagged one, the default of an uplink.
    pub fn all() -> Self {
        let mut set = Self::all_tagged();
        set.insert_untagged();
        set
    }

    /// Adds the numbered VLAN `vlan`.
    pub fn insert(&mut self, vlan: VlanId) {
        self.set_number(vlan.get(), true);
    }

    /// Adds the untagged VLAN to the set.
    pub fn insert_untagged(&mut self) {
        self.set_number(0, true);
    }

    /// Removes the untagged VLAN from the set.
    pub fn remove_untagged(&mut self) {
        self.set_number(0, false);
    }

    /// Returns true if the set contains `vlan`; `None` is the untagged VLAN.
    pub fn contains(&self, vlan: Option<VlanId>) -> bool {
        self.contains_number(number(vlan))
    }

    /// Returns true if the two sets have a VLAN in common.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(other.words.iter()).any(|(a, b)| a & b != 0)
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the VLANs in ascending order, the untagged one (`None`) first.
    pub fn iter(&self) -> impl Iterator<Item = Option<VlanId>> + '_ {
        (0..4095).filter(|n| self.contains_number(*n)).map(VlanId::new)
    }

    /// Adds every VLAN of `other`.
    pub(crate) fn extend(&mut self, other: &Self) {
        for (word, other_word) in self.words.iter_mut().zip(other.words.iter()) {
            *word |= other_word;
        }
    }

    /// Returns true if the set contains the VLAN with number `n`; 0 is the untagged VLAN.
    #[inline]
    pub(crate) fn contains_number(&self, n: u16) -> bool {
        self.words.get(usize::from(n >> 6)).is_some_and(|word| word >> (n & 63) & 1 != 0)
    }

    pub(crate) fn set_number(&mut self, n: u16, present: bool) {
        if let Some(word) = self.words.get_mut(usize::from(n >> 6)) {
            let bit = 1 << (n & 63);
            *word = if present { *word | bit } else { *word & !bit };
        }
    }

    pub(crate) fn words(&self) -> &[u64; WORDS] {
        &self.words
    }
}

/// Returns the number of a VLAN within this crate: 0 is the untagged VLAN.
#[inline]
pub(crate) fn number(vlan: Option<VlanId>) -> u16 {
    vlan.map_or(0, VlanId::get)
}

impl FromIterator<VlanId> for VlanSet {
    fn from_iter<I: IntoIterator<Item = VlanId>>(vlans: I) -> Self {
        let mut set = Self::empty();
        for vlan in vlans {
            set.insert(vlan);
        }
        set
    }
}

/// Formats the set as ranges: `untagged,1-10,20`; `none` if empty.
impl fmt::Display for VlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let mut separator = "";
        if self.contains_number(0) {
            f.write_str("untagged")?;
            separator = ",";
        }
        let mut first = 1;
        while first <= 4094 {
            if !self.contains_number(first) {
                first += 1;
                continue;
            }
            let mut last = first;
            while self.contains_number(last + 1) {
                last += 1;
            }
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
            first = last + 1;
        }
        Ok(())
    }
}

impl fmt::Debug for VlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VlanSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(vlans: &[u16]) -> VlanSet {
        vlans.iter().filter_map(|n| VlanId::new(*n)).collect()
    }

    #[test]
    fn sets_never_contain_reserved_numbers() {
        let full = VlanSet::all();
        assert!(full.contains_number(0) && full.contains_number(1) && full.contains_number(4094));
        assert!(
            !full.contains_number(4095)
                && !full.contains_number(4096)
                && !full.contains_number(u16::MAX)
        );
        assert_eq!(full.iter().count(), 4095);
        assert_eq!(VlanSet::all_tagged().iter().next(), Some(VlanId::new(1)));
    }

    #[test]
    fn prints_ranges() {
        assert_eq!(VlanSet::empty().to_string(), "none");
        assert_eq!(VlanSet::all().to_string(), "untagged,1-4094");
        assert_eq!(set(&[4, 1, 2, 3, 20, 4094]).to_string(), "1-4,20,4094");
    }

    #[test]
    fn intersections_include_the_untagged_vlan() {
        let mut a = set(&[5]);
        let mut b = set(&[6]);
        assert!(!a.intersects(&b));
        a.insert_untagged();
        b.insert_untagged();
        assert!(a.intersects(&b));
    }
}
