//! Serial consoles of VMs over WebSockets.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, tungstenite};

use super::Site;

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

/// Returns the code of the error that a serial console sends before it closes.
async fn close_reason(socket: &mut WebSocketStream<TcpStream>) -> String {
    let next = tokio::time::timeout(Duration::from_secs(90), socket.next());
    let message = next.await.expect("an error within 90 s").unwrap().unwrap();
    let parsed: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_close());
    parsed["errors"][0]["code"].as_str().unwrap().to_owned()
}

/// Verifies the origin check: browsers send the cookie with WebSockets of pages served by other
/// ports of this machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_serial_console_is_open_to_the_page_of_a_valid_session_only() {
    let site = Site::new().await;
    let session = site.logged_in().await;
    let cookie = ("cookie", session.cookie.as_str());
    let own_origin = ("origin", session.origin.as_str());
    assert_eq!(open_serial(&site, "web", &[own_origin]).await.unwrap_err(), 401);
    for origin in ["http://127.0.0.1:1", "null", "https://evil.example"] {
        let result = open_serial(&site, "web", &[cookie, ("origin", origin)]).await;
        assert_eq!(result.unwrap_err(), 403, "{origin}");
    }
    assert_eq!(open_serial(&site, "web", &[cookie]).await.unwrap_err(), 403);
    // Errors are sent as a message that the page can read.
    for (vm, code) in [("none", "not_found"), ("a%2Fb", "not_found")] {
        let mut socket = open_serial(&site, vm, &[cookie, own_origin]).await.unwrap();
        socket.send(Message::text(session.secret.as_str())).await.unwrap();
        assert_eq!(close_reason(&mut socket).await, code);
    }
    // The error of the missing VM shows that the VM is looked up only after the secret was
    // received.
    let other = site.logged_in().await;
    let key = session.cookie.split_once('=').unwrap().1;
    for first in [
        Message::text(""),
        Message::text(other.secret.as_str()),
        Message::text(key),
        Message::binary(session.secret.clone()),
    ] {
        let mut socket = open_serial(&site, "none", &[cookie, own_origin]).await.unwrap();
        socket.send(first).await.unwrap();
        assert_eq!(close_reason(&mut socket).await, "unauthorized");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn serial_consoles_without_the_secret_are_few_and_end_soon() {
    let site = Site::new().await;
    let session = site.logged_in().await;
    let headers = [("cookie", session.cookie.as_str()), ("origin", session.origin.as_str())];
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(open_serial(&site, "none", &headers).await.unwrap());
    }
    assert_eq!(open_serial(&site, "none", &headers).await.unwrap_err(), 409);
    for socket in &mut silent {
        assert_eq!(close_reason(socket).await, "unauthorized");
    }
    let mut socket = open_serial(&site, "none", &headers).await.unwrap();
    socket.send(Message::text(session.secret.as_str())).await.unwrap();
    assert_eq!(close_reason(&mut socket).await, "not_found");
}
