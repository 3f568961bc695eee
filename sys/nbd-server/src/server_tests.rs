//! Tests of servers with clients that send nothing, and with exports that block.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{
    socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_keepintvl, tcp_user_timeout,
};
use suimon_nbd::{Export, ExportSpec};
use suimon_socket_runtime::{SocketRuntime, ThreadHooks};

use crate::server::Access;
use crate::{NbdExports, NbdQueue, NbdServer, NbdServerContext, TcpAccess, UnixAccess, keepalive};

/// Time limit for conditions that a test waits for; generous, because the machine may be loaded.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Source of two exports. Attaching to `stalls` blocks until `is_over` is set.
#[derive(Default)]
pub(crate) struct Exports {
    is_over: Mutex<bool>,
    over: Condvar,
    pub(crate) queues: Mutex<Vec<NbdQueue>>,
    /// Reasons of clients that a limit rejected.
    pub(crate) limited: Mutex<Vec<String>>,
}

impl Exports {
    fn end(&self) {
        *self.is_over.lock().unwrap() = true;
        self.over.notify_all();
    }
}

impl NbdExports for Exports {
    fn exports(&self) -> Vec<Export> {
        let export = |name: &str| {
            let spec = ExportSpec::for_disk(name.to_owned(), 1 << 20, 512, false);
            Export::new(spec).unwrap()
        };
        ["works", "stalls"].map(export).into()
    }

    fn attach(&self, name: &str, queue: NbdQueue) -> Result<(), String> {
        if name == "stalls" {
            let is_over = self.is_over.lock().unwrap();
            drop(self.over.wait_while(is_over, |is_over| !*is_over).unwrap());
        }
        self.queues.lock().unwrap().push(queue);
        Ok(())
    }

    fn handle_limit_rejection(&self, peer: String, reason: String) {
        self.limited.lock().unwrap().push(format!("{peer}: {reason}"));
    }
}

pub(crate) fn host(exports: &Arc<Exports>) -> NbdServerContext {
    let runtime = SocketRuntime::new("nbd", 2, ThreadHooks::default()).unwrap();
    NbdServerContext::new(Arc::clone(exports) as _, runtime)
}

/// Receives the greeting and selects an export (`NBD_OPT_EXPORT_NAME`). Fails if the server closes
/// the connection.
pub(crate) fn choose(stream: &mut (impl Read + Write), export: &str) -> std::io::Result<()> {
    stream.read_exact(&mut [0; 18])?;
    let length = (export.len() as u32).to_be_bytes();
    let (flags, option) = (3_u32.to_be_bytes(), 1_u32.to_be_bytes());
    stream.write_all(&[&flags[..], b"IHAVEOPT", &option, &length, export.as_bytes()].concat())?;
    stream.read_exact(&mut [0; 10])
}

/// Number of silent clients in the following test: less than
/// [`PEER_LIMIT`](crate::negotiations::PEER_LIMIT).
const SILENT: usize = 127;

#[test]
fn silent_clients_are_replaced_and_delay_no_other() {
    let exports = Arc::new(Exports::default());
    let any_address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = NbdServer::listen_tcp(any_address, TcpAccess::default(), host(&exports)).unwrap();
    let connect = || {
        let stream = TcpStream::connect(server.address().unwrap()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    };
    let mut silent: Vec<_> = (0..SILENT).map(|_| connect()).collect();
    let started_at = Instant::now();
    choose(&mut connect(), "works").unwrap();
    // Each further client replaces the oldest silent one that has been silent for long enough.
    while exports.limited.lock().unwrap().is_empty() {
        assert!(started_at.elapsed() < LIMIT, "no silent client is replaced");
        choose(&mut connect(), "works").unwrap();
        // An export has 128 connections at most.
        exports.queues.lock().unwrap().clear();
        std::thread::sleep(Duration::from_millis(10));
    }
    // The oldest gets the greeting, and then the end of the connection. A time limit would have
    // ended its negotiation without a report.
    silent[0].read_exact(&mut [0; 18]).unwrap();
    assert_eq!(silent[0].read(&mut [0]).unwrap_or(0), 0);
    let limited = exports.limited.lock().unwrap();
    assert!(
        limited[0].starts_with("127.0.0.1:") && limited[0].contains("it was the oldest"),
        "{limited:?}"
    );
}

#[test]
fn connections_that_have_ended_are_not_listed() {
    let exports = Arc::new(Exports::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nbd");
    let host = host(&exports);
    let clients = host.clients.clone();
    let _server = NbdServer::listen(&path, UnixAccess::default(), host).unwrap();
    for _ in 0..200 {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        choose(&mut stream, "works").unwrap();
        // An export has 128 connections at most.
        exports.queues.lock().unwrap().clear();
    }
    let started_at = Instant::now();
    while !clients.list().is_empty() {
        assert!(started_at.elapsed() < LIMIT, "{} connections are listed", clients.list().len());
        std::thread::sleep(Duration::from_millis(10));
        exports.queues.lock().unwrap().clear();
    }
}

#[test]
fn an_unresponsive_export_does_not_block_others() {
    let exports = Arc::new(Exports::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nbd");
    let _server = NbdServer::listen(&path, UnixAccess::default(), host(&exports)).unwrap();
    let connect = |export: &str| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        choose(&mut stream, export).map(|()| stream)
    };
    let stalled: Vec<_> = (0..64).map(|_| connect("stalls").unwrap()).collect();
    let _served = connect("works").unwrap();
    let deadline = Instant::now() + LIMIT;
    while exports.queues.lock().unwrap().len() != 1 {
        assert!(Instant::now() < deadline, "the export that works gets no connection");
        std::thread::sleep(Duration::from_millis(5));
    }
    exports.end();
    drop(stalled);
}

#[test]
fn the_kernel_ends_connections_to_vanished_clients() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = OwnedFd::from(listener.accept().unwrap().0);
    let access = Access::Tcp(RwLock::new(TcpAccess::default()));
    let verdict = access.check_client(socket.as_fd(), &host(&Arc::default())).unwrap();
    assert!(verdict.2.is_ok());
    assert!(socket_keepalive(&socket).unwrap());
    assert_eq!(tcp_keepidle(&socket).unwrap(), keepalive::IDLE);
    assert_eq!(tcp_keepintvl(&socket).unwrap(), keepalive::INTERVAL);
    assert_eq!(tcp_keepcnt(&socket).unwrap(), keepalive::PROBES);
    let ms = Duration::from_millis(u64::from(tcp_user_timeout(&socket).unwrap()));
    assert_eq!(ms, keepalive::UNACKNOWLEDGED_MAX);
    assert_eq!(keepalive::IDLE + keepalive::INTERVAL * keepalive::PROBES, ms);
}
