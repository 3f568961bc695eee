//! The sockets on which clients come in.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::sockopt::{set_tcp_nodelay, socket_peercred};
use suimon_nbd::Export;

use crate::handshake::{Welcomed, shake_hands};
use crate::queue::NbdQueue;
use crate::tls::NbdTls;

/// Connections of a server at once, handshakes included; who comes beyond them is turned
/// away. Each may use 64 MiB.
pub const CONNECTIONS_MAX: usize = 128;

/// Handshakes under way at once; who comes beyond them is turned away.
const HANDSHAKES_MAX: usize = 32;

/// What is exported, and who takes connections to it.
pub trait NbdExports: Send + Sync {
    /// What there is now.
    fn exports(&self) -> Vec<Export>;

    /// Takes a connection to the export of this name.
    ///
    /// # Errors
    /// Why not; the client finds its connection closed.
    fn attach(&self, name: &str, queue: NbdQueue) -> Result<(), String>;
}

/// Who may come in through a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixAccess {
    /// The socket's mode: who may write to it may connect.
    pub mode: u32,
    /// Its group, if it is not to be the daemon's.
    pub group: Option<u32>,
    /// The users who are let in of those that may connect, by who they are when they do
    /// (`SO_PEERCRED`); everybody if it is empty.
    pub users: Vec<u32>,
}

impl Default for UnixAccess {
    /// The daemon's user and group.
    fn default() -> Self {
        Self { mode: 0o660, group: None, users: Vec::new() }
    }
}

/// Binds a socket, in place of one that a killed process has left.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

/// Whether there is a socket on which nobody listens.
fn is_left(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|of| of.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).err().is_some_and(refused)
}

enum Listener {
    Unix(UnixListener, Vec<u32>),
    Tcp(TcpListener, Option<NbdTls>),
}

/// Listens for clients. Dropping it removes its socket; connections go on.
pub struct NbdServer {
    path: Option<PathBuf>,
    address: Option<SocketAddr>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl NbdServer {
    /// Listens at `path`, where nothing may be but a socket on which nobody listens any
    /// more: that one is replaced.
    ///
    /// # Errors
    /// What the system says.
    pub fn listen(
        path: &Path,
        access: UnixAccess,
        exports: Arc<dyn NbdExports>,
    ) -> io::Result<Self> {
        let listener = bind(path)?;
        let guarded = guard(path, &access).and_then(|()| listener.set_nonblocking(true));
        if let Err(error) = guarded {
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        let mut server = Self::start(Listener::Unix(listener, access.users), exports)?;
        server.path = Some(path.to_owned());
        Ok(server)
    }

    /// Listens on a TCP address; with port 0 on one that is free. Nothing is answered
    /// before TLS; without `tls` only clients of this host are served.
    ///
    /// # Errors
    /// What the system says, and for an address that others reach without `tls`
    /// [`io::ErrorKind::PermissionDenied`].
    pub fn listen_tcp(
        address: SocketAddr,
        tls: Option<NbdTls>,
        exports: Arc<dyn NbdExports>,
    ) -> io::Result<Self> {
        if tls.is_none() && !address.ip().is_loopback() {
            let why = format!("others reach {address}; give a certificate and a key for TLS");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mut server = Self::start(Listener::Tcp(listener, tls), exports)?;
        server.address = Some(address);
        Ok(server)
    }

    /// The TCP address on which it listens.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn start(listener: Listener, exports: Arc<dyn NbdExports>) -> io::Result<Self> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let inside = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("nbd".to_owned())
            .spawn(move || accept(&listener, &inside, &exports))?;
        Ok(Self { path: None, address: None, stop, thread: Some(thread) })
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn guard(path: &Path, access: &UnixAccess) -> io::Result<()> {
    // The group first: until the mode is wide enough nobody else comes in by it.
    if let Some(group) = access.group {
        std::os::unix::fs::chown(path, None, Some(group))?;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(access.mode))
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener, _) => listener.as_fd(),
        }
    }
}

impl Listener {
    /// The next client; `None` if it may not come in.
    fn accept(&self) -> io::Result<Option<OwnedFd>> {
        match self {
            Self::Unix(listener, users) => {
                let socket = listener.accept()?.0;
                let user = socket_peercred(&socket)?.uid.as_raw();
                if !users.is_empty() && !users.contains(&user) {
                    tracing::warn!(user, "an NBD client is turned away: not a user let in");
                    return Ok(None);
                }
                Ok(Some(socket.into()))
            }
            Self::Tcp(listener, _) => {
                let socket = listener.accept()?.0;
                set_tcp_nodelay(&socket, true)?;
                Ok(Some(socket.into()))
            }
        }
    }

    fn tls(&self) -> Option<&NbdTls> {
        match self {
            Self::Unix(..) => None,
            Self::Tcp(_, tls) => tls.as_ref(),
        }
    }
}

/// One of so many; it counts until it is dropped.
pub(crate) struct Ticket(Arc<AtomicUsize>);

impl Ticket {
    /// `None` if there are `max` already.
    fn take(count: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        let taken = |before: usize| (before < max).then_some(before + 1);
        let ordering = Ordering::Relaxed;
        count.fetch_update(ordering, ordering, taken).ok().map(|_| Self(Arc::clone(count)))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(listener: &Listener, stop: &OwnedFd, exports: &Arc<dyn NbdExports>) {
    let (handshakes, connections) = (Arc::default(), Arc::default());
    loop {
        let mut wanted = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        if poll(&mut wanted, None).is_err() {
            continue;
        }
        if wanted.iter().skip(1).any(|fd| !fd.revents().is_empty()) {
            return;
        }
        match listener.accept() {
            Ok(Some(socket)) => {
                let handshake = Ticket::take(&handshakes, HANDSHAKES_MAX);
                let connection = Ticket::take(&connections, CONNECTIONS_MAX);
                let (Some(handshake), Some(connection)) = (handshake, connection) else {
                    tracing::warn!("an NBD client is turned away: there are too many");
                    continue;
                };
                welcome(socket, listener.tls(), exports, (handshake, connection));
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // Descriptors are short, or memory; both come back when others leave.
                tracing::warn!(%error, "an NBD client cannot come in");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

fn welcome(
    socket: OwnedFd,
    tls: Option<&NbdTls>,
    exports: &Arc<dyn NbdExports>,
    (handshake, connection): (Ticket, Ticket),
) {
    let (exports, tls) = (Arc::clone(exports), tls.cloned());
    let started = std::thread::Builder::new().name("nbd-client".to_owned()).spawn(move || {
        if let Err(error) = come_in(socket, &*exports, tls.as_ref(), connection) {
            tracing::info!(%error, "an NBD client did not come in");
        }
        drop(handshake);
    });
    if let Err(error) = started {
        tracing::warn!(%error, "an NBD client is turned away");
    }
}

fn come_in(
    socket: OwnedFd,
    exports: &dyn NbdExports,
    tls: Option<&NbdTls>,
    connection: Ticket,
) -> io::Result<()> {
    let Some(welcomed) = shake_hands(socket, exports, tls)? else { return Ok(()) };
    let Welcomed { socket, negotiated, rest } = welcomed;
    let name = negotiated.export.name().to_owned();
    let queue = NbdQueue::new(socket, &negotiated, rest)?.counted_by(connection);
    exports.attach(&name, queue).map_err(io::Error::other)
}
