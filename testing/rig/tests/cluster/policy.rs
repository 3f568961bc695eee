//! Two daemons with one directory and an etcd: a policy of the cluster, whose maximum the disks on
//! both nodes together observe; and changes that the cluster rejects.

use std::fs;

use serde_json::Value;
use suimon_rig::{Daemon, Etcd, LastingLoad, Rig, wait_until};

use crate::caps::{Cap, LASTS_S, PATIENCE, assert_within_now, wait_used};

/// Declared capacity of the store in operations of 8 KiB per second.
const CAPACITY_IOPS: u64 = 8000;
/// Maximum of the policy, for all of its disks together.
const MAXIMUM: u64 = 1500;
const LESS: u64 = 900;
/// Outstanding requests of each node's load.
const DEPTH: u32 = 16;

/// Returns the host file of a node with one disk, to whose table `of_disk` is added.
fn host(rig: &Rig, etcd: &Etcd, node: &str, of_disk: &str) -> String {
    let store = rig.path("san");
    fs::create_dir_all(&store).unwrap();
    let (endpoints, socket) = (etcd.endpoints(), socket(rig, node));
    format!(
        "[cluster]\nname = \"lab\"\nnode = \"{node}\"\nendpoints = {endpoints}\n\
         [[store]]\nname = \"san\"\npath = \"{store}\"\nshared = true\n\
         capacity_iops = {CAPACITY_IOPS}\n\
         [[disk]]\nname = \"d-{node}\"\nstore = \"san\"\nformat = \"raw\"\n\
         size_bytes = \"64 MiB\"\n{of_disk}\n[disk.nbd]\nsocket = \"{socket}\"\n"
    )
}

fn socket(rig: &Rig, node: &str) -> String {
    rig.path(&format!("{node}.nbd"))
}

fn policy(daemon: &Daemon) -> Option<Value> {
    daemon.json(&["qos", "policy", "show", "batch"]).ok()
}

/// Returns the rate of the policy that the node keeps when its lease expires; `None` without the
/// policy.
fn reserved(daemon: &Daemon) -> Option<u64> {
    policy(daemon)?["parts"][0]["max"]["reserved_iops"].as_u64()
}

/// Returns the rate of the policy that is currently granted to the node.
fn cap(daemon: &Daemon) -> Cap {
    let policy = policy(daemon).unwrap_or_default();
    Cap::read(&policy["parts"][0]["max"], daemon)
}

fn load(rig: &Rig, node: &str) -> LastingLoad {
    let disk = format!("d-{node}");
    LastingLoad::begin(rig, &socket(rig, node), &[&disk], DEPTH, LASTS_S).unwrap()
}

/// Changes a policy, and repeats the command until etcd responds: etcd's members write to a device
/// that other tests use too, which may take seconds. A command without a timely response may have
/// made the change.
fn change(daemon: &Daemon, arguments: &[&str]) {
    let mut stderr = String::new();
    let changed = wait_until("the change of the policy", PATIENCE, || {
        let output = daemon.cli(arguments)?;
        stderr = output.stderr.trim().to_owned();
        Ok(output.is_ok() || stderr.contains("already"))
    });
    changed.unwrap_or_else(|error| panic!("{error:#}: {stderr}"));
}

#[test]
fn disks_of_a_policy_on_two_nodes_keep_to_its_maximum_together() {
    let rig = Rig::new().unwrap();
    let etcd = Etcd::start(&rig).unwrap();
    let first_node = Daemon::start(&rig, &host(&rig, &etcd, "n1", "")).unwrap();
    let mut second_node = Daemon::start(&rig, &host(&rig, &etcd, "n2", "")).unwrap();
    let add = ["qos", "policy", "add", "batch", "--kind", "aggregated", "--shared"];
    change(&first_node, &[&add[..], &["--max-iops", &MAXIMUM.to_string()]].concat());
    wait_until("the policy on the other node", PATIENCE, || Ok(policy(&second_node).is_some()))
        .unwrap();
    first_node.ok(&["qos", "set", "d-n1", "--policy", "batch"]).unwrap();
    second_node.ok(&["qos", "set", "d-n2", "--policy", "batch"]).unwrap();
    let has_half = |daemon: &Daemon| reserved(daemon) == Some(MAXIMUM / 4);
    wait_until("reservations of both nodes", PATIENCE, || {
        Ok(has_half(&first_node) && has_half(&second_node))
    })
    .unwrap();

    // Both nodes load their disks; then the maximum is lowered; then one node becomes idle.
    let (first, second) = (load(&rig, "n1"), load(&rig, "n2"));
    let node_disks = [(&first_node, "d-n1"), (&second_node, "d-n2")];
    let of_both = u64::from(2 * DEPTH);
    wait_used("both", MAXIMUM, || vec![cap(&first_node), cap(&second_node)]);
    assert_within_now("both", &node_disks, MAXIMUM, of_both);
    for (daemon, node) in [(&first_node, "n1"), (&second_node, "n2")] {
        // Half of the maximum, or less if the machine does not deliver that much.
        wait_used(node, MAXIMUM * 2 / 5, || vec![cap(daemon)]);
    }
    change(&second_node, &["qos", "policy", "set", "batch", "--max-iops", &LESS.to_string()]);
    let output = second_node.cli(&["qos", "policy", "delete", "batch"]).unwrap();
    assert!(!output.is_ok() && output.stderr.contains("disk/d-n2"), "{output:?}");
    let mut caps = Vec::new();
    let is_less = wait_until("lower reservations of both nodes", PATIENCE, || {
        caps = vec![cap(&first_node), cap(&second_node)];
        let has_part = caps.iter().all(|cap| cap.reserved == LESS / 4);
        Ok(has_part && caps.iter().map(|cap| cap.iops).sum::<u64>() <= LESS)
    });
    is_less.unwrap_or_else(|error| panic!("{error:#}: {caps:?}"));
    assert_within_now("both with less", &node_disks, LESS, of_both);
    wait_used("both with less", LESS, || vec![cap(&first_node), cap(&second_node)]);
    second.stop().unwrap();
    // A quarter remains reserved for the idle node, which may use it at once.
    wait_used("one alone", LESS * 3 / 4, || vec![cap(&first_node)]);
    assert_within_now("one alone", &node_disks[..1], LESS * 3 / 4, DEPTH.into());
    first.stop().unwrap();

    // The policy remains after a restart, and cannot be deleted while a disk of another node uses
    // it.
    second_node.kill();
    second_node.restart(&rig).unwrap();
    wait_until("the reservation of the restarted node", PATIENCE, || {
        Ok(reserved(&second_node) == Some(LESS / 4))
    })
    .unwrap();
    first_node.ok(&["qos", "set", "d-n1", "weight=100"]).unwrap();
    let output = first_node.cli(&["qos", "policy", "delete", "batch"]).unwrap();
    assert!(!output.is_ok() && output.stderr.contains("node `n2`"), "{output:?}");
    second_node.ok(&["qos", "set", "d-n2", "weight=100"]).unwrap();
    wait_until("the deletion of the unused policy", PATIENCE, || {
        Ok(first_node.cli(&["qos", "policy", "delete", "batch"])?.is_ok())
    })
    .unwrap();
    wait_until("the deletion of the policy on the other node", PATIENCE, || {
        Ok(policy(&second_node).is_none())
    })
    .unwrap();

    check_admission_of_minimums(&first_node, etcd);
}

/// Returns the effective minimum of the only disk.
fn minimum(daemon: &Daemon) -> Option<u64> {
    let flows = daemon.json(&["qos", "flows"]).unwrap();
    flows[0]["limits"]["min_iops"].as_u64()
}

/// A minimum that the cluster rejects is an error, and one that etcd cannot confirm is pending and
/// not guaranteed; nodes detect each other's heartbeats without etcd.
fn check_admission_of_minimums(first: &Daemon, mut etcd: Etcd) {
    let set = |min: u64| first.cli(&["qos", "set", "d-n1", &format!("min_iops={min}")]).unwrap();
    // This is the total that may be reserved; the other node has a minimum reservation.
    let output = set(CAPACITY_IOPS * 9 / 10);
    eprintln!("  {}", output.stderr.trim());
    let is_reported = output.stderr.contains("IOPS reserved, and 7200 IOPS more were requested");
    assert!(!output.is_ok() && is_reported, "{output:?}");
    let output = set(1000);
    assert!(output.is_ok() && !output.stdout.contains("pending"), "{output:?}");
    wait_until("the minimum to be in effect", PATIENCE, || Ok(minimum(first) == Some(1000)))
        .unwrap();
    for index in 0..3 {
        etcd.kill(index).unwrap();
    }
    wait_until("the loss of etcd to be reported", PATIENCE, || {
        Ok(first.json(&["cluster", "status"])?["condition"]["health"] == "down")
    })
    .unwrap();
    let output = set(2000);
    eprintln!("  {}", output.stdout.trim());
    assert!(output.is_ok() && output.stdout.contains("pending and not guaranteed"), "{output:?}");
    assert_eq!(minimum(first), Some(1000), "an unreserved minimum is not in effect");
    wait_until("the other node's heartbeat on the store", PATIENCE, || {
        let status = first.json(&["cluster", "status"])?;
        let heartbeat = &status["stores"][0]["heartbeats"][0];
        Ok(heartbeat["node"] == "n2" && heartbeat["is_other_cluster"] == false)
    })
    .unwrap();
}

/// Returns the rate of the store that is reserved for the node.
fn reserved_of_store(daemon: &Daemon) -> u64 {
    let status = daemon.json(&["cluster", "status"]).unwrap_or_default();
    status["stores"][0]["cap"]["reserved_iops"].as_u64().unwrap_or_default()
}

/// Either node may be the leader of the store.
#[test]
fn a_store_that_a_node_does_not_share_any_more_leaves_its_part_to_the_other() {
    let rig = Rig::new().unwrap();
    let etcd = Etcd::start(&rig).unwrap();
    let host_with =
        |node: &str, min: u64| host(&rig, &etcd, node, &format!("qos = {{ min_iops = {min} }}"));
    let first = Daemon::start(&rig, &host_with("n1", 4000)).unwrap();
    let second = Daemon::start(&rig, &host_with("n2", 1000)).unwrap();
    let have_theirs =
        || Ok(reserved_of_store(&first) >= 4000 && reserved_of_store(&second) >= 1000);
    wait_until("reservations of both nodes", PATIENCE, have_theirs).unwrap();
    let output = first.cli(&["store", "set", "san", "--shared=false"]).unwrap();
    assert!(!output.is_ok() && output.stderr.contains("disk/d-n1"), "{output:?}");
    first.ok(&["disk", "delete", "d-n1"]).unwrap();
    change(&first, &["store", "delete", "san"]);
    let is_alone = || {
        let status = second.json(&["cluster", "status"])?;
        Ok(status["stores"][0]["shares"].as_array().is_some_and(|shares| shares.len() == 1))
    };
    wait_until("the other node to be the only one", PATIENCE, is_alone).unwrap();
    change(&second, &["qos", "set", "d-n2", "min_iops=7000"]);
    wait_until("the reservation of the other node", PATIENCE, || {
        Ok(reserved_of_store(&second) >= 7000)
    })
    .unwrap();
}
