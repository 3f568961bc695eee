//! Reports whether the state directory can be written.

mod control;

use std::time::Instant;

/// State of the store that the control thread has reported.
#[derive(Default)]
pub(crate) struct StateStoreWatch {
    is_reported: bool,
    tried_at: Option<Instant>,
}
