//! Identities of migrations that the source has abandoned.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::hex;

/// Migrations that were reported as abandoned while they were unknown here. A request to prepare
/// such a migration may still be in flight and is rejected. The oldest entries beyond
/// [`ABANDONED_MAX`] are dropped.
#[derive(Default)]
pub(crate) struct AbandonedMigrations(pub(super) Mutex<VecDeque<String>>);

/// Maximum number of abandoned migrations kept.
const ABANDONED_MAX: usize = 256;

impl AbandonedMigrations {
    /// Adds the id of a migration. Ignores a text that no migration has as its id.
    pub(super) fn insert(&self, id: &str) {
        if hex(id).is_none() {
            return;
        }
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !ids.iter().any(|known_id| known_id == id) {
            ids.truncate(ABANDONED_MAX - 1);
            ids.push_front(id.to_owned());
        }
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|known_id| known_id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_ids_are_kept_and_invalid_ids_are_ignored() {
        let abandoned = AbandonedMigrations::default();
        let id = |number: usize| format!("{number:032x}");
        (0..10 * ABANDONED_MAX).for_each(|number| abandoned.insert(&id(number)));
        let id_count = || abandoned.0.lock().unwrap().len();
        assert_eq!(id_count(), ABANDONED_MAX);
        assert!(abandoned.contains(&id(10 * ABANDONED_MAX - 1)) && !abandoned.contains(&id(0)));
        abandoned.insert(&"x".repeat(1 << 20));
        assert_eq!(id_count(), ABANDONED_MAX);
        assert!(abandoned.contains(&id(9 * ABANDONED_MAX)), "an invalid id displaces no other");
    }
}
