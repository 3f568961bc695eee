//! The sockets on which clients come in.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::sockopt::{set_tcp_nodelay, socket_peercred};
use suimon_nbd::Export;
use suimon_ports::{NbdClientWay, ThreadStart};

use crate::access::{TcpAccess, UnixAccess};
use crate::clients::{Caller, NbdClients, Noted};
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

    /// Hears of a client that was not let in. Must not block.
    fn handle_refused(&self, _peer: String, _reason: String) {}
}

/// What servers share.
#[derive(Clone)]
pub struct NbdHost {
    /// What they offer.
    pub exports: Arc<dyn NbdExports>,
    /// Where they note who is there.
    pub clients: NbdClients,
    /// Called first by the thread that takes clients in: it starts threads for each.
    pub on_start: ThreadStart,
    /// Called first by each of these.
    pub on_client_start: ThreadStart,
}

impl NbdHost {
    /// Servers whose threads are as they are.
    #[must_use]
    pub fn new(exports: Arc<dyn NbdExports>) -> Self {
        let nothing: ThreadStart = Arc::new(|| Ok(()));
        Self {
            exports,
            clients: NbdClients::default(),
            on_start: Arc::clone(&nothing),
            on_client_start: nothing,
        }
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

/// A listening socket and whom it lets in.
enum Listener {
    Unix(UnixListener, RwLock<UnixAccess>),
    Tcp(TcpListener, RwLock<TcpAccess>),
}

/// Listens for clients. Dropping it removes its socket; connections go on.
pub struct NbdServer {
    path: Option<PathBuf>,
    address: Option<SocketAddr>,
    listener: Arc<Listener>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl NbdServer {
    /// Listens at `path`, where nothing may be but a socket on which nobody listens any
    /// more: that one is replaced.
    ///
    /// # Errors
    /// What the system says.
    pub fn listen(path: &Path, access: UnixAccess, host: NbdHost) -> io::Result<Self> {
        let listener = bind(path)?;
        let guarded = access.guard(path).and_then(|()| listener.set_nonblocking(true));
        let started =
            guarded.and_then(|()| Self::start(Listener::Unix(listener, RwLock::new(access)), host));
        if started.is_err() {
            let _ = std::fs::remove_file(path);
        }
        let mut server = started?;
        server.path = Some(path.to_owned());
        Ok(server)
    }

    /// Listens on a TCP address; with port 0 on one that is free.
    ///
    /// # Errors
    /// What the system says, and for an address that others reach without TLS
    /// [`io::ErrorKind::PermissionDenied`].
    pub fn listen_tcp(address: SocketAddr, access: TcpAccess, host: NbdHost) -> io::Result<Self> {
        access.check(address)?;
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mut server = Self::start(Listener::Tcp(listener, RwLock::new(access)), host)?;
        server.address = Some(address);
        Ok(server)
    }

    /// The TCP address on which it listens.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Lets others in from now on through its Unix socket.
    ///
    /// # Errors
    /// The socket is gone, or is none of a Unix server.
    pub fn set_unix_access(&self, access: UnixAccess) -> io::Result<()> {
        let (Listener::Unix(_, old), Some(path)) = (&*self.listener, &self.path) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // Whom the new one does not let in is judged before the mode lets more connect.
        let mut held = old.write().unwrap_or_else(PoisonError::into_inner);
        *held = access;
        held.guard(path)
    }

    /// Lets others in from now on over TCP.
    ///
    /// # Errors
    /// Others reach it and there is no TLS, or it is none over TCP.
    pub fn set_tcp_access(&self, access: TcpAccess) -> io::Result<()> {
        let (Listener::Tcp(_, old), Some(address)) = (&*self.listener, self.address) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        access.check(address)?;
        *old.write().unwrap_or_else(PoisonError::into_inner) = access;
        Ok(())
    }

    fn start(listener: Listener, host: NbdHost) -> io::Result<Self> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let listener = Arc::new(listener);
        let (inside, listening) = (Arc::clone(&stop), Arc::clone(&listener));
        let (ready, is_ready) = sync_channel(1);
        let thread = std::thread::Builder::new().name("nbd".to_owned()).spawn(move || {
            let begun = (host.on_start)();
            let may_go_on = begun.is_ok();
            let _ = ready.send(begun);
            if may_go_on {
                accept(&listening, &inside, &host);
            }
        })?;
        is_ready.recv().map_err(io::Error::other)??;
        Ok(Self { path: None, address: None, listener, stop, thread: Some(thread) })
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

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener, _) => listener.as_fd(),
        }
    }
}

/// Who has come, and how he is welcomed.
#[derive(Clone)]
pub(crate) struct Welcome {
    pub(crate) host: NbdHost,
    pub(crate) tls: Option<NbdTls>,
    pub(crate) caller: Caller,
}

impl Welcome {
    /// Tells that the client was not let in. Clients decide how often that is, so the log has a
    /// line for each only at level debug.
    pub(crate) fn refuse(&self, reason: &str) {
        let peer = self.caller.peer.clone();
        tracing::debug!(peer, reason, "an NBD client is refused");
        self.host.exports.handle_refused(peer, reason.to_owned());
    }
}

impl Listener {
    /// The next client, and whether it may come in.
    fn accept(&self, host: &NbdHost) -> io::Result<(OwnedFd, Welcome, Result<(), &'static str>)> {
        let host = host.clone();
        match self {
            Self::Unix(listener, access) => {
                let socket = listener.accept()?.0;
                let who = socket_peercred(&socket)?;
                let judged = access.read().unwrap_or_else(PoisonError::into_inner).judge(who);
                let (process, user) = (who.pid.as_raw_nonzero(), who.uid.as_raw());
                let peer = format!("process {process} of user {user}");
                let caller = Caller { way: NbdClientWay::Unix, peer };
                Ok((socket.into(), Welcome { host, tls: None, caller }, judged))
            }
            Self::Tcp(listener, access) => {
                let (socket, from) = listener.accept()?;
                set_tcp_nodelay(&socket, true)?;
                let access = access.read().unwrap_or_else(PoisonError::into_inner);
                let judged = access.judge(from.ip());
                let way = if access.tls.is_some() { NbdClientWay::Tls } else { NbdClientWay::Tcp };
                let caller = Caller { way, peer: from.to_string() };
                let tls = access.tls.clone();
                Ok((socket.into(), Welcome { host, tls, caller }, judged))
            }
        }
    }
}

/// What a connection holds for as long as it is there.
pub(crate) struct Inside {
    _ticket: Ticket,
    _noted: Noted,
}

/// Serves one client that somebody else has let in, on a connected stream socket: no server's
/// access or number of connections is asked. Returns at once; the handshake has a thread, and
/// the connection goes to [`NbdExports::attach`] of `host`. It is not among
/// [`NbdHost::clients`].
///
/// # Errors
/// There is no thread left.
pub fn serve_stream(socket: OwnedFd, peer: &str, host: &NbdHost) -> io::Result<()> {
    let caller = Caller { way: NbdClientWay::Unix, peer: peer.to_owned() };
    let welcome = Welcome { host: host.clone(), tls: None, caller };
    std::thread::Builder::new().name("nbd-client".to_owned()).spawn(move || {
        let begun = (welcome.host.on_start)().and_then(|()| {
            rustix::io::ioctl_fionbio(&socket, false)?;
            let Some(welcomed) = shake_hands(socket, &welcome)? else { return Ok(()) };
            let Welcomed { socket, negotiated, rest } = welcomed;
            let queue = NbdQueue::new(socket, &negotiated, rest)?;
            let name = negotiated.export.name();
            welcome.host.exports.attach(name, queue).map_err(io::Error::other)
        });
        if let Err(error) = begun {
            welcome.refuse(&error.to_string());
        }
    })?;
    Ok(())
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

fn accept(listener: &Listener, stop: &OwnedFd, host: &NbdHost) {
    let (handshakes, connections) = (Arc::default(), Arc::default());
    loop {
        let mut wanted = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        if poll(&mut wanted, None).is_err() {
            continue;
        }
        if wanted.iter().skip(1).any(|fd| !fd.revents().is_empty()) {
            return;
        }
        match listener.accept(host) {
            Ok((_, welcome, Err(reason))) => welcome.refuse(reason),
            Ok((socket, welcome, Ok(()))) => {
                let handshake = Ticket::take(&handshakes, HANDSHAKES_MAX);
                let connection = Ticket::take(&connections, CONNECTIONS_MAX);
                let (Some(handshake), Some(connection)) = (handshake, connection) else {
                    welcome.refuse("there are too many");
                    continue;
                };
                greet(socket, welcome, (handshake, connection));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // Descriptors are short, or memory; both come back when others leave.
                tracing::warn!(%error, "an NBD client cannot come in");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

fn greet(socket: OwnedFd, welcome: Welcome, (handshake, connection): (Ticket, Ticket)) {
    let refusing = welcome.clone();
    let started = std::thread::Builder::new().name("nbd-client".to_owned()).spawn(move || {
        let begun = (welcome.host.on_client_start)();
        if let Err(error) = begun.and_then(|()| come_in(socket, &welcome, connection)) {
            tracing::debug!(%error, "the handshake of an NBD client failed");
        }
        drop(handshake);
    });
    if let Err(error) = started {
        refusing.refuse(&format!("the host can start no thread for it: {error}"));
    }
}

fn come_in(socket: OwnedFd, welcome: &Welcome, connection: Ticket) -> io::Result<()> {
    let Some(welcomed) = shake_hands(socket, welcome)? else { return Ok(()) };
    let Welcomed { socket, negotiated, rest } = welcomed;
    let name = negotiated.export.name().to_owned();
    let noted = welcome.host.clients.note(&name, &welcome.caller);
    let inside = Inside { _ticket: connection, _noted: noted };
    // Descriptors are short, or memory; whoever operates the host is told, others go on.
    let queue = NbdQueue::new(socket, &negotiated, rest).inspect_err(|error| {
        welcome.refuse(&format!("the host cannot serve its connection: {error}"));
    })?;
    let queue = queue.counted_by(inside);
    welcome.host.exports.attach(&name, queue).map_err(io::Error::other)
}
