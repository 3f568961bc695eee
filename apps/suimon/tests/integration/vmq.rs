//! Command `suimon vmq` with a daemon that has a team, uplinks and NICs.

use crate::support::{Daemon, json, operation, outcome};

const COUNTERS: &str = r#"{"rx_frames":0,"rx_bytes":0,"tx_frames":0,"tx_bytes":0,"rx_dropped":[],"tx_dropped":[],"flooded":0,"software_segmented":0,"software_checksummed":0,"software_coalesced_segments":0,"software_coalesced_units":0}"#;

const VMQS: &str = r#"[{"uplink":"both","config":{},"workers":[{"worker":0,"permitted":true,"queues":1,"load_ppm":9000,"other_load_ppm":0},{"worker":1,"permitted":true,"queues":0,"load_ppm":0,"other_load_ppm":0}],"queues":[{"queue":"web/rx/0","nic":"web","default_queue":false,"worker":0,"load_ppm":8000,"age_s":3,"reason":"first assigned there","stay_reason":"the default queue is not moved"}]}]"#;

/// Starts a host with a team of one uplink used by switch `lan`, an unused uplink, and NICs `web`
/// and `idle` on `lan` and `alone` on a private switch.
fn host_with_a_team() -> Daemon {
    let condition = r#""condition":{"health":"up"}"#;
    let uplink = |name: &str| {
        format!(
            r#"{{"config":{{"name":"{name}","device":"eth0"}},{condition},"counters":{COUNTERS},"mtu":1500}}"#
        )
    };
    let nic = |name: &str, switch: &str| {
        format!(
            r#"{{"config":{{"name":"{name}","switch":"{switch}","backend":"tap"}},{condition},"counters":{COUNTERS},"offloads":[],"queue_pairs":0,"learned":0}}"#
        )
    };
    let switch = |config: &str| {
        json("200 OK", &format!(r#"{{"config":{config},{condition},"nics":[],"addresses":0}}"#))
    };
    let team = format!(
        r#"[{{"config":{{"name":"both","members":["left"],"mode":"static"}},{condition},"counters":{COUNTERS},"mtu":1500,"speed_mbps":0,"members":[]}}]"#
    );
    let accepted = || json("202 Accepted", &operation("running", ""));
    Daemon::new(&[
        ("GET /1.0/vmq ", json("200 OK", VMQS)),
        ("GET /1.0/teams ", json("200 OK", &team)),
        ("GET /1.0/uplinks ", json("200 OK", &format!("[{},{}]", uplink("left"), uplink("wan")))),
        (
            "GET /1.0/nics ",
            json("200 OK", &format!("[{},{}]", nic("idle", "lan"), nic("alone", "lab"))),
        ),
        ("GET /1.0/switches/lan ", switch(r#"{"name":"lan","kind":"external","uplink":"both"}"#)),
        ("GET /1.0/switches/lab ", switch(r#"{"name":"lab","kind":"private"}"#)),
        ("PATCH /1.0/teams/both ", accepted()),
        ("PATCH /1.0/uplinks/wan ", accepted()),
    ])
}

#[test]
fn vmq_is_shown_and_explained_and_an_unknown_name_lists_valid_ones() {
    let daemon = host_with_a_team();
    let run = |args: &[&str]| outcome(&daemon.run(args));
    let (code, out, _) = run(&["vmq", "show", "both"]);
    assert!(code == 0 && out.contains("web/rx/0       0  web   0.8 %"), "{out}");
    assert!(out.contains("     1  parked       0"), "{out}");
    let (_, out, _) = run(&["vmq", "explain", "web", "--json"]);
    let queues: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&queues[0]["queue"], queues.as_array().unwrap().len()), (&"web/rx/0".into(), 1));
    let (code, out, _) = run(&["vmq", "show", "--json"]);
    let vmqs: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &vmqs[0]["uplink"]), (0, &"both".into()));

    let missing = |args: &[&str]| {
        let (code, out, err) = outcome(&daemon.run(args));
        assert_eq!((code, out.as_str()), (4, ""), "{err}");
        err
    };
    for verb in [&["vmq", "show", "nobody"][..], &["vmq", "set", "nobody", "mode=static"]] {
        let err = missing(verb);
        assert_eq!(err, "no team or uplink `nobody` exists; the host has both, left, wan\n");
    }
    let err = missing(&["vmq", "show", "wan"]);
    assert!(err.starts_with("no switch uses uplink `wan`, so it has no VMQ;"), "{err}");
    let err = missing(&["vmq", "explain", "none"]);
    assert!(err.starts_with("no NIC or uplink `none` exists; the host has "), "{err}");
    let err = missing(&["vmq", "explain", "idle"]);
    assert!(err.starts_with("NIC `idle` has no queue on `both`;"), "{err}");
    let err = missing(&["vmq", "explain", "alone"]);
    assert!(err.contains("switch `lab`, which has no uplink or team"), "{err}");
}

#[test]
fn vmq_is_set_where_its_key_is() {
    let daemon = host_with_a_team();
    let patched = |args: &[&str]| {
        let (code, _, err) =
            outcome(&daemon.run(&[&["vmq", "set"], args, &["--no-wait"]].concat()));
        assert_eq!(code, 0, "{err}");
        daemon.requests().into_iter().rfind(|line| line.starts_with("PATCH")).unwrap()
    };
    assert_eq!(
        patched(&["both", "max_workers=2", "numa_node=default"]),
        r#"PATCH /1.0/teams/both HTTP/1.1 {"vmq":{"max_workers":2,"numa_node":null}}"#
    );
    assert_eq!(
        patched(&["wan", "enabled=off"]),
        r#"PATCH /1.0/uplinks/wan HTTP/1.1 {"vmq":{"enabled":false}}"#
    );
}

#[test]
fn without_vmq_show_reports_this_and_prints_no_table() {
    let daemon = Daemon::new(&[("GET /1.0/vmq ", json("200 OK", "[]"))]);
    let (code, out, err) = outcome(&daemon.run(&["vmq", "show"]));
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.contains("no switch uses an uplink or team"), "{err}");
    assert_eq!(outcome(&daemon.run(&["vmq", "show", "--json"])), (0, "[]\n".into(), String::new()));
}
