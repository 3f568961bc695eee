//! Alert rules and dashboard of `dist`: Prometheus accepts them, alerts fire as intended, and the
//! daemon exports each metric that they use.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, Namespace, Rig, Veth, run, run_any, wait_until};

const DIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist");

const PATIENCE: Duration = Duration::from_secs(120);

/// Metrics that do not exist on machines without energy counters.
const NOT_EVERYWHERE: [&str; 1] = ["suimon_power_watts"];

/// Returns the expressions of all panels and variables of the dashboard.
fn dashboard() -> Vec<String> {
    let text = fs::read_to_string(format!("{DIST}/grafana/suimon.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let exprs: Vec<_> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    assert!(exprs.len() > 25, "{exprs:?}");
    exprs
}

/// Returns the names of Suimon's metrics in a text, without the suffixes that Prometheus adds to
/// those of counters.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let names = text.split(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_');
    names.filter(|name| name.starts_with("suimon_")).map(str::to_owned).collect()
}

/// Returns the metrics of a daemon that has an object of each kind with metrics.
fn text_of_metrics(rig: &Rig) -> String {
    let world = Namespace::new(rig, "world").unwrap();
    let wires = ["l", "r"]
        .map(|tag| Veth::new(&rig.device(tag), &rig.device(&format!("{tag}f")), &world).unwrap());
    let store = rig.path("store");
    fs::create_dir(&store).unwrap();
    let kernel = rig.path("kernel");
    fs::write(&kernel, "none").unwrap();
    let socket = rig.path("nbd.sock");
    let mut text = format!(
        "[[store]]\nname = \"s\"\npath = \"{store}\"\ncapacity_iops = 10000\n\
         [[disk]]\nname = \"d\"\nstore = \"s\"\nformat = \"raw\"\nsize_bytes = \"16 MiB\"\n\
         nbd = {{ socket = \"{socket}\" }}\nqos = {{ min_iops = 10 }}\n\
         [[team]]\nname = \"t\"\nmembers = [\"l\", \"r\"]\nmode = \"switch-independent\"\n\
         [[switch]]\nname = \"w\"\nkind = \"external\"\nuplink = \"t\"\n\
         [[nic]]\nname = \"n\"\nswitch = \"w\"\nbackend = \"vhost-user\"\n\
         [[vm]]\nname = \"v\"\nmemory_bytes = \"64 MiB\"\nkernel = \"{kernel}\"\nnics = [\"n\"]\n\
         [host]\nvm_folder = \"{}\"\n",
        rig.path("vms")
    );
    for (name, wire) in ["l", "r"].iter().zip(&wires) {
        let near = wire.near();
        let _ = write!(text, "[[uplink]]\nname = \"{name}\"\ndevice = \"{near}\"\n");
    }
    let daemon = Daemon::start(rig, &text).unwrap();
    wait_until("the disk", PATIENCE, || {
        Ok(daemon.json(&["disk", "show", "d"])?["state"] == "ready")
    })
    .unwrap();
    run(&["nbdcopy", "--no-extents", &format!("nbd+unix:///d?socket={socket}"), "null:"]).unwrap();
    daemon.http("GET", "/metrics", None).unwrap().text
}

#[test]
fn every_metric_of_alerts_and_dashboard_is_one_that_a_daemon_has() {
    let rig = Rig::new().unwrap();
    let text = text_of_metrics(&rig);
    let exported = metrics_in(&text);
    let rules = fs::read_to_string(format!("{DIST}/prometheus/suimon.rules.yml")).unwrap();
    let mut required = metrics_in(&rules);
    for expr in dashboard() {
        required.extend(metrics_in(&expr));
    }
    assert!(required.len() > 25, "{required:?}");
    let missing: Vec<_> = required
        .iter()
        .filter(|name| !exported.contains(*name) && !NOT_EVERYWHERE.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?} of {text}");
}

#[test]
fn prometheus_takes_rules_and_expressions_and_alerts_come_when_they_are_to() {
    let rig = Rig::new().unwrap();
    let check = |arguments: &[&str]| {
        let output = run_any(arguments, PATIENCE).unwrap();
        assert!(output.is_ok(), "{}{}", output.stdout, output.stderr);
    };
    check(&["promtool", "check", "rules", &format!("{DIST}/prometheus/suimon.rules.yml")]);
    check(&["promtool", "test", "rules", &format!("{DIST}/prometheus/suimon.rules.test.yml")]);
    let mut text = "groups:\n  - name: dashboard\n    rules:\n".to_owned();
    for (index, expr) in dashboard().iter().enumerate() {
        let expr = expr.replace("$__rate_interval", "1m").replace('\'', "''");
        let _ = write!(text, "      - record: panel:{index}\n        expr: '{expr}'\n");
    }
    let file = rig.path("dashboard.yml");
    fs::write(&file, text).unwrap();
    check(&["promtool", "check", "rules", &file]);
}
