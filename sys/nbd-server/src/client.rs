//! Connected client during its negotiation.

use std::io;
use std::sync::{Arc, OnceLock};

use suimon_socket_runtime::DescriptorGuard;

use crate::budgets::ConnectionAccount;
use crate::clients::ClientIdentity;
use crate::handshakes::{NegotiationHandle, ReplacementSignal};
use crate::host::NbdHost;
use crate::origin::Origin;
use crate::tls::NbdTls;

/// Connected client during its negotiation, with the server's parameters.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) host: NbdHost,
    /// TLS parameters; `None` if the server offers no TLS.
    pub(crate) tls: Option<NbdTls>,
    pub(crate) caller: ClientIdentity,
    /// Origin that the limits apply to; `None` for connections of the daemon itself, which are
    /// neither limited nor listed.
    pub(crate) origin: Option<Origin>,
    /// Account of the connection, set at the end of the negotiation. The connection is counted
    /// until its queue and its TLS have ended.
    pub(crate) share: Arc<OnceLock<Arc<ConnectionAccount>>>,
    /// Signal that a newer negotiation has replaced this one; `None` if the negotiation is not
    /// limited.
    pub(crate) evicted: Option<ReplacementSignal>,
    /// Handle by which the TLS handshake reports progress; `None` if the negotiation is not
    /// limited.
    pub(crate) progress: Option<NegotiationHandle>,
    /// Guard against attached descriptors; `None` if the kernel refuses descriptors on the socket.
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

    /// Reports to the exports that access control or the protocol rejected the client. Logged at
    /// level debug only, because clients determine the rate.
    pub(crate) fn refuse(&self, reason: &str) {
        let peer = self.caller.peer.clone();
        tracing::debug!(peer, reason, "an NBD client was rejected");
        self.host.exports.handle_refused(peer, reason.to_owned());
    }

    /// Reports to the exports that a limit rejected the client. Logged at level debug only, because
    /// clients determine the rate.
    pub(crate) fn reject(&self, reason: &str) {
        let peer = self.caller.peer.clone();
        tracing::debug!(peer, reason, "an NBD client is turned away");
        self.host.exports.handle_limited(peer, reason.to_owned());
    }

    /// Counts the connection towards the limits of the export, the peer and the host.
    ///
    /// # Errors
    /// The limit that the connection would exceed. It was already reported to the exports.
    pub(crate) fn claim(&self, export: &str) -> io::Result<()> {
        let budgets = &self.host.budgets;
        let share = match self.origin {
            None => Ok(budgets.admit_daemon()),
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
