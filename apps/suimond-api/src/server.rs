//! HTTP server with limits on the number of connections and on their idle times.

mod client_connection;
mod connections;
mod tracked_service;
mod write_timeout;

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

use suimon_client::enable_keepalive;
use suimon_socket_runtime::HandshakeLimits;

pub use self::connections::UPGRADED_CONNECTIONS_MAX;
use crate::notifications::Notifications;
pub(crate) use crate::server::client_connection::ClientConnection;
use crate::server::connections::{ConnectionSlot, Connections};
use crate::server::tracked_service::TrackedService;
use crate::server::write_timeout::WriteTimeout;

/// Largest number of concurrent connections of one listener. A further connection replaces the one
/// idle for the longest time; if none is idle, it waits.
pub const CONNECTIONS_MAX: usize = 256;
/// Time limit for a request's head, from the connection's start or the previous response.
pub const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for which a client may read nothing of a pending response.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for responses in progress when the daemon stops.
const LINGER: Duration = Duration::from_secs(3);
/// Delay after a failed accept, usually caused by a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Source of connections for the server.
pub trait Listener: Send + Sync + 'static {
    /// Connection that is ready for HTTP.
    type Connection: AsyncRead + AsyncWrite + Send + Unpin + 'static;
    /// Accepted connection that is not ready yet.
    type Accepted: Send + 'static;

    /// Accepts the next connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Accepted>> + Send;

    /// Returns the address of the peer; `None` for a local socket.
    fn peer(&self, _accepted: &Self::Accepted) -> Option<IpAddr> {
        None
    }

    /// Prepares a connection for HTTP, for example by a TLS handshake. May take long.
    fn prepare(
        &self,
        accepted: Self::Accepted,
    ) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

impl Listener for UnixListener {
    type Connection = tokio::net::UnixStream;
    type Accepted = tokio::net::UnixStream;

    async fn accept(&self) -> io::Result<Self::Accepted> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }

    async fn prepare(&self, accepted: Self::Accepted) -> io::Result<Self::Connection> {
        Ok(accepted)
    }
}

impl Listener for TcpListener {
    type Connection = tokio::net::TcpStream;
    type Accepted = tokio::net::TcpStream;

    async fn accept(&self) -> io::Result<Self::Accepted> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }

    fn peer(&self, accepted: &Self::Accepted) -> Option<IpAddr> {
        peer_of(accepted)
    }

    async fn prepare(&self, accepted: Self::Accepted) -> io::Result<Self::Connection> {
        enable_keepalive(&accepted)?;
        Ok(accepted)
    }
}

/// Listener for TCP with TLS.
pub struct TlsListener {
    /// Underlying listener for TCP.
    pub tcp: TcpListener,
    /// TLS acceptor with certificate and key.
    pub acceptor: tokio_rustls::TlsAcceptor,
    /// Limits of the clients' TLS handshakes.
    pub limits: HandshakeLimits,
}

impl Listener for TlsListener {
    type Connection = tokio_rustls::server::TlsStream<tokio::net::TcpStream>;
    type Accepted = tokio::net::TcpStream;

    async fn accept(&self) -> io::Result<Self::Accepted> {
        self.tcp.accept().await.map(|(stream, _)| stream)
    }

    fn peer(&self, accepted: &Self::Accepted) -> Option<IpAddr> {
        peer_of(accepted)
    }

    async fn prepare(&self, accepted: Self::Accepted) -> io::Result<Self::Connection> {
        enable_keepalive(&accepted)?;
        let peer = peer_of(&accepted).ok_or(io::ErrorKind::NotConnected)?;
        let watched = accepted.as_fd().try_clone_to_owned()?;
        let handshake = async {
            // A client that sends nothing is not queued for a handshake.
            accepted.readable().await?;
            let handshake = self.acceptor.accept(accepted);
            self.limits.run(peer, watched, handshake, |_| {}).await
        };
        let handshake = tokio::time::timeout(REQUEST_HEAD_TIMEOUT, handshake);
        handshake.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Returns the address of a TCP peer, as IPv4 if it is one in the notation of IPv6.
fn peer_of(stream: &tokio::net::TcpStream) -> Option<IpAddr> {
    stream.peer_addr().ok().map(|address| address.ip().to_canonical())
}

/// Serves until the daemon stops. Returns when all connections have ended.
pub async fn serve<L: Listener>(listener: L, router: Router, mut notifications: Notifications) {
    let listener = Arc::new(listener);
    let connections = Connections::new(CONNECTIONS_MAX);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = notifications.wait_end() => break,
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let slot = tokio::select! {
            place = connections.acquire_slot() => Arc::new(place),
            () = notifications.wait_end() => break,
        };
        let peer = listener.peer(&accepted);
        let (listener, router, notifications) =
            (listener.clone(), router.clone(), notifications.clone());
        tokio::spawn(async move {
            let connection_task = async {
                match listener.prepare(accepted).await {
                    Ok(connection) => {
                        serve_connection(connection, (&slot, peer), router, notifications).await;
                    }
                    Err(error) => tracing::debug!(%error, "a connection failed"),
                }
            };
            tokio::select! {
                () = connection_task => {}
                () = slot.wait_reassigned() => {
                    tracing::debug!("an idle connection was closed in favour of new ones");
                }
            }
        });
    }
    // Remaining connections are closed when the runtime ends.
    let _ = tokio::time::timeout(LINGER, connections.wait_end()).await;
}

async fn serve_connection<C>(
    connection: C,
    (slot, peer): (&Arc<ConnectionSlot>, Option<IpAddr>),
    router: Router,
    mut notifications: Notifications,
) where
    C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = TowerToHyperService::new(router);
    let service = TrackedService { service, slot: slot.clone(), peer };
    let connection = WriteTimeout::new(connection, slot.clone(), WRITE_TIMEOUT);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(connection), service)
        .with_upgrades();
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = notifications.wait_end() => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(LINGER, connection).await {
                Ok(result) => result,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
