//! The order in which flows are served by weight.
//!
//! Who was served last mostly goes to the end, because the others are as far as he was. So most
//! stand in a row, where coming and going costs the same for few and many. Who belongs further
//! in front, because his requests count for less than others' or his weight is higher, is kept in
//! a [`Ranking`] beside it.

use crate::ranking::{Entry, LAST, Ranking};

/// Nobody: behind all.
const NOBODY: Entry = Entry { key: u64::MAX, id: u32::MAX };

/// Where one is who is not in the row.
const OUT: u64 = 0;
const RANKED: u64 = 1;
/// The number of the first place in the row that there ever was.
const ROW: u64 = 2;

/// The one with the lowest key first; of those in the row with the same one, who came first.
/// Nothing allocates once room was reserved.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    first: Entry,
    /// From `front` to before `end` by key, in a ring. Who left has [`NOBODY`] in his place, but
    /// not in front and not at the end.
    row: Vec<Entry>,
    /// Numbers of places. They go on as others come.
    front: u64,
    end: u64,
    /// By number of flow: its place in the row, or where else it is.
    places: Vec<u64>,
    ranked: Ranking,
}

impl Default for Shares {
    fn default() -> Self {
        let (row, places, ranked) = Default::default();
        Self { first: NOBODY, row, front: ROW, end: ROW, places, ranked }
    }
}

impl Shares {
    /// Makes room for numbers below `count`.
    pub(crate) fn reserve(&mut self, count: usize) {
        if self.places.len() >= count {
            return;
        }
        self.places.resize(count, OUT);
        self.ranked.reserve(count);
        // With as many gaps as there may be flows, it is worth closing them.
        let room = (2 * count).next_power_of_two();
        if room > self.row.len() {
            let entries: Vec<Entry> = self.standing().collect();
            self.row = vec![NOBODY; room];
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

    /// Everyone who is in.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.standing().chain(self.ranked.entries())
    }

    /// Puts `id` in, or gives it another key. The latest there is counts as the one before it.
    #[inline]
    pub(crate) fn set(&mut self, id: u32, key: u64) {
        let entry = Entry { key: key.min(LAST), id };
        let Some(place) = self.places.get(id as usize) else { return };
        if *place != OUT {
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

    /// Takes `id` out, if it is in.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        let Some(place) = self.places.get_mut(id as usize) else { return };
        let place = core::mem::replace(place, OUT);
        if place == self.front {
            self.front += 1;
            if self.front < self.end && self.at(self.front).id == NOBODY.id {
                self.close_up();
            }
        } else if place != OUT {
            self.leave(id, place);
        }
        if self.first.id == id {
            self.first = self.least();
        }
    }

    /// Those in the row.
    fn standing(&self) -> impl Iterator<Item = Entry> {
        (self.front..self.end).map(|place| self.at(place)).filter(|entry| entry.id != NOBODY.id)
    }

    /// Who stands in a place of the row.
    #[inline]
    fn at(&self, place: u64) -> Entry {
        let at = place as usize & self.row.len().wrapping_sub(1);
        self.row.get(at).copied().unwrap_or(NOBODY)
    }

    #[inline]
    fn put(&mut self, place: u64, entry: Entry) {
        let at = place as usize & self.row.len().wrapping_sub(1);
        if let Some(slot) = self.row.get_mut(at) {
            *slot = entry;
        }
    }

    /// Whether nobody in the row comes after it.
    #[inline]
    fn is_last(&self, entry: Entry) -> bool {
        self.front == self.end || self.at(self.end - 1).key <= entry.key
    }

    #[inline]
    fn has_room(&self) -> bool {
        ((self.end - self.front) as usize) < self.row.len()
    }

    /// One goes to the end of the row.
    #[inline]
    fn stand(&mut self, entry: Entry) {
        self.put(self.end, entry);
        self.note(entry.id, self.end);
        self.end += 1;
    }

    #[inline]
    fn note(&mut self, id: u32, place: u64) {
        if let Some(at) = self.places.get_mut(id as usize) {
            *at = place;
        }
    }

    fn rank(&mut self, entry: Entry) {
        self.ranked.set(entry.id, entry.key);
        self.note(entry.id, RANKED);
    }

    /// Puts one in for whom there is no place at the end of the row.
    #[inline(never)]
    fn insert(&mut self, entry: Entry) {
        if self.is_last(entry) {
            self.close_gaps();
            return self.stand(entry);
        }
        // Who is further behind than all others must not keep them out of the row.
        let last = self.end - 1;
        if last == self.front || self.at(last - 1).key <= entry.key {
            let far = self.at(last);
            self.end = last;
            self.rank(far);
            self.stand(entry);
        } else {
            self.rank(entry);
        }
    }

    /// One leaves who is not in front of the row.
    #[inline(never)]
    fn leave(&mut self, id: u32, place: u64) {
        if place == RANKED {
            return self.ranked.remove(id);
        }
        self.put(place, NOBODY);
        while self.at(self.end - 1).id == NOBODY.id {
            self.end -= 1;
        }
    }

    /// Nobody stands in front of the row: it begins with the first who does.
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
        let places = self.front..self.end;
        self.end = self.front;
        for place in places {
            let entry = self.at(place);
            if entry.id != NOBODY.id {
                self.stand(entry);
            }
        }
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
