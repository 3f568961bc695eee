//! Values that a connection's queue owns.

use std::sync::Arc;

use crate::budgets::Share;
use crate::clients::Noted;
use crate::relay::QueueLife;

/// Values that the queue of a connection owns as long as it exists: its entry in the list of
/// clients, and its TLS.
pub(crate) struct Inside {
    pub(crate) _share: Arc<Share>,
    pub(crate) _noted: Option<Noted>,
    pub(crate) _life: Option<QueueLife>,
}
