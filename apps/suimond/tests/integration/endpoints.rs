//! Test that the description of the API lists all endpoints.
#![forbid(unsafe_code)]

use crate::support;
use crate::support::Server;

/// Paths of all endpoints.
const ENDPOINTS: &[&str] = &[
    "/1.0",
    "/1.0/openapi.json",
    "/1.0/cluster",
    "/1.0/cluster/flows",
    "/1.0/cluster/members/{name}",
    "/1.0/config",
    "/1.0/console/logins",
    "/1.0/apply",
    "/1.0/switches",
    "/1.0/switches/{name}",
    "/1.0/switches/{name}/addresses",
    "/1.0/uplinks",
    "/1.0/uplinks/{name}",
    "/1.0/uplinks/{name}/capture",
    "/1.0/teams",
    "/1.0/teams/{name}",
    "/1.0/vmq",
    "/1.0/vmq/{uplink}",
    "/1.0/power",
    "/1.0/nics",
    "/1.0/nics/{name}",
    "/1.0/nics/{name}/capture",
    "/1.0/stores",
    "/1.0/stores/{name}",
    "/1.0/stores/{name}/image-check",
    "/1.0/stores/{name}/image-info",
    "/1.0/stores/{name}/image-relink",
    "/1.0/stores/{name}/image-repair",
    "/1.0/stores/{name}/measure",
    "/1.0/disks",
    "/1.0/disks/{name}",
    "/1.0/disks/{name}/check",
    "/1.0/disks/{name}/compact",
    "/1.0/disks/{name}/convert",
    "/1.0/disks/{name}/merge",
    "/1.0/disks/{name}/reopen",
    "/1.0/disks/{name}/snapshot",
    "/1.0/vms",
    "/1.0/vms/{name}",
    "/1.0/vms/{name}/start",
    "/1.0/vms/{name}/stop",
    "/1.0/vms/{name}/kill",
    "/1.0/vms/{name}/pause",
    "/1.0/vms/{name}/resume",
    "/1.0/vms/{name}/reset",
    "/1.0/vms/{name}/freeze",
    "/1.0/vms/{name}/thaw",
    "/1.0/vms/{name}/guest",
    "/1.0/vms/{name}/console",
    "/1.0/vms/{name}/libvirt",
    "/1.0/vms/{name}/migrate",
    "/1.0/arrivals",
    "/1.0/arrivals/{id}",
    "/1.0/arrivals/{id}/activate",
    "/1.0/arrivals/{id}/memory",
    "/1.0/arrivals/{id}/disks/{disk}",
    "/1.0/nodes",
    "/1.0/nodes/{name}",
    "/1.0/nodes/{name}/drain",
    "/1.0/nodes/{name}/undrain",
    "/1.0/lab",
    "/1.0/lab/runs",
    "/1.0/lab/runs/{id}",
    "/1.0/lab/runs/{id}/report",
    "/1.0/lab/requests/{id}",
    "/1.0/lab/compare",
    "/1.0/pfs",
    "/1.0/pfs/{name}",
    "/1.0/sriov",
    "/1.0/sriov/{adapter}",
    "/1.0/qos-policies",
    "/1.0/qos-policies/{name}",
    "/1.0/qos/flows",
    "/1.0/qos/what-if",
    "/1.0/queues",
    "/1.0/queues/{port}/{side}/{index}/move",
    "/1.0/processors",
    "/1.0/workers",
    "/1.0/events",
    "/1.0/events/follow",
    "/1.0/operations",
    "/1.0/operations/{id}",
    "/1.0/operations/{id}/wait",
    "/1.0/operations/{id}/follow",
    "/1.0/top",
    "/metrics",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_is_described_and_every_description_is_an_endpoint() {
    let server = Server::with_web().await;
    let document = server.get("/1.0/openapi.json").await;
    let paths = document["paths"].as_object().unwrap();
    let mut expected = ENDPOINTS.to_vec();
    expected.sort_unstable();
    let mut described: Vec<&str> = paths.keys().map(String::as_str).collect();
    described.sort_unstable();
    assert_eq!(described, expected);
    for (path, methods) in paths {
        for method in ["get", "put", "post", "patch", "delete"] {
            let is_known = methods.get(method).is_some();
            let request_path = path
                .replace("{name}", "nobody")
                .replace("{uplink}", "nobody")
                .replace("{id}", "999")
                .replace("{port}", "nobody")
                .replace("{side}", "rx")
                .replace("{index}", "0");
            if is_known && request_path.contains("events/follow") {
                continue;
            }
            let verb = method.to_uppercase();
            let answer = server.send(verb.parse().unwrap(), &request_path, "{}").await;
            let status = answer.status().as_u16();
            assert_eq!(status == 405, !is_known, "{method} {path}: {status}");
            if status == 405 {
                let allow = answer.headers()["allow"].to_str().unwrap().to_owned();
                let is_allowed = |method: &str| allow.split(',').any(|allowed| allowed == method);
                let right = methods
                    .as_object()
                    .unwrap()
                    .keys()
                    .map(|method_name| method_name.to_uppercase());
                assert!(
                    right.clone().count() > 0 && right.clone().all(|m| is_allowed(&m)),
                    "{allow}"
                );
                assert!(!is_allowed(&verb), "{method} {path}: {allow}");
            }
            if status >= 400 {
                let (_, body) = support::json(answer).await;
                let error = &body["errors"][0];
                assert!(error["code"].is_string(), "{method} {path}: {body}");
                assert!(!error["message"].as_str().unwrap().contains("the path /"), "{body}");
            }
        }
    }
}
