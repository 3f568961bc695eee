//! Client that has connected and is not served yet.

use std::io;
use std::sync::{Arc, OnceLock};

use suimon_socket_runtime::PeerGuard;

use crate::budgets::Share;
use crate::clients::ClientIdentity;
use crate::handshakes::{Progress, Replaced};
use crate::host::NbdHost;
use crate::origin::Origin;
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
}
