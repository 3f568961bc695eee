//! The host file: every class of errors, plans, and the state after an apply.

use serde_json::Value;
use suimon_rig::{Daemon, NamespaceGuest, Rig};

const GOOD: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";

fn empty_daemon(rig: &Rig) -> Daemon {
    Daemon::start(rig, GOOD).unwrap()
}

/// Invalid host files: description, text, line of the error, resource, and field.
const WRONG: &[(&str, &str, u32, &str, &str)] = &[
    (
        "unknown key",
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\nqueus = 2\n",
        4,
        "switch/lan",
        "queus",
    ),
    ("unknown table", "[[swich]]\nname = \"lan\"\n", 1, "", "swich"),
    ("no TOML", "[[switch]\nname = \"lan\"\n", 1, "", ""),
    ("wrong type", "[[switch]]\nname = \"lan\"\nkind = 5\n", 3, "switch/lan", "kind"),
    ("wrong word", "[[switch]]\nname = \"lan\"\nkind = \"public\"\n", 3, "switch/lan", "kind"),
    ("missing key", "[[switch]]\nname = \"lan\"\n", 1, "switch/lan", "kind"),
    (
        "duplicate name",
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n",
        5,
        "switch/lan",
        "name",
    ),
    (
        "bad MAC",
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"a\"\nswitch = \"lan\"\nbackend = \"tap\"\nmac = \"52:54:00:00:zz:01\"\n",
        8,
        "nic/a",
        "mac",
    ),
    (
        "group MAC",
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"a\"\nswitch = \"lan\"\nbackend = \"tap\"\nmac = \"01:00:5e:00:00:01\"\n",
        8,
        "nic/a",
        "mac",
    ),
    (
        "VLAN out of range",
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"a\"\nswitch = \"lan\"\nbackend = \"tap\"\nvlan = 4095\n",
        8,
        "nic/a",
        "vlan",
    ),
    (
        "overlapping VLANs",
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"a\"\nswitch = \"lan\"\nbackend = \"tap\"\ntrunk = [\"10-20\", 15]\n",
        8,
        "nic/a",
        "trunk",
    ),
    (
        "unknown switch",
        "[[nic]]\nname = \"a\"\nswitch = \"nowhere\"\nbackend = \"tap\"\n",
        3,
        "nic/a",
        "switch",
    ),
    (
        "external without uplink",
        "[[switch]]\nname = \"wan\"\nkind = \"external\"\n",
        1,
        "switch/wan",
        "uplink",
    ),
    (
        "missing device",
        "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n[[uplink]]\nname = \"up\"\ndevice = \"nodevice0\"\n",
        7,
        "uplink/up",
        "device",
    ),
    (
        "missing namespace",
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"a\"\nswitch = \"lan\"\nbackend = \"tap\"\nnetns = \"nonamespace\"\n",
        8,
        "nic/a",
        "netns",
    ),
    ("VM without memory", "[[vm]]\nname = \"a\"\n", 1, "vm/a", "memory_bytes"),
    (
        "VM with a NIC that is a TAP",
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"a\"\nswitch = \"lan\"\nbackend = \"tap\"\n[[vm]]\nname = \"v\"\nmemory_bytes = \"1 GiB\"\nnics = [\"a\"]\n",
        11,
        "vm/v",
        "nics",
    ),
    (
        "two NICs on one socket",
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"a\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\nsocket = \"/tmp/s\"\n[[nic]]\nname = \"b\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\nsocket = \"/tmp/s\"\n",
        13,
        "nic/b",
        "socket",
    ),
    ("CPU that is not there", "[host]\nworker_cpus = [9999]\n", 2, "host", "worker_cpus"),
    ("listener without TLS", "[api]\nlisten = \"127.0.0.1:8443\"\n", 1, "api", "tls_certificate"),
];

#[test]
fn every_class_of_error_is_refused_with_file_line_and_field_and_nothing_changes() {
    let rig = Rig::new().unwrap();
    let mut daemon = empty_daemon(&rig);
    let before = daemon.json(&["host", "show"]).unwrap();
    let exported = daemon.ok(&["export"]).unwrap();
    for (case, text, line, resource, field) in WRONG {
        let output = daemon.apply(text, &[]).unwrap();
        assert_eq!(output.code, 3, "{case}: {output:?}");
        assert!(output.stdout.is_empty(), "{case}: {output:?}");
        let location = format!(".toml:{line}: ");
        let is_reported = output.stderr.lines().any(|line| {
            line.contains(&location) && line.contains(resource) && line.contains(field)
        });
        assert!(
            is_reported,
            "{case}: expected line {line}, {resource}, {field} in:\n{}",
            output.stderr
        );
    }
    assert_eq!(daemon.ok(&["export"]).unwrap(), exported);
    let after = daemon.json(&["host", "show"]).unwrap();
    assert_eq!(after["revision"], before["revision"]);
    daemon.process().check_running().unwrap();
}

#[test]
fn all_errors_of_a_file_are_reported_at_once() {
    let rig = Rig::new().unwrap();
    let mut daemon = empty_daemon(&rig);
    let text = "[[switch]]\nname = \"wan\"\nkind = \"external\"\n[[nic]]\nname = \"a\"\n\
        switch = \"nowhere\"\nbackend = \"tap\"\nqueues = 99\n";
    let output = daemon.apply(text, &[]).unwrap();
    assert_eq!(output.code, 3);
    for field in ["uplink", "switch", "queues"] {
        assert!(output.stderr.contains(field), "{field}: {}", output.stderr);
    }
}

#[test]
fn the_daemon_refuses_a_wrong_file_at_its_start() {
    let rig = Rig::new().unwrap();
    let file = rig.path("wrong.toml");
    std::fs::write(&file, "[[switch]]\nname = \"lan\"\nkind = \"public\"\n").unwrap();
    let arguments = [
        suimon_rig::program("suimond").unwrap(),
        "--config".into(),
        file,
        "--socket".into(),
        rig.path("api.sock"),
        "--state-dir".into(),
        rig.path("state"),
    ];
    let output = suimon_rig::run_any(&arguments, std::time::Duration::from_secs(90)).unwrap();
    assert!(output.code != 0 && output.code != 124, "{output:?}");
    assert!(output.stderr.contains("wrong.toml:3"), "{output:?}");
    assert!(!rig.file("api.sock").exists());
}

#[test]
fn an_apply_is_planned_done_and_exported() {
    let rig = Rig::new().unwrap();
    let mut daemon = empty_daemon(&rig);
    let a = NamespaceGuest::new(&rig, "a", 1).unwrap();
    let b = NamespaceGuest::new(&rig, "b", 2).unwrap();
    let host =
        format!("{GOOD}{}{}", a.nic_toml("lan", "vlan = 10"), b.nic_toml("lan", "vlan = 10"));
    let plan = daemon.apply(&host, &["--dry-run"]).unwrap();
    assert_eq!(plan.code, 0, "{plan:?}");
    for step in ["nic/a", "nic/b"] {
        assert!(plan.stdout.contains(step) && plan.stdout.contains("create"), "{plan:?}");
    }
    assert_eq!(daemon.json(&["nic", "list"]).unwrap().as_array().unwrap().len(), 0);

    daemon.apply_ok(&host).unwrap();
    a.bring_up().unwrap();
    b.bring_up().unwrap();
    assert!(a.namespace.reaches(&b.address()));
    // Applying the same file again changes nothing, and the exported configuration equals the
    // applied one.
    let revision = daemon.json(&["host", "show"]).unwrap()["revision"].clone();
    daemon.apply_ok(&host).unwrap();
    let exported = daemon.ok(&["export"]).unwrap();
    daemon.apply_ok(&exported).unwrap();
    assert_eq!(daemon.json(&["host", "show"]).unwrap()["revision"], revision);
    let file = rig.file("exported.toml");
    std::fs::write(&file, "former").unwrap();
    daemon.ok(&["export", "--output", file.to_str().unwrap()]).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), exported);

    // The plan distinguishes live changes, replacements and deletions.
    let changed = format!("{GOOD}{}", a.nic_toml("lan", "vlan = 20\nqueues = 2"));
    let plan = daemon.json_plan(&changed);
    let action = |resource: &str| {
        let steps = plan["steps"].as_array().unwrap();
        steps.iter().find(|s| s["resource"] == resource).unwrap()["action"].clone()
    };
    assert_eq!(action("nic/a"), "replace");
    assert_eq!(action("nic/b"), "delete");
    let live =
        format!("{GOOD}{}{}", a.nic_toml("lan", "vlan = 20"), b.nic_toml("lan", "vlan = 10"));
    let plan = daemon.json_plan(&live);
    assert_eq!(plan["steps"][0]["action"], "change-live", "{plan}");
    daemon.apply_ok(&live).unwrap();
    assert!(a.namespace.cannot_reach(&b.address()).unwrap());
    // Imperative commands change the same desired state.
    daemon.ok(&["nic", "delete", "b"]).unwrap();
    assert!(!daemon.ok(&["export"]).unwrap().contains("\"b\""));
}

#[test]
fn an_apply_that_fails_half_way_leaves_everything_as_it_was() {
    let rig = Rig::new().unwrap();
    let (a, b) =
        (NamespaceGuest::new(&rig, "a", 1).unwrap(), NamespaceGuest::new(&rig, "b", 2).unwrap());
    let host = format!("{GOOD}{}{}", a.nic_toml("lan", ""), b.nic_toml("lan", ""));
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    a.bring_up().unwrap();
    b.bring_up().unwrap();
    assert!(a.namespace.reaches(&b.address()));
    let exported = daemon.ok(&["export"]).unwrap();
    // The device exists in the namespace but is not a TAP device.
    b.namespace.run(&["ip", "link", "add", "br9", "type", "bridge"]).unwrap();
    let extended = format!(
        "{host}[[nic]]\nname = \"c\"\nswitch = \"lan\"\nbackend = \"tap\"\ndevice = \"br9\"\nnetns = \"{}\"\n",
        b.namespace.name()
    );
    let output = daemon.apply(&extended, &[]).unwrap();
    assert!(output.code != 0, "{output:?}");
    assert!(output.stderr.contains("nic/c") && output.stderr.contains("device"), "{output:?}");
    assert_eq!(daemon.ok(&["export"]).unwrap(), exported);
    assert!(a.namespace.reaches(&b.address()));
}

/// Plan of an apply as JSON.
trait JsonPlan {
    fn json_plan(&mut self, host: &str) -> Value;
}

impl JsonPlan for Daemon {
    fn json_plan(&mut self, host: &str) -> Value {
        let body = serde_json::json!({ "toml": host, "file": "host.toml" }).to_string();
        let answer = self.http("POST", "/1.0/apply?dry_run=true", Some(&body)).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json
    }
}

#[test]
fn a_worker_is_pinned_while_the_file_names_its_cpu() {
    let rig = Rig::new().unwrap();
    let mut daemon = empty_daemon(&rig);
    let cpus = |daemon: &Daemon| {
        let workers = daemon.json(&["worker", "list"]).unwrap();
        let cpus = workers.as_array().unwrap().iter().map(|worker| worker["cpu"].clone());
        cpus.collect::<Vec<_>>()
    };
    // CPUs on which the kernel may run each worker.
    let affinities = |daemon: &mut Daemon| {
        let tasks = format!("/proc/{}/task", daemon.process().id());
        let tasks = std::fs::read_dir(tasks).unwrap().map(|task| task.unwrap().path());
        let workers = tasks.filter(|task| {
            std::fs::read_to_string(task.join("comm"))
                .is_ok_and(|name| name.starts_with("processor-"))
        });
        let allowed = workers.map(|task| {
            let status = std::fs::read_to_string(task.join("status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            line.unwrap().trim().to_owned()
        });
        allowed.collect::<Vec<_>>()
    };
    let own_affinity = std::fs::read_to_string("/proc/self/status").unwrap();
    let own_affinity =
        own_affinity.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let own_affinity = vec![own_affinity.unwrap().trim().to_owned()];

    assert_eq!((cpus(&daemon), affinities(&mut daemon)), (vec![Value::Null], own_affinity.clone()));
    daemon.apply_ok(&format!("[host]\nworker_cpus = [0]\n{GOOD}")).unwrap();
    assert_eq!((cpus(&daemon), affinities(&mut daemon)), (vec![0.into()], vec!["0".to_owned()]));
    daemon.kill();
    daemon.restart(&rig).unwrap();
    assert_eq!((cpus(&daemon), affinities(&mut daemon)), (vec![0.into()], vec!["0".to_owned()]));
    daemon.apply_ok(GOOD).unwrap();
    assert_eq!((cpus(&daemon), affinities(&mut daemon)), (vec![Value::Null], own_affinity));
    assert!(daemon.ok(&["worker", "list"]).unwrap().contains(" any "));
}
