//! Connected client during its negotiation.

use std::io;
use std::sync::{Arc, OnceLock};

use suimon_socket_runtime::DescriptorGuard;

use crate::accounting::ConnectionAccount;
use crate::clients::ClientIdentity;
use crate::negotiations::{NegotiationHandle, ReplacementSignal};
use crate::origin::Origin;
use crate::server_context::NbdServerContext;
use crate::tls::NbdTls;

/// Connected client during its negotiation, with the server's parameters.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) context: NbdServerContext,
    /// TLS parameters; `None` if the server offers no TLS.
    pub(crate) tls: Option<NbdTls>,
    pub(crate) identity: ClientIdentity,
    /// Origin that the limits apply to; `None` for connections of the daemon itself, which are
    /// neither limited nor listed.
    pub(crate) origin: Option<Origin>,
    /// Account of the connection, set at the end of the negotiation. The connection is counted
    /// until its queue and its TLS have ended.
    pub(crate) account: Arc<OnceLock<Arc<ConnectionAccount>>>,
    /// Signal that a newer negotiation has replaced this one; `None` if the negotiation is not
    /// limited.
    pub(crate) replacement_signal: Option<ReplacementSignal>,
    /// Handle by which the TLS handshake reports progress; `None` if the negotiation is not
    /// limited.
    pub(crate) negotiation: Option<NegotiationHandle>,
    /// Guard against attached descriptors; `None` if the kernel refuses descriptors on the socket.
    pub(crate) guard: Option<Arc<DescriptorGuard>>,
}

impl Client {
    pub(crate) fn new(
        host: NbdServerContext,
        tls: Option<NbdTls>,
        caller: ClientIdentity,
        origin: Option<Origin>,
    ) -> Self {
        let share = Arc::default();
        Self {
            context: host,
            tls,
            identity: caller,
            origin,
            account: share,
            replacement_signal: None,
            negotiation: None,
            guard: None,
        }
    }

    /// Reports to the exports that access control or the protocol rejected the client. Logged at
    /// level debug only, because clients determine the rate.
    pub(crate) fn report_access_rejection(&self, reason: &str) {
        let peer = self.identity.peer.clone();
        tracing::debug!(peer, reason, "an NBD client was rejected");
        self.context.exports.handle_access_rejection(peer, reason.to_owned());
    }

    /// Reports to the exports that a limit rejected the client. Logged at level debug only, because
    /// clients determine the rate.
    pub(crate) fn report_limit_rejection(&self, reason: &str) {
        let peer = self.identity.peer.clone();
        tracing::debug!(peer, reason, "an NBD client is turned away");
        self.context.exports.handle_limit_rejection(peer, reason.to_owned());
    }

    /// Counts the connection towards the limits of the export, the peer and the host.
    ///
    /// # Errors
    /// The limit that the connection would exceed. It was already reported to the exports.
    pub(crate) fn open_account(&self, export: &str) -> io::Result<()> {
        let budgets = &self.context.accounting;
        let share = match self.origin {
            None => Ok(budgets.admit_daemon()),
            Some(origin) => budgets.admit(origin, export, self.context.exports.limits(export)),
        };
        let share = share.map_err(|exceeded| {
            self.report_limit_rejection(&exceeded.to_string());
            io::Error::other(exceeded)
        })?;
        // A client negotiates only once.
        let _ = self.account.set(Arc::new(share));
        Ok(())
    }
}
