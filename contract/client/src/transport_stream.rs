//! Connections to a daemon: over its Unix socket, or over TCP with TLS.

use core::fmt;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use hyper::header::HeaderValue;
use suimon_lookups::Lookups;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::ClientError;
use crate::certificates::{is_ca_as_server_certificate, tls_config_trusting};
use crate::token::{TokenError, read_token};

/// Time limit for connecting over TCP: name resolution, TCP and TLS.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle time before a keep-alive probe, and interval of further probes.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// Time in milliseconds for which sent data may remain unacknowledged before the connection fails.
const UNACKNOWLEDGED_MS: u32 = 20_000;

/// Parameters of a connection over TCP with TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsEndpoint {
    /// Host name or IP address, and port.
    pub address: String,
    /// DNS name or IP address in the daemon's certificate.
    pub server_name: String,
    /// PEM file with certificates, one of which has signed the daemon's certificate or equals it.
    pub ca_certificate: PathBuf,
    /// File with the access token in its first line.
    pub token_file: PathBuf,
}

/// Invalid parameter of [`TlsEndpoint`].
#[derive(Debug, Error)]
pub enum TlsError {
    /// `server_name` is invalid.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    ServerName(String),
    /// `authority` cannot be used.
    #[error("{0}")]
    CaCertificate(String),
    /// `token_file` cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Stream that carries bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Method by which the client reaches the daemon.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    Unix(PathBuf),
    Tls(Arc<TlsTransport>),
}

pub(crate) struct TlsTransport {
    address: String,
    name: ServerName<'static>,
    connector: TlsConnector,
    authorization: HeaderValue,
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is secret and must not be logged.
        f.debug_struct("TlsWay").field("address", &self.address).finish_non_exhaustive()
    }
}

impl TlsTransport {
    pub(crate) fn new(reach: &TlsEndpoint) -> Result<Self, TlsError> {
        let name = ServerName::try_from(reach.server_name.clone())
            .map_err(|_| TlsError::ServerName(reach.server_name.clone()))?;
        let config = tls_config_trusting(&reach.ca_certificate).map_err(TlsError::CaCertificate)?;
        let token = read_token(&reach.token_file)?;
        let weak = || TokenError::Weak { file: reach.token_file.clone() };
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| weak())?;
        authorization.set_sensitive(true);
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { address: reach.address.clone(), name, connector, authorization })
    }

    async fn connect(&self) -> Result<TlsStream<TcpStream>, ClientError> {
        let failed =
            |reason| ClientError::TlsConnectionFailed { address: self.address.clone(), reason };
        let connecting = async {
            let addresses = resolve(&self.address).await.map_err(|error| error.to_string())?;
            let tcp = TcpStream::connect(addresses.as_slice()).await;
            let tcp = tcp.map_err(|error| no_tcp(&error))?;
            enable_keepalive(&tcp).map_err(|error| error.to_string())?;
            let tls = self.connector.connect(self.name.clone(), tcp);
            tls.await.map_err(|error| no_tls(&error, &self.name))
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connected) => connected.map_err(failed),
            Err(_) => Err(failed(format!(
                "no connection within {} s; check the address of its API, that the host runs, and \
                 that firewalls permit the connection",
                CONNECT_TIMEOUT.as_secs()
            ))),
        }
    }
}

/// Returns the socket addresses of a host name or IP address with a port, such as `node2:8443`.
///
/// # Errors
/// The text has no port, or the name cannot be resolved.
async fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "the address has no valid port");
    let (name, port) = address.rsplit_once(':').ok_or_else(invalid)?;
    let port = port.parse().map_err(|_| invalid())?;
    let addresses = Lookups::process_wide().resolve(name).await?;
    Ok(addresses.into_iter().map(|address| SocketAddr::new(address.ip(), port)).collect())
}

impl Transport {
    pub(crate) async fn connect(&self) -> Result<Box<dyn Stream>, ClientError> {
        match self {
            Self::Unix(socket) => match UnixStream::connect(socket).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(source) => Err(ClientError::Unreachable { socket: socket.clone(), source }),
            },
            Self::Tls(transport) => Ok(Box::new(transport.connect().await?)),
        }
    }

    /// Returns the value of the header `Host`.
    pub(crate) fn host_header(&self) -> &str {
        match self {
            Self::Unix(_) => "suimond",
            Self::Tls(transport) => &transport.address,
        }
    }

    /// Returns the value of the header `Authorization`.
    pub(crate) fn authorization_header(&self) -> Option<HeaderValue> {
        match self {
            Self::Unix(_) => None,
            Self::Tls(transport) => Some(transport.authorization.clone()),
        }
    }
}

/// Disables Nagle's algorithm, and enables the detection of an unreachable host within half a
/// minute.
///
/// # Errors
/// The kernel rejects an option, because the socket is closed.
pub fn enable_keepalive(tcp: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    tcp.set_nodelay(true)?;
    sockopt::set_socket_keepalive(tcp, true)?;
    sockopt::set_tcp_keepidle(tcp, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(tcp, KEEPALIVE)?;
    sockopt::set_tcp_keepcnt(tcp, KEEPALIVE_PROBES)?;
    sockopt::set_tcp_user_timeout(tcp, UNACKNOWLEDGED_MS)?;
    Ok(())
}

fn no_tcp(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "no process listens there; check that its daemon runs with this address as `[api] listen`"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

const UNKNOWN: &str = "its certificate is neither in the file of CA certificates nor signed by one of \
                       them; give the CA certificate that signed it, or the certificate itself";

fn no_tls(error: &io::Error, name: &ServerName<'_>) -> String {
    use rustls::CertificateError as Certificate;
    let inner = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let Some(tls) = inner else {
        return format!(
            "it did not respond with TLS ({error}); check that this is the port of its API"
        );
    };
    let name = name.to_str();
    match tls {
        // A different certificate with the same subject causes a bad signature. A CA certificate is
        // accepted as a server certificate only if it is itself configured.
        rustls::Error::InvalidCertificate(
            Certificate::UnknownIssuer | Certificate::BadSignature,
        ) => UNKNOWN.to_owned(),
        error if is_ca_as_server_certificate(error) => UNKNOWN.to_owned(),
        rustls::Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => format!(
            "its certificate is not valid for `{name}` ({tls}); give a name in the certificate as \
             `server_name`, or create a certificate with this name as subjectAltName"
        ),
        rustls::Error::InvalidCertificate(
            Certificate::Expired | Certificate::ExpiredContext { .. },
        ) => {
            format!(
                "its certificate has expired ({tls}); renew it, or check the clocks of both hosts"
            )
        }
        _ => format!("the TLS handshake failed: {tls}"),
    }
}
