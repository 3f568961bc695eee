//! Priority queue (4-ary heap) with entries that can be moved and removed, for many small queues.
//! For one large queue, [`crate::ranking`] costs less.

use crate::ranking::Entry;

/// Value for an entry that is in no heap.
const ABSENT: u32 = u32::MAX;
/// Number of children of each entry. A heap of arity 4 has fewer levels than a binary one, and
/// siblings are adjacent in memory.
const ARITY: usize = 4;

/// Positions of entries in their heap, by identifier. Heaps with disjoint sets of entries may share
/// one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(Vec<u32>);

impl Positions {
    /// Allocates room for identifiers below `count`.
    pub(crate) fn reserve(&mut self, count: usize) {
        if self.0.len() < count {
            self.0.resize(count, ABSENT);
        }
    }

    #[inline]
    fn at(&self, id: u32) -> Option<usize> {
        self.0
            .get(id as usize)
            .filter(|position| **position != ABSENT)
            .map(|position| *position as usize)
    }

    #[inline]
    fn set(&mut self, id: u32, position: usize) {
        if let Some(entry) = self.0.get_mut(id as usize) {
            *entry = position as u32;
        }
    }
}

/// Heap from which the entry with the lowest key is taken first. No operation allocates memory
/// after [`Heap::reserve`].
///
/// The first entry is stored inline: most heaps have only one entry, and need no further memory.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Heap {
    /// Key of the first entry, whose position is not stored.
    key: u64,
    id: u32,
    /// True if there are further entries.
    is_many: bool,
    rest: Vec<Entry>,
}

impl Default for Heap {
    fn default() -> Self {
        Self { key: 0, id: ABSENT, is_many: false, rest: Vec::new() }
    }
}

impl Heap {
    pub(crate) fn reserve(&mut self, count: usize) {
        self.rest.reserve(count.saturating_sub(self.rest.len() + 1));
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        (self.id != ABSENT).then_some(Entry { key: self.key, id: self.id })
    }

    /// Inserts `id` with this key, or changes its key.
    #[inline]
    pub(crate) fn set(&mut self, positions: &mut Positions, id: u32, key: u64) {
        if !self.is_many && (self.id == id || self.id == ABSENT) {
            (self.key, self.id) = (key, id);
        } else {
            self.set_among_many(positions, Entry { key, id });
        }
    }

    /// Removes `id` if it is in the heap.
    #[inline]
    pub(crate) fn remove(&mut self, positions: &mut Positions, id: u32) {
        if self.is_many {
            self.remove_of_many(positions, id);
        } else if self.id == id {
            self.id = ABSENT;
        }
    }

    fn set_among_many(&mut self, positions: &mut Positions, entry: Entry) {
        match self.position(positions, entry.id) {
            None => {
                self.rest.push(entry);
                self.is_many = true;
                self.rise(positions, self.rest.len(), entry);
            }
            Some(index) => match self.at(index) {
                Some(old) if old.key > entry.key => self.rise(positions, index, entry),
                Some(old) if old.key < entry.key => self.sink(positions, index, entry),
                _ => {}
            },
        }
    }

    fn remove_of_many(&mut self, positions: &mut Positions, id: u32) {
        let Some(index) = self.position(positions, id) else { return };
        positions.set(id, ABSENT as usize);
        let Some(last) = self.rest.pop() else { return };
        self.is_many = !self.rest.is_empty();
        let Some(gap) = self.at(index) else { return };
        if last.key < gap.key {
            self.rise(positions, index, last);
        } else {
            self.sink(positions, index, last);
        }
    }

    fn position(&self, positions: &Positions, id: u32) -> Option<usize> {
        if self.id == id { Some(0) } else { positions.at(id) }
    }

    fn at(&self, index: usize) -> Option<Entry> {
        match index.checked_sub(1) {
            None => self.first(),
            Some(index) => self.rest.get(index).copied(),
        }
    }

    fn rise(&mut self, positions: &mut Positions, mut index: usize, entry: Entry) {
        while index > 0 {
            let parent_index = (index - 1) / ARITY;
            let Some(parent) = self.at(parent_index).filter(|parent| parent.key > entry.key) else {
                break;
            };
            self.put(positions, index, parent);
            index = parent_index;
        }
        self.put(positions, index, entry);
    }

    fn sink(&mut self, positions: &mut Positions, mut index: usize, entry: Entry) {
        loop {
            let first = index * ARITY + 1;
            let children = (first..).zip(self.rest.iter().skip(first - 1).take(ARITY));
            let smallest = children.min_by_key(|(_, child)| child.key);
            let Some((child_index, child)) = smallest.filter(|(_, child)| child.key < entry.key)
            else {
                break;
            };
            let child = *child;
            self.put(positions, index, child);
            index = child_index;
        }
        self.put(positions, index, entry);
    }

    fn put(&mut self, positions: &mut Positions, index: usize, entry: Entry) {
        match index.checked_sub(1) {
            None => {
                (self.key, self.id) = (entry.key, entry.id);
                positions.set(entry.id, ABSENT as usize);
            }
            Some(of_rest) => {
                if let Some(slot) = self.rest.get_mut(of_rest) {
                    *slot = entry;
                    positions.set(entry.id, index);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The heap behaves like a sorted list for any sequence of operations.
        #[test]
        fn the_first_entry_has_the_lowest_key(ops in prop::collection::vec((0u32..40, prop::option::of(0u64..30)), 1..300)) {
            let (mut heap, mut positions) = (Heap::default(), Positions::default());
            positions.reserve(40);
            let mut model = BTreeMap::new();
            for (id, key) in ops {
                if let Some(key) = key {
                    heap.set(&mut positions, id, key);
                    model.insert(id, key);
                } else {
                    heap.remove(&mut positions, id);
                    model.remove(&id);
                }
                prop_assert_eq!(heap.first().map(|entry| entry.key), model.values().min().copied());
                if let Some(first) = heap.first() {
                    prop_assert_eq!(model.get(&first.id), Some(&first.key));
                }
            }
        }
    }
}
