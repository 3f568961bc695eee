//! Order of flows by weight.
//!
//! A flow that was served usually moves behind all others, because the other flows have received
//! about the same service. Most flows are therefore in a queue in ascending order of keys, with
//! constant cost per operation. Flows that must be inserted before the end, because of smaller
//! requests or a higher weight, are in a separate [`TournamentTree`].

use crate::ranking::{Entry, KEY_MAX, TournamentTree};

/// Absent entry, which is ordered behind all others.
const NOBODY: Entry = Entry { key: u64::MAX, id: u32::MAX };

/// Value in `positions` for a flow that is absent.
const OUT: u64 = 0;
/// Value in `positions` for a flow that is in the ranking.
const RANKED: u64 = 1;
/// Lowest valid position of an entry in the queue.
const ROW: u64 = 2;

/// Order from which the flow with the lowest key is taken first; entries of the queue with equal
/// keys are in order of insertion. No operation allocates memory after [`WeightOrder::reserve`].
#[derive(Clone, Debug)]
pub(crate) struct WeightOrder {
    first: Entry,
    /// Ring buffer with the entries from `front` up to `end` in ascending order of keys. A removed
    /// entry leaves [`NOBODY`] behind, except at either end.
    row: Vec<Entry>,
    /// Position of the first entry of the queue. Positions are counted up and never wrap.
    front: u64,
    /// Position after the last entry of the queue.
    end: u64,
    /// Position of each flow in the queue, or [`OUT`] or [`RANKED`].
    positions: Vec<u64>,
    ranked: TournamentTree,
}

impl Default for WeightOrder {
    fn default() -> Self {
        let (row, positions, ranked) = Default::default();
        Self { first: NOBODY, row, front: ROW, end: ROW, positions, ranked }
    }
}

impl WeightOrder {
    /// Allocates room for flows with identifiers below `count`.
    pub(crate) fn reserve(&mut self, count: usize) {
        if self.positions.len() >= count {
            return;
        }
        self.positions.resize(count, OUT);
        self.ranked.reserve(count);
        // With room for as many gaps as flows, the amortised cost of removing gaps is constant.
        let capacity = (2 * count).next_power_of_two();
        if capacity > self.row.len() {
            let entries: Vec<Entry> = self.standing().collect();
            self.row = vec![NOBODY; capacity];
            self.end = self.front;
            entries.into_iter().for_each(|entry| self.stand(entry));
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        Some(self.first).filter(|_| !self.is_empty())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.id == NOBODY.id
    }

    /// Returns all entries in no particular order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.standing().chain(self.ranked.entries())
    }

    /// Inserts `id` with this key, or changes its key. The largest `u64` counts as the value below
    /// it.
    #[inline]
    pub(crate) fn set(&mut self, id: u32, key: u64) {
        let entry = Entry { key: key.min(KEY_MAX), id };
        let Some(position) = self.positions.get(id as usize) else { return };
        if *position != OUT {
            self.remove(id);
        }
        if self.is_last(entry) && self.has_room() {
            self.stand(entry);
        } else {
            self.insert(entry);
        }
        if entry.key < self.first.key {
            self.first = entry;
        }
    }

    /// Removes `id` if it is in the order.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        let Some(entry) = self.positions.get_mut(id as usize) else { return };
        let position = core::mem::replace(entry, OUT);
        if position == self.front {
            self.front += 1;
            if self.front < self.end && self.at(self.front).id == NOBODY.id {
                self.close_up();
            }
        } else if position != OUT {
            self.leave(id, position);
        }
        if self.first.id == id {
            self.first = self.least();
        }
    }

    /// Returns the entries of the queue, without those of the ranking.
    fn standing(&self) -> impl Iterator<Item = Entry> {
        (self.front..self.end)
            .map(|position| self.at(position))
            .filter(|entry| entry.id != NOBODY.id)
    }

    /// Returns the entry at a position of the queue; [`NOBODY`] for a gap.
    #[inline]
    fn at(&self, position: u64) -> Entry {
        let index = position as usize & self.row.len().wrapping_sub(1);
        self.row.get(index).copied().unwrap_or(NOBODY)
    }

    #[inline]
    fn put(&mut self, position: u64, entry: Entry) {
        let index = position as usize & self.row.len().wrapping_sub(1);
        if let Some(slot) = self.row.get_mut(index) {
            *slot = entry;
        }
    }

    /// Returns true if no entry of the queue has a larger key than `entry`.
    #[inline]
    fn is_last(&self, entry: Entry) -> bool {
        self.front == self.end || self.at(self.end - 1).key <= entry.key
    }

    #[inline]
    fn has_room(&self) -> bool {
        ((self.end - self.front) as usize) < self.row.len()
    }

    /// Appends an entry to the queue.
    #[inline]
    fn stand(&mut self, entry: Entry) {
        self.put(self.end, entry);
        self.note(entry.id, self.end);
        self.end += 1;
    }

    #[inline]
    fn note(&mut self, id: u32, position: u64) {
        if let Some(entry) = self.positions.get_mut(id as usize) {
            *entry = position;
        }
    }

    fn rank(&mut self, entry: Entry) {
        self.ranked.set(entry.id, entry.key);
        self.note(entry.id, RANKED);
    }

    /// Inserts an entry that cannot be appended to the queue into the ranking.
    #[inline(never)]
    fn insert(&mut self, entry: Entry) {
        if self.is_last(entry) {
            self.close_gaps();
            return self.stand(entry);
        }
        // An entry far behind all others would prevent their insertion into the queue, so it moves
        // to the ranking.
        let last = self.end - 1;
        if last == self.front || self.at(last - 1).key <= entry.key {
            let last_entry = self.at(last);
            self.end = last;
            self.rank(last_entry);
            self.stand(entry);
        } else {
            self.rank(entry);
        }
    }

    /// Removes the entry of `id` at `position`, which is not the first of the queue.
    #[inline(never)]
    fn leave(&mut self, id: u32, position: u64) {
        if position == RANKED {
            return self.ranked.remove(id);
        }
        self.put(position, NOBODY);
        while self.at(self.end - 1).id == NOBODY.id {
            self.end -= 1;
        }
    }

    /// Moves the front of the queue past removed entries to its first entry.
    #[inline(never)]
    fn close_up(&mut self) {
        while self.front < self.end && self.at(self.front).id == NOBODY.id {
            self.front += 1;
        }
    }

    #[inline]
    fn least(&self) -> Entry {
        let row = if self.front < self.end { self.at(self.front) } else { NOBODY };
        self.ranked.first().filter(|first| first.key < row.key).unwrap_or(row)
    }

    #[cold]
    fn close_gaps(&mut self) {
        let range = self.front..self.end;
        self.end = self.front;
        for position in range {
            let entry = self.at(position);
            if entry.id != NOBODY.id {
                self.stand(entry);
            }
        }
    }
}

#[cfg(test)]
#[path = "weight_order_tests.rs"]
mod tests;
