//! Identities of migrations that the source has abandoned.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Migrations that were reported as abandoned while they were unknown here. A request to prepare
/// such a migration may still be in flight and is rejected. The oldest entries beyond
/// [`ABANDONED_MAX`] are dropped.
#[derive(Default)]
pub(crate) struct Abandoned(pub(super) Mutex<VecDeque<String>>);

/// Maximum number of abandoned migrations kept.
const ABANDONED_MAX: usize = 256;

impl Abandoned {
    pub(super) fn insert(&self, id: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.iter().any(|of| of == id) {
            known.truncate(ABANDONED_MAX - 1);
            known.push_front(id.to_owned());
        }
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|of| of == id)
    }
}
