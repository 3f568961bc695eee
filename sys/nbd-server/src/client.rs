//! Client that has connected and is not served yet.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use suimon_socket_runtime::blocking;

use crate::clients::{Caller, Noted};
use crate::handshake::{Admitted, shake_hands};
use crate::handshakes::{Evicted, Handshake};
use crate::queue::NbdQueue;
use crate::relay::QueueLife;
use crate::server::NbdHost;
use crate::ticket::{Connections, Ticket};
use crate::tls::NbdTls;

/// Reason for rejecting a client when the limit is reached.
pub(crate) const TOO_MANY: &str = "the limit of connections is reached";

/// Connected client with the server's parameters.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) host: NbdHost,
    /// `None` if the server offers no TLS.
    pub(crate) tls: Option<NbdTls>,
    pub(crate) caller: Caller,
    /// Set when the negotiation is complete, if the connection counts towards its server's limit.
    /// The connection counts until its queue and its TLS have ended.
    pub(crate) place: Arc<OnceLock<Ticket>>,
    /// `None` if the negotiation does not count towards a server's limit.
    pub(crate) evicted: Option<Evicted>,
}

/// Values that the queue of a connection owns as long as it exists.
pub(crate) struct Inside {
    _place: Arc<OnceLock<Ticket>>,
    _noted: Option<Noted>,
    _life: Option<QueueLife>,
}

/// Limits that a client of a server counts towards. Connections made by the daemon itself are
/// neither limited nor listed.
pub(crate) struct Counted {
    pub(crate) handshake: Handshake,
    pub(crate) connections: Connections,
}

impl Client {
    pub(crate) fn new(host: NbdHost, tls: Option<NbdTls>, caller: Caller) -> Self {
        Self { host, tls, caller, place: Arc::default(), evicted: None }
    }

    /// Reports that the client was rejected. Clients determine the rate, so each entry is logged at
    /// level debug only.
    pub(crate) fn refuse(&self, reason: &str) {
        let peer = self.caller.peer.clone();
        tracing::debug!(peer, reason, "an NBD client was rejected");
        self.host.exports.handle_refused(peer, reason.to_owned());
    }

    /// Negotiates with the client and passes its queue to the export that it chose.
    ///
    /// # Errors
    /// The negotiation failed, the host cannot serve the connection, or the export rejects it.
    pub(crate) async fn admit(
        mut self,
        socket: OwnedFd,
        counted: Option<Counted>,
    ) -> io::Result<()> {
        let Some(Counted { handshake, connections }) = counted else {
            let Some(admitted) = shake_hands(socket, &self, None).await? else { return Ok(()) };
            return self.attach_soon(admitted).await;
        };
        let mut evicted = handshake.evicted.clone();
        self.evicted = Some(evicted.clone());
        let admitted = tokio::select! {
            biased;
            admitted = shake_hands(socket, &self, Some(&handshake)) => admitted?,
            () = evicted.wait() => {
                self.refuse(
                    "the limit of clients in negotiation was reached, and it was the oldest");
                return Ok(());
            }
        };
        let Some(admitted) = admitted else { return Ok(()) };
        let Some(ticket) = connections.take() else {
            self.refuse(TOO_MANY);
            return Ok(());
        };
        let _ = self.place.set(ticket);
        // The export may wait for its disk; other clients may negotiate meanwhile.
        drop(handshake);
        self.attach_soon(admitted).await
    }

    async fn attach_soon(self, admitted: Admitted) -> io::Result<()> {
        blocking(move || self.attach(admitted)).await.map_err(io::Error::other)?
    }

    fn attach(&self, admitted: Admitted) -> io::Result<()> {
        let Admitted { socket, negotiated, rest, life } = admitted;
        let name = negotiated.export.name().to_owned();
        let is_counted = self.place.get().is_some();
        let noted = is_counted.then(|| self.host.clients.note(&name, &self.caller));
        let inside = Inside { _place: Arc::clone(&self.place), _noted: noted, _life: life };
        // The host lacks descriptors or memory: the operator is informed, and other clients are
        // served.
        let queue = NbdQueue::new(socket, &negotiated, rest).inspect_err(|error| {
            self.refuse(&format!("the host cannot serve its connection: {error}"));
        })?;
        self.host.exports.attach(&name, queue.counted_by(inside)).map_err(io::Error::other)
    }
}
