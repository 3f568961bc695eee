//! Places in a limited number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A place, which is taken until this is dropped.
pub(crate) struct Ticket(Arc<AtomicUsize>);

impl Ticket {
    /// Takes a place; `None` if all `max` are taken.
    pub(crate) fn take(count: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        let taken = |before: usize| (before < max).then_some(before + 1);
        let ordering = Ordering::Relaxed;
        count.fetch_update(ordering, ordering, taken).ok().map(|_| Self(Arc::clone(count)))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
