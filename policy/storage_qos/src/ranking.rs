//! Order of flows by key, kept as a tournament tree.
//!
//! The path from a leaf to the root is fixed. Its nodes can be loaded at once and compared without
//! branches. This costs less than the sift in a heap, because the steps of a sift depend on each
//! other and are unpredictable.

/// Key of an absent entry, above all valid keys.
const ABSENT: u64 = u64::MAX;
/// Largest valid key of an entry.
pub(crate) const KEY_MAX: u64 = ABSENT - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: u64,
    pub(crate) id: u32,
}

/// Absent entry, which is ordered behind all others.
const ABSENT_ENTRY: Entry = Entry { key: ABSENT, id: 0 };

/// Tournament tree from which the entry with the lowest key is taken first. No operation allocates
/// memory after [`TournamentTree::reserve`].
#[derive(Clone, Debug)]
pub(crate) struct TournamentTree {
    /// Entry with the lowest key.
    first: Entry,
    /// Nodes of the tree: leaves from index `leaves` on; each parent node contains the lower entry
    /// of its children, up to the root.
    nodes: Vec<Entry>,
    leaves: usize,
    /// Exclusive upper bound of the identifiers used so far. The root is on the left edge of the
    /// tree, at the lowest node above all used leaves, and not at index 1: nodes above it would
    /// have only one non-empty subtree.
    width: usize,
    last: usize,
}

impl Default for TournamentTree {
    fn default() -> Self {
        Self { first: ABSENT_ENTRY, nodes: Vec::new(), leaves: 0, width: 0, last: 0 }
    }
}

impl TournamentTree {
    /// Allocates room for identifiers below `count`.
    pub(crate) fn reserve(&mut self, count: usize) {
        let leaves = count.next_power_of_two();
        if leaves <= self.leaves {
            return;
        }
        let entries: Vec<Entry> = self.entries().collect();
        self.nodes = vec![ABSENT_ENTRY; 2 * leaves];
        self.first = ABSENT_ENTRY;
        self.leaves = leaves;
        self.width = 1;
        self.last = leaves;
        for entry in entries {
            self.set(entry.id, entry.key);
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        Some(self.first).filter(|first| first.key != ABSENT)
    }

    /// Returns the entry with the lowest key if that key is at most `key`.
    #[inline]
    pub(crate) fn first_until(&self, key: u64) -> Option<Entry> {
        // `key` is limited to the largest valid key, so that no check for absent entries is
        // necessary.
        Some(self.first).filter(|first| first.key <= key.min(KEY_MAX))
    }

    /// Returns all entries in no particular order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.nodes.iter().skip(self.leaves).copied().filter(|entry| entry.key != ABSENT)
    }

    /// Inserts `id` with this key, or changes its key. Keys above [`KEY_MAX`] count as [`KEY_MAX`].
    #[inline]
    pub(crate) fn set(&mut self, id: u32, key: u64) {
        if id as usize >= self.width {
            self.widen(id as usize);
        }
        self.play(Entry { key: key.min(KEY_MAX), id });
    }

    /// Returns true if the key of `entry` is at least `key`.
    #[inline]
    pub(crate) fn is_at_least(entry: Entry, key: u64) -> bool {
        key.min(KEY_MAX) <= entry.key
    }

    /// Removes `id` if it is in the tree.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        self.play(Entry { key: ABSENT, id });
    }

    /// Moves the root up until the leaf of `id` is below it.
    #[cold]
    fn widen(&mut self, id: usize) {
        while self.width <= id && self.width < self.leaves {
            let first = self.nodes.get(self.last).copied();
            self.last /= 2;
            self.width *= 2;
            if let Some((node, first)) = self.nodes.get_mut(self.last).zip(first) {
                *node = first;
            }
        }
    }

    #[inline]
    fn play(&mut self, entry: Entry) {
        if entry.id as usize >= self.width {
            return;
        }
        let mut index = self.leaves + entry.id as usize;
        let Some(leaf) = self.nodes.get_mut(index) else { return };
        *leaf = entry;
        let mut winner = entry;
        while index > self.last {
            if let Some(sibling) = self.nodes.get(index ^ 1) {
                winner = lesser(winner, *sibling);
            }
            index >>= 1;
            if let Some(node) = self.nodes.get_mut(index) {
                *node = winner;
            }
        }
        self.first = winner;
    }
}

/// Returns the entry with the lower key, without a branch.
#[inline]
fn lesser(a: Entry, b: Entry) -> Entry {
    let is_b = b.key < a.key;
    Entry { key: if is_b { b.key } else { a.key }, id: if is_b { b.id } else { a.id } }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The ranking behaves like a sorted list for any sequence of operations.
        #[test]
        fn the_first_entry_has_the_lowest_key(
            ops in prop::collection::vec((0u32..40, prop::option::of(0u64..30), 1usize..41), 1..300),
        ) {
            let mut ranking = TournamentTree::default();
            let mut model = BTreeMap::new();
            let mut capacity = 0;
            for (id, key, count) in ops {
                ranking.reserve(count);
                capacity = capacity.max(count.next_power_of_two() as u32);
                match key {
                    Some(key) if id < capacity => {
                        ranking.set(id, key);
                        model.insert(id, key);
                    }
                    _ => {
                        ranking.remove(id);
                        model.remove(&id);
                    }
                }
                prop_assert_eq!(ranking.first().map(|first| first.key), model.values().min().copied());
                let entries: BTreeMap<u32, u64> =
                    ranking.entries().map(|entry| (entry.id, entry.key)).collect();
                prop_assert_eq!(&entries, &model);
                if let Some(first) = ranking.first() {
                    prop_assert_eq!(model.get(&first.id), Some(&first.key));
                }
            }
        }
    }

    #[test]
    fn the_largest_time_is_a_valid_key() {
        let mut ranking = TournamentTree::default();
        assert_eq!(ranking.first(), None);
        ranking.set(3, 5);
        assert_eq!(ranking.first(), None, "there is no room for it");
        ranking.reserve(4);
        ranking.set(3, u64::MAX);
        assert_eq!(ranking.first().map(|first| first.id), Some(3));
    }
}
