//! Parameters of the connection to etcd.

use std::fmt;
use std::time::Duration;

/// Addresses, credentials and limits of the connection to etcd.
#[derive(Clone)]
pub struct EtcdSpec {
    /// URLs of its members, `http://` or, with TLS, `https://`. One is sufficient while that member
    /// runs.
    pub endpoints: Vec<String>,
    /// TLS parameters for `https://`.
    pub tls: Option<EtcdTls>,
    /// User and password, if etcd requires them.
    pub user: Option<(String, String)>,
    /// Prefix of the cluster's keys; other keys are not accessed.
    pub prefix: String,
    /// Time limit of a call.
    pub timeout: Duration,
}

/// Certificates for TLS, in PEM format.
#[derive(Clone)]
pub struct EtcdTls {
    /// CA certificates that members' certificates are verified with.
    pub ca_certificates: Vec<u8>,
    /// Client certificate and its key, if etcd requires one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Formats everything except secrets.
impl fmt::Debug for EtcdSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdSpec")
            .field("endpoints", &self.endpoints)
            .field("tls", &self.tls.is_some())
            .field("user", &self.user.as_ref().map(|(user, _)| user))
            .field("timeout", &self.timeout)
            .finish()
    }
}
