//! Two daemons with one directory, an etcd of three members, and fio on their disks over NBD: rates
//! granted to nodes on a shared store. etcd uses TLS and passwords. The store's declared capacity
//! is far below the throughput of the device, so that only Suimon limits the rates.

use std::fs;
use std::net::TcpListener;
use std::time::Instant;

use serde_json::Value;
use suimon_rig::{
    Daemon, Etcd, LastingLoad, Process, Rig, Sampling, create_certificates, wait_for_value,
    wait_until,
};

use crate::caps::{Cap, LASTS_S, PATIENCE, WINDOW, assert_within, assert_within_now, wait_used};

/// Declared capacity of the store in operations of 8 KiB per second.
const CAPACITY_IOPS: u64 = 4000;
const MINIMUM: u64 = 2000;
const MAXIMUM: u64 = 600;
/// Outstanding requests of each disk.
const DEPTH: u32 = 16;
/// Disks of the second node.
const BULK: [&str; 2] = ["bulk-a", "bulk-b"];

/// Returns the host file of a node with these disks and the keys of their `qos` tables.
fn host(rig: &Rig, etcd: &Etcd, node: &str, disks: &[(&str, &str)]) -> String {
    let store = rig.path("san");
    fs::create_dir_all(&store).unwrap();
    let tls = etcd.folder().display();
    let mut text = format!(
        "[cluster]\nname = \"lab\"\nnode = \"{node}\"\nendpoints = {}\n\
         user = \"suimon\"\npassword_file = \"{tls}/suimon.password\"\n\
         [cluster.tls]\nca_certificate = \"{tls}/ca-cert.pem\"\n\
         [[store]]\nname = \"san\"\npath = \"{store}\"\nshared = true\n\
         capacity_iops = {CAPACITY_IOPS}\n",
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

/// Starts unlimited reads from disks of a node, until the load is stopped.
fn load(rig: &Rig, node: &str, disks: &[&str]) -> LastingLoad {
    LastingLoad::begin(rig, &socket(rig, node), disks, DEPTH, LASTS_S).unwrap()
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

/// Returns the rate of the store that is currently granted to the node.
fn cap(daemon: &Daemon) -> Cap {
    Cap::read(&cluster(daemon)["stores"][0]["cap"], daemon)
}

/// Asserts that the first node's reserved and granted rates are at least its disk's minimum.
fn assert_minimum(first: &Daemon) {
    let cap = cap(first);
    assert!(cap.reserved >= MINIMUM && cap.iops >= MINIMUM, "{cap:?} of {MINIMUM}");
}

fn minimums_and_maximums_are_met_while_another_node_loads_the_store() {
    let rig = Rig::new().unwrap();
    let mut etcd = Etcd::start_secured(&rig, "/suimon/lab/").unwrap();
    let first = Daemon::start(&rig, &host(&rig, &etcd, "n1", &[("gold", "weight = 100")])).unwrap();
    let bulk = [("bulk-a", "weight = 100"), ("bulk-b", "weight = 100")];
    let mut second = Daemon::start(&rig, &host(&rig, &etcd, "n2", &bulk)).unwrap();
    let is_ready = |daemon: &Daemon| leader(daemon).is_some() && reserved(daemon) == 64;
    wait_until("both nodes to have a minimum reservation", PATIENCE, || {
        Ok(is_ready(&first) && is_ready(&second))
    })
    .unwrap();
    let members = cluster(&first)["members"].as_array().unwrap().len();
    assert_eq!(members, 2);
    check_rejected_nodes(&rig, &etcd);

    // All disks are under load; then one gets a minimum; then etcd's leader is killed.
    eprintln!("minimum:");
    let started = Instant::now();
    let loads = [load(&rig, "n1", &["gold"]), load(&rig, "n2", &BULK)];
    let sampled = [Sampling::begin(&first, &["gold"]), Sampling::begin(&second, &BULK)];
    wait_used("all without a minimum", CAPACITY_IOPS, || vec![cap(&first), cap(&second)]);
    first.ok(&["qos", "set", "gold", &format!("min_iops={MINIMUM}")]).unwrap();
    wait_until("the minimum to be reserved", PATIENCE, || Ok(reserved(&first) >= MINIMUM)).unwrap();
    assert_minimum(&first);
    wait_used("all with a minimum", CAPACITY_IOPS, || vec![cap(&first), cap(&second)]);
    let lists_disk = |flows: &Value, disk| {
        flows.as_array().is_some_and(|flows| flows.iter().any(|flow| flow["disk"] == disk))
    };
    wait_until("all disks in the flows of the cluster", PATIENCE, || {
        let flows = first.json(&["qos", "flows", "--cluster"])?;
        Ok(["gold", BULK[0], BULK[1]].iter().all(|disk| lists_disk(&flows, *disk)))
    })
    .unwrap();
    let killed = etcd.leader().unwrap();
    etcd.kill(killed).unwrap();
    // The minimum remains reserved until etcd has another leader.
    let without_leader = Instant::now();
    wait_until("another leader of etcd", PATIENCE, || {
        assert_minimum(&first);
        Ok(etcd.leader().is_some() && without_leader.elapsed() > WINDOW)
    })
    .unwrap();
    wait_until("the connection to etcd", PATIENCE, || {
        assert_minimum(&first);
        Ok(cluster(&first)["condition"]["health"] == "up")
    })
    .unwrap();
    let counts: Vec<_> = sampled.into_iter().flat_map(|sampling| sampling.end().unwrap()).collect();
    assert_within("all", &counts, (started, Instant::now()), CAPACITY_IOPS, (3 * DEPTH).into());
    for load in loads {
        load.stop().unwrap();
    }

    check_maximums_and_kill_a_daemon(&rig, &first, &mut second);

    // A node that leaves the cluster releases its reservation.
    let output = second.cli(&["cluster", "leave"]).unwrap();
    assert!(!output.is_ok() && output.stderr.contains("bulk-a"), "{output:?}");
    second.ok(&["cluster", "leave", "--force"]).unwrap();
    wait_until("the node to leave the cluster", PATIENCE, || {
        Ok(cluster(&first)["members"].as_array().unwrap().len() == 1)
    })
    .unwrap();
}

/// Attempts to join with a wrong CA certificate, an expired certificate of etcd, a wrong password,
/// and a user without permissions. Each is reported with its reason, and the host's configuration
/// remains unchanged.
fn check_rejected_nodes(rig: &Rig, etcd: &Etcd) {
    let host = Daemon::start(rig, "").unwrap();
    let before = host.ok(&["export"]).unwrap();
    let folder = etcd.folder().to_string_lossy().into_owned();
    let other = create_certificates(rig.path("other-authority").as_ref());
    let other = other.join("ca-cert.pem").to_string_lossy().into_owned();
    let own_ca = format!("{folder}/ca-cert.pem");
    let password = |user: &str| format!("{folder}/{user}.password");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (expired, key) =
        (format!("{folder}/expired-cert.pem"), format!("{folder}/expired-key.pem"));
    let server =
        ["openssl", "s_server", "-quiet", "-accept", &port, "-cert", &expired, "-key", &key];
    let _server = Process::start(rig, "openssl", &server).unwrap();
    let reached = || Ok(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    wait_until("openssl to listen", PATIENCE, reached).unwrap();
    let members: Vec<String> = serde_json::from_str(&etcd.endpoints()).unwrap();
    let members = members.join(",");
    let stale = format!("https://127.0.0.1:{port}");
    let cases = [
        (&members, &other, ("suimon", password("suimon")), "certificate"),
        (&stale, &own_ca, ("suimon", password("suimon")), "expired"),
        (&members, &own_ca, ("suimon", password("other")), "password"),
        (&members, &own_ca, ("other", password("other")), "role"),
    ];
    for (endpoints, authority, (user, file), reason) in cases {
        let arguments = [
            "cluster",
            "join",
            "lab",
            "--as",
            "n3",
            "--endpoints",
            endpoints,
            "--ca-certificate",
            authority,
            "--user",
            user,
            "--password-file",
            &file,
        ];
        // etcd's members write to a disk that all tests share, and may not respond for seconds.
        let result = wait_for_value("a reply of etcd", PATIENCE, || {
            Ok(Some(host.cli(&arguments)?)
                .filter(|output| !output.stderr.contains("no reply in time")))
        });
        let result = result.unwrap();
        eprintln!("  {}", result.stderr.trim());
        assert!(!result.is_ok() && result.stderr.contains(reason), "{reason}: {result:?}");
        assert_eq!(host.ok(&["export"]).unwrap(), before);
    }
}

/// The disks of the second node get a maximum; then its daemon is killed, whether or not it is the
/// leader.
fn check_maximums_and_kill_a_daemon(rig: &Rig, first: &Daemon, second: &mut Daemon) {
    eprintln!("maximum:");
    for disk in BULK {
        second.ok(&["qos", "set", disk, &format!("max_iops={MAXIMUM}")]).unwrap();
    }
    let started = Instant::now();
    let (gold, other) = (load(rig, "n1", &["gold"]), load(rig, "n2", &BULK));
    let sampled = [Sampling::begin(first, &["gold"]), Sampling::begin(second, &BULK)];
    for disk in BULK {
        wait_until("load on each disk", PATIENCE, || {
            let flows = second.json(&["qos", "flows"])?;
            let flow = flows.as_array().unwrap().iter().find(|flow| flow["disk"] == disk);
            Ok(flow.unwrap()["last_5_s"]["queued_ns"]["own-maximum"].as_u64() > Some(0))
        })
        .unwrap();
    }
    for disk in BULK {
        assert_within_now(disk, &[(second, disk)], MAXIMUM, DEPTH.into());
    }
    wait_used("gold beside that", CAPACITY_IOPS - 2 * MAXIMUM, || vec![cap(first)]);
    second.kill();
    other.stop().unwrap();
    wait_until("the killed node to be reported as dead", PATIENCE, || {
        assert_minimum(first);
        let members = cluster(first)["members"].take();
        Ok(members.as_array().unwrap().iter().any(|member| member["is_alive"] == false))
    })
    .unwrap();
    second.restart(rig).unwrap();
    assert_minimum(first);
    let counts: Vec<_> = sampled.into_iter().flat_map(|sampling| sampling.end().unwrap()).collect();
    assert_within("all", &counts, (started, Instant::now()), CAPACITY_IOPS, (3 * DEPTH).into());
    gold.stop().unwrap();
    wait_until("a leader of the store", PATIENCE, || Ok(leader(first).is_some())).unwrap();
    wait_until("the restarted node to be alive", PATIENCE, || {
        let members = cluster(first)["members"].clone();
        Ok(members.as_array().unwrap().iter().all(|member| member["is_alive"] == true))
    })
    .unwrap();
}

mod full {
    #[test]
    fn minimums_and_maximums_are_met_while_another_node_loads_the_store() {
        super::minimums_and_maximums_are_met_while_another_node_loads_the_store();
    }
}
