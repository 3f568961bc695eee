//! Values that the queue of a connection owns.

use std::sync::Arc;

use suimon_socket_runtime::DescriptorGuard;
use tokio::sync::oneshot::Sender;

use crate::accounting::ConnectionAccount;
use crate::clients::ClientListEntry;

/// Values that exist as long as the queue of a connection: the connection's entry in the list of
/// clients, its TLS relay, and the guard of its socket.
pub(crate) struct QueueResources {
    pub(crate) _account: Arc<ConnectionAccount>,
    pub(crate) _list_entry: Option<ClientListEntry>,
    pub(crate) _relay: Option<RelayOwner>,
    /// Guard against attached descriptors; `None` if the kernel refuses descriptors on the socket.
    pub(crate) guard: Option<Arc<DescriptorGuard>>,
}

/// Owner of a TLS task, held by the connection's queue. The task ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RelayOwner(#[expect(dead_code, reason = "dropping it is its effect")] Sender<()>);

impl RelayOwner {
    /// Creates the owner of a TLS task, which ends when `sender` is dropped.
    pub(crate) const fn new(sender: Sender<()>) -> Self {
        Self(sender)
    }
}
