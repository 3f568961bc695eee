//! Both secrets of a session, and wrong credentials.

use std::time::Duration;

use hyper::Method;
use serde_json::json;

use super::Site;
use crate::support;

/// Body of a change that the console must reject.
const BODY: &str = r#"{"mtu": 1400}"#;

/// Verifies that the cookie, which browsers send to other ports of the host name too, is not
/// sufficient.
#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_without_the_secret_of_its_session_permits_nothing() {
    let site = Site::new().await;
    let session = site.logged_in().await;
    let other = site.logged_in().await;
    let requests = [
        (Method::GET, "/1.0"),
        (Method::GET, "/1.0/config"),
        (Method::GET, "/console/session"),
        (Method::GET, "/console/live?topics=top"),
        (Method::PATCH, "/1.0/nics/web"),
        (Method::POST, "/1.0/console/logins"),
        (Method::POST, "/console/tickets"),
        (Method::DELETE, "/console/session"),
    ];
    for (method, path) in requests {
        let mut headers = session.headers_without("x-suimon-session");
        let request = || (method.clone(), path);
        let (status, body) = support::json(site.send(request(), &headers, BODY).await).await;
        assert_eq!((status, body["errors"][0]["code"].as_str()), (401, Some("unauthorized")));
        let text = body["errors"][0]["message"].as_str().unwrap();
        assert!(text.contains("X-Suimon-Session"), "{method} {path}: {text}");
        for secret in ["", "0", &other.secret, session.cookie.split_once('=').unwrap().1] {
            headers.push(("x-suimon-session", secret));
            let status = site.send(request(), &headers, BODY).await.status();
            assert_eq!(status, 401, "{method} {path} with `{secret}`");
            headers.pop();
        }
    }
    let nic = site.server.get("/1.0/nics/web").await;
    assert_ne!(nic["config"]["mtu"], 1400, "{nic}");
    let answer = site.send((Method::GET, "/console/session"), &session.headers(), "").await;
    assert_eq!(answer.status(), 200, "the session continues");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_logins_are_counted_and_reported_with_their_peer() {
    let site = Site::new().await;
    for login in [json!({ "token": "guess" }), json!({ "code": "guess" })] {
        assert_eq!(site.log_in(login).await.err(), Some(401));
    }
    // The second one may be in a second event, 60 s after the first.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(180);
    loop {
        let events = site.server.get("/1.0/events?id=1020").await;
        let mut counts = Vec::new();
        for event in events.as_array().unwrap() {
            let (fields, text) = (&event["fields"], event["text"].as_str().unwrap());
            assert_eq!(
                (&fields["listener"], &fields["peer"]),
                (&json!("console"), &json!("127.0.0.1"))
            );
            assert!(text.contains("127.0.0.1") && !text.contains("guess"), "{text}");
            counts.push(fields["count"].as_str().unwrap().parse::<u64>().unwrap());
        }
        if counts.iter().sum::<u64>() == 2 {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{counts:?} within 180 s");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (_, metrics) = site.server.call(Method::GET, "/metrics", "").await;
    let metrics = metrics.as_str().unwrap();
    for line in [
        "suimon_refused_access_total{listener=\"console\"} 2",
        "suimon_refused_access_total{listener=\"api\"} 0",
    ] {
        assert!(metrics.lines().any(|metric_line| metric_line == line), "{line}");
    }
}
