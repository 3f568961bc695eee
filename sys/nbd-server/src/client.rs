//! Client that has connected and is not served yet.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use suimon_socket_runtime::{PeerGuard, blocking};

use crate::budgets::Share;
use crate::clients::ClientIdentity;
use crate::handshake::{Admitted, shake_hands};
use crate::handshakes::{Handshake, Progress, Replaced};
use crate::inside::Inside;
use crate::origin::Origin;
use crate::queue::NbdQueue;
use crate::server::NbdHost;
use crate::tls::NbdTls;

/// Connected client with the server's parameters.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) host: NbdHost,
    /// `None` if the server offers no TLS.
    pub(crate) tls: Option<NbdTls>,
    pub(crate) caller: ClientIdentity,
    /// `None` for connections that the daemon makes itself. These are neither limited nor listed.
    pub(crate) origin: Option<Origin>,
    /// Set at the end of the negotiation. The connection counts until its queue and its TLS have
    /// ended.
    pub(crate) share: Arc<OnceLock<Arc<Share>>>,
    /// `None` if the negotiation is not limited.
    pub(crate) evicted: Option<Replaced>,
    /// The same.
    pub(crate) progress: Option<Progress>,
    /// `None` if the socket carries no descriptors.
    pub(crate) guard: Option<Arc<PeerGuard>>,
}

impl Client {
    pub(crate) fn new(
        host: NbdHost,
        tls: Option<NbdTls>,
        caller: ClientIdentity,
        origin: Option<Origin>,
    ) -> Self {
        let share = Arc::default();
        Self { host, tls, caller, origin, share, evicted: None, progress: None, guard: None }
    }

    /// Reports that the client was rejected. Clients determine the rate, so each entry is logged at
    /// level debug only.
    pub(crate) fn refuse(&self, reason: &str) {
        let peer = self.caller.peer.clone();
        tracing::debug!(peer, reason, "an NBD client was rejected");
        self.host.exports.handle_refused(peer, reason.to_owned());
    }

    /// Reports that the client was turned away because of a limit. Logged at level debug, because
    /// clients determine the rate.
    pub(crate) fn reject(&self, reason: &str) {
        let peer = self.caller.peer.clone();
        tracing::debug!(peer, reason, "an NBD client is turned away");
        self.host.exports.handle_limited(peer, reason.to_owned());
    }

    /// Counts the connection towards the limits of the export, the peer and the host.
    ///
    /// # Errors
    /// The limit that would be exceeded, which was reported.
    pub(crate) fn claim(&self, export: &str) -> io::Result<()> {
        let budgets = &self.host.budgets;
        let share = match self.origin {
            None => Ok(budgets.admit_own()),
            Some(origin) => budgets.admit(origin, export, self.host.exports.limits(export)),
        };
        let share = share.map_err(|exceeded| {
            self.reject(&exceeded.to_string());
            io::Error::other(exceeded)
        })?;
        // A client negotiates once.
        let _ = self.share.set(Arc::new(share));
        Ok(())
    }

    /// Negotiates with the client and passes its queue to the export that it chose. Without a
    /// handshake, the negotiation is not limited.
    ///
    /// # Errors
    /// The negotiation failed, a limit is reached, the host cannot serve the connection, or the
    /// export rejects it.
    pub(crate) async fn admit(
        mut self,
        socket: OwnedFd,
        handshake: Option<Handshake>,
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
        let missing = || io::Error::other("the connection is not counted");
        let share = Arc::clone(self.share.get().ok_or_else(missing)?);
        let is_listed = self.origin.is_some();
        let noted =
            is_listed.then(|| self.host.clients.note(&name, &self.caller, Arc::clone(&share)));
        let inside = Inside {
            _share: Arc::clone(&share),
            _noted: noted,
            _life: life,
            guard: self.guard.clone(),
        };
        // The host lacks descriptors or memory: the operator is informed, and other clients are
        // served.
        let queue = NbdQueue::new(socket, &negotiated, rest, share).inspect_err(|error| {
            self.refuse(&format!("the host cannot serve its connection: {error}"));
        })?;
        self.host.exports.attach(&name, queue.owning(inside)).map_err(io::Error::other)
    }
}
