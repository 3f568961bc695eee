//! NBD servers: listening addresses, access rules and connected clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;

/// Listening address of an NBD server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NbdPlace {
    /// Unix socket at this path.
    Unix(PathBuf),
    /// TCP server at this address and port.
    Tcp(SocketAddr),
}

/// Configuration of an NBD server: listening address and access rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdServerSpec {
    /// Server on a Unix socket.
    Unix {
        /// Path of the Unix socket.
        socket: PathBuf,
        /// Users and groups that may connect.
        access: NbdUnixAccess,
    },
    /// Server on a TCP port.
    Tcp {
        /// Address and port to listen on.
        address: SocketAddr,
        /// Clients that may connect, and TLS.
        access: NbdTcpAccess,
    },
}

impl NbdServerSpec {
    /// Returns the address the server listens on.
    pub fn place(&self) -> NbdPlace {
        match self {
            Self::Unix { socket, .. } => NbdPlace::Unix(socket.clone()),
            Self::Tcp { address, .. } => NbdPlace::Tcp(*address),
        }
    }
}

/// Access rules of a Unix socket: users and groups of this host, by name or number, that may
/// connect. If both lists are empty: the daemon's user and group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NbdUnixAccess {
    /// Users that may connect, by name or number.
    pub users: Vec<String>,
    /// Groups that may connect, by name or number.
    pub groups: Vec<String>,
}

/// Access rules of a TCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NbdTcpAccess {
    /// TLS configuration; `None`: no TLS.
    pub tls: Option<NbdTlsFiles>,
    /// Permitted source networks; any if empty.
    pub addresses: Vec<IpNet>,
    /// True if clients of other hosts may connect without TLS.
    pub is_plaintext: bool,
}

/// PEM files of a TLS server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NbdTlsFiles {
    /// Certificate chain of the server.
    pub certificate: PathBuf,
    /// Private key of the server.
    pub key: PathBuf,
    /// CA certificates for client authentication; `None`: clients need no certificate.
    pub client_ca: Option<PathBuf>,
    /// Permitted DNS names of client certificates, one of which must match; any name if empty.
    pub clients: Vec<String>,
}

/// Transport of a client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NbdClientWay {
    /// Unix socket on this host.
    Unix,
    /// TCP connection without TLS.
    Tcp,
    /// TCP connection protected by TLS.
    Tls,
}

/// Client connection that uses an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdClient {
    /// Name of the export in use.
    pub export: String,
    /// Transport that the client uses.
    pub way: NbdClientWay,
    /// Peer, as text: process and user, or address and port.
    pub peer: String,
}

/// Notice of an NBD server, for events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdNotice {
    /// A client was not permitted to connect.
    Refused {
        /// Peer of the connection, as text.
        peer: String,
        /// Reason of the rejection, as text.
        reason: String,
    },
    /// A disk cannot be exported.
    NotOffered {
        /// Name of the disk concerned.
        disk: String,
        /// Reason why the disk cannot be exported, as text.
        reason: String,
    },
}
