//! Tests of hostile clients over TLS, against a server on a TCP port.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, KeyPair, date_time_ymd};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use suimon_ports::DiskQueue;
use suimon_socket_runtime::{HANDSHAKES_BURST, HANDSHAKES_PER_SECOND};

use crate::queue_tests::{WRITE, header};
use crate::server_tests::{Exports, LIMIT, host};
use crate::{NbdQueue, NbdServer, NbdTls, TcpAccess};

/// `NBD_OPT_STARTTLS`.
const STARTTLS: u32 = 5;
/// `NBD_OPT_EXPORT_NAME`.
const EXPORT_NAME: u32 = 1;

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Certificate with its private key.
struct Signed(Certificate, KeyPair);

impl Signed {
    fn new(mut params: CertificateParams, is_ca: bool, issuer: Option<&Self>) -> Self {
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = match issuer {
            Some(issuer) => params.signed_by(&key, &issuer.0, &issuer.1),
            None => params.self_signed(&key),
        };
        Self(certificate.unwrap(), key)
    }

    fn named(names: &[&str], issuer: &Self) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Self::new(CertificateParams::new(names).unwrap(), false, Some(issuer))
    }
}

/// Server that requires client certificates for `client.test`, and a CA that issues them.
struct Bench {
    exports: Arc<Exports>,
    address: SocketAddr,
    authority: Signed,
    _server: NbdServer,
}

impl Bench {
    fn new() -> Self {
        let authority = Signed::new(CertificateParams::default(), true, None);
        let server_certificate = Signed::named(&["localhost"], &authority);
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key, clients] =
            ["cert", "key", "clients"].map(|name| folder.path().join(name));
        fs::write(&certificate, server_certificate.0.pem()).unwrap();
        fs::write(&key, server_certificate.1.serialize_pem()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&clients, authority.0.pem()).unwrap();
        let names = ["client.test".to_owned()];
        let tls = NbdTls::load(&certificate, &key, Some(&clients), &names).unwrap();
        let access = TcpAccess { tls: Some(tls), ..TcpAccess::default() };
        let exports = Arc::new(Exports::default());
        let any_address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = NbdServer::listen_tcp(any_address, access, host(&exports)).unwrap();
        Self { exports, address: server.address().unwrap(), authority, _server: server }
    }

    /// Returns the configuration of a client with this certificate chain and the key of the first
    /// certificate.
    fn config(&self, chain: &[&Signed]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let Some(first) = chain.first() else { return Arc::new(builder.with_no_client_auth()) };
        let key = PrivateKeyDer::try_from(first.1.serialize_der()).unwrap();
        let chain: Vec<CertificateDer<'static>> =
            chain.iter().map(|signed| signed.0.der().clone()).collect();
        Arc::new(builder.with_client_auth_cert(chain, key).unwrap())
    }

    fn good(&self) -> Arc<ClientConfig> {
        self.config(&[&Signed::named(&["client.test"], &self.authority)])
    }

    /// Connects, and sends the client flags and the request for TLS, followed by further bytes.
    fn start_tls(&self, trailing: &[u8]) -> TcpStream {
        start_tls_from(self.address, Ipv4Addr::LOCALHOST, trailing)
    }

    /// Negotiates TLS, and then selects the export `works`.
    fn enter(&self, config: &Arc<ClientConfig>) -> std::io::Result<Stream> {
        enter_from(self.address, Ipv4Addr::LOCALHOST, config)
    }

    /// Begins a TLS handshake without continuing it.
    fn hello(&self, config: &Arc<ClientConfig>) -> TcpStream {
        let mut stream = self.start_tls(&[]);
        client(config).write_tls(&mut stream).unwrap();
        stream
    }

    fn queue(&self) -> NbdQueue {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(queue) = self.exports.queues.lock().unwrap().pop() {
                return queue;
            }
            assert!(Instant::now() < deadline, "the connection is not attached");
            std::thread::yield_now();
        }
    }
}

fn client(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(Arc::clone(config), name).unwrap()
}

fn start_tls_from(server: SocketAddr, source: Ipv4Addr, trailing: &[u8]) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((source, 0))).unwrap();
    connect(&socket, &server).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    let (flags, option) = (3_u32.to_be_bytes(), STARTTLS.to_be_bytes());
    let message = [&flags[..], b"IHAVEOPT", &option, &[0; 4], trailing].concat();
    stream.write_all(&message).unwrap();
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[12..16], 1_u32.to_be_bytes(), "NBD_REP_ACK");
    stream
}

fn enter_from(
    server: SocketAddr,
    source: Ipv4Addr,
    config: &Arc<ClientConfig>,
) -> std::io::Result<Stream> {
    let mut stream = StreamOwned::new(client(config), start_tls_from(server, source, &[]));
    let option = EXPORT_NAME.to_be_bytes();
    stream.write_all(&[b"IHAVEOPT", &option[..], &[0, 0, 0, 5], b"works"].concat())?;
    stream.flush()?;
    stream.read_exact(&mut [0; 10])?;
    Ok(stream)
}

/// Bytes that an attacker on the network inserts before the TLS handshake must not be executed as
/// if the client had sent them over TLS (CVE-2011-0411).
#[test]
fn plain_bytes_behind_the_request_for_tls_are_no_options() {
    let bench = Bench::new();
    let list = [b"IHAVEOPT", &3_u32.to_be_bytes()[..], &[0; 4]].concat();
    let enter = [b"IHAVEOPT", &EXPORT_NAME.to_be_bytes()[..], &[0, 0, 0, 5], b"works"].concat();
    for trailing in [list, enter] {
        let mut stream = bench.start_tls(&trailing);
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        // The server sends at most a TLS alert (RFC 8446, section 5.1).
        assert!(received.first().is_none_or(|kind| *kind == 21), "{received:?}");
        assert!(bench.exports.queues.lock().unwrap().is_empty());
    }
    bench.enter(&bench.good()).unwrap();
}

/// A resumed session would not verify the client's certificate again, which may have expired.
#[test]
fn sessions_are_not_resumed() {
    let bench = Bench::new();
    let config = bench.good();
    for _ in 0..3 {
        let stream = bench.enter(&config).unwrap();
        assert_eq!(stream.conn.handshake_kind(), Some(HandshakeKind::Full));
    }
}

#[test]
fn invalid_certificates_of_any_size_are_refused() {
    let bench = Bench::new();
    let authority = &bench.authority;
    let mut expired = CertificateParams::new(["client.test".to_owned()]).unwrap();
    expired.not_before = date_time_ymd(2000, 1, 1);
    expired.not_after = date_time_ymd(2001, 1, 1);
    let expired = Signed::new(expired, false, Some(authority));
    let other_authority = Signed::new(CertificateParams::default(), true, None);
    let unknown = Signed::named(&["client.test"], &other_authority);
    let other = Signed::named(&["other.test"], authority);
    let itself = Signed::named(&["client.test"], &other);
    let names: Vec<String> = (0..1500).map(|number| format!("n{number}.client.test")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let many_names = Signed::named(&names, authority);
    // The chain leads to another CA certificate, and each of its certificates could be the issuer
    // of each.
    let chain: Vec<Signed> = (0..64)
        .map(|_| Signed::new(CertificateParams::default(), true, Some(&other_authority)))
        .collect();
    let leaf = Signed::new(
        CertificateParams::new(["client.test".to_owned()]).unwrap(),
        false,
        chain.last(),
    );
    let mut long_chain: Vec<&Signed> = vec![&leaf];
    long_chain.extend(&chain);
    let cases = [
        ("without", bench.config(&[])),
        ("expired", bench.config(&[&expired])),
        ("of another CA", bench.config(&[&unknown, &other_authority])),
        ("for another name", bench.config(&[&other])),
        ("signed by a client", bench.config(&[&itself, &other])),
        ("for many other names", bench.config(&[&many_names])),
        ("with a long chain", bench.config(&long_chain)),
    ];
    for (case, config) in cases {
        assert!(bench.enter(&config).is_err(), "a client {case} is admitted");
    }
    assert!(bench.exports.queues.lock().unwrap().is_empty());
    // One of many names is the correct one.
    let mut with_own = names.clone();
    with_own.push("client.test");
    bench.enter(&bench.config(&[&Signed::named(&with_own, authority)])).unwrap();
}

/// An attacker on the network can end a connection without `close_notify`.
#[test]
fn an_incomplete_write_is_not_executed() {
    let bench = Bench::new();
    let mut stream = bench.enter(&bench.good()).unwrap();
    let mut queue = bench.queue();
    let header = header(0, WRITE, 1, 0, 4096);
    stream.write_all(&[header, vec![7; 4000]].concat()).unwrap();
    stream.flush().unwrap();
    stream.sock.shutdown(std::net::Shutdown::Both).unwrap();
    let mut requests = Vec::new();
    let deadline = Instant::now() + LIMIT;
    let fault = loop {
        match queue.receive(8, &mut requests) {
            Ok(_) => assert!(Instant::now() < deadline, "the end is not detected"),
            Err(fault) => break fault,
        }
        std::thread::yield_now();
    };
    assert!(requests.is_empty(), "{requests:?}");
    assert!(fault.detail.contains("without NBD_CMD_DISC"), "{}", fault.detail);
}

#[test]
fn a_flood_of_key_updates_ends_its_connection_only() {
    let bench = Bench::new();
    let config = bench.good();
    let mut other = bench.enter(&config).unwrap();
    let mut other_queue = bench.queue();
    let mut stream = bench.enter(&config).unwrap();
    stream.sock.set_write_timeout(Some(LIMIT)).unwrap();
    let result = (0..100_000).try_for_each(|_| {
        stream.conn.refresh_traffic_keys().map_err(std::io::Error::other)?;
        stream.conn.write_tls(&mut stream.sock).map(drop)
    });
    let mut answer = Vec::new();
    let ended = result.and_then(|()| stream.sock.read_to_end(&mut answer).map(drop));
    // The server ends the connection: its socket is reset, or read to its end.
    assert!(ended.is_err_and(|error| error.kind() != ErrorKind::WouldBlock) || !answer.is_empty());
    other.write_all(&header(0, WRITE, 1, 0, 4096)).unwrap();
    other.write_all(&[7; 4096]).unwrap();
    other.flush().unwrap();
    let deadline = Instant::now() + LIMIT;
    let mut requests = Vec::new();
    while other_queue.receive(8, &mut requests).unwrap() == 0 {
        assert!(Instant::now() < deadline, "another client is not served");
        std::thread::yield_now();
    }
}

#[test]
fn handshakes_that_stall_delay_no_other_client() {
    let bench = Bench::new();
    let config = bench.good();
    // Parts of a record: the header, and the beginning of a ClientHello of 16 KiB.
    let parts: [&[u8]; 3] =
        [&[0x16, 3], &[0x16, 3, 1, 0x40, 0], &[0x16, 3, 1, 0x40, 0, 1, 0, 0x3f]];
    let stalled: Vec<_> = parts.iter().cycle().take(60).map(|part| bench.start_tls(part)).collect();
    for _ in 0..3 {
        bench.enter(&config).unwrap();
    }
    drop(stalled);
}

/// A client begins handshakes at the maximum possible rate. Only those within the burst and the
/// permitted rate cost a signature. Clients with another address, and one with the same address and
/// few connections, are served.
#[test]
fn a_client_that_begins_handshakes_without_end_is_limited_and_delays_no_other() {
    let bench = Bench::new();
    let config = bench.good();
    let started_at = Instant::now();
    let additional = 48;
    // The number is below the maximum that a server permits a peer concurrently.
    let at_once = 16;
    for _ in 0..(HANDSHAKES_BURST + additional).div_ceil(at_once) {
        let streams: Vec<TcpStream> = (0..at_once).map(|_| bench.hello(&config)).collect();
        for mut stream in streams {
            // The server's first flight, with its signature.
            assert!(stream.read(&mut [0; 1]).is_ok_and(|length| length == 1));
        }
    }
    let min = Duration::from_secs(1) * additional / HANDSHAKES_PER_SECOND;
    assert!(started_at.elapsed() >= min, "{:?}", started_at.elapsed());
    let start = Instant::now();
    enter_from(bench.address, Ipv4Addr::new(127, 0, 0, 2), &config).unwrap();
    assert!(start.elapsed() < LIMIT / 2);
    bench.enter(&config).unwrap();
}

/// After a restart of the daemon, all disks of a host connect at once.
#[test]
fn a_hundred_disks_connect_at_once() {
    let bench = Bench::new();
    let config = bench.good();
    let address = bench.address;
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| enter_from(address, Ipv4Addr::LOCALHOST, &config).unwrap());
        }
    });
}
