//! Two daemons with one directory, an etcd of three members, and fio on their disks over NBD: what
//! nodes may do of a store that they share. etcd has TLS and passwords. The store's declared capability is far below what the
//! device does, so that whatever holds it is ours.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{
    Daemon, Delivered, Etcd, LastingLoad, Process, Rig, authority, extremes, now_ms, until,
};

const PATIENCE: Duration = Duration::from_secs(30);
/// What the store is said to be able to do, in operations of 8 KiB a second.
const CAPABILITY: u64 = 4000;
const MINIMUM: u64 = 2000;
const MAXIMUM: u64 = 600;
/// So long a change may take until it is in effect.
const SETTLES_MS: u64 = 5000;

/// A host with these disks, each with its own keys of `qos`.
fn host(rig: &Rig, etcd: &Etcd, node: &str, disks: &[(&str, &str)]) -> String {
    let store = rig.path("san");
    fs::create_dir_all(&store).unwrap();
    let tls = etcd.folder().display();
    let mut text = format!(
        "[cluster]\nname = \"lab\"\nnode = \"{node}\"\nendpoints = {}\n\
         user = \"suimon\"\npassword_file = \"{tls}/suimon.password\"\n\
         [cluster.tls]\nauthority = \"{tls}/ca-cert.pem\"\n\
         [[store]]\nname = \"san\"\npath = \"{store}\"\nshared = true\n\
         capability_iops = {CAPABILITY}\n",
        etcd.endpoints()
    );
    for (name, qos) in disks {
        text += &format!(
            "[[disk]]\nname = \"{name}\"\nstore = \"san\"\nformat = \"raw\"\n\
             size_bytes = \"64 MiB\"\nqos = {{ {qos} }}\n[disk.nbd]\nsocket = \"{}\"\n",
            socket(rig, node)
        );
    }
    text
}

fn socket(rig: &Rig, node: &str) -> String {
    rig.path(&format!("{node}.nbd"))
}

/// All disks of a node read as much as they get.
fn load(rig: &Rig, node: &str, disks: &[&str], depth: u32, seconds: u32) -> LastingLoad {
    LastingLoad::begin(rig, &socket(rig, node), disks, depth, seconds).unwrap()
}

/// In no window all disks of both nodes together get more than the store can do.
fn assert_within(got: &[Delivered], from: u64, until: u64) {
    let (_, most) = extremes(got, from, until);
    eprintln!("  at most {most:.0} of {CAPABILITY} in 5 s");
    assert!(most <= CAPABILITY as f64 * 1.02, "{most}");
}

fn cluster(daemon: &Daemon) -> Value {
    daemon.json(&["cluster", "status"]).unwrap()
}

fn leader(daemon: &Daemon) -> Option<String> {
    Some(cluster(daemon)["stores"][0]["leader"].as_str()?.to_owned())
}

fn reserved(daemon: &Daemon) -> u64 {
    cluster(daemon)["stores"][0]["cap"]["reserved_iops"].as_u64().unwrap_or_default()
}

#[test]
fn minimums_and_maximums_hold_although_another_node_loads_the_store() {
    let rig = Rig::new().unwrap();
    let mut etcd = Etcd::start_secured(&rig, "/suimon/lab/").unwrap();
    let one = Daemon::start(&rig, &host(&rig, &etcd, "n1", &[("gold", "weight = 100")])).unwrap();
    let bulk = [("bulk-a", "weight = 100"), ("bulk-b", "weight = 100")];
    let mut two = Daemon::start(&rig, &host(&rig, &etcd, "n2", &bulk)).unwrap();
    let is_ready = |daemon: &Daemon| leader(daemon).is_some() && reserved(daemon) == 64;
    until("both nodes to have a floor", PATIENCE, || Ok(is_ready(&one) && is_ready(&two))).unwrap();
    let members = cluster(&one)["members"].as_array().unwrap().len();
    assert_eq!(members, 2);
    who_is_not_let_in_is_told_why(&rig, &etcd);

    // All want all there is; then one has a minimum; meanwhile etcd's leader dies.
    eprintln!("minimum:");
    let began = now_ms();
    let gold = load(&rig, "n1", &["gold"], 4, 34);
    let other = load(&rig, "n2", &["bulk-a", "bulk-b"], 16, 34);
    std::thread::sleep(Duration::from_secs(11));
    let set = now_ms();
    one.ok(&["qos", "set", "gold", "min_iops=2000"]).unwrap();
    std::thread::sleep(Duration::from_secs(12));
    let flows = one.json(&["qos", "flows", "--cluster"]).unwrap();
    let killed = now_ms();
    etcd.kill(etcd.leader().unwrap()).unwrap();
    let (gold, other) = (gold.end().unwrap(), other.end().unwrap());
    let end = began + 33_000;
    let all = [gold.clone(), other].concat();
    assert_within(&all, began, end);
    let sum = |from, until| all.iter().map(|of| of.rate(from, until)).sum::<f64>();
    let (unlimited, with_minimum) = (sum(began + SETTLES_MS, set), sum(set + SETTLES_MS, killed));
    eprintln!("  used {unlimited:.0} before the minimum, {with_minimum:.0} with it");
    assert!(unlimited >= CAPABILITY as f64 * 0.95, "{unlimited}");
    assert!(with_minimum >= CAPABILITY as f64 * 0.95, "{with_minimum}");
    let before = gold[0].rate(began + SETTLES_MS, set);
    let after = gold[0].rate(set + SETTLES_MS, killed);
    let without = gold[0].rate(killed, end);
    eprintln!("  gold: {before:.0}, {after:.0} with a minimum, {without:.0} as etcd's leader died");
    assert!(before < MINIMUM as f64, "the store would do without a minimum: {before}");
    assert!(after >= MINIMUM as f64 * 0.98, "{after}");
    assert!(without >= MINIMUM as f64 * 0.98, "{without}");
    let named: Vec<_> = flows.as_array().unwrap().iter().map(|of| of["disk"].clone()).collect();
    for disk in ["gold", "bulk-a", "bulk-b"] {
        assert!(named.contains(&disk.into()), "{flows}");
    }

    maximums_hold_and_a_daemon_dies(&rig, &one, &mut two);

    // Who leaves gives back what is reserved.
    let said = two.cli(&["cluster", "leave"]).unwrap();
    assert!(!said.is_ok() && said.stderr.contains("bulk-a"), "{said:?}");
    two.ok(&["cluster", "leave", "--force"]).unwrap();
    until("it to be out", PATIENCE, || Ok(cluster(&one)["members"].as_array().unwrap().len() == 1))
        .unwrap();
}

/// Another host that would be a node: the wrong authority, an etcd whose certificate has expired, a wrong
/// password and a user that may do nothing. Each is told apart, and the host is as it was.
fn who_is_not_let_in_is_told_why(rig: &Rig, etcd: &Etcd) {
    let host = Daemon::start(rig, "").unwrap();
    let before = host.ok(&["export"]).unwrap();
    let folder = etcd.folder().to_string_lossy().into_owned();
    let other = authority(rig.path("other-authority").as_ref());
    let other = other.join("ca-cert.pem").to_string_lossy().into_owned();
    let own = format!("{folder}/ca-cert.pem");
    let password = |user: &str| format!("{folder}/{user}.password");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (expired, key) =
        (format!("{folder}/expired-cert.pem"), format!("{folder}/expired-key.pem"));
    let server =
        ["openssl", "s_server", "-quiet", "-accept", &port, "-cert", &expired, "-key", &key];
    let _server = Process::start(rig, "openssl", &server).unwrap();
    let reached = || Ok(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    until("openssl to listen", PATIENCE, reached).unwrap();
    let members: Vec<String> = serde_json::from_str(&etcd.endpoints()).unwrap();
    let members = members.join(",");
    let stale = format!("https://127.0.0.1:{port}");
    let cases = [
        (&members, &other, ("suimon", password("suimon")), "certificate"),
        (&stale, &own, ("suimon", password("suimon")), "expired"),
        (&members, &own, ("suimon", password("other")), "password"),
        (&members, &own, ("other", password("other")), "role"),
    ];
    for (endpoints, authority, (user, file), why) in cases {
        let words = [
            "cluster",
            "join",
            "lab",
            "--as",
            "n3",
            "--endpoints",
            endpoints,
            "--authority",
            authority,
            "--user",
            user,
            "--password-file",
            &file,
        ];
        let said = host.cli(&words).unwrap();
        eprintln!("  {}", said.stderr.trim());
        assert!(!said.is_ok() && said.stderr.contains(why), "{why}: {said:?}");
        assert_eq!(host.ok(&["export"]).unwrap(), before);
    }
}

/// The other node's disks have a maximum; then its daemon dies, leader or not.
fn maximums_hold_and_a_daemon_dies(rig: &Rig, one: &Daemon, two: &mut Daemon) {
    eprintln!("maximum:");
    let began = now_ms();
    let gold = load(rig, "n1", &["gold"], 16, 30);
    let other = load(rig, "n2", &["bulk-a", "bulk-b"], 16, 12);
    for disk in ["bulk-a", "bulk-b"] {
        two.ok(&["qos", "set", disk, &format!("max_iops={MAXIMUM}")]).unwrap();
    }
    let other = other.end().unwrap();
    let died = now_ms();
    two.kill();
    std::thread::sleep(Duration::from_secs(10));
    two.restart(rig).unwrap();
    let gold = gold.end().unwrap();
    let end = began + 29_000;
    assert_within(&[gold.clone(), other.clone()].concat(), began, end);
    for (of, disk) in other.iter().zip(["bulk-a", "bulk-b"]) {
        let rate = of.rate(began + SETTLES_MS, began + 11_000);
        eprintln!("  {disk}: {rate:.0}");
        assert!(rate <= MAXIMUM as f64 * 1.02 && rate >= MAXIMUM as f64 * 0.95, "{disk}: {rate}");
    }
    let beside = gold[0].rate(began + SETTLES_MS, died);
    let (least, _) = extremes(&gold, died, end);
    eprintln!("  gold: {beside:.0} beside that, {least:.0} at least in 5 s while a daemon died");
    let spare = (CAPABILITY - 2 * MAXIMUM) as f64;
    assert!(beside >= spare * 0.95, "{beside}");
    assert!(least >= MINIMUM as f64 * 0.98, "{least}");
    until("somebody to lead", PATIENCE, || Ok(leader(one).is_some())).unwrap();
    until("the node that died to be back", PATIENCE, || {
        let members = cluster(one)["members"].clone();
        Ok(members.as_array().unwrap().iter().all(|of| of["is_alive"] == true))
    })
    .unwrap();
}
