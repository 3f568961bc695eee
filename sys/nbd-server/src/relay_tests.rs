use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_nbd::Export;
use suimon_ports::NbdTransport;
use suimon_socket_runtime::{SocketRuntime, ThreadHooks};

use crate::client::Client;
use crate::clients::ClientIdentity;
use crate::origin::Origin;
use crate::relay::start_relay;
use crate::{NbdExports, NbdQueue, NbdServer, NbdServerContext, NbdTls, RESERVED_BYTES, TcpAccess};

/// Time limit for conditions that a test waits for; generous, because the machine may be loaded.
const LIMIT: Duration = Duration::from_secs(60);

/// Source without exports, which sends the reason of each rejection to the test.
struct Refusals(Mutex<Sender<String>>);

impl NbdExports for Refusals {
    fn exports(&self) -> Vec<Export> {
        Vec::new()
    }

    fn attach(&self, _name: &str, _queue: NbdQueue) -> Result<(), String> {
        Err("no export is configured".to_owned())
    }

    fn handle_access_rejection(&self, _peer: String, reason: String) {
        self.0.lock().unwrap().send(reason).unwrap();
    }
}

/// Requests TLS (NBD protocol, `NBD_OPT_STARTTLS`). The client's next bytes must be TLS.
fn start_tls(server: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    let (flags, option) = (1_u32.to_be_bytes(), 5_u32.to_be_bytes());
    stream.write_all(&[&flags[..], b"IHAVEOPT", &option, &[0; 4]].concat()).unwrap();
    stream.read_exact(&mut [0; 20]).unwrap();
    stream
}

/// Creates TLS parameters with a new certificate and key for the server.
fn tls() -> NbdTls {
    let folder = tempfile::tempdir().unwrap();
    let generated = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let [certificate, key] = ["cert", "key"].map(|name| folder.path().join(name));
    fs::write(&certificate, generated.cert.pem()).unwrap();
    fs::write(&key, generated.key_pair.serialize_pem()).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    NbdTls::load(&certificate, &key, None, &[]).unwrap()
}

#[test]
fn a_connection_has_its_place_until_its_tls_has_ended() {
    let (refused, _refusals) = channel();
    let runtime = SocketRuntime::new("nbd", 1, ThreadHooks::default()).unwrap();
    let host = NbdServerContext::new(Arc::new(Refusals(Mutex::new(refused))), runtime.clone());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let (tls, budgets) = (tls(), host.accounting.clone());
    let caller = ClientIdentity { transport: NbdTransport::Tls, peer: "a test".to_owned() };
    let client = Client::new(host, Some(tls.clone()), caller, Some(Origin::User(7)));
    client.open_account("disk").unwrap();
    let (inner, life) = {
        let _guard = runtime.enter();
        start_relay(&tls, socket.into(), Vec::new(), client).unwrap()
    };
    // This has the effect of the end of a queue, but without the notification of the relay.
    drop(inner);
    let level = budgets.usage().host;
    assert_eq!(level.connections, 1, "the relay still holds the client's socket");
    assert_eq!(level.buffer_bytes, RESERVED_BYTES);
    drop(life);
    let deadline = Instant::now() + LIMIT;
    while budgets.usage().host.connections > 0 {
        assert!(Instant::now() < deadline, "the connection is still counted");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(peer);
}

#[test]
fn a_client_that_disconnects_during_tls_is_not_refused_but_invalid_data_is() {
    let tls = Some(tls());
    let access = TcpAccess { tls, ..TcpAccess::default() };
    let (refused, refusals) = channel();
    let runtime = SocketRuntime::new("nbd", 1, ThreadHooks::default()).unwrap();
    let host = NbdServerContext::new(Arc::new(Refusals(Mutex::new(refused))), runtime);
    let any_address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = NbdServer::listen_tcp(any_address, access, host).unwrap();
    let address = server.address().unwrap();
    for _ in 0..3 {
        let mut leaving = start_tls(address);
        leaving.shutdown(std::net::Shutdown::Write).unwrap();
        // Waits until the server has closed the connection, too.
        let _ = leaving.read_to_end(&mut Vec::new());
    }
    let mut nonsense = start_tls(address);
    nonsense.write_all(&[0xee; 64]).unwrap();
    let _ = nonsense.read_to_end(&mut Vec::new());
    let reason = refusals.recv_timeout(LIMIT).unwrap();
    assert!(reason.starts_with("TLS failed: ") && !reason.contains("eof"), "{reason}");
}
