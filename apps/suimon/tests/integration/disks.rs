//! Commands `suimon store`, `disk` and `qos` with a daemon that has a store and two disks.

use std::io::{BufRead, BufReader};

use crate::support::{Daemon, command, json, lines, operation, outcome};

const STORES: &str = r#"[{"config":{"name":"fast","path":"/srv/fast"},"state":"ready","total_bytes":2199023255552,"free_bytes":1099511627776,"reserved_iops":500,"disks":2,"delivered_iops":480,"depth":1,"depth_allowed":32}]"#;

const FLOW: &str = r#"{"disk":"NAME","store":"fast","holder":"disk/NAME","limits":{"min_iops":500},"queued":3,"in_flight":1,"last_5_s":{"window_ns":5000000000,"guaranteed_iops":500,"demand_iops":900,"delivered_iops":480,"queued_ns":{"device-depth":7000},"limited_by":[{"factor":"device-saturated","share_ppm":930000},{"factor":"device","share_ppm":70000}],"queue_depth_milli":4000},"last_5_min":{"window_ns":0,"guaranteed_iops":0,"demand_iops":0,"delivered_iops":0}}"#;

pub(crate) const CONFIG: &str = r#"{"store":[{"name":"fast","path":"/srv/fast"}],"disk":[{"name":"web","store":"fast","format":"vhdx"}]}"#;

const REFUSAL: &str = r#"{"errors":[{"code":"overcommitted","message":"the sum of 2 minimums is 9000 IOPS","resource":"store/fast"}]}"#;

fn disk(name: &str) -> String {
    let requests = r#"{"requests":1,"bytes":4096,"errors":0,"latency_ns_p50":80000,"latency_ns_p99":90000,"latency_ns_max":100000}"#;
    format!(
        r#"{{"config":{{"name":"{name}","store":"fast","format":"vhdx"}},"state":"ready","file":"/srv/fast/{name}.vhdx","size_bytes":10737418240,"counters":{{"reads":{requests},"writes":{requests},"flushes":{requests},"discards":{requests}}}}}"#
    )
}

fn host_with_disks() -> Daemon {
    let accepted = || json("202 Accepted", &operation("running", ""));
    let checked = operation("succeeded", r#","report":["2 blocks are not referred to"]"#);
    let what_if = |fits: bool| {
        format!(
            r#"{{"fits":{fits},"stores":[{{"store":"fast","minimums":2,"minimums_iops":9000,"reservable_iops":8000,"capacity_iops":8889,"fits":{fits},"text":"the sum of 2 minimums is 9000 IOPS"}}]}}"#
        )
    };
    let nbd = r#""format":"vhdx","nbd":{"socket":"/run/nbd.sock","listen":"192.0.2.1:10809","tls_certificate":"/c","tls_key":"/k"}}"#;
    let client = r#","nbd":{"clients":1,"connections_max":128,"buffer_bytes":524288,"buffer_max_bytes":134217728,"connections":[{"transport":"tls","peer":"192.0.2.7:40000","buffer_bytes":524288}]}}"#;
    let offered = disk("offered").replace(r#""format":"vhdx"}"#, nbd);
    let offered = format!("{}{client}", offered.strip_suffix('}').unwrap());
    let flows = [FLOW.replace("NAME", "web"), FLOW.replace("NAME", "db")].join(",");
    Daemon::new(&[
        ("GET /1.0/stores ", json("200 OK", STORES)),
        ("GET /1.0/disks ", json("200 OK", &format!("[{}]", disk("web")))),
        ("GET /1.0/disks/web ", json("200 OK", &disk("web"))),
        ("GET /1.0/disks/off ", json("200 OK", &disk("off"))),
        ("GET /1.0/disks/offered ", json("200 OK", &offered)),
        (
            "GET /1.0/disks/none ",
            json("404 Not Found", r#"{"errors":[{"code":"not_found","message":"no disk"}]}"#),
        ),
        ("GET /1.0/config ", json("200 OK", CONFIG)),
        ("GET /1.0/qos/flows ", json("200 OK", &format!("[{flows}]"))),
        ("POST /1.0/qos/what-if ", json("200 OK", &what_if(false))),
        ("POST /1.0/qos-policies?force=true ", accepted()),
        ("POST /1.0/qos-policies ", json("422 Unprocessable", REFUSAL)),
        ("POST /1.0/disks", accepted()),
        ("POST /1.0/stores/fast/measure ", accepted()),
        ("PATCH /1.0/stores/fast ", accepted()),
        ("PATCH /1.0/disks/web", accepted()),
        ("DELETE /1.0/disks/web", accepted()),
        ("GET /1.0/operations/7/follow", lines(&[operation("running", ""), checked])),
    ])
}

#[test]
fn stores_and_disks_are_listed_and_shown() {
    let daemon = host_with_disks();
    let run = |args: &[&str]| outcome(&daemon.run(args));
    let (code, out, err) = run(&["store", "list"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("fast  /srv/fast      2  1.00 TiB  2.00 TiB"), "{out}");
    let (_, out, _) = run(&["disk", "list"]);
    assert!(out.contains("web   fast   vhdx    10.0 GiB"), "{out}");
    let (_, out, _) = run(&["disk", "show", "web"]);
    assert!(out.contains("image file              /srv/fast/web.vhdx\n"), "{out}");
    let (_, out, _) = run(&["disk", "show", "web", "--json"]);
    let disk: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(disk["size_bytes"], 10u64 << 30);
    assert_eq!(run(&["disk", "show", "none"]).0, 4);
}

/// Runs a command that does not wait for its operation, and returns the request that it sent.
fn request_of(daemon: &Daemon, args: &[&str]) -> String {
    let (code, _, err) = outcome(&daemon.run(&[args, &["--no-wait"]].concat()));
    assert_eq!(code, 0, "{err}");
    daemon.requests().pop().unwrap()
}

#[test]
fn flags_of_disk_add_set_and_delete_become_the_request() {
    let daemon = host_with_disks();
    let request_of = |args: &[&str]| request_of(&daemon, args);
    assert_eq!(
        request_of(&[
            "disk",
            "add",
            "web",
            "--store=fast",
            "--format=vhdx",
            "--size-bytes=10 GiB",
            "--qos-min-iops=500",
            "--vhost-user-socket=/run/web.sock",
            "--nbd-socket=/run/nbd.sock",
            "--read-only",
            "--force",
        ]),
        r#"POST /1.0/disks?force=true HTTP/1.1 {"name":"web","store":"fast","format":"vhdx","size_bytes":10737418240,"read_only":true,"logical_sector":512,"physical_sector":4096,"qos":{"min_iops":500,"weight":100},"vhost_user":{"socket":"/run/web.sock","mode":"server","queues":1},"nbd":{"socket":"/run/nbd.sock"}}"#
    );
    assert_eq!(
        request_of(&[
            "disk",
            "set",
            "web",
            "--qos-policy=gold",
            "--unset=qos",
            "--unset=vhost_user"
        ]),
        r#"PATCH /1.0/disks/web HTTP/1.1 {"qos":null,"qos_policy":"gold","vhost_user":null}"#
    );
    assert_eq!(
        request_of(&["disk", "set", "web", "--file=new.vhdx", "--create-image"]),
        r#"PATCH /1.0/disks/web?create_image=true HTTP/1.1 {"file":"new.vhdx"}"#
    );
    assert_eq!(
        request_of(&["disk", "set", "web", "--create-image"]),
        "PATCH /1.0/disks/web?create_image=true HTTP/1.1 {}"
    );
    assert_eq!(
        request_of(&["disk", "resize", "web", "20GiB"]),
        r#"PATCH /1.0/disks/web HTTP/1.1 {"size_bytes":21474836480}"#
    );
    assert_eq!(request_of(&["disk", "delete", "web"]), "DELETE /1.0/disks/web HTTP/1.1 ");
    assert_eq!(
        request_of(&["disk", "delete", "web", "--with-file"]),
        "DELETE /1.0/disks/web?with_file=true HTTP/1.1 "
    );
}

#[test]
fn arguments_of_jobs_exports_and_limits_become_the_request() {
    let daemon = host_with_disks();
    let request_of = |args: &[&str]| request_of(&daemon, args);
    assert_eq!(
        request_of(&["disk", "convert", "web", "vms/web.vhd", "--format=vhd", "--kind=fixed"]),
        r#"POST /1.0/disks/web/convert HTTP/1.1 {"file":"vms/web.vhd","format":"vhd","kind":"fixed"}"#
    );
    assert_eq!(
        request_of(&["disk", "snapshot", "web", "web-1.vhdx"]),
        r#"POST /1.0/disks/web/snapshot HTTP/1.1 {"file":"web-1.vhdx"}"#
    );
    assert_eq!(
        request_of(&["disk", "export", "web", "users=qemu,107", "listen=default"]),
        r#"PATCH /1.0/disks/web HTTP/1.1 {"nbd":{"listen":null,"users":["qemu","107"]}}"#
    );
    let unexport = request_of(&["disk", "export", "web", "--none"]);
    assert_eq!(unexport, r#"PATCH /1.0/disks/web HTTP/1.1 {"nbd":null}"#);
    assert_eq!(
        request_of(&["qos", "set", "web", "max_iops=2000", "min_iops=default"]),
        r#"PATCH /1.0/disks/web HTTP/1.1 {"qos":{"max_iops":2000,"min_iops":null},"qos_policy":null}"#
    );
    assert_eq!(
        request_of(&["qos", "set", "web", "--policy", "gold"]),
        r#"PATCH /1.0/disks/web HTTP/1.1 {"qos":null,"qos_policy":"gold"}"#
    );
    for verb in ["compact", "merge"] {
        let expected = format!("POST /1.0/disks/web/{verb} HTTP/1.1 ");
        assert_eq!(request_of(&["disk", verb, "web"]), expected);
    }
}

#[test]
fn stores_are_measured_as_the_flags_say() {
    let daemon = host_with_disks();
    let request_of = |args: &[&str]| {
        let (code, _, err) = outcome(&daemon.run(&[args, &["--no-wait"]].concat()));
        assert_eq!(code, 0, "{err}");
        daemon.requests().pop().unwrap()
    };
    assert_eq!(
        request_of(&["store", "measure", "fast"]),
        r#"POST /1.0/stores/fast/measure HTTP/1.1 {"seconds":10,"beside":false}"#
    );
    assert_eq!(
        request_of(&["store", "measure", "fast", "--seconds=30", "--beside"]),
        r#"POST /1.0/stores/fast/measure HTTP/1.1 {"seconds":30,"beside":true}"#
    );
    for (value, expected_value) in [("measure", r#""measure""#), ("12000", "12000")] {
        let expected =
            format!(r#"PATCH /1.0/stores/fast HTTP/1.1 {{"capacity_iops":{expected_value}}}"#);
        assert_eq!(request_of(&["store", "set", "fast", "--capacity-iops", value]), expected);
    }
    let run = |args: &[&str]| outcome(&daemon.run(args)).0;
    assert_eq!(run(&["store", "measure", "fast", "--seconds=0"]), 2);
    assert_eq!(run(&["store", "measure", "fast", "--seconds=601"]), 2);
    assert_eq!(run(&["store", "set", "fast", "--capacity-iops=0"]), 2);
    assert_eq!(run(&["store", "set", "fast", "--capacity-iops=much"]), 2);
    assert_eq!(run(&["store", "measure"]), 2);
}

#[test]
fn exports_and_delivered_rates_of_a_disk_are_shown() {
    let daemon = host_with_disks();
    let run = |args: &[&str]| outcome(&daemon.run(args));
    let (code, out, err) = run(&["disk", "export", "offered"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for line in [
        "nbd.listen              192.0.2.1:10809",
        "NBD URI                 nbd+unix:///offered?socket=/run/nbd.sock",
        "NBD URI                 nbds://192.0.2.1:10809/offered",
        "used by                 1 NBD client",
        "NBD connections         1 of 128, 512 KiB of 128 MiB buffer memory",
        "NBD client              192.0.2.7:40000, TLS, 512 KiB",
    ] {
        assert!(out.lines().any(|output_line| output_line == line), "{line}: {out}");
    }
    let (code, out, _) = run(&["qos", "show", "web"]);
    assert_eq!(code, 0);
    assert!(out.contains("requests queued         3"), "{out}");
    assert!(!out.contains("disk                    db"), "{out}");
    assert_eq!(run(&["qos", "show", "off"]).0, 4);
    let (code, out, err) = run(&["qos", "set", "web"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
}

#[test]
fn the_report_of_an_operation_is_printed_at_its_end() {
    let daemon = host_with_disks();
    let (code, out, err) = outcome(&daemon.run(&["disk", "check", "web"]));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "2 blocks are not referred to\n", ""));
    let (_, out, _) = outcome(&daemon.run(&["disk", "check", "web", "--json"]));
    let operation: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(operation["report"][0], "2 blocks are not referred to");
}

#[test]
fn overcommitment_requires_force() {
    let daemon = host_with_disks();
    let add = ["qos", "policy", "add", "gold", "--min-iops=9000"];
    let (code, out, err) = outcome(&daemon.run(&add));
    assert_eq!((code, out.as_str()), (3, ""));
    assert_eq!(err, "store/fast: the sum of 2 minimums is 9000 IOPS\n");
    let forced = daemon.run(&[&add[..], &["--force", "--no-wait"]].concat());
    assert_eq!(outcome(&forced).0, 0);
}

#[test]
fn what_if_shows_the_calculation_and_its_exit_code_states_whether_it_fits() {
    let daemon = host_with_disks();
    let (code, out, err) =
        outcome(&daemon.run(&["qos", "what-if", "disk/web", "min_iops=9000", "--without=db"]));
    assert_eq!(code, 3);
    assert!(out.contains("fast          2  9000      8889         8000  no"), "{out}");
    assert_eq!(err, "store/fast: the sum of 2 minimums is 9000 IOPS\n");
    assert_eq!(
        daemon.requests().pop().unwrap(),
        r#"POST /1.0/qos/what-if HTTP/1.1 {"proposals":[{"without_disk":"db"},{"disk":{"name":"web","qos":{"min_iops":9000,"weight":100}}}]}"#
    );
    let (code, out, _) =
        outcome(&daemon.run(&["qos", "what-if", "disk/web", "min_iops=9", "--json"]));
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["fits"]), (3, &false.into()));
    assert_eq!(outcome(&daemon.run(&["qos", "what-if"])).0, 2);
}

#[test]
fn flows_of_the_named_disks_are_shown() {
    let daemon = host_with_disks();
    let run = |args: &[&str]| outcome(&daemon.run(&[&["qos", "flows"], args].concat()));
    let (code, out, _) = run(&[]);
    assert_eq!((code, out.lines().count()), (0, 3), "{out}");
    assert!(out.contains("the device is saturated"), "{out}");
    let (_, out, _) = run(&["db", "--json"]);
    let flows: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((flows.as_array().unwrap().len(), &flows[0]["disk"]), (1, &"db".into()));
    assert_eq!(run(&["--store", "slow", "--json"]), (0, "[]\n".into(), String::new()));
    let (code, _, err) = run(&["off"]);
    assert_eq!(code, 4);
    assert!(err.starts_with("disk `off` is not open, so it has no rates;"), "{err}");
    assert_eq!(run(&["none"]), (4, String::new(), "no disk\n".into()));
}

#[test]
fn flows_are_watched_a_line_of_json_at_a_time() {
    let daemon = host_with_disks();
    let socket = daemon.socket();
    let args = ["--socket", socket.to_str().unwrap(), "qos", "flows", "--watch", "--json"];
    let mut child = command(&[&args[..], &["--interval", "100"]].concat()).spawn().unwrap();
    let read: Vec<String> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .take(2)
        .collect::<Result<_, _>>()
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    for line in read {
        let flows: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(flows.as_array().unwrap().len(), 2);
    }
}
