//! Listening sockets for clients.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_tcp_nodelay, socket_peercred};
use rustix::net::{SocketFlags, accept_with, getpeername};
use suimon_ports::NbdTransport;
use suimon_socket_runtime::{DescriptorGuard, Task, TaskStop, WatchedFd};
use suimon_unix_socket::refuse_descriptors;
use tokio::time::sleep;

use crate::access::{TcpAccess, UnixAccess};
use crate::client::Client;
use crate::clients::ClientIdentity;
use crate::keepalive;
use crate::origin::Origin;
use crate::server_context::NbdServerContext;

/// Pause after a client could not be accepted because the process or host has no descriptor or
/// memory.
const SHORTAGE: Duration = Duration::from_millis(100);

/// Binds a Unix socket. Replaces a socket file that a killed process left behind.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

/// Returns true if the path is a socket file on which no process listens.
fn is_left(path: &Path) -> bool {
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).err().is_some_and(refused)
}

/// Access control of a listening socket.
pub(crate) enum Access {
    Unix(RwLock<UnixAccess>),
    Tcp(RwLock<TcpAccess>),
}

/// Listening socket for NBD clients. Dropping it closes the socket and removes its file;
/// established connections continue.
pub struct NbdServer {
    path: Option<PathBuf>,
    address: Option<SocketAddr>,
    access: Arc<Access>,
    task: Option<Task>,
}

impl NbdServer {
    /// Listens on a Unix socket at `path`, which must be free or a socket file on which no process
    /// listens; such a file is replaced.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn listen(path: &Path, access: UnixAccess, host: NbdServerContext) -> io::Result<Self> {
        let listener = bind(path)?;
        // Connections inherit the option, so that a client cannot attach descriptors before it is
        // accepted.
        refuse_descriptors(&listener);
        let guarded = access.set_socket_mode(path).and_then(|()| listener.set_nonblocking(true));
        let started = guarded
            .and_then(|()| Self::start(listener.into(), Access::Unix(RwLock::new(access)), host));
        if started.is_err() {
            let _ = std::fs::remove_file(path);
        }
        let mut server = started?;
        server.path = Some(path.to_owned());
        Ok(server)
    }

    /// Listens on a TCP address; port 0 selects a free port.
    ///
    /// # Errors
    /// The error of the system call; [`io::ErrorKind::PermissionDenied`] for an address that other
    /// hosts can reach without TLS.
    pub fn listen_tcp(
        address: SocketAddr,
        access: TcpAccess,
        host: NbdServerContext,
    ) -> io::Result<Self> {
        access.check_listen_address(address)?;
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mut server = Self::start(listener.into(), Access::Tcp(RwLock::new(access)), host)?;
        server.address = Some(address);
        Ok(server)
    }

    /// Returns the TCP address on which the server listens; `None` for a Unix socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Changes the access control of the server's Unix socket for later clients.
    ///
    /// # Errors
    /// The socket file no longer exists, or the server has no Unix socket.
    pub fn set_unix_access(&self, access: UnixAccess) -> io::Result<()> {
        let (Access::Unix(old), Some(path)) = (&*self.access, &self.path) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // The new allow list takes effect before the file mode admits more clients.
        let mut current = old.write().unwrap_or_else(PoisonError::into_inner);
        *current = access;
        current.set_socket_mode(path)
    }

    /// Changes the access control of the server's TCP socket for later clients.
    ///
    /// # Errors
    /// Other hosts can reach the address, and `access` has neither TLS nor plaintext access; or the
    /// server has no TCP socket.
    pub fn set_tcp_access(&self, access: TcpAccess) -> io::Result<()> {
        let (Access::Tcp(old), Some(address)) = (&*self.access, self.address) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        access.check_listen_address(address)?;
        *old.write().unwrap_or_else(PoisonError::into_inner) = access;
        Ok(())
    }

    fn start(listener: OwnedFd, access: Access, host: NbdServerContext) -> io::Result<Self> {
        let listener = {
            let _guard = host.runtime.enter();
            WatchedFd::readable(listener)?
        };
        let access = Arc::new(access);
        let (of_task, runtime) = (Arc::clone(&access), host.runtime.clone());
        let task = runtime.spawn(|mut stop: TaskStop| async move {
            tokio::select! {
                () = stop.wait() => {}
                () = accept_clients(&listener, &of_task, &host) => {}
            }
        });
        Ok(Self { path: None, address: None, access, task: Some(task) })
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.task = None;
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Access {
    /// Returns a connected client and its origin. The inner result is the reason why access control
    /// rejects the client.
    ///
    /// # Errors
    /// The socket does not report its peer.
    pub(crate) fn check_client(
        &self,
        socket: BorrowedFd<'_>,
        host: &NbdServerContext,
    ) -> io::Result<(Client, Origin, Result<(), &'static str>)> {
        let host = host.clone();
        match self {
            Self::Unix(access) => {
                let credentials = socket_peercred(socket)?;
                let result =
                    access.read().unwrap_or_else(PoisonError::into_inner).check_client(credentials);
                let (process, user) = (credentials.pid.as_raw_nonzero(), credentials.uid.as_raw());
                let peer = format!("process {process} of user {user}");
                let caller = ClientIdentity { transport: NbdTransport::Unix, peer };
                let origin = Origin::User(user);
                let guard = DescriptorGuard::refuse_or_guard(socket, &host.runtime)?.map(Arc::new);
                let client = Client::new(host, None, caller, Some(origin));
                Ok((Client { guard, ..client }, origin, result))
            }
            Self::Tcp(access) => {
                let address = getpeername(socket)?.ok_or(io::ErrorKind::NotConnected)?;
                let address = SocketAddr::try_from(address)?;
                set_tcp_nodelay(socket, true)?;
                keepalive::enable_keepalive(socket)?;
                let access = access.read().unwrap_or_else(PoisonError::into_inner);
                let result = access.check_client(address.ip());
                let transport =
                    if access.tls.is_some() { NbdTransport::Tls } else { NbdTransport::Tcp };
                let caller = ClientIdentity { transport, peer: address.to_string() };
                let origin = Origin::from_address(address.ip());
                let client = Client::new(host, access.tls.clone(), caller, Some(origin));
                Ok((client, origin, result))
            }
        }
    }
}

/// Serves one client on a connected stream socket. Limits and access control of servers do not
/// apply, and the client is not listed in [`NbdServerContext::clients`]. Does not block: a task
/// negotiates, and passes the connection to [`NbdExports::attach`](crate::NbdExports::attach) of
/// `host`.
pub fn serve_stream(socket: OwnedFd, peer: &str, host: &NbdServerContext) {
    let caller = ClientIdentity { transport: NbdTransport::Unix, peer: peer.to_owned() };
    let client = Client::new(host.clone(), None, caller, None);
    host.runtime.spawn_detached(async move {
        let refusing = client.clone();
        let served = match rustix::io::ioctl_fionbio(&socket, true) {
            Ok(()) => client.admit(socket, None).await,
            Err(errno) => Err(errno.into()),
        };
        if let Err(error) = served {
            refusing.report_access_rejection(&error.to_string());
        }
    });
}

async fn accept_clients(listener: &WatchedFd, access: &Access, host: &NbdServerContext) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        let accepted = listener.read(|listener| Ok(accept_with(listener, flags)?)).await;
        let result = accepted.and_then(|socket| {
            let (client, origin, result) = access.check_client(socket.as_fd(), host)?;
            Ok((socket, client, origin, result))
        });
        match result {
            Ok((socket, client, _, Err(reason))) => {
                // The socket is closed before the guard.
                drop(socket);
                client.report_access_rejection(reason);
            }
            Ok((socket, client, origin, Ok(()))) => {
                // This loop waits for no client, so that the next one is accepted at once.
                if let Err(exceeded) = host.accounting.check(origin) {
                    drop(socket);
                    client.report_limit_rejection(&exceeded.to_string());
                    continue;
                }
                let Some(handshake) = host.negotiations.begin(origin, Instant::now()) else {
                    drop(socket);
                    client.report_limit_rejection("too many clients with certificates negotiate");
                    continue;
                };
                // The task does not end with the server: connections continue.
                tokio::spawn(async move {
                    if let Err(error) = client.admit(socket, Some(handshake)).await {
                        tracing::debug!(%error, "the handshake of an NBD client failed");
                    }
                });
            }
            // The client has disconnected already.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "an NBD client cannot be accepted");
                sleep(SHORTAGE).await;
            }
        }
    }
}
