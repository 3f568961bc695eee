//! Client that has connected and is not served by a worker yet.

use std::io;
use std::sync::{Arc, OnceLock};

use suimon_socket_runtime::DescriptorGuard;

use crate::budgets::ConnectionAccount;
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
    /// `None` for connections of the daemon itself, which are neither limited nor listed.
    pub(crate) origin: Option<Origin>,
    /// Share of the connection, set at the end of the negotiation. The connection is counted until
    /// its queue and its TLS have ended.
    pub(crate) share: Arc<OnceLock<Arc<ConnectionAccount>>>,
    /// Signal that the negotiation was replaced; `None` if the negotiation is not limited.
    pub(crate) evicted: Option<Replaced>,
    /// Reference to the negotiation; `None` if the negotiation is not limited.
    pub(crate) progress: Option<Progress>,
    /// Guard against attached descriptors; `None` if the socket cannot carry any.
    pub(crate) guard: Option<Arc<DescriptorGuard>>,
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

    /// Reports that the client was rejected. Logged at level debug only, because clients determine
    /// the rate.
    pub(crate) fn refuse(&self, reason: &str) {
        let peer = self.caller.peer.clone();
        tracing::debug!(peer, reason, "an NBD client was rejected");
        self.host.exports.handle_refused(peer, reason.to_owned());
    }

    /// Reports that the client was rejected because of a limit. Logged at level debug only, because
    /// clients determine the rate.
    pub(crate) fn reject(&self, reason: &str) {
        let peer = self.caller.peer.clone();
        tracing::debug!(peer, reason, "an NBD client is turned away");
        self.host.exports.handle_limited(peer, reason.to_owned());
    }

    /// Counts the connection towards the limits of the export, the peer and the host.
    ///
    /// # Errors
    /// The limit that would be exceeded. It was reported before the return.
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
        // A client negotiates only once.
        let _ = self.share.set(Arc::new(share));
        Ok(())
    }
}
