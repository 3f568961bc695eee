//! Admission of a client: negotiation, then attachment of the connection's queue to the export.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_socket_runtime::run_blocking;

use crate::client::Client;
use crate::handshake::{NegotiatedConnection, negotiate_connection};
use crate::negotiations::NegotiationEntry;
use crate::queue::NbdQueue;
use crate::queue_resources::QueueResources;

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
            let Some(admitted) = negotiate_connection(socket, &self, None).await? else {
                return Ok(());
            };
            return self.attach_soon(admitted).await;
        };
        let mut evicted = handshake.replacement_signal.clone();
        self.replacement_signal = Some(evicted.clone());
        self.negotiation = Some(handshake.handle());
        let admitted = tokio::select! {
            biased;
            admitted = negotiate_connection(socket, &self, Some(&handshake)) => admitted?,
            () = evicted.wait() => {
                self.report_limit_rejection("the limit of clients in negotiation was reached, and it was the oldest");
                return Ok(());
            }
        };
        let Some(admitted) = admitted else { return Ok(()) };
        // The export may wait for its disk. Other clients can negotiate meanwhile.
        drop(handshake);
        self.attach_soon(admitted).await
    }

    async fn attach_soon(self, admitted: NegotiatedConnection) -> io::Result<()> {
        run_blocking(move || self.attach(admitted)).await.map_err(io::Error::other)?
    }

    fn attach(&self, admitted: NegotiatedConnection) -> io::Result<()> {
        let NegotiatedConnection { socket, negotiated, unparsed: rest, relay: life } = admitted;
        let name = negotiated.export.name().to_owned();
        let missing = || io::Error::other("the connection is not counted");
        let share = Arc::clone(self.account.get().ok_or_else(missing)?);
        let is_listed = self.origin.is_some();
        let connection_entry =
            is_listed.then(|| self.context.clients.add(&name, &self.identity, Arc::clone(&share)));
        let guard = QueueResources {
            _account: Arc::clone(&share),
            _list_entry: connection_entry,
            _relay: life,
            guard: self.guard.clone(),
        };
        // The host lacks descriptors or memory. The operator is informed, and other clients are
        // served.
        let queue = NbdQueue::new(socket, &negotiated, rest, share).inspect_err(|error| {
            self.report_access_rejection(&format!("the host cannot serve its connection: {error}"));
        })?;
        self.context.exports.attach(&name, queue.with_resources(guard)).map_err(io::Error::other)
    }
}
