//! Where etcd is and who asks.

use std::fmt;
use std::time::Duration;

/// How etcd is reached.
#[derive(Clone)]
pub struct EtcdSpec {
    /// URLs of its members, `http://` or, with TLS, `https://`. One suffices while it is up.
    pub endpoints: Vec<String>,
    /// For `https://`.
    pub tls: Option<EtcdTls>,
    /// A user and its password, if etcd wants them.
    pub user: Option<(String, String)>,
    /// What the cluster's keys begin with; only they are looked at.
    pub prefix: String,
    /// How long a call waits at most.
    pub patience: Duration,
}

/// Whom to believe and who asks. All are in PEM.
#[derive(Clone)]
pub struct EtcdTls {
    /// Certificates of authorities that may vouch for members.
    pub authorities: Vec<u8>,
    /// The certificate of who asks, and its key, if etcd wants one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Without what is secret.
impl fmt::Debug for EtcdSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdSpec")
            .field("endpoints", &self.endpoints)
            .field("tls", &self.tls.is_some())
            .field("user", &self.user.as_ref().map(|(user, _)| user))
            .field("patience", &self.patience)
            .finish()
    }
}
