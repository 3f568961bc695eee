//! Values that a connection's queue owns.

use std::sync::Arc;

use suimon_socket_runtime::PeerGuard;

use crate::budgets::Share;
use crate::clients::ListedConnection;
use crate::relay::QueueLife;

/// Values that the queue of a connection owns as long as it exists: its entry in the list of
/// clients, its TLS, and the guard of its socket.
pub(crate) struct Inside {
    pub(crate) _share: Arc<Share>,
    pub(crate) _noted: Option<ListedConnection>,
    pub(crate) _life: Option<QueueLife>,
    /// `None` if the socket carries no descriptors.
    pub(crate) guard: Option<Arc<PeerGuard>>,
}
