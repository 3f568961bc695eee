//! Admission of a client: negotiation, then attachment of the connection's queue to the export.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_socket_runtime::blocking;

use crate::client::Client;
use crate::handshake::{NegotiatedConnection, shake_hands};
use crate::handshakes::NegotiationEntry;
use crate::inside::QueueResources;
use crate::queue::NbdQueue;

impl Client {
    /// Negotiates with the client on `socket`, and passes the connection's queue to the export that
    /// the client selected. `handshake` counts the negotiation towards the limits; with `None`, the
    /// negotiation is not limited.
    ///
    /// # Errors
    /// The negotiation failed, a limit is reached, the host cannot serve the connection, or the
    /// export rejects it.
    pub(crate) async fn admit(
        mut self,
        socket: OwnedFd,
        handshake: Option<NegotiationEntry>,
    ) -> io::Result<()> {
        let Some(handshake) = handshake else {
            let Some(admitted) = shake_hands(socket, &self, None).await? else { return Ok(()) };
            return self.attach_soon(admitted).await;
        };
        let mut evicted = handshake.evicted.clone();
        self.evicted = Some(evicted.clone());
        self.progress = Some(handshake.progress());
        let admitted = tokio::select! {
            biased;
            admitted = shake_hands(socket, &self, Some(&handshake)) => admitted?,
            () = evicted.wait() => {
                self.reject("the limit of clients in negotiation was reached, and it was the oldest");
                return Ok(());
            }
        };
        let Some(admitted) = admitted else { return Ok(()) };
        // The export may wait for its disk. Other clients can negotiate meanwhile.
        drop(handshake);
        self.attach_soon(admitted).await
    }

    async fn attach_soon(self, admitted: NegotiatedConnection) -> io::Result<()> {
        blocking(move || self.attach(admitted)).await.map_err(io::Error::other)?
    }

    fn attach(&self, admitted: NegotiatedConnection) -> io::Result<()> {
        let NegotiatedConnection { socket, negotiated, unparsed: rest, life } = admitted;
        let name = negotiated.export.name().to_owned();
        let missing = || io::Error::other("the connection is not counted");
        let share = Arc::clone(self.share.get().ok_or_else(missing)?);
        let is_listed = self.origin.is_some();
        let connection_entry =
            is_listed.then(|| self.host.clients.note(&name, &self.caller, Arc::clone(&share)));
        let guard = QueueResources {
            _share: Arc::clone(&share),
            _noted: connection_entry,
            _life: life,
            guard: self.guard.clone(),
        };
        // The host lacks descriptors or memory. The operator is informed, and other clients are
        // served.
        let queue = NbdQueue::new(socket, &negotiated, rest, share).inspect_err(|error| {
            self.refuse(&format!("the host cannot serve its connection: {error}"));
        })?;
        self.host.exports.attach(&name, queue.with_resources(guard)).map_err(io::Error::other)
    }
}
