use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

use super::*;

/// Listens on a VM's agent socket, and runs `agent` in a thread with the first connection.
fn guest(agent: impl FnOnce(UnixStream) + Send + 'static) -> (tempfile::TempDir, JoinHandle<()>) {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join(AGENT_SOCKET)).unwrap();
    let thread = std::thread::spawn(move || {
        agent(listener.accept().unwrap().0);
    });
    (folder, thread)
}

/// Returns the port of a VM for which no session was closed yet.
fn port(folder: &tempfile::TempDir) -> AgentPort<'_> {
    let closing = Box::leak(Box::new(CloseQueue::default()));
    AgentPort { folder: folder.path(), close_queue: closing }
}

fn line(client: &mut UnixStream) -> Option<Value> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        if client.read(&mut byte).ok()? == 0 {
            return None;
        }
        match byte[0] {
            b'\n' => return serde_json::from_slice(&line).ok(),
            0xff => {}
            byte => line.push(byte),
        }
    }
}

/// Agent that repeats the synchronisation number, and replies to each command with the result of
/// `answer`. Closes the connection if that is `None`.
fn honest(mut client: UnixStream, answer: impl Fn(&str) -> Option<&'static str>) {
    while let Some(command) = line(&mut client) {
        let name = command["execute"].as_str().unwrap();
        if name == "guest-sync-delimited" {
            let id = &command["arguments"]["id"];
            // A late reply to an earlier command arrives first.
            client.write_all(b"{\"return\": 7}\n\xff").unwrap();
            client.write_all(format!("{{\"return\": {id}}}\n").as_bytes()).unwrap();
        } else {
            let Some(text) = answer(name) else { return };
            client.write_all(text.as_bytes()).unwrap();
        }
    }
}

#[test]
fn an_agent_reports_its_facts() {
    let (folder, thread) = guest(|client| {
        honest(client, |command| {
            Some(match command {
                "guest-info" => "{\"return\": {\"version\": \"7.2.22\"}}\n",
                "guest-fsfreeze-status" => "{\"return\": \"frozen\"}\n",
                "guest-get-host-name" => "{\"return\": {\"host-name\": \"web\"}}\n",
                _ => "{\"error\": {\"class\": \"GenericError\", \"desc\": \"disabled\"}}\n",
            })
        });
    });
    let facts = query_guest_info(port(&folder)).unwrap();
    let expected = GuestInfo {
        agent_version: Some("7.2.22".to_owned()),
        host_name: Some("web".to_owned()),
        is_frozen: true,
        ..GuestInfo::default()
    };
    assert_eq!(facts, expected);
    thread.join().unwrap();
}

#[test]
fn freezing_returns_a_number_and_a_shutdown_needs_no_reply() {
    let (folder, _) = guest(|client| honest(client, |_| Some("{\"return\": 3}\n")));
    assert_eq!(freeze(port(&folder)).unwrap(), 3);
    let (folder, _) = guest(|client| honest(client, |_| Some("{\"return\": \"many\"}\n")));
    // The effect of the command is unknown, so this is not reported as a rejection.
    assert_eq!(thaw(port(&folder)).unwrap_err().kind, VmErrorKind::Timeout);
    let (folder, _) = guest(|client| honest(client, |_| Some("nonsense\n")));
    assert_eq!(freeze(port(&folder)).unwrap_err().kind, VmErrorKind::Timeout);
    let (folder, _) = guest(|client| honest(client, |_| Some("nonsense\n")));
    assert!(shut_down(port(&folder)).unwrap_err().text.contains("JSON"));
    let (folder, _) = guest(|client| honest(client, |_| None));
    shut_down(port(&folder)).unwrap();
    let (folder, _) = guest(|client| {
        honest(client, |_| Some("{\"error\": {\"desc\": \"not allowed\"}}\n"));
    });
    assert!(shut_down(port(&folder)).unwrap_err().text.contains("not allowed"));
}

/// The caller gets a result within the time limit whatever the guest sends.
#[test]
fn a_silent_guest_agent_does_not_block_callers() {
    let started_at = Instant::now();
    let limit = Duration::from_millis(300);
    // Guests that send nothing, an endless stream of other numbers, and an endless line.
    let silent = guest(|mut client| while line(&mut client).is_some() {});
    let strange = guest(|mut client| while client.write_all(b"\xff{\"return\": 1}\n").is_ok() {});
    let slow = guest(|mut client| {
        while client.write_all(b"\xff ").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    for (folder, _) in [silent, strange, slow] {
        let error = AgentSession::begin(port(&folder), limit).unwrap_err();
        assert_eq!(error.kind, VmErrorKind::Timeout, "{error}");
    }
    let (folder, _) = guest(|mut client| {
        let endless = vec![b'x'; 1 << 20];
        let _ = client.write_all(b"\xff").and_then(|()| client.write_all(&endless));
    });
    // This error does not need the time limit, but the guest's thread needs CPU time.
    let error = AgentSession::begin(port(&folder), Duration::from_secs(50)).unwrap_err();
    assert_eq!(error.kind, VmErrorKind::Timeout, "{error}");
    assert!(error.text.contains("too long"), "{error}");
    // A guest that could block the caller would block it indefinitely.
    assert!(started_at.elapsed() < Duration::from_secs(120));
}

#[test]
fn a_guest_with_an_unresponsive_agent_is_not_frozen() {
    // This guest ends the connection instead of a reply, so that the test does not wait for the
    // time limit.
    let (folder, _) = guest(|mut client| drop(line(&mut client)));
    assert_eq!(freeze(port(&folder)).unwrap_err().kind, VmErrorKind::Refused);
}

#[test]
fn a_vm_without_the_agent_port_is_reported_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let error = query_guest_info(port(&folder)).unwrap_err();
    assert!(error.text.contains("next start"), "{error}");
}

/// A QEMU that stalls or is hostile does not accept the connection.
#[test]
fn a_qemu_that_accepts_no_connection_is_not_awaited() {
    let folder = tempfile::tempdir().unwrap();
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    let path = folder.path().join(AGENT_SOCKET);
    rustix::net::bind(&socket, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
    // The launcher does the same.
    rustix::net::listen(&socket, 1).unwrap();
    let (report, reports) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let limit = Duration::from_millis(200);
        for _ in 0..4 {
            let _ = report.send(AgentSession::begin(port(&folder), limit).unwrap_err());
        }
    });
    for _ in 0..4 {
        let error = reports.recv_timeout(Duration::from_secs(60)).expect("an error in time");
        assert_eq!(error.kind, VmErrorKind::Timeout, "{error}");
    }
}

/// Otherwise the reading thread would close received descriptors, which may block.
#[test]
fn descriptors_of_a_guest_agent_are_refused() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::os::fd::AsFd;
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join(AGENT_SOCKET)).unwrap();
    let _ours = connect_in(folder.path(), AGENT_SOCKET, REPLY_TIMEOUT).unwrap();
    let (peer, _) = listener.accept().unwrap();
    if !suimon_unix_socket::refuse_descriptors(UnixStream::pair().unwrap().0) {
        eprintln!("skipped: the kernel is older than Linux 6.16");
        return;
    }
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let descriptors = [peer.as_fd()];
    assert!(beside.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let result = sendmsg(&peer, &[std::io::IoSlice::new(b"x")], &mut beside, SendFlags::NOSIGNAL);
    assert_eq!(result, Err(rustix::io::Errno::PERM));
}

/// Simulates a kernel that cannot refuse descriptors. The last close of the attached socket blocks.
#[test]
fn a_descriptor_of_a_guest_agent_ends_the_session_and_blocks_no_caller() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::net::{TcpListener, TcpStream};
    let limit = Duration::from_secs(60);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut attached = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    attached.set_nonblocking(true).unwrap();
    while attached.write(&[0; 1 << 16]).is_ok() {}
    attached.set_nonblocking(false).unwrap();
    rustix::net::sockopt::set_socket_linger(&attached, Some(10 * limit)).unwrap();
    let (local, remote) = UnixStream::pair().unwrap();
    for _ in 0..2 {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let descriptors = [attached.as_fd()];
        assert!(beside.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(&remote, &[std::io::IoSlice::new(b"x")], &mut beside, SendFlags::NOSIGNAL).unwrap();
    }
    let closing = CloseQueue::default();
    let stream = QemuStream::guarded(local, &closing).unwrap();
    // The receiver has the last descriptors.
    let last = std::thread::spawn(move || drop(attached));
    let (report, reports) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let session =
            AgentSession { stream, reader: AgentReader::new(), deadline: Instant::now() + limit };
        let _ = report.send(session.synchronize().unwrap_err());
    });
    let error = reports.recv_timeout(limit).expect("an error in time");
    assert_eq!(error.kind, VmErrorKind::Timeout, "{error}");
    // One thread performs the close. No further session begins meanwhile.
    let folder = tempfile::tempdir().unwrap();
    let port = AgentPort { folder: folder.path(), close_queue: &closing };
    let error = AgentSession::begin(port, Duration::from_millis(100)).unwrap_err();
    assert!(error.text.contains("QEMU delays the close"), "{error}");
    drop((remote, peer));
    last.join().unwrap();
    assert!(closing.wait(limit));
}

/// Each session is closed by a separate thread, which takes a moment.
#[test]
fn sessions_directly_after_each_other_wait_for_the_close_before_linux_6_16() {
    let limit = Duration::from_secs(60);
    let closing = CloseQueue::default();
    for _ in 0..200 {
        let (local, _theirs) = UnixStream::pair().unwrap();
        drop(QemuStream::guarded(local, &closing).unwrap());
        assert!(closing.wait(limit));
    }
}
