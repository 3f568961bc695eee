//! Desired state of a disk's offer to NBD clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `[disk.nbd]`: the disk as an export of NBD servers, on a Unix socket, on a TCP address
/// or on both. Disks that share a socket or an address share who is let in there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskNbd {
    /// Path of the Unix socket on which the daemon listens. Disks may share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub socket: Option<PathBuf>,
    /// Users of this host who are let in at `socket`, by name or number, beside those of
    /// `groups`; if both are absent, the daemon's user and group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<String>>,
    /// Groups of this host whose members are let in at `socket`, by name or number, beside
    /// `users`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// Address and TCP port on which the daemon listens, like `192.0.2.1:10809`. Disks may
    /// share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub listen: Option<SocketAddr>,
    /// PEM file with the certificate chain that is shown at `listen`, where nothing is
    /// answered before TLS then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_certificate: Option<PathBuf>,
    /// PEM file with the certificate's private key, not readable by everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_key: Option<PathBuf>,
    /// PEM file with the authorities of clients: who does not show a certificate that one
    /// of them has signed is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_client_ca: Option<PathBuf>,
    /// Names of which a client's certificate must have one, as a DNS name among its
    /// alternative names; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_clients: Option<Vec<String>>,
    /// Addresses and networks whose clients are let in at `listen`, like `192.0.2.0/24`;
    /// all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    /// Whether others than this host may be served without TLS, so that everybody on the
    /// way can read and change what passes. Needs `addresses`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub plaintext: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl DiskNbd {
    /// Offered on a Unix socket, to the daemon's user and group.
    pub fn on_socket(socket: impl Into<PathBuf>) -> Self {
        Self { socket: Some(socket.into()), ..Self::default() }
    }

    /// Whether TLS is wanted on TCP.
    pub const fn has_tls(&self) -> bool {
        self.tls_certificate.is_some() || self.tls_key.is_some()
    }
}
