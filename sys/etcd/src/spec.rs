//! Parameters of the connection to etcd.

use std::fmt;
use std::time::Duration;

/// Addresses, credentials and limits of the connection to etcd.
#[derive(Clone)]
pub struct EtcdSpec {
    /// URLs of members: `http://`, or `https://` with TLS. One is sufficient as long as that member
    /// is available.
    pub endpoints: Vec<String>,
    /// TLS parameters for `https://`.
    pub tls: Option<EtcdTls>,
    /// User name and password, if etcd requires authentication.
    pub credentials: Option<(String, String)>,
    /// Prefix of the cluster's keys; other keys are not accessed.
    pub prefix: String,
    /// Maximum duration of one call of the store.
    pub timeout: Duration,
}

/// Certificates for TLS, in PEM format.
#[derive(Clone)]
pub struct EtcdTls {
    /// CA certificates that verify the certificates of members.
    pub ca_certificates: Vec<u8>,
    /// Client certificate and its private key, if etcd requires a client certificate.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Omits secrets: password and private key.
impl fmt::Debug for EtcdSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdSpec")
            .field("endpoints", &self.endpoints)
            .field("tls", &self.tls.is_some())
            .field("user", &self.credentials.as_ref().map(|(user, _)| user))
            .field("timeout", &self.timeout)
            .finish()
    }
}
