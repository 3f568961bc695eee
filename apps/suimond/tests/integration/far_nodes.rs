//! Connections to other nodes. One node is the API of a daemon in this process; another one accepts
//! upgraded connections and sends bytes that the test chooses.
#![forbid(unsafe_code)]

use crate::support;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::Server;
use hyper::Method;
use serde_json::json;
use suimon_contract::{ApiConfig, ErrorCode, NodeConfig};
use suimon_node::{PeerError, PeerNode, PeerNodes, PeerStream};
use suimond::peer_nodes::HostPeerNodes;
use suimond_api::{TcpApi, with_token_check};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn secret(path: PathBuf, text: &str) -> PathBuf {
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// Returns the configuration of a node whose certificate is in this folder.
fn config(folder: &Path, address: SocketAddr) -> NodeConfig {
    NodeConfig {
        name: "far".parse().unwrap(),
        address: address.to_string(),
        ca_certificate: folder.join("cert.pem"),
        token_file: secret(folder.join("token"), TOKEN),
        server_name: Some("localhost".to_owned()),
    }
}

/// Calls the node on a thread that may block, as required by its interface.
async fn call<T: Send + 'static>(
    node: &Arc<dyn PeerNode>,
    question: impl FnOnce(&dyn PeerNode) -> T + Send + 'static,
) -> T {
    let node = node.clone();
    tokio::task::spawn_blocking(move || question(node.as_ref())).await.unwrap()
}

/// Serves the API on TCP and returns the address.
async fn listen(server: &Server) -> SocketAddr {
    let folder = server.directory.path();
    let (certificate, key, _) = support::certificate(folder);
    let config = ApiConfig {
        listen: "127.0.0.1:0".to_owned(),
        tls_certificate: Some(certificate),
        tls_key: Some(key),
        token_file: Some(secret(folder.join("own-token"), TOKEN)),
        metrics_token_file: None,
    };
    let (listener, token) = TcpApi::load(&config).unwrap().bind().await.unwrap();
    let address = listener.tcp.local_addr().unwrap();
    let router = with_token_check(server.router.clone(), token, server.failures.clone());
    tokio::spawn(suimond_api::serve(listener, router, server.news.clone()));
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_reports_its_state_to_a_client_with_its_token() {
    let server = Server::with_web().await;
    let address = listen(&server).await;
    let valid = config(server.directory.path(), address);
    let nodes = HostPeerNodes::default();
    let node = nodes.node(&valid).unwrap();
    let host = call(&node, |node| node.host()).await.unwrap();
    assert_eq!((host.name.as_str(), host.nics), ("test", 1));
    let operation = call(&node, |node| node.operation(1)).await.unwrap();
    assert_eq!(operation.kind, "switch add");
    let unknown = call(&node, |node| node.operation(99)).await.unwrap_err();
    assert!(
        matches!(unknown, PeerError::Rejected(errors) if errors[0].code == ErrorCode::NotFound)
    );

    let other = secret(server.directory.path().join("other"), &TOKEN.replace('0', "1"));
    let node = nodes.node(&NodeConfig { token_file: other.clone(), ..valid.clone() }).unwrap();
    let Err(PeerError::Rejected(errors)) = call(&node, |node| node.host()).await else {
        panic!("it took the token");
    };
    assert_eq!(errors[0].code, ErrorCode::Unauthorized);
    assert_eq!(errors[0].field.as_deref(), Some("token_file"));
    assert!(errors[0].message.contains(other.to_str().unwrap()), "{errors:?}");
    for (field, change) in [
        ("authority", NodeConfig { ca_certificate: "/nowhere".into(), ..valid.clone() }),
        ("token_file", NodeConfig { token_file: "/nowhere".into(), ..valid.clone() }),
    ] {
        let error = nodes.node(&change).err().unwrap();
        assert_eq!(error.field.as_deref(), Some(field));
        assert_eq!(error.resource.as_deref(), Some("node/far"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_shown_by_the_api_with_their_reported_state() {
    let (local, remote) = (Server::start().await, Server::start().await);
    let address = listen(&remote).await;
    let valid = serde_json::to_value(config(remote.directory.path(), address)).unwrap();
    let created = local.change(Method::POST, "/1.0/nodes", &valid.to_string()).await;
    assert_eq!(created["state"], "succeeded", "{created}");
    let node = local.get("/1.0/nodes/far").await;
    assert_eq!(node["condition"], json!({"health": "up"}), "{node}");
    assert_eq!((&node["host"], &node["version"]), (&json!("test"), &json!("0")));
    // A node that accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut other = valid.clone();
    other["name"] = json!("silent");
    other["address"] = json!(silent.local_addr().unwrap().to_string());
    local.change(Method::POST, "/1.0/nodes", &other.to_string()).await;
    let started = Instant::now();
    let nodes = local.get("/1.0/nodes").await;
    // The silent node is abandoned after 4 s; without a limit the request would never end.
    assert!(started.elapsed() < Duration::from_secs(90), "{:?}", started.elapsed());
    assert_eq!(nodes[0]["condition"]["health"], "up", "{nodes}");
    assert_eq!(nodes[1]["condition"]["health"], "down", "{nodes}");
    let reason = nodes[1]["condition"]["reason"].as_str().unwrap();
    assert!(reason.contains("within 4 s"), "{reason}");
    let patch = json!({"token_file": "/nowhere"}).to_string();
    local.change(Method::PATCH, "/1.0/nodes/far", &patch).await;
    let node = local.get("/1.0/nodes/far").await;
    assert_eq!(node["condition"]["health"], "failed", "{node}");
    let deleted = local.change(Method::DELETE, "/1.0/nodes/silent", "").await;
    assert_eq!(deleted["state"], "succeeded", "{deleted}");
    assert_eq!(local.get("/1.0").await["nodes"], 1);
}

/// Node that accepts every upgrade, with access to its end of the connection.
struct Granting {
    folder: tempfile::TempDir,
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Granting {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (_, _, certified) = support::certificate(folder.path());
        let key = PrivateKeyDer::try_from(certified.key_pair.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { folder, listener, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }

    /// Opens an upgraded connection. Returns the ends of this host and of the node.
    async fn line(&self, nodes: &HostPeerNodes) -> (UnixStream, TlsStream<TcpStream>) {
        let address = self.listener.local_addr().unwrap();
        let node = nodes.node(&config(self.folder.path(), address)).unwrap();
        let near = call(&node, |node| node.open_incoming_connection("00ff", &PeerStream::Memory));
        let (near, far) = tokio::join!(near, self.grant());
        (UnixStream::from(near.unwrap()), far)
    }

    async fn grant(&self) -> TlsStream<TcpStream> {
        let (tcp, _) = self.listener.accept().await.unwrap();
        let mut stream = self.acceptor.accept(tcp).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("GET /1.0/arrivals/00ff/memory HTTP/1.1\r\n"), "{head}");
        let granted = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                       upgrade: suimon-memory\r\n\r\n";
        stream.write_all(granted.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        stream
    }
}

impl Granting {
    /// Queries an operation, and responds with this status and body.
    async fn operation(
        &self,
        nodes: &HostPeerNodes,
        status: &str,
        body: &str,
    ) -> Result<suimon_contract::Operation, PeerError> {
        let address = self.listener.local_addr().unwrap();
        let node = nodes.node(&config(self.folder.path(), address)).unwrap();
        let query = call(&node, |node| node.operation(7));
        let answer = async {
            let (tcp, _) = self.listener.accept().await.unwrap();
            let mut stream = self.acceptor.accept(tcp).await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
            // The client may close the connection before the end.
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(body.as_bytes()).await;
            let _ = stream.shutdown().await;
        };
        tokio::join!(query, answer).0
    }
}

/// Texts of a node become parts of events and operations, which are stored, and are shown on
/// terminals.
#[tokio::test(flavor = "multi_thread")]
async fn responses_of_a_hostile_node_are_bounded() {
    let (nodes, granting) = (HostPeerNodes::default(), Granting::new().await);
    let long_text = "\\u001b[2J".repeat(100_000);
    let is_fit = |text: &str| text.chars().count() <= 1000 && !text.chars().any(char::is_control);

    let error =
        format!("{{\"code\":\"conflict\",\"message\":\"{long_text}\",\"field\":\"{long_text}\"}}");
    let errors = format!("{{\"errors\":[{error}]}}");
    let error = granting.operation(&nodes, "409 Conflict", &errors).await.unwrap_err();
    let PeerError::Rejected(errors) = error else { panic!("{error:?}") };
    assert!(is_fit(&errors[0].message) && is_fit(errors[0].field.as_deref().unwrap()));

    let operation = json!({
        "id": 7, "kind": "x", "subject": "y", "state": "failed", "steps_done": u64::MAX,
        "steps": u64::MAX, "started_unix_ms": u64::MAX, "report": vec!["\u{1b}[2J"; 100_000],
        "error": { "code": "conflict", "message": "m".repeat(1_000_000) },
    });
    let far = granting.operation(&nodes, "200 OK", &operation.to_string()).await.unwrap();
    assert!(far.report.len() <= 1000 && far.report.iter().all(|line| is_fit(line)));
    assert!(is_fit(&far.error.unwrap().message));

    for body in [
        format!("{{\"id\":7,\"state\":\"{long_text}\"}}"),
        "[".repeat(1_000_000),
        format!("\"{}\"", "x".repeat(9 << 20)),
    ] {
        let lost = granting.operation(&nodes, "200 OK", &body).await.unwrap_err();
        let PeerError::Unreachable(text) = lost else { panic!("{lost:?}") };
        assert!(is_fit(&text), "{} characters", text.chars().count());
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_carries_both_directions_and_hands_on_that_one_ends() {
    let (nodes, granting) = (HostPeerNodes::default(), Granting::new().await);
    let (mut near, mut far) = granting.line(&nodes).await;
    let mut reads = near.try_clone().unwrap();
    let near = tokio::task::spawn_blocking(move || {
        near.write_all(&pattern(20_000_001)).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
    });
    let mut read = Vec::new();
    far.read_to_end(&mut read).await.unwrap();
    near.await.unwrap();
    assert!(read == pattern(20_000_001), "the received bytes differ");
    // The opposite direction continues.
    let received = tokio::task::spawn_blocking(move || {
        let mut read = Vec::new();
        reads.read_to_end(&mut read).unwrap();
        read
    });
    far.write_all(&pattern(3_000_000)).await.unwrap();
    far.shutdown().await.unwrap();
    assert!(received.await.unwrap() == pattern(3_000_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_ends_with_either_of_its_ends() {
    let (nodes, granting) = (HostPeerNodes::default(), Granting::new().await);
    let (near, mut far) = granting.line(&nodes).await;
    let started = Instant::now();
    drop(near);
    assert_eq!(far.read(&mut [0; 1]).await.unwrap(), 0);
    // The other end is closed, so that writes fail soon.
    while far.write_all(&[0; 4096]).await.is_ok() && far.flush().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Without the detection, the line would end with TCP's timeout after about 15 minutes.
    assert!(started.elapsed() < Duration::from_secs(120), "{:?}", started.elapsed());

    // A crashed node closes its connection without a TLS close.
    let (mut near, far) = granting.line(&nodes).await;
    let (tcp, _) = far.into_inner();
    drop(tcp);
    let read = tokio::task::spawn_blocking(move || near.read(&mut [0; 1])).await.unwrap();
    assert_eq!(read.unwrap(), 0);
}
