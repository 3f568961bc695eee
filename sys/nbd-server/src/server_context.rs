//! State that several servers share.

use std::sync::Arc;

use suimon_nbd::Export;
use suimon_ports::NbdLimits;
use suimon_socket_runtime::{HandshakeLimits, SocketRuntime};

use crate::accounting::NbdAccounting;
use crate::clients::NbdClients;
use crate::negotiations::Negotiations;
use crate::queue::NbdQueue;

/// Exports of a server, which receive its connections and reports of rejected clients.
pub trait NbdExports: Send + Sync {
    /// Returns the current exports. Must not block: called by a thread that serves all clients.
    fn exports(&self) -> Vec<Export>;

    /// Attaches a connection to the export with this name. May block for some seconds.
    ///
    /// # Errors
    /// The reason why the connection is rejected; it is then closed.
    fn attach(&self, name: &str, queue: NbdQueue) -> Result<(), String>;

    /// Returns the limits on the connections of an export. Must not block.
    fn limits(&self, _name: &str) -> NbdLimits {
        NbdLimits::EXPORT_DEFAULT
    }

    /// Handles the report that access control or the protocol rejected a client. Must not block.
    fn handle_access_rejection(&self, _peer: String, _reason: String) {}

    /// Handles the report that a limit rejected a client. Must not block.
    fn handle_limit_rejection(&self, _peer: String, _reason: String) {}
}

/// State that several servers share.
#[derive(Clone)]
pub struct NbdServerContext {
    /// Exports that all servers offer.
    pub exports: Arc<dyn NbdExports>,
    /// List of the servers' connections.
    pub clients: NbdClients,
    /// Accounting of the servers' connections and buffer memory, with the limits.
    pub accounting: NbdAccounting,
    /// Negotiations in progress of all servers.
    pub(crate) negotiations: Negotiations,
    /// Limits of the servers' TLS handshakes.
    pub(crate) tls_limits: HandshakeLimits,
    /// Runtime that accepts clients, negotiates with them and carries their TLS. Its threads never
    /// open files.
    pub runtime: SocketRuntime,
}

impl NbdServerContext {
    /// Creates the state of servers that offer `exports` and run on the threads of `runtime`.
    #[must_use]
    pub fn new(exports: Arc<dyn NbdExports>, runtime: SocketRuntime) -> Self {
        Self {
            exports,
            clients: NbdClients::default(),
            accounting: NbdAccounting::default(),
            negotiations: Negotiations::default(),
            tls_limits: HandshakeLimits::default(),
            runtime,
        }
    }

    /// Returns a copy of this state, with the same clients, limits and threads, for servers that
    /// offer `exports`.
    #[must_use]
    pub fn with_exports(&self, exports: Arc<dyn NbdExports>) -> Self {
        Self { exports, ..self.clone() }
    }
}
