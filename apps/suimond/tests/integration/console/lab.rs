//! Runs of the lab, and reports that the browser loads by address.

use std::path::Path;

use hyper::Method;
use serde_json::json;

use super::Site;
use crate::support;

/// Writes the files of a worker with one plan, and an interrupted run with a report.
fn write_results(results: &Path) {
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
}

/// Verifies that the API shows the content of the lab's folder, and isolates its reports.
#[tokio::test(flavor = "multi_thread")]
async fn the_api_shows_the_lab_and_isolates_its_reports() {
    let site = Site::new().await;
    let results = site.server.directory.path().join("lab");
    let session = site.logged_in().await;
    let own_headers = session.headers();
    let run_request = r#"{"plan": "vmq-teaming", "scale": "quick"}"#;
    let request_run = async |body: &str| {
        support::json(site.send((Method::POST, "/1.0/lab/runs"), &own_headers, body).await).await
    };
    let (status, body) = request_run(run_request).await;
    let text = body["errors"][0]["message"].as_str().unwrap();
    assert!(status == 422 && text.contains("suimon lab work"), "{status} {body}");
    assert_eq!(site.server.get("/1.0/lab/runs").await, json!([]));

    write_results(&results);
    for (body, status, code) in [
        (r#"{"plan": "vmq-teaming", "scale": "huge"}"#, 400, "malformed"),
        (r#"{"plan": "vmq-teaming", "size": 1}"#, 422, "unknown_key"),
        (r#"{"plan": "web"}"#, 422, "unknown_reference"),
        ("[", 400, "malformed"),
    ] {
        let (actual_status, body) = request_run(body).await;
        assert_eq!(
            (actual_status, body["errors"][0]["code"].as_str()),
            (status, Some(code)),
            "{body}"
        );
    }
    let (status, request) = request_run(run_request).await;
    assert_eq!((status, request["state"].as_str()), (202, Some("waiting")), "{request}");
    let path = format!("/1.0/lab/requests/{}", request["id"].as_str().unwrap());
    let (status, stopped) =
        support::json(site.send((Method::DELETE, &path), &own_headers, "").await).await;
    assert_eq!((status, stopped["state"].as_str()), (200, Some("stopping")), "{stopped}");
    let runs = site.server.get("/1.0/lab/runs").await;
    assert_eq!(runs[0]["state"], "interrupted", "{runs}");

    let report = "/1.0/lab/runs/vmq-teaming-20260102T030405/report";
    assert_eq!(site.send((Method::GET, report), &[], "").await.status(), 401, "who is logged in");
    let answer = site.send((Method::GET, report), &own_headers, "").await;
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
        assert_eq!(site.send((Method::GET, path), &own_headers, "").await.status(), 404, "{path}");
    }
}

/// Verifies tickets: a frame has no headers of the page, so the ticket stands for the secret, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_loaded_by_address_once_with_a_ticket() {
    let site = Site::new().await;
    let run = site.server.directory.path().join("lab/vmq-teaming-20260102T030405");
    std::fs::create_dir_all(&run).unwrap();
    let head = json!({ "origin": { "kind": "real" }, "scale": "quick", "began": "" });
    std::fs::write(run.join("head.json"), head.to_string()).unwrap();
    std::fs::write(run.join("report.html"), "<script>1</script>").unwrap();
    let report = "/1.0/lab/runs/vmq-teaming-20260102T030405/report";
    let session = site.logged_in().await;
    let own_headers = session.headers();
    let ticket = async |path: &str| {
        let body = json!({ "path": path }).to_string();
        support::json(site.send((Method::POST, "/console/tickets"), &own_headers, &body).await)
            .await
    };
    let (status, body) = ticket(report).await;
    assert_eq!((status, body["valid_s"].as_u64()), (200, Some(30)), "{body}");
    let address = format!("{report}?ticket={}", body["ticket"].as_str().unwrap());
    let load = async |headers: &[(&str, &str)], path: &str| {
        site.send((Method::GET, path), headers, "").await.status().as_u16()
    };
    let cookie = [("cookie", session.cookie.as_str())];
    assert_eq!(load(&[], &address).await, 401, "without the cookie");
    assert_eq!(load(&[("cookie", site.logged_in().await.cookie.as_str())], &address).await, 401);
    assert_eq!(load(&cookie, &address).await, 200);
    assert_eq!(load(&cookie, &address).await, 401, "used");
    let (_, body) = ticket(report).await;
    let address = format!("/1.0/config?ticket={}", body["ticket"].as_str().unwrap());
    assert_eq!(load(&cookie, &address).await, 401, "another path");
    for path in ["/1.0/config", "/1.0/lab/runs/a/report?x=1", "/console/live"] {
        let (status, body) = ticket(path).await;
        assert_eq!((status, body["errors"][0]["field"].as_str()), (422, Some("path")), "{body}");
    }
}
