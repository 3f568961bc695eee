//! Table of values that are identified by small, reusable numbers.

/// Table of values by number. Numbers of removed values are reused.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> usize {
        if let Some(slot) = self.free.pop() {
            if let Some(entry) = self.slots.get_mut(slot) {
                *entry = Some(value);
            }
            return slot;
        }
        self.slots.push(Some(value));
        self.slots.len() - 1
    }

    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<&T> {
        self.slots.get(slot)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.slots.get_mut(slot)?.as_mut()
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: usize) -> Option<T> {
        let value = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    /// Removes and drops a value.
    #[inline]
    pub(crate) fn free(&mut self, slot: usize) {
        if let Some(entry) = self.slots.get_mut(slot).filter(|entry| entry.is_some()) {
            *entry = None;
            self.free.push(slot);
        }
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the numbers of all entries, those without a value included.
    pub(crate) fn numbers(&self) -> core::ops::Range<usize> {
        0..self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn the_number_of_a_removed_value_is_reused() {
        let mut slab = Slab::default();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((slab.remove(a), slab.remove(a), slab.get(a)), (Some('a'), None, None));
        assert_eq!((slab.insert('c'), slab.len(), slab.get(b)), (a, 2, Some(&'b')));
    }
}
