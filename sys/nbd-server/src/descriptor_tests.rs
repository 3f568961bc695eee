//! Tests of clients that attach descriptors to their data for which close(2) blocks.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use suimon_nbd::Framing;
use suimon_ports::{DiskQueue, FaultKind};
use suimon_socket_runtime::{DescriptorGuard, SocketRuntime, ThreadHooks};

use crate::queue_resources::QueueResources;
use crate::queue_tests::{READ, WRITE, connection_of, header};
use crate::server_tests::{Exports, LIMIT, choose, host};
use crate::{NbdAccounting, NbdServer, UnixAccess};

/// Creates a TCP connection. Closing the first socket blocks for ten times [`LIMIT`] unless the
/// second one, its peer, is dropped.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.write(&[0; 1 << 16]).is_ok() {}
    socket.set_nonblocking(false).unwrap();
    set_socket_linger(&socket, Some(10 * LIMIT)).unwrap();
    (socket, peer)
}

/// Sends bytes with an attached socket. This process closes its descriptor of the socket if the
/// kernel refuses to send it.
fn send_with(client: &UnixStream, bytes: &[u8], attached: TcpStream) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [attached.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let sent = sendmsg(client, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
    if sent.is_err() {
        set_socket_linger(&attached, None).unwrap();
    }
    // The receiver may have closed its descriptor before: then this close is the last one.
    std::thread::spawn(move || drop(attached));
    sent
}

/// Executes a call that a worker makes in another thread. Panics with `subject` if the call blocks.
fn returns<T: Send + 'static>(subject: &str, call: impl FnOnce() -> T + Send + 'static) -> T {
    let (report, reports) = channel();
    std::thread::spawn(move || report.send(call()));
    reports.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{subject} blocks"))
}

#[test]
fn descriptors_of_a_client_block_neither_its_worker_nor_the_server() {
    let exports = Arc::new(Exports::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nbd");
    let _server = NbdServer::listen(&path, UnixAccess::default(), host(&exports)).unwrap();
    let connect = || {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        choose(&mut stream, "works").map(|()| stream)
    };
    let mut peers = Vec::new();
    // The test precedes the negotiation, because both threads of the server read from such clients.
    for _ in 0..4 {
        let (socket, peer) = lingering();
        let client = UnixStream::connect(&path).unwrap();
        let _ = send_with(&client, &3_u32.to_be_bytes(), socket);
        peers.push((client, peer));
    }
    let client = connect().unwrap();
    let deadline = Instant::now() + LIMIT;
    let mut queue = loop {
        if let Some(queue) = exports.queues.lock().unwrap().pop() {
            break queue;
        }
        assert!(Instant::now() < deadline, "the server does not serve");
        std::thread::sleep(Duration::from_millis(5));
    };
    let (socket, _peer) = lingering();
    let _ = send_with(&client, &header(0, READ, 1, 0, 512), socket);
    queue = returns("the worker", move || {
        let _ = queue.receive(8, &mut Vec::new());
        queue
    });
    let (socket, _peer) = lingering();
    let _ = send_with(&client, b"x", socket);
    returns("the end of a connection", move || drop(queue));
}

/// Simulates a kernel that cannot refuse descriptors.
#[test]
fn descriptors_that_arrive_end_the_connection_and_are_closed_elsewhere() {
    let runtime = SocketRuntime::new("nbd", 1, ThreadHooks::default()).unwrap();
    for kind in [READ, WRITE] {
        let budgets = NbdAccounting::default();
        let (queue, client) = connection_of(Framing::Simple, &budgets);
        let guard = Arc::new(DescriptorGuard::new(queue.socket.as_fd(), &runtime).unwrap());
        let share = Arc::new(budgets.admit_daemon());
        let inner =
            QueueResources { _account: share, _list_entry: None, _relay: None, guard: Some(guard) };
        let mut queue = queue.with_resources(inner);
        (&client).write_all(&header(0, READ, 1, 0, 512)).unwrap();
        assert_eq!(queue.receive(8, &mut Vec::new()).unwrap(), 1);
        // The descriptor is attached to the header of a request, and to the payload of a write.
        let mut header_bytes = header(0, kind, 2, 0, 512);
        if kind == WRITE {
            (&client).write_all(&header_bytes).unwrap();
            assert_eq!(queue.receive(8, &mut Vec::new()).unwrap(), 0);
            header_bytes = vec![1; 512];
        }
        let peers: Vec<_> = (0..2)
            .map(|_| {
                let (socket, peer) = lingering();
                send_with(&client, &header_bytes, socket).unwrap();
                peer
            })
            .collect();
        let (fault, queue) =
            returns("the worker", move || (queue.receive(8, &mut Vec::new()).unwrap_err(), queue));
        assert_eq!(fault.kind, FaultKind::ProtocolViolation);
        assert!(fault.detail.contains("attached a descriptor"), "{}", fault.detail);
        // The second descriptor was not read.
        returns("the end of the connection", move || drop(queue));
        drop(peers);
    }
}
