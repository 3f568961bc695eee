//! Whom a server lets in.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ipnet::IpNet;
use rustix::net::UCred;

use crate::accounts::Accounts;
use crate::tls::NbdTls;

/// Who may come in through a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixAccess {
    /// The socket's mode: who may write to it may connect.
    pub mode: u32,
    /// Who is let in of those that may connect, by who they are when they do
    /// (`SO_PEERCRED`): these users, and those whose group is one of these; everybody if
    /// there are none.
    pub accounts: Accounts,
}

impl Default for UnixAccess {
    /// The daemon's user and group.
    fn default() -> Self {
        Self { mode: 0o660, accounts: Accounts::default() }
    }
}

impl UnixAccess {
    /// These, whoever the socket's file belongs to.
    #[must_use]
    pub const fn only(accounts: Accounts) -> Self {
        Self { mode: 0o666, accounts }
    }

    /// Gives the socket's file its mode.
    pub(crate) fn guard(&self, path: &Path) -> io::Result<()> {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(self.mode))
    }

    /// # Errors
    /// Why the client is not let in.
    pub(crate) fn judge(&self, who: UCred) -> Result<(), &'static str> {
        let Accounts { users, groups } = &self.accounts;
        let is_let_in = (users.is_empty() && groups.is_empty())
            || users.contains(&who.uid.as_raw())
            || groups.contains(&who.gid.as_raw());
        if is_let_in { Ok(()) } else { Err("neither its user nor its group is let in") }
    }
}

/// Who may come in over TCP.
#[derive(Clone, Debug, Default)]
pub struct TcpAccess {
    /// Nothing is answered before TLS; without it only clients of this host are served.
    pub tls: Option<NbdTls>,
    /// Where clients come from; anywhere if it is empty.
    pub addresses: Vec<IpNet>,
    /// Others than this host are served without TLS, too.
    pub is_plaintext: bool,
}

impl TcpAccess {
    /// Whoever speaks this TLS.
    #[must_use]
    pub fn over(tls: NbdTls) -> Self {
        Self { tls: Some(tls), ..Self::default() }
    }

    /// Whether a server may listen there.
    pub(crate) fn check(&self, address: SocketAddr) -> io::Result<()> {
        if self.tls.is_none() && !self.is_plaintext && !address.ip().to_canonical().is_loopback() {
            let why = format!("others reach {address}; give a certificate and a key for TLS");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(())
    }

    /// # Errors
    /// Why the client is not let in.
    pub(crate) fn judge(&self, from: IpAddr) -> Result<(), &'static str> {
        let from = from.to_canonical();
        let is_let_in =
            self.addresses.is_empty() || self.addresses.iter().any(|net| net.contains(&from));
        if is_let_in { Ok(()) } else { Err("its address is not let in") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_as_what_they_mean() {
        let nets = ["192.0.2.0/25", "2001:db8::/64", "127.0.0.1/32"];
        let addresses = nets.iter().map(|net| net.parse().unwrap()).collect();
        let access = TcpAccess { addresses, ..TcpAccess::default() };
        let is_let_in = |text: &str| access.judge(text.parse().unwrap()).is_ok();
        for inside in ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "127.0.0.1"] {
            assert!(is_let_in(inside), "{inside}");
        }
        for outside in ["192.0.2.128", "2001:db8:0:1::1", "127.0.0.2", "::1"] {
            assert!(!is_let_in(outside), "{outside}");
        }
        assert!(TcpAccess::default().judge("203.0.113.9".parse().unwrap()).is_ok());
    }

    #[test]
    fn without_tls_others_are_served_only_where_that_is_said() {
        let far = "192.0.2.1:10809".parse().unwrap();
        let plain = TcpAccess::default();
        assert!(plain.check(far).is_err());
        assert!(plain.check("[::ffff:127.0.0.1]:1".parse().unwrap()).is_ok());
        assert!(TcpAccess { is_plaintext: true, ..plain }.check(far).is_ok());
    }
}
