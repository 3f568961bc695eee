//! TCP listener, which requires TLS and a token.
#![forbid(unsafe_code)]

use crate::support;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::Server;
use hyper::Method;
use suimon_contract::{ApiConfig, ErrorCode};
use suimon_socket_runtime::{HANDSHAKES_BURST, HANDSHAKES_PER_SECOND};
use suimond_api::{TcpApi, with_token_check};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore};

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const METRICS_TOKEN: &str = "metrics-0123456789abcdef";

fn token_file(directory: &Path, text: &str, mode: u32) -> std::path::PathBuf {
    let path = directory.join(format!("token-{mode:o}-{}", text.len()));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

pub(crate) fn complete(directory: &Path) -> (ApiConfig, rcgen::CertifiedKey) {
    let (certificate, key, certified) = support::certificate(directory);
    let config = ApiConfig {
        listen: "127.0.0.1:0".to_owned(),
        tls_certificate: Some(certificate),
        tls_key: Some(key),
        token_file: Some(token_file(directory, &format!("{TOKEN}\n"), 0o600)),
        metrics_token_file: Some(token_file(directory, METRICS_TOKEN, 0o600)),
    };
    (config, certified)
}

#[test]
fn an_incomplete_listener_is_refused_with_its_key_named() {
    let directory = tempfile::tempdir().unwrap();
    let (config, _) = complete(directory.path());
    assert!(TcpApi::load(&config).is_ok());
    let load_error = |change: &dyn Fn(&mut ApiConfig)| {
        let mut config = config.clone();
        change(&mut config);
        let error = TcpApi::load(&config).err().unwrap();
        assert_eq!(error.resource.as_deref(), Some("api"));
        (error.code, error.field.unwrap())
    };
    let expected = |code, field: &str| (code, field.to_owned());
    use ErrorCode::{HostError, InvalidValue, MissingKey, PermissionDenied};
    assert_eq!(load_error(&|c| c.tls_certificate = None), expected(MissingKey, "tls_certificate"));
    assert_eq!(load_error(&|c| c.tls_key = None), expected(MissingKey, "tls_key"));
    assert_eq!(load_error(&|c| c.token_file = None), expected(MissingKey, "token_file"));
    assert_eq!(load_error(&|c| c.listen = "8443".to_owned()), expected(InvalidValue, "listen"));
    let absent_file = directory.path().join("nowhere");
    assert_eq!(
        load_error(&|c| c.tls_key = Some(absent_file.clone())),
        expected(HostError, "tls_key")
    );
    let read_by_all = directory.path().join("open.key");
    std::fs::copy(config.tls_key.as_ref().unwrap(), &read_by_all).unwrap();
    std::fs::set_permissions(&read_by_all, std::fs::Permissions::from_mode(0o644)).unwrap();
    let tls_key = Some(read_by_all.clone());
    assert_eq!(load_error(&|c| c.tls_key = tls_key.clone()), expected(PermissionDenied, "tls_key"));
    let error = TcpApi::load(&ApiConfig { tls_key, ..config.clone() }).err().unwrap();
    let remedy = format!("run `chmod o= {}`", read_by_all.display());
    assert!(error.message.ends_with(&remedy), "{error}");
    assert_eq!(
        load_error(&|c| c.token_file = Some(absent_file.clone())),
        expected(HostError, "token_file")
    );
    let open = token_file(directory.path(), TOKEN, 0o644);
    assert_eq!(
        load_error(&|c| c.token_file = Some(open.clone())),
        expected(PermissionDenied, "token_file")
    );
    for text in ["short", "", "has a space in the middle of it"] {
        let weak = token_file(directory.path(), text, 0o600);
        assert_eq!(
            load_error(&|c| c.token_file = Some(weak.clone())),
            expected(InvalidValue, "token_file")
        );
    }
    assert_eq!(
        load_error(&|c| c.metrics_token_file = Some(open.clone())),
        expected(PermissionDenied, "metrics_token_file")
    );
    assert_eq!(
        load_error(&|c| c.metrics_token_file = c.token_file.clone()),
        expected(InvalidValue, "metrics_token_file")
    );
    // A key that does not match the certificate.
    let other = tempfile::tempdir().unwrap();
    let (_, key, _) = support::certificate(other.path());
    assert_eq!(load_error(&|c| c.tls_key = Some(key.clone())), expected(InvalidValue, "tls_key"));
}

/// Returns the configuration of a client that trusts the certificate.
fn client_config(certified: &rcgen::CertifiedKey) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_needs_tls_and_the_token() {
    let server = Server::start().await;
    let (config, certified) = complete(server.directory.path());
    let (listener, token) = TcpApi::load(&config).unwrap().bind().await.unwrap();
    let address = listener.tcp.local_addr().unwrap();
    let router = with_token_check(server.router.clone(), token, server.failures.clone());
    tokio::spawn(suimond_api::serve(listener, router, server.news.clone()));

    let connector = TlsConnector::from(client_config(&certified));
    let request = async |path: &str, token: Option<&str>| {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        support::json(support::exchange(stream, Method::GET, path, "", token).await.unwrap()).await
    };
    let wrong_token = format!("{TOKEN}0");
    // Responses to wrong tokens are delayed.
    for (token, path) in [
        (None, "/1.0"),
        (None, "/metrics"),
        (None, "/nowhere"),
        (Some("wrong"), "/1.0"),
        (Some(wrong_token.as_str()), "/metrics"),
        (Some(""), "/nowhere"),
    ] {
        let (status, body) = request(path, token).await;
        assert_eq!((status, body["errors"][0]["code"].as_str()), (401, Some("unauthorized")));
    }
    let (status, body) = request("/1.0", Some(TOKEN)).await;
    assert_eq!((status, body["name"].as_str()), (200, Some("test")));
    // The token for metrics permits reading metrics only.
    let exchange = async |method: Method, path: &str| {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        support::exchange(stream, method, path, "", Some(METRICS_TOKEN)).await.unwrap()
    };
    assert_eq!(exchange(Method::GET, "/metrics").await.status(), 200);
    for (method, path) in [
        (Method::POST, "/metrics"),
        (Method::GET, "/metrics/"),
        (Method::GET, "/1.0"),
        (Method::GET, "/1.0/disks"),
        (Method::POST, "/1.0/apply"),
    ] {
        let (status, body) = support::json(exchange(method.clone(), path).await).await;
        let code = body["errors"][0]["code"].as_str();
        assert_eq!((status, code), (403, Some("permission_denied")), "{method} {path}");
    }
    // Without TLS there is no response.
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    assert!(support::exchange(stream, Method::GET, "/1.0", "", Some(TOKEN)).await.is_err());
    // The Unix socket requires no token.
    assert_eq!(server.get("/1.0").await["name"], "test");
}

/// Each handshake costs the daemon a signature, and the client that does not continue it nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_begins_handshakes_without_end_is_limited() {
    let server = Server::start().await;
    let (config, certified) = complete(server.directory.path());
    let (listener, token) = TcpApi::load(&config).unwrap().bind().await.unwrap();
    let address = listener.tcp.local_addr().unwrap();
    let router = with_token_check(server.router.clone(), token, server.failures.clone());
    tokio::spawn(suimond_api::serve(listener, router, server.news.clone()));
    let (config, started, extra_count) = (client_config(&certified), Instant::now(), 48);
    for _ in 0..(HANDSHAKES_BURST + extra_count).div_ceil(16) {
        let mut streams = Vec::new();
        for _ in 0..16 {
            let name = ServerName::try_from("localhost").unwrap();
            let mut client = ClientConnection::new(config.clone(), name).unwrap();
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(&hello).await.unwrap();
            streams.push(stream);
        }
        for mut stream in streams {
            // The first flight of the server, with its signature.
            stream.read_u8().await.unwrap();
        }
    }
    let min_duration = Duration::from_secs(1) * extra_count / HANDSHAKES_PER_SECOND;
    assert!(started.elapsed() >= min_duration, "{:?}", started.elapsed());
}
