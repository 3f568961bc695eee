//! Connection of a request, as its handler sees it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::connections::ConnectionSlot;

/// Connection of a request. The server adds it to the extensions of each request.
#[derive(Clone)]
pub(crate) struct ClientConnection {
    peer: Option<IpAddr>,
    slot: Arc<ConnectionSlot>,
}

impl ClientConnection {
    pub(super) const fn new(peer: Option<IpAddr>, slot: Arc<ConnectionSlot>) -> Self {
        Self { peer, slot }
    }

    /// Returns the address of the peer; `None` for a local socket.
    pub(crate) const fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// Waits for `time`. The connection counts as idle meanwhile: a new connection replaces it if
    /// the listener has no slot left, so that delayed responses take no slot from other clients.
    pub(crate) async fn delay(&self, time: Duration) {
        let _paused = self.slot.pause();
        tokio::time::sleep(time).await;
    }
}
