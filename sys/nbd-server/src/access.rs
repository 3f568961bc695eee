//! Access control for clients.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ipnet::IpNet;
use rustix::net::UCred;

use crate::accounts::Accounts;
use crate::tls::NbdTls;

/// Access control of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixAccess {
    /// File mode of the socket. Users with write permission may connect.
    pub mode: u32,
    /// Allow list of users and groups, checked on connection (`SO_PEERCRED`). Empty lists admit
    /// every user with permission to connect.
    pub accounts: Accounts,
}

impl Default for UnixAccess {
    /// Returns access for the daemon's own user and group only: the socket file's mode admits no
    /// others, and the allow list is empty.
    fn default() -> Self {
        Self { mode: 0o660, accounts: Accounts::default() }
    }
}

impl UnixAccess {
    /// Returns access for the users and groups in `accounts` only: the socket file's mode admits
    /// everybody, and the allow list decides.
    #[must_use]
    pub const fn for_accounts(accounts: Accounts) -> Self {
        Self { mode: 0o666, accounts }
    }

    /// Sets the mode of the socket file at `path`.
    pub(crate) fn set_socket_mode(&self, path: &Path) -> io::Result<()> {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(self.mode))
    }

    /// Checks a client's credentials.
    ///
    /// # Errors
    /// The reason why the client is rejected.
    pub(crate) fn check_client(&self, credentials: UCred) -> Result<(), &'static str> {
        let Accounts { users, groups } = &self.accounts;
        let is_let_in = (users.is_empty() && groups.is_empty())
            || users.contains(&credentials.uid.as_raw())
            || groups.contains(&credentials.gid.as_raw());
        if is_let_in {
            Ok(())
        } else {
            Err("neither its user nor its group is in `users` and `groups` of the export")
        }
    }
}

/// Access control of a TCP socket.
#[derive(Clone, Debug, Default)]
pub struct TcpAccess {
    /// TLS parameters. If set, clients can only request TLS until it is established. If `None`,
    /// only clients of this host are served, unless [`TcpAccess::allows_plaintext`] is set.
    pub tls: Option<NbdTls>,
    /// Allow list of client addresses; an empty list admits all.
    pub allowed_networks: Vec<IpNet>,
    /// True if clients of other hosts are served without TLS.
    pub allows_plaintext: bool,
}

impl TcpAccess {
    /// Returns access for clients with any address, with TLS.
    #[must_use]
    pub fn with_tls(tls: NbdTls) -> Self {
        Self { tls: Some(tls), ..Self::default() }
    }

    /// Checks that a server may listen on this address.
    ///
    /// # Errors
    /// Other hosts can reach the address, and neither TLS nor plaintext access is configured.
    pub(crate) fn check_listen_address(&self, address: SocketAddr) -> io::Result<()> {
        if self.tls.is_none()
            && !self.allows_plaintext
            && !address.ip().to_canonical().is_loopback()
        {
            let reason =
                format!("other hosts can reach {address}; set a certificate and a key for TLS");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        }
        Ok(())
    }

    /// Checks a client's address.
    ///
    /// # Errors
    /// The reason why the client is rejected.
    pub(crate) fn check_client(&self, address: IpAddr) -> Result<(), &'static str> {
        let address = address.to_canonical();
        let is_let_in = self.allowed_networks.is_empty()
            || self.allowed_networks.iter().any(|net| net.contains(&address));
        if is_let_in { Ok(()) } else { Err("its address is not in `addresses` of the export") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_in_canonical_form() {
        let nets = ["192.0.2.0/25", "2001:db8::/64", "127.0.0.1/32"];
        let addresses = nets.iter().map(|net| net.parse().unwrap()).collect();
        let access = TcpAccess { allowed_networks: addresses, ..TcpAccess::default() };
        let is_let_in = |text: &str| access.check_client(text.parse().unwrap()).is_ok();
        for address in ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "127.0.0.1"] {
            assert!(is_let_in(address), "{address}");
        }
        for outside in ["192.0.2.128", "2001:db8:0:1::1", "127.0.0.2", "::1"] {
            assert!(!is_let_in(outside), "{outside}");
        }
        assert!(TcpAccess::default().check_client("203.0.113.9".parse().unwrap()).is_ok());
    }

    #[test]
    fn without_tls_remote_clients_need_the_plaintext_option() {
        let remote = "192.0.2.1:10809".parse().unwrap();
        let plain = TcpAccess::default();
        assert!(plain.check_listen_address(remote).is_err());
        assert!(plain.check_listen_address("[::ffff:127.0.0.1]:1".parse().unwrap()).is_ok());
        assert!(TcpAccess { allows_plaintext: true, ..plain }.check_listen_address(remote).is_ok());
    }
}
