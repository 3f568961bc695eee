//! Desired state of a disk's NBD export.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ByteSize, HostSection};

/// `[disk.nbd]`: exports the disk over NBD on a Unix socket, a TCP address or both. Disks that
/// share a socket or address also share its access rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskNbd {
    /// Absolute path of the Unix socket on which the daemon listens; no Unix socket if absent.
    /// Several disks may use the same socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub socket: Option<PathBuf>,
    /// Users of this host that may connect to `socket`, by name or number, in addition to `groups`.
    /// If both are absent, the user and group of the daemon may connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<String>>,
    /// Groups of this host whose members may connect to `socket`, by name or number, in addition to
    /// `users`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// IP address and TCP port on which the daemon listens, usually port 10809; no TCP listener if
    /// absent. Several disks may use the same address. An address that is not a loopback address
    /// requires TLS or `plaintext`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub listen: Option<SocketAddr>,
    /// Absolute path of a PEM file with the certificate chain of the daemon. It makes TLS mandatory
    /// at `listen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_certificate: Option<PathBuf>,
    /// Absolute path of a PEM file with the private key of the certificate. The file must have no
    /// permissions for others (`chmod o=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_key: Option<PathBuf>,
    /// Absolute path of a PEM file with CA certificates. A client without a certificate signed by
    /// one of them is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_client_ca: Option<PathBuf>,
    /// DNS names of clients: the certificate of a client must contain at least one of them as
    /// subject alternative name; any name if absent. Requires `tls_client_ca`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_clients: Option<Vec<String>>,
    /// IP addresses and networks from which clients may connect to `listen`, such as
    /// `192.0.2.0/24`; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "addresses")]
    pub allowed_networks: Option<Vec<String>>,
    /// True if clients on other hosts may connect to `listen` without TLS. Other hosts on the
    /// network path can then read and change the data. Requires `addresses`.
    #[serde(default, skip_serializing_if = "is_false")]
    #[serde(rename = "plaintext")]
    pub allows_plaintext: bool,
    /// Maximum number of NBD connections of the disk, 1 to 16 384; 128 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_max: Option<u32>,
    /// Maximum buffer memory of the NBD connections of the disk in bytes, 1 MiB to 1 TiB; 128 MiB
    /// if absent. Of it, 512 KiB are reserved for each connection that `connections_max` permits,
    /// whether it exists or not; connections share the rest. At most one connection per 512 KiB is
    /// accepted. If memory is short, requests are delayed or processed in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_max_bytes: Option<ByteSize>,
}

/// Default of `[disk.nbd] connections_max`.
const CONNECTIONS_MAX: u32 = 128;
/// Default of `[disk.nbd] buffer_max_bytes`.
const BUFFER_MAX_BYTES: u64 = 128 << 20;
/// Default of `[host] nbd_connections_max`.
const HOST_CONNECTIONS_MAX: u32 = 1024;
/// Default of `[host] nbd_buffer_max_bytes`.
const HOST_BUFFER_MAX_BYTES: u64 = 1 << 30;
/// Default of `[host] nbd_peer_connections_max`.
const PEER_CONNECTIONS_MAX: u32 = 512;
/// Default of `[host] nbd_peer_buffer_max_bytes`.
const PEER_BUFFER_MAX_BYTES: u64 = 512 << 20;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl DiskNbd {
    /// Returns the maximum number of connections.
    pub fn effective_connections_max(&self) -> u32 {
        self.connections_max.unwrap_or(CONNECTIONS_MAX)
    }

    /// Returns the maximum buffer memory in bytes.
    pub fn effective_buffer_max_bytes(&self) -> u64 {
        self.buffer_max_bytes.map_or(BUFFER_MAX_BYTES, ByteSize::bytes)
    }

    /// Returns true if TLS is configured for TCP.
    pub const fn has_tls(&self) -> bool {
        self.tls_certificate.is_some() || self.tls_key.is_some()
    }
}

impl HostSection {
    /// Returns the maximum number of NBD connections of the host.
    pub fn effective_nbd_connections_max(&self) -> u32 {
        self.nbd_connections_max.unwrap_or(HOST_CONNECTIONS_MAX)
    }

    /// Returns the maximum buffer memory of NBD connections of the host in bytes.
    pub fn effective_nbd_buffer_max_bytes(&self) -> u64 {
        self.nbd_buffer_max_bytes.map_or(HOST_BUFFER_MAX_BYTES, ByteSize::bytes)
    }

    /// Returns the maximum number of NBD connections of a peer.
    pub fn effective_nbd_peer_connections_max(&self) -> u32 {
        self.nbd_peer_connections_max.unwrap_or(PEER_CONNECTIONS_MAX)
    }

    /// Returns the maximum buffer memory of the NBD connections of a peer in bytes.
    pub fn effective_nbd_peer_buffer_max_bytes(&self) -> u64 {
        self.nbd_peer_buffer_max_bytes.map_or(PEER_BUFFER_MAX_BYTES, ByteSize::bytes)
    }
}
