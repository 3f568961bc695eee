//! Tests over TCP with TLS, with servers that present various certificates.
#![allow(clippy::indexing_slicing, reason = "tests")]

use core::time::Duration;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, KeyPair};
use suimon_client::{Client, ClientError, MigrationStreamKind, TlsEndpoint, TlsError, TokenError};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const HOST: &str =
    r#"{"name":"far","version":"7","uptime_s":1,"revision":2,"switches":0,"uplinks":0,"nics":0}"#;

/// Certificate with its key.
struct CertifiedKey {
    certificate: Certificate,
    key: KeyPair,
}

impl CertifiedKey {
    /// Creates a self-signed certificate for these names. `change` modifies its parameters before.
    fn by_itself(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        Self { certificate: params.self_signed(&key).unwrap(), key }
    }

    /// Creates a CA certificate, as `openssl req -x509` does.
    fn as_openssl_does(names: &[&str]) -> Self {
        Self::by_itself(names, |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))
    }

    /// Creates a certificate for these names, signed by the CA `authority`.
    fn by(authority: &Self, names: &[&str]) -> Self {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &authority.certificate, &authority.key).unwrap();
        Self { certificate, key }
    }

    fn acceptor(&self) -> TlsAcceptor {
        let chain: Vec<CertificateDer<'static>> = vec![self.certificate.der().clone()];
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// PEM and token files that the configuration of a client refers to.
struct Files {
    folder: TempDir,
    reach: TlsEndpoint,
}

impl Files {
    fn new(address: String, server_name: &str, authority: &[&CertifiedKey]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pem: String =
            authority.iter().map(|certificate| certificate.certificate.pem()).collect();
        let reach = TlsEndpoint {
            address,
            server_name: server_name.to_owned(),
            ca_certificate: write_file(folder.path(), "authority", &pem, 0o644),
            token_file: write_file(folder.path(), "token", &format!("{TOKEN}\nmore\n"), 0o600),
        };
        Self { folder, reach }
    }

    fn client(&self) -> Client {
        Client::tls(&self.reach).unwrap()
    }
}

fn write_file(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// Serves one request with this response, then echoes. Returns the address, and the request once it
/// is complete.
async fn answering(
    certificate: &CertifiedKey,
    answer: &str,
) -> (String, JoinHandle<Option<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (acceptor, answer) = (certificate.acceptor(), answer.to_owned());
    let request = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(tcp).await.ok()?;
        let request = read_head(&mut stream).await;
        stream.write_all(answer.as_bytes()).await.ok()?;
        stream.flush().await.ok()?;
        let (mut reads, mut writes) = tokio::io::split(stream);
        let _ = tokio::io::copy(&mut reads, &mut writes).await;
        let _ = writes.shutdown().await;
        Some(request)
    });
    (address, request)
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Connects a client that trusts the certificates `authority` to a server with `certificate`.
/// Returns the text of the error.
async fn refused(
    certificate: &CertifiedKey,
    server_name: &str,
    authority: &[&CertifiedKey],
) -> String {
    let (address, _asked) = answering(certificate, &ok(HOST)).await;
    let files = Files::new(address.clone(), server_name, authority);
    let error = files.client().host().await.unwrap_err();
    assert!(matches!(error, ClientError::TlsConnectionFailed { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with(&format!("cannot reach {address}: ")), "{text}");
    text
}

#[tokio::test]
async fn a_node_is_trusted_by_its_certificate_or_the_issuer_of_it() {
    let authority = CertifiedKey::as_openssl_does(&[]);
    let signed = CertifiedKey::by(&authority, &["far.example.net", "127.0.0.1"]);
    let alone = CertifiedKey::by_itself(&["far.example.net"], |_| {});
    let openssl = CertifiedKey::as_openssl_does(&["far.example.net"]);
    let other = CertifiedKey::as_openssl_does(&["far.example.net"]);
    for (certificate, name, trusted) in [
        (&signed, "far.example.net", vec![&authority]),
        (&signed, "127.0.0.1", vec![&other, &authority]),
        (&alone, "far.example.net", vec![&alone]),
        (&openssl, "far.example.net", vec![&other, &openssl]),
    ] {
        let (address, request) = answering(certificate, &ok(HOST)).await;
        let files = Files::new(address.clone(), name, &trusted);
        let host = files.client().host().await.unwrap();
        assert_eq!((host.name.as_str(), host.version.as_str()), ("far", "7"));
        let request = request.await.unwrap().unwrap();
        assert!(request.starts_with("GET /1.0 HTTP/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("host: {address}\r\n")), "{request}");
        assert!(request.contains(&format!("authorization: Bearer {TOKEN}\r\n")), "{request}");
    }
}

#[tokio::test]
async fn a_node_with_another_certificate_does_not_receive_the_token() {
    let authority = CertifiedKey::as_openssl_does(&[]);
    let signed = CertifiedKey::by(&authority, &["far.example.net"]);
    let openssl = CertifiedKey::as_openssl_does(&["far.example.net"]);
    let same_names = CertifiedKey::as_openssl_does(&["far.example.net"]);
    for (certificate, trusted) in [(&signed, &same_names), (&openssl, &same_names)] {
        let text = refused(certificate, "far.example.net", &[trusted]).await;
        assert!(text.contains("nor signed by one of them"), "{text}");
    }
    for certificate in [&signed, &openssl] {
        let text = refused(certificate, "near.example.net", &[&authority, &openssl]).await;
        assert!(text.contains("is not valid for `near.example.net`"), "{text}");
        assert!(text.contains("server_name"), "{text}");
    }
    let expired = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    };
    let old = CertifiedKey::by_itself(&["far.example.net"], expired);
    let text = refused(&old, "far.example.net", &[&old]).await;
    assert!(text.contains("expired"), "{text}");
    let old = CertifiedKey::by_itself(&["far.example.net"], |params| {
        expired(params);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    let text = refused(&old, "far.example.net", &[&old]).await;
    assert!(text.contains("expired"), "{text}");
}

#[tokio::test]
async fn an_unreachable_node_is_reported_with_a_hint() {
    let certificate = CertifiedKey::by_itself(&["localhost"], |_| {});
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let files = Files::new(address, "localhost", &[&certificate]);
    let text = files.client().host().await.unwrap_err().to_string();
    assert!(text.contains("no process listens there"), "{text}");
    // RFC 6761, section 6.4: this name does not exist.
    let files = Files::new("node.invalid:8443".to_owned(), "localhost", &[&certificate]);
    let text = files.client().host().await.unwrap_err().to_string();
    assert!(text.starts_with("cannot reach node.invalid:8443: "), "{text}");
    // A server that does not use TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.unwrap();
        let _ = tcp.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await;
        let mut received = Vec::new();
        let _ = tcp.read_to_end(&mut received).await;
    });
    let files = Files::new(address, "localhost", &[&certificate]);
    let text = files.client().host().await.unwrap_err().to_string();
    assert!(text.contains("TLS"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_is_not_waited_for() {
    let certificate = CertifiedKey::by_itself(&["localhost"], |_| {});
    // The kernel accepts the connection, but no process does.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let files =
        Files::new(listener.local_addr().unwrap().to_string(), "localhost", &[&certificate]);
    let started_at = tokio::time::Instant::now();
    let text = files.client().host().await.unwrap_err().to_string();
    assert!(text.contains("no connection within 5 s"), "{text}");
    assert_eq!(started_at.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn a_node_that_does_not_reply_is_waited_for_until_the_timeout() {
    let certificate = CertifiedKey::by_itself(&["localhost"], |_| {});
    let (address, _asked) = answering(&certificate, "").await;
    let files = Files::new(address, "localhost", &[&certificate]);
    let client = files.client().with_response_timeout(Duration::from_millis(300));
    assert!(matches!(client.host().await, Err(ClientError::TimedOut { .. })));
    let (address, _asked) = answering(&certificate, "").await;
    let files = Files::new(address, "localhost", &[&certificate]);
    let client = files.client().with_response_timeout(Duration::from_millis(300));
    let line = client.open_migration_stream("00ff", MigrationStreamKind::Memory).await;
    assert!(matches!(line.err(), Some(ClientError::TimedOut { .. })));
}

#[tokio::test]
async fn a_line_to_an_arrival_carries_bytes_as_they_are() {
    let certificate = CertifiedKey::by_itself(&["localhost"], |_| {});
    let disk = "root".parse().unwrap();
    for (line, path, protocol) in [
        (MigrationStreamKind::Memory, "/1.0/arrivals/00ff/memory", "suimon-memory"),
        (MigrationStreamKind::Disk(&disk), "/1.0/arrivals/00ff/disks/root", "suimon-nbd"),
    ] {
        // The first bytes are sent with the response.
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\r\n\
             first"
        );
        let (address, request) = answering(&certificate, &answer).await;
        let files = Files::new(address, "localhost", &[&certificate]);
        let mut line = files.client().open_migration_stream("00/ff", line).await.unwrap();
        line.write_all(b" and second").await.unwrap();
        line.shutdown().await.unwrap();
        let mut content = String::new();
        line.read_to_string(&mut content).await.unwrap();
        assert_eq!(content, "first and second");
        let request = request.await.unwrap().unwrap();
        assert!(request.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{request}");
        assert!(request.contains(&format!("upgrade: {protocol}\r\n")), "{request}");
        assert!(request.contains("authorization: Bearer "), "{request}");
    }
    let errors = r#"{"errors":[{"code":"conflict","message":"it does not wait"}]}"#;
    let answer = ok(errors).replace("200 OK", "409 Conflict");
    let (address, _asked) = answering(&certificate, &answer).await;
    let files = Files::new(address, "localhost", &[&certificate]);
    let error = files
        .client()
        .open_migration_stream("00ff", MigrationStreamKind::Memory)
        .await
        .err()
        .unwrap();
    assert_eq!(error.api_errors()[0].message, "it does not wait");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let certificate = CertifiedKey::by_itself(&["localhost"], |_| {});
    let files = Files::new("localhost:1".to_owned(), "localhost", &[&certificate]);
    let error_with = |change: &dyn Fn(&mut TlsEndpoint)| {
        let mut reach = files.reach.clone();
        change(&mut reach);
        Client::tls(&reach).unwrap_err()
    };
    let missing = files.folder.path().join("nowhere");
    let empty = write_file(files.folder.path(), "empty", "", 0o600);
    let open = write_file(files.folder.path(), "open", TOKEN, 0o604);
    for (file, part) in [(&missing, "nowhere"), (&empty, "no certificate")] {
        let error = error_with(&|reach| reach.ca_certificate = file.clone());
        assert!(matches!(error, TlsError::CaCertificate(_)) && error.to_string().contains(part));
    }
    let error = error_with(&|reach| reach.token_file = missing.clone());
    assert!(matches!(error, TlsError::Token(TokenError::File(_))), "{error}");
    let error = error_with(&|reach| reach.token_file = open.clone());
    assert!(error.to_string().contains("chmod o="), "{error}");
    let error = error_with(&|reach| reach.token_file = empty.clone());
    assert!(matches!(error, TlsError::Token(TokenError::Weak { .. })), "{error}");
    let error = error_with(&|reach| reach.server_name = "no name".to_owned());
    assert!(matches!(error, TlsError::ServerName(_)), "{error}");
    assert!(!format!("{:?}", files.client()).contains(TOKEN), "the token is not shown");
}
