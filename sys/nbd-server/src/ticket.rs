//! Limit of the number of connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::server::CONNECTIONS_MAX;

/// Connections of a server. Clones refer to the same connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections(Arc<AtomicUsize>);

/// Counted connection; not counted any more once it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket(Connections);

impl Connections {
    /// Counts a connection; `None` at the limit.
    pub(crate) fn take(&self) -> Option<Ticket> {
        let taken = |before: usize| (before < CONNECTIONS_MAX).then_some(before + 1);
        let ordering = Ordering::Relaxed;
        self.0.fetch_update(ordering, ordering, taken).ok().map(|_| Ticket(self.clone()))
    }

    /// Returns true if the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.count() >= CONNECTIONS_MAX
    }

    /// Returns the number of counted connections.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
