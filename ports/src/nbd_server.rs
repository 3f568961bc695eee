//! NBD servers: listening addresses, access rules and connected clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;

/// Listening address of an NBD server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NbdAddress {
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
    pub fn address(&self) -> NbdAddress {
        match self {
            Self::Unix { socket, .. } => NbdAddress::Unix(socket.clone()),
            Self::Tcp { address, .. } => NbdAddress::Tcp(*address),
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
    pub allowed_networks: Vec<IpNet>,
    /// True if clients of other hosts may connect without TLS.
    pub allows_plaintext: bool,
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
    pub client_names: Vec<String>,
}

/// Transport of a client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NbdTransport {
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
    pub transport: NbdTransport,
    /// Peer, as text: process and user, or address and port.
    pub peer: String,
    /// Buffer memory of the connection in bytes, reserved memory included.
    pub buffer_bytes: u64,
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
    /// A client was turned away because of a limit on connections, negotiations or buffer memory.
    LimitReached {
        /// Peer of the connection, as text.
        peer: String,
        /// Limit that was reached, as text.
        reason: String,
    },
    /// A disk cannot be exported.
    ExportFailed {
        /// Name of the disk concerned.
        disk: String,
        /// Reason why the disk cannot be exported, as text.
        reason: String,
    },
}

/// Limits on the connections of an export, a peer or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NbdLimits {
    /// Maximum number of connections.
    pub connections_max: u32,
    /// Maximum buffer memory of all connections in bytes, with the memory that each reserves.
    pub buffer_bytes_max: u64,
}

impl NbdLimits {
    /// Default limits of an export.
    pub const EXPORT_DEFAULT: Self = Self { connections_max: 128, buffer_bytes_max: 128 << 20 };
    /// Default limits of a peer.
    pub const PEER_DEFAULT: Self = Self { connections_max: 512, buffer_bytes_max: 512 << 20 };
    /// Default limits of the host.
    pub const HOST_DEFAULT: Self = Self { connections_max: 1024, buffer_bytes_max: 1 << 30 };
}

/// Connections and buffer memory of an export, a peer or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NbdLevelUsage {
    /// Current number of connections.
    pub connections: u32,
    /// Current buffer memory in bytes, reserved memory included.
    pub buffer_bytes: u64,
    /// Limits in effect.
    pub limits: NbdLimits,
}

/// Connections and buffer memory of NBD clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdUsage {
    /// Connections and buffer memory of the clients of all servers.
    pub host: NbdLevelUsage,
    /// Peers with connections: `user 107`, an IPv4 address or an IPv6 network.
    pub peers: Vec<(String, NbdLevelUsage)>,
    /// Exports that have connections, with their connections and buffer memory.
    pub exports: Vec<(String, NbdLevelUsage)>,
    /// Number of requests that were delayed or processed in parts, because a limit on buffer memory
    /// was reached.
    pub delayed_requests: u64,
}
