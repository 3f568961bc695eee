use serde_json::json;

use crate::{
    DiskFormat, IncomingMigrationRequest, MigrateVmRequest, MoveQueueRequest, WhatIfRequest,
    parse_request,
};

#[test]
fn an_object_is_no_list() {
    let read = |body: &str| parse_request::<WhatIfRequest>(body.as_bytes());
    for valid in [
        r#"{"proposals":[{"qos_policy":{"name":"a","limits":{"max_iops":7}}}]}"#,
        r#"{"proposals":[{"without_disk":"a"},{"store":{"name":"a","capacity_iops":1.0}}]}"#,
    ] {
        let expected = serde_json::from_str::<WhatIfRequest>(&valid.replace("1.0", "1")).unwrap();
        assert_eq!(read(valid), Ok(expected), "{valid}");
    }
    for invalid in [
        r#"[[]]"#,
        r#"{"proposals":[{"qos_policy":{"name":"a","limits":[null,null]}}]}"#,
        r#"{"proposals":[{"qos_policy":["a",null,{}]}]}"#,
        r#"{"proposals":[{"without_disk":"a","disk":{"name":"b"}}]}"#,
        r#"{"proposals":[{"disk":{"name":"b"},"disk":{"name":"c"}}]}"#,
    ] {
        let error = read(invalid).unwrap_err();
        assert_eq!(error.code.http_status(), 400, "{invalid}: {error}");
    }
    assert!(parse_request::<MoveQueueRequest>(b"[1]").is_err());
}

#[test]
fn texts_without_their_syntax_are_no_violation_of_the_schema() {
    let code =
        |body: &str| parse_request::<MigrateVmRequest>(body.as_bytes()).unwrap_err().code.as_str();
    assert_eq!(code(r#"{"to":"n2","bandwidth":"10 parsecs"}"#), "invalid_value");
    assert_eq!(code(r#"{"to":"n2","bandwidth":[10]}"#), "malformed");
    assert_eq!(code(r#"{"to":"/"}"#), "invalid_value");
    assert_eq!(code(r#"{"to":1}"#), "malformed");
    assert_eq!(code(r#"{"to":"n2","two":2}"#), "unknown_key");
    assert_eq!(code("{}"), "malformed");
    assert_eq!(code("{"), "malformed");
}

#[test]
fn a_large_request_is_read_as_it_was_written() {
    let vm = json!({ "name": "web", "memory_bytes": 64 << 20 });
    let request = json!({
        "protocol": 2, "id": "a", "from": "b", "vm": vm, "as_started": vm, "is_paused": false,
        "uuid": "c", "nics": [{ "name": "web", "switch": "lan", "backend": "tap", "trunk": [1, "2-3"] }],
        "disks": [{ "name": "web", "store": "ssd", "format": "raw", "size_bytes": "1 GiB" }],
        "qos_policies": [], "is_kvm": true, "cpus_now": 1, "qemu_version": "7.2", "machine": "q35",
        "ports": [{ "device": "nic/web", "port": 1 }], "cpu_flags": ["sse"],
    });
    let body = request.to_string();
    let read: IncomingMigrationRequest = parse_request(body.as_bytes()).unwrap();
    assert_eq!(read, serde_json::from_str(&body).unwrap());
    assert_eq!(read.disks[0].format, DiskFormat::Raw);
}
