//! Listener of the web console: access, rejected requests, and live updates.
#![forbid(unsafe_code)]

mod lab;
mod serial;
mod sessions;

use crate::support;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::Server;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use suimon_contract::{ConsoleConfig, ErrorCode};
use suimond_api::{
    self as api, ApiState, Console, ConsoleInService, LIVE_STREAMS_MAX, console_router,
};
use tokio::net::TcpStream;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Console and the server behind it.
struct Site {
    server: Server,
    console: Arc<Console>,
    address: SocketAddr,
}

impl Site {
    async fn new() -> Self {
        let server = Server::with_web().await;
        let token = server.directory.path().join("token");
        std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        // Finds a free port, which the console's configuration must contain.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = ConsoleConfig { listen: free.to_string(), token_file: Some(token) };
        let console = Arc::new(Console::load(&config).unwrap());
        let in_service = ConsoleInService::default();
        in_service.set(&console);
        let state = ApiState {
            node: server.node.clone(),
            notifications: server.news.clone(),
            console: in_service,
            lab: server.lab.clone(),
            failures: server.failures.clone(),
            host_file: None,
        };
        let listener = console.bind().await.unwrap();
        let address = listener.local_addr().unwrap();
        let page = console_router(console.clone(), state.clone(), api::router(state));
        tokio::spawn(suimond_api::serve(listener, page, server.news.clone()));
        Self { server, console, address }
    }

    /// Sends a request as a browser does, with these headers in addition to `Host`.
    async fn send(
        &self,
        (method, path): (Method, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        sender.send_request(request.body(body).unwrap()).await.unwrap()
    }

    /// Logs in. Returns the session, or the status of the refusal.
    async fn log_in(&self, login: Value) -> Result<Session, u16> {
        let headers = [("x-suimon-console", "1"), ("content-type", "application/json")];
        let transport = (Method::POST, "/console/session");
        let answer = self.send(transport, &headers, &login.to_string()).await;
        let Some(cookie) = answer.headers().get("set-cookie") else {
            return Err(answer.status().as_u16());
        };
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let (status, body) = support::json(answer).await;
        assert_eq!(status, 200, "{body}");
        let secret = body["secret"].as_str().unwrap().to_owned();
        assert!(secret.len() == 64 && !cookie.contains(&secret));
        Ok(Session { cookie, secret, origin: self.origin() })
    }

    async fn logged_in(&self) -> Session {
        self.log_in(json!({ "token": TOKEN })).await.unwrap()
    }

    fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Credentials that a logged-in page sends with each request.
struct Session {
    cookie: String,
    secret: String,
    origin: String,
}

impl Session {
    /// Returns the headers of a request of the page.
    fn headers(&self) -> [(&'static str, &str); 4] {
        [
            ("cookie", self.cookie.as_str()),
            ("x-suimon-session", self.secret.as_str()),
            ("x-suimon-console", "1"),
            ("origin", self.origin.as_str()),
        ]
    }

    /// Returns the headers of a request of the page, without the one of this name.
    fn headers_without(&self, name: &str) -> Vec<(&'static str, &str)> {
        self.headers().into_iter().filter(|(header, _)| *header != name).collect()
    }
}

#[test]
fn a_console_is_on_loopback_only_and_its_token_a_secret() {
    let load = |listen: &str, token: Option<&str>| {
        let config = ConsoleConfig { listen: listen.to_owned(), token_file: token.map(Into::into) };
        Console::load(&config).err().map(|error| (error.code, error.field.unwrap()))
    };
    assert_eq!(load("127.0.0.1:7446", None), None);
    for address in ["0.0.0.0:7446", "192.0.2.1:7446", "7446"] {
        let load_error = load(address, None);
        assert_eq!(load_error, Some((ErrorCode::InvalidValue, "listen".to_owned())), "{address}");
    }
    let load_error = load("127.0.0.1:7446", Some("/nowhere/at/all"));
    assert_eq!(load_error, Some((ErrorCode::HostError, "token_file".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_logs_in_with_a_code_of_the_daemon_once_or_with_the_token() {
    let site = Site::new().await;
    let url = site.console.new_login().unwrap().url;
    let (console_url, code) = url.split_once("/#/login?code=").unwrap();
    assert_eq!(console_url, format!("http://{}", site.address));
    let assert_rejected = async |login: Value, status: u16| {
        assert_eq!(site.log_in(login.clone()).await.err(), Some(status), "{login}");
    };
    assert_rejected(json!({ "code": "wrong" }), 401).await;
    assert_rejected(json!({ "token": "wrong" }), 401).await;
    assert_rejected(json!({ "code": TOKEN }), 401).await;
    assert_rejected(json!({ "password": TOKEN }), 400).await;
    let first = site.log_in(json!({ "code": code })).await.unwrap();
    assert_rejected(json!({ "secret": code }), 401).await;
    let other = site.log_in(json!({ "secret": TOKEN })).await.unwrap();
    let url = site.console.new_login().unwrap().url;
    let (_, code) = url.split_once("/#/login?code=").unwrap();
    site.log_in(json!({ "secret": code })).await.unwrap();

    let query = async |session: &Session| {
        let answer = site.send((Method::GET, "/console/session"), &session.headers(), "").await;
        support::json(answer).await
    };
    let (status, session) = query(&first).await;
    assert_eq!((status, session["host_name"].as_str()), (200, Some("test")), "{session}");
    assert_eq!(session["logins"], json!(["code", "token"]));
    let logout = site.send((Method::DELETE, "/console/session"), &first.headers(), "").await;
    assert_eq!(logout.status(), 204);
    let (status, body) = query(&first).await;
    assert_eq!((status, body["errors"][0]["code"].as_str()), (401, Some("unauthorized")));
    assert_eq!(query(&other).await.0, 200, "another session stays valid");
    // Without a console, the error explains how to configure one.
    let (status, body) = site.server.call(Method::POST, "/1.0/console/logins", "").await;
    assert_eq!(status, 404);
    assert!(body["errors"][0]["message"].as_str().unwrap().contains("[console]"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_session_or_from_another_page_are_rejected() {
    let site = Site::new().await;
    for path in ["/1.0", "/1.0/vms", "/1.0/openapi.json", "/console/live?topics=top"] {
        let answer = site.send((Method::GET, path), &[], "").await;
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert_eq!(answer.status(), 401, "{path}");
    }
    let session = site.logged_in().await;
    let own_headers = session.headers();
    let (status, host) =
        support::json(site.send((Method::GET, "/1.0"), &own_headers, "").await).await;
    assert_eq!((status, host["name"].as_str()), (200, Some("test")));
    // A page of another site can make the browser send the cookie, but not these headers.
    let change = (Method::PATCH, "/1.0/nics/web");
    for (absent, status) in [("x-suimon-console", 403), ("origin", 403), ("x-suimon-session", 401)]
    {
        let headers = session.headers_without(absent);
        let rejection = site.send(change.clone(), &headers, r#"{"mtu": 1400}"#).await;
        assert_eq!(rejection.status(), status, "without {absent}");
    }
    // Another port of the same host name is another origin.
    for origin in ["http://127.0.0.1:1", "http://localhost:7446", "null", "https://evil.example"] {
        let mut headers = session.headers_without("origin");
        headers.push(("origin", origin));
        for (method, path) in [
            (Method::PATCH, "/1.0/nics/web"),
            (Method::POST, "/1.0/switches"),
            (Method::PUT, "/1.0/switches/lan"),
            (Method::DELETE, "/1.0/nics/web"),
            (Method::POST, "/console/session"),
            (Method::POST, "/console/tickets"),
            (Method::DELETE, "/console/session"),
        ] {
            let rejection = site.send((method.clone(), path), &headers, "{}").await;
            assert_eq!(rejection.status(), 403, "{method} {path} from {origin}");
        }
    }
    let accepted = site.send(change, &own_headers, r#"{"mtu": 1400}"#).await;
    assert_eq!(accepted.status(), 202);
    // A foreign host name that resolves to this address is rejected.
    let foreign_host: Vec<_> =
        own_headers.into_iter().chain([("host", "evil.example:7446")]).collect();
    for path in ["/1.0", "/", "/console/session"] {
        let answer = site.send((Method::GET, path), &foreign_host, "").await;
        assert_eq!(answer.status(), 421, "{path}");
    }
    // Metrics and unknown paths are not files of the page.
    for path in ["/metrics", "/..%2f..%2fetc/passwd", "/assets/none.js"] {
        assert_eq!(site.send((Method::GET, path), &own_headers, "").await.status(), 404, "{path}");
    }
}

/// Events of a stream in order of arrival, with names and data.
struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let name = event.lines().find_map(|line| line.strip_prefix("event: "));
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                let parsed = name
                    .zip(data)
                    .map(|(name, data)| (name.to_owned(), serde_json::from_str(data).unwrap()));
                self.text = rest.to_owned();
                if parsed.is_some() {
                    return parsed;
                }
                continue;
            }
            let frame = tokio::time::timeout(Duration::from_secs(90), self.body.frame());
            let frame = frame.await.expect("an event within 90 s")?.ok()?;
            self.text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_streamed_until_the_logout() {
    let site = Site::new().await;
    let session = site.logged_in().await;
    let own_headers = session.headers();
    for topics in ["events/follow", "vms,..", &["top"; 17].join(",")] {
        let path = format!("/console/live?topics={topics}");
        assert_eq!(
            site.send((Method::GET, &path), &own_headers, "").await.status(),
            422,
            "{topics}"
        );
    }
    let unnamed = site.send((Method::GET, "/console/live"), &own_headers, "").await;
    let (status, body) = support::json(unnamed).await;
    assert_eq!((status, body["errors"][0]["code"].as_str()), (400, Some("malformed")), "{body}");
    let answer =
        site.send((Method::GET, "/console/live?topics=nics,events,vms/none"), &own_headers, "");
    let answer = answer.await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut events = Events { body: answer.into_body(), text: String::new() };
    let (name, nics) = events.next().await.unwrap();
    assert_eq!((name.as_str(), nics[0]["config"]["name"].as_str()), ("nics", Some("web")));
    let (name, failed) = events.next().await.unwrap();
    assert_eq!((name.as_str(), failed["topic"].as_str()), ("failure", Some("vms/none")));
    assert_eq!(failed["error"]["errors"][0]["code"], "not_found");

    let change =
        site.send((Method::PATCH, "/1.0/nics/web"), &own_headers, r#"{"mtu": 1400}"#).await;
    assert_eq!(change.status(), 202);
    let (mut has_event, mut has_nic) = (false, false);
    while !(has_event && has_nic) {
        let (name, data) = events.next().await.unwrap();
        has_event |= name == "events" && data["id"] == 1003;
        has_nic |= name == "nics" && data[0]["config"]["mtu"] == 1400;
    }
    let logout = site.send((Method::DELETE, "/console/session"), &own_headers, "").await;
    assert_eq!(logout.status(), 204);
    while events.next().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn live_streams_beyond_the_limit_are_refused_until_one_ends() {
    let site = Site::new().await;
    let session = site.logged_in().await;
    let own_headers = session.headers();
    let open =
        async || site.send((Method::GET, "/console/live?topics=nics"), &own_headers, "").await;
    let mut streams = Vec::new();
    for _ in 0..LIVE_STREAMS_MAX {
        let answer = open().await;
        assert_eq!(answer.status(), 200);
        streams.push(answer);
    }
    let (status, body) = support::json(open().await).await;
    assert_eq!((status, body["errors"][0]["code"].as_str()), (409, Some("conflict")), "{body}");
    let (status, _) =
        support::json(site.send((Method::GET, "/1.0/nics"), &own_headers, "").await).await;
    assert_eq!(status, 200, "other requests of the page are answered");
    drop(streams.pop());
    let deadline = Instant::now() + Duration::from_secs(90);
    while open().await.status() != 200 {
        assert!(Instant::now() < deadline, "the ended stream still counts");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
