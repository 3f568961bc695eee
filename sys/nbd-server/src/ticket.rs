//! Places of connections in a limited number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::server::CONNECTIONS_MAX;

/// Connections of a server. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections(Arc<AtomicUsize>);

/// A place of a connection, which is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket(Connections);

impl Connections {
    /// Takes a place; `None` if all are taken.
    pub(crate) fn take(&self) -> Option<Ticket> {
        let taken = |before: usize| (before < CONNECTIONS_MAX).then_some(before + 1);
        let ordering = Ordering::Relaxed;
        self.0.fetch_update(ordering, ordering, taken).ok().map(|_| Ticket(self.clone()))
    }

    /// Returns true if no place is left.
    pub(crate) fn is_full(&self) -> bool {
        self.count() >= CONNECTIONS_MAX
    }

    /// Places that are taken.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
