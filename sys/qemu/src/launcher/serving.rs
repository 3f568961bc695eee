//! Socket of the launcher, its clients, and access control.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, flock};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketAddrUnix, SocketFlags, accept_with, bind, listen};
use rustix::process::umask;
use suimon_ports::{VmError, VmErrorKind};

use super::LauncherSpec;
use super::accelerator::AcceleratorSelector;
use super::folder::VmFolderRoot;
use super::launcher_user::LauncherUser;
use super::qemu::QemuProgram;
use super::registry::Registry;
use super::requests;
use super::starter::Starter;
use super::vfs::Vfs;
use crate::messages::{connect_to, new_socket, receive_message, send_message, wait_readable};
use crate::wire::Reply;

/// Maximum number of connections. Each VM permanently uses two or three, and temporarily more.
const CLIENTS_MAX: usize = 4096;
/// Maximum number of pending connections (listen(2)).
const BACKLOG: i32 = 64;
/// Interval at which processes and logs are checked.
const ROUND: Duration = Duration::from_secs(1);
/// Time without VMs and clients after which a launcher exits.
const UNNEEDED_LIMIT: Duration = Duration::from_secs(10);

/// Launcher that listens on its socket.
#[derive(Debug)]
pub struct Launcher {
    starter: Arc<Starter>,
    socket: OwnedFd,
    clients: Arc<AtomicUsize>,
    /// Maximum number of connections: [`CLIENTS_MAX`], or that of a test.
    clients_max: usize,
    exits_when_unused: bool,
}

/// Count of a connected client, until it is dropped.
struct Served(Arc<AtomicUsize>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Launcher {
    /// Locks the folder of VMs, listens on the socket, and registers VMs that an earlier launcher
    /// has started. The calling process must have no other threads, because the umask is changed.
    ///
    /// # Errors
    /// Another launcher runs, the folder is owned by another user, or the socket cannot be created.
    pub fn open(spec: &LauncherSpec) -> io::Result<Self> {
        umask(Mode::RWXG | Mode::RWXO);
        let rights = LauncherUser::current();
        let root = VmFolderRoot::open(&spec.root, rights)?;
        flock(root.as_fd(), FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let root = spec.root.display();
            io::Error::other(format!("another launcher uses the folder of all VMs {root}"))
        })?;
        let socket = listen_at(&spec.socket)?;
        let starter = Starter {
            root,
            launcher_user: rights,
            qemu: QemuProgram::new(spec.qemu.clone()),
            accelerators: AcceleratorSelector::default(),
            registry: Registry::default(),
            vfs: Vfs::default(),
            starts: Mutex::default(),
        };
        starter.registry.restore(&starter.root);
        let starter = Arc::new(starter);
        let exits_when_unused = spec.exits_when_unused;
        let (clients, clients_max) = (Arc::default(), CLIENTS_MAX);
        Ok(Self { starter, socket, clients, clients_max, exits_when_unused })
    }

    /// Serves clients. Returns when the launcher is not needed, if it is configured to exit then.
    ///
    /// # Errors
    /// The socket cannot be polled.
    pub fn serve(&self) -> io::Result<()> {
        let mut last_needed = Instant::now();
        let mut round = Instant::now();
        loop {
            let [has_client] = wait_readable([self.socket.as_fd()], Some(ROUND))?;
            if has_client {
                self.take_in();
            }
            if round.elapsed() >= ROUND {
                round = Instant::now();
                self.starter.registry.maintain(&self.starter.starts);
                self.starter.vfs.maintain();
            }
            let clients = self.clients.load(Ordering::Relaxed);
            if clients > 0 || !self.starter.registry.running().is_empty() {
                last_needed = Instant::now();
            } else if self.exits_when_unused && last_needed.elapsed() >= UNNEEDED_LIMIT {
                tracing::info!("no VM runs and no client is connected; the launcher ends");
                return Ok(());
            }
        }
    }

    fn take_in(&self) {
        let client = match accept_with(&self.socket, SocketFlags::CLOEXEC) {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client");
                // If no descriptor is free, the next attempt would fail at once, too.
                std::thread::sleep(Duration::from_millis(10));
                return;
            }
        };
        if self.clients.fetch_add(1, Ordering::Relaxed) >= self.clients_max {
            self.clients.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let served = Served(Arc::clone(&self.clients));
        let starter = Arc::clone(&self.starter);
        let builder = std::thread::Builder::new().name("launcher-client".to_owned());
        let thread = builder.spawn(move || {
            let _served = served;
            match check_peer(&starter, &client) {
                Err(error) => refuse(client.as_fd(), error),
                Ok(()) => requests::serve(&starter, client.as_fd()),
            }
        });
        if let Err(error) = thread {
            tracing::warn!(%error, "cannot serve a client");
        }
    }
}

/// Checks that the client is a process of root or of the launcher's user, and not a VM, which may
/// run as that user.
fn check_peer(starter: &Starter, client: &OwnedFd) -> Result<(), VmError> {
    let refused = |text: String| VmError::new(VmErrorKind::Refused, text);
    let peer = socket_peercred(client).map_err(|errno| refused(errno.to_string()))?;
    let is_ours = peer.uid.is_root() || peer.uid == rustix::process::geteuid();
    let process = u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or(0);
    // VMs have the launcher's user only if it is not root. The process of a VM that is being
    // started is registered when the lock is free.
    let _starts =
        (starter.launcher_user == LauncherUser::Unprivileged).then(|| starter.lock_starts());
    if !is_ours || starter.registry.has_process(process) {
        let user = peer.uid.as_raw();
        return Err(refused(format!(
            "user {user} (process {process}) has no permission to start VMs"
        )));
    }
    Ok(())
}

/// Sends the reason for a rejection after the client's first message. A reply sent earlier would be
/// lost with the connection.
fn refuse(client: BorrowedFd<'_>, error: VmError) {
    tracing::warn!("a client was rejected: {error}");
    if matches!(wait_readable([client], Some(ROUND)), Ok([true])) {
        let _ = receive_message::<serde::de::IgnoredAny>(client);
        let _ = send_message(client, &Reply::from(error));
    }
}

/// Listens on a Unix socket. Replaces a socket file that an ended launcher left behind.
fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let to_error =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(to_error)?;
    }
    if connect_to(path).is_ok() {
        let text = format!("another launcher is running at {}", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(to_error(error)),
        _ => {}
    }
    let socket = new_socket()?;
    let before = umask(Mode::from_raw_mode(0o177));
    let bound = SocketAddrUnix::new(path).and_then(|address| bind(&socket, &address));
    umask(before);
    bound.map_err(|errno| to_error(errno.into()))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;

    use super::*;
    use crate::wire::{Envelope, PROTOCOL, Request};

    #[test]
    fn a_start_by_a_launcher_of_root_delays_no_client() {
        let folder = tempfile::tempdir().unwrap();
        let root = VmFolderRoot::open(&folder.path().join("vms"), LauncherUser::Root).unwrap();
        let starter = Arc::new(Starter::for_test(root, LauncherUser::Root));
        let (client, _other_end) = UnixStream::pair().unwrap();
        let client = OwnedFd::from(client);
        let start = starter.lock_starts();
        let (sender, checked) = mpsc::channel();
        let checking = Arc::clone(&starter);
        std::thread::spawn(move || sender.send(check_peer(&checking, &client).is_ok()));
        assert_eq!(checked.recv_timeout(Duration::from_secs(60)), Ok(true));
        drop(start);
    }

    #[test]
    fn a_connection_beyond_the_limit_is_closed_until_another_one_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("launcher.sock");
        let rights = LauncherUser::current();
        let root = VmFolderRoot::open(&folder.path().join("vms"), rights).unwrap();
        let socket = new_socket().unwrap();
        bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&socket, BACKLOG).unwrap();
        let (starter, clients) = (Arc::new(Starter::for_test(root, rights)), Arc::default());
        let launcher =
            Launcher { starter, socket, clients, clients_max: 2, exits_when_unused: false };
        let connect = || {
            let client = connect_to(&path).unwrap();
            launcher.take_in();
            client
        };
        let request = Envelope { protocol: PROTOCOL, request: Request::List };
        let is_served = |client: &OwnedFd| {
            let _ = send_message(client, &request);
            matches!(receive_message::<Reply>(client), Ok(Some(Reply::Vms(_))))
        };
        let mut connected = vec![connect(), connect()];
        assert!(connected.iter().all(is_served));
        assert!(!is_served(&connect()));
        drop(connected.pop());
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_served(&connect()) {
            assert!(Instant::now() < deadline, "the ended connection still counts");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
