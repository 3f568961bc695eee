//! NBD servers: where they listen, whom they let in, and who is there.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;

/// Where clients find a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NbdPlace {
    /// A Unix socket at this path.
    Unix(PathBuf),
    /// A TCP address and port.
    Tcp(SocketAddr),
}

/// A server: where it listens, and whom it lets in there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdServerSpec {
    /// On a Unix socket.
    Unix {
        /// Its path.
        socket: PathBuf,
        /// Whom it lets in.
        access: NbdUnixAccess,
    },
    /// On TCP.
    Tcp {
        /// Address and port.
        address: SocketAddr,
        /// Whom it lets in.
        access: NbdTcpAccess,
    },
}

impl NbdServerSpec {
    /// Where it listens.
    pub fn place(&self) -> NbdPlace {
        match self {
            Self::Unix { socket, .. } => NbdPlace::Unix(socket.clone()),
            Self::Tcp { address, .. } => NbdPlace::Tcp(*address),
        }
    }
}

/// Who comes in through a Unix socket: users and members of groups of this host, by name or
/// number; the daemon's user and group if both are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NbdUnixAccess {
    /// Users.
    pub users: Vec<String>,
    /// Groups.
    pub groups: Vec<String>,
}

/// Who comes in over TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NbdTcpAccess {
    /// What clients are shown and must show; nothing if absent.
    pub tls: Option<NbdTlsFiles>,
    /// Where clients come from; anywhere if it is empty.
    pub addresses: Vec<IpNet>,
    /// Whether others than this host may come in without TLS.
    pub is_plaintext: bool,
}

/// PEM files for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NbdTlsFiles {
    /// The server's certificate chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authorities of clients, who need no certificate if absent.
    pub client_ca: Option<PathBuf>,
    /// DNS names of which a client's certificate must have one; any if it is empty.
    pub clients: Vec<String>,
}

/// By which way a client came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NbdClientWay {
    /// Through a Unix socket.
    Unix,
    /// Over TCP, without TLS.
    Tcp,
    /// Over TCP with TLS.
    Tls,
}

/// A connection that uses an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdClient {
    /// The export's name.
    pub export: String,
    /// By which way it came.
    pub way: NbdClientWay,
    /// Who it is, in words: a process and its user, or an address and port.
    pub peer: String,
}

/// What NBD servers tell beside what clients ask of disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdNotice {
    /// A client was not let in.
    Refused {
        /// Who.
        peer: String,
        /// Why not.
        reason: String,
    },
    /// A disk cannot be an export.
    NotOffered {
        /// The disk.
        disk: String,
        /// Why not.
        reason: String,
    },
}
