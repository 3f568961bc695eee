//! Listener of the web console: access, rejected requests, and live updates.
#![forbid(unsafe_code)]

use crate::support;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use crate::support::Server;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use suimon_contract::{ConsoleConfig, ErrorCode};
use suimond::api::{self, ApiState};
use suimond::console::{Console, router};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, tungstenite};

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
        let state = ApiState {
            node: server.node.clone(),
            news: server.news.clone(),
            openapi: api::openapi_document().unwrap().into(),
            console: Some(console.clone()),
            lab: server.lab.clone(),
        };
        let listener = console.bind().await.unwrap();
        let address = listener.local_addr().unwrap();
        let page = router(console.clone(), state.clone(), api::router(state));
        tokio::spawn(suimond::server::serve(listener, page, server.news.clone()));
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

    /// Logs in. Returns the cookie, or the status of the refusal.
    async fn log_in(&self, login: Value) -> Result<String, u16> {
        let headers = [("x-suimon-console", "1"), ("content-type", "application/json")];
        let way = (Method::POST, "/console/session");
        let answer = self.send(way, &headers, &login.to_string()).await;
        match answer.headers().get("set-cookie") {
            Some(cookie) => {
                assert_eq!(answer.status(), 204);
                let cookie = cookie.to_str().unwrap();
                assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
                Ok(cookie.split(';').next().unwrap().to_owned())
            }
            None => Err(answer.status().as_u16()),
        }
    }

    async fn logged_in(&self) -> String {
        self.log_in(json!({ "token": TOKEN })).await.unwrap()
    }
}

#[test]
fn a_console_is_on_loopback_only_and_its_token_a_secret() {
    let load = |listen: &str, token: Option<&str>| {
        let config = ConsoleConfig { listen: listen.to_owned(), token_file: token.map(Into::into) };
        Console::load(&config).err().map(|error| (error.code, error.field.unwrap()))
    };
    assert_eq!(load("127.0.0.1:7446", None), None);
    for elsewhere in ["0.0.0.0:7446", "192.0.2.1:7446", "7446"] {
        let refused = load(elsewhere, None);
        assert_eq!(refused, Some((ErrorCode::InvalidValue, "listen".to_owned())), "{elsewhere}");
    }
    let refused = load("127.0.0.1:7446", Some("/nowhere/at/all"));
    assert_eq!(refused, Some((ErrorCode::HostError, "token_file".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_logs_in_with_a_code_of_the_daemon_once_or_with_the_token() {
    let site = Site::new().await;
    let url = site.console.new_login().unwrap().url;
    let (place, code) = url.split_once("/#/login?code=").unwrap();
    assert_eq!(place, format!("http://{}", site.address));
    assert_eq!(site.log_in(json!({ "code": "wrong" })).await, Err(401));
    assert_eq!(site.log_in(json!({ "token": "wrong" })).await, Err(401));
    assert_eq!(site.log_in(json!({ "code": TOKEN })).await, Err(401));
    assert_eq!(site.log_in(json!({ "password": TOKEN })).await, Err(400));
    let cookie = site.log_in(json!({ "code": code })).await.unwrap();
    assert_eq!(site.log_in(json!({ "code": code })).await, Err(401), "used up");
    let other = site.logged_in().await;

    let ask = async |cookie: &str| {
        let answer = site.send((Method::GET, "/console/session"), &[("cookie", cookie)], "").await;
        support::json(answer).await
    };
    let (status, session) = ask(&cookie).await;
    assert_eq!((status, session["host_name"].as_str()), (200, Some("test")), "{session}");
    assert_eq!(session["logins"], json!(["code", "token"]));
    let headers = [("cookie", cookie.as_str()), ("x-suimon-console", "1")];
    let ended = site.send((Method::DELETE, "/console/session"), &headers, "").await;
    assert_eq!(ended.status(), 204);
    let (status, told) = ask(&cookie).await;
    assert_eq!((status, told["errors"][0]["code"].as_str()), (401, Some("unauthorized")));
    assert_eq!(ask(&other).await.0, 200, "somebody else stays");
    // Without a console, the error explains how to configure one.
    let (status, told) = site.server.call(Method::POST, "/1.0/console/logins", "").await;
    assert_eq!(status, 404);
    assert!(told["errors"][0]["message"].as_str().unwrap().contains("[console]"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_or_done_for_who_is_not_logged_in_or_comes_from_another_page() {
    let site = Site::new().await;
    for path in ["/1.0", "/1.0/vms", "/1.0/openapi.json", "/console/live?topics=top"] {
        let answer = site.send((Method::GET, path), &[], "").await;
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert_eq!(answer.status(), 401, "{path}");
    }
    let cookie = site.logged_in().await;
    let cookie = ("cookie", cookie.as_str());
    let (status, host) = support::json(site.send((Method::GET, "/1.0"), &[cookie], "").await).await;
    assert_eq!((status, host["name"].as_str()), (200, Some("test")));
    // A page of another site can make the browser send the cookie, but not this header.
    let change = (Method::PATCH, "/1.0/nics/web");
    let refused = site.send(change.clone(), &[cookie], r#"{"mtu": 1400}"#).await;
    assert_eq!(refused.status(), 403);
    let own = ("x-suimon-console", "1");
    let done = site.send(change, &[cookie, own], r#"{"mtu": 1400}"#).await;
    assert_eq!(done.status(), 202);
    // A foreign host name that resolves to this address is rejected.
    let stranger = ("host", "evil.example:7446");
    for path in ["/1.0", "/", "/console/session"] {
        let answer = site.send((Method::GET, path), &[cookie, stranger], "").await;
        assert_eq!(answer.status(), 421, "{path}");
    }
    // Metrics and unknown paths are not files of the page.
    for path in ["/metrics", "/..%2f..%2fetc/passwd", "/assets/none.js"] {
        assert_eq!(site.send((Method::GET, path), &[cookie], "").await.status(), 404, "{path}");
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
                let found = name
                    .zip(data)
                    .map(|(name, data)| (name.to_owned(), serde_json::from_str(data).unwrap()));
                self.text = rest.to_owned();
                if found.is_some() {
                    return found;
                }
                continue;
            }
            let frame = tokio::time::timeout(Duration::from_secs(90), self.body.frame());
            let frame = frame.await.expect("something is told within 90 s")?.ok()?;
            self.text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_is_told_live_until_one_logs_out() {
    let site = Site::new().await;
    let cookie = site.logged_in().await;
    let own = [("cookie", cookie.as_str()), ("x-suimon-console", "1")];
    for topics in ["events/follow", "vms,..", &["top"; 17].join(",")] {
        let path = format!("/console/live?topics={topics}");
        assert_eq!(site.send((Method::GET, &path), &own, "").await.status(), 422, "{topics}");
    }
    let unnamed = site.send((Method::GET, "/console/live"), &own, "").await;
    let (status, told) = support::json(unnamed).await;
    assert_eq!((status, told["errors"][0]["code"].as_str()), (400, Some("malformed")), "{told}");
    let answer = site.send((Method::GET, "/console/live?topics=nics,events,vms/none"), &own, "");
    let answer = answer.await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut events = Events { body: answer.into_body(), text: String::new() };
    let (name, nics) = events.next().await.unwrap();
    assert_eq!((name.as_str(), nics[0]["config"]["name"].as_str()), ("nics", Some("web")));
    let (name, failed) = events.next().await.unwrap();
    assert_eq!((name.as_str(), failed["topic"].as_str()), ("failure", Some("vms/none")));
    assert_eq!(failed["error"]["errors"][0]["code"], "not_found");

    let change = site.send((Method::PATCH, "/1.0/nics/web"), &own, r#"{"mtu": 1400}"#).await;
    assert_eq!(change.status(), 202);
    let (mut has_event, mut has_nic) = (false, false);
    while !(has_event && has_nic) {
        let (name, data) = events.next().await.unwrap();
        has_event |= name == "events" && data["id"] == 1003;
        has_nic |= name == "nics" && data[0]["config"]["mtu"] == 1400;
    }
    let ended = site.send((Method::DELETE, "/console/session"), &own, "").await;
    assert_eq!(ended.status(), 204);
    while events.next().await.is_some() {}
}

/// Opens a VM's serial console as a browser does for a page of this origin. Returns the status of a
/// refusal.
async fn open_serial(
    site: &Site,
    vm: &str,
    headers: &[(&'static str, &str)],
) -> Result<WebSocketStream<TcpStream>, u16> {
    let url = format!("ws://{}/console/vms/{vm}/serial", site.address);
    let mut request = url.into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let stream = TcpStream::connect(site.address).await.unwrap();
    match tokio_tungstenite::client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// Verifies the origin check: browsers send the cookie with WebSockets of pages served by other
/// ports of this machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_serial_console_is_for_the_own_page_of_who_is_logged_in() {
    let site = Site::new().await;
    let cookie = site.logged_in().await;
    let (cookie, own) = (("cookie", cookie.as_str()), format!("http://{}", site.address));
    let own = ("origin", own.as_str());
    assert_eq!(open_serial(&site, "web", &[own]).await.unwrap_err(), 401);
    for origin in ["http://127.0.0.1:1", "null", "https://evil.example"] {
        let refused = open_serial(&site, "web", &[cookie, ("origin", origin)]).await;
        assert_eq!(refused.unwrap_err(), 403, "{origin}");
    }
    assert_eq!(open_serial(&site, "web", &[cookie]).await.unwrap_err(), 403);
    // Errors are sent as a message that the page can read.
    for (vm, code) in [("none", "not_found"), ("a%2Fb", "not_found")] {
        let mut socket = open_serial(&site, vm, &[cookie, own]).await.unwrap();
        let told = socket.next().await.unwrap().unwrap();
        let told: Value = serde_json::from_str(told.to_text().unwrap()).unwrap();
        assert_eq!(told["errors"][0]["code"], code, "{told}");
        assert!(socket.next().await.unwrap().unwrap().is_close());
    }
}

/// Verifies that the API shows the content of the lab's folder, and isolates its reports.
#[tokio::test(flavor = "multi_thread")]
async fn the_lab_is_asked_by_the_api_and_its_reports_are_no_part_of_the_page() {
    let site = Site::new().await;
    let results = site.server.directory.path().join("lab");
    let cookie = site.logged_in().await;
    let own = [("cookie", cookie.as_str()), ("x-suimon-console", "1")];
    let wanted = r#"{"plan": "vmq-teaming", "scale": "quick"}"#;
    let ask = async |body: &str| {
        support::json(site.send((Method::POST, "/1.0/lab/runs"), &own, body).await).await
    };
    let (status, told) = ask(wanted).await;
    let text = told["errors"][0]["message"].as_str().unwrap();
    assert!(status == 422 && text.contains("suimon lab work"), "{status} {told}");
    assert_eq!(site.server.get("/1.0/lab/runs").await, json!([]));

    let run = results.join("vmq-teaming-20260102T030405");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::create_dir_all(results.join("requests")).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let worker = json!({ "pid": 1, "at_ms": now.as_millis() as u64 });
    let words = json!({ "en": "x", "ja": "y" });
    let plan = json!({ "id": "vmq-teaming", "title": words, "question": words, "document": "D",
        "scales": [{ "scale": "auto", "seconds": 1.0, "missing": [] }] });
    for (name, value) in [("worker.json", worker), ("plans.json", json!([plan]))] {
        std::fs::write(results.join(name), value.to_string()).unwrap();
    }
    let head = json!({ "origin": { "kind": "real" }, "scale": "quick", "began": "" });
    std::fs::write(run.join("head.json"), head.to_string()).unwrap();
    std::fs::write(run.join("report.html"), "<script>1</script>").unwrap();

    for (body, status, code) in [
        (r#"{"plan": "vmq-teaming", "scale": "huge"}"#, 400, "malformed"),
        (r#"{"plan": "vmq-teaming", "size": 1}"#, 422, "unknown_key"),
        (r#"{"plan": "web"}"#, 422, "unknown_reference"),
        ("[", 400, "malformed"),
    ] {
        let (got, told) = ask(body).await;
        assert_eq!((got, told["errors"][0]["code"].as_str()), (status, Some(code)), "{told}");
    }
    let (status, request) = ask(wanted).await;
    assert_eq!((status, request["state"].as_str()), (202, Some("waiting")), "{request}");
    let path = format!("/1.0/lab/requests/{}", request["id"].as_str().unwrap());
    let (status, stopped) = support::json(site.send((Method::DELETE, &path), &own, "").await).await;
    assert_eq!((status, stopped["state"].as_str()), (200, Some("stopping")), "{stopped}");
    let runs = site.server.get("/1.0/lab/runs").await;
    assert_eq!(runs[0]["state"], "interrupted", "{runs}");

    let report = "/1.0/lab/runs/vmq-teaming-20260102T030405/report";
    assert_eq!(site.send((Method::GET, report), &[], "").await.status(), 401, "who is logged in");
    let answer = site.send((Method::GET, report), &own, "").await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    let policies: Vec<_> = answer.headers().get_all("content-security-policy").iter().collect();
    let policy = policies[0].to_str().unwrap();
    assert!(
        policies.len() == 1 && policy.starts_with("sandbox allow-scripts; default-src 'none'"),
        "{policies:?}"
    );
    for path in
        ["/1.0/lab/runs/..%2f..%2fetc/report", "/1.0/lab/runs/none", "/1.0/lab/compare?a=..&b=x"]
    {
        assert_eq!(site.send((Method::GET, path), &own, "").await.status(), 404, "{path}");
    }
}
