//! Values that a connection's queue owns.

use std::sync::Arc;

use suimon_socket_runtime::PeerGuard;
use tokio::sync::oneshot::Sender;

use crate::budgets::Share;
use crate::clients::ListedConnection;

/// Values that the queue of a connection owns as long as it exists: its entry in the list of
/// clients, its TLS, and the guard of its socket.
pub(crate) struct Inside {
    pub(crate) _share: Arc<Share>,
    pub(crate) _noted: Option<ListedConnection>,
    pub(crate) _life: Option<QueueLife>,
    /// `None` if the socket carries no descriptors.
    pub(crate) guard: Option<Arc<PeerGuard>>,
}

/// Owned by the queue of a connection with TLS. When it is dropped, the task ends.
#[derive(Debug)]
pub(crate) struct QueueLife(#[expect(dead_code, reason = "dropping it is its effect")] Sender<()>);

impl QueueLife {
    /// Creates the owner of the sender whose drop ends the task.
    pub(crate) const fn new(sender: Sender<()>) -> Self {
        Self(sender)
    }
}
