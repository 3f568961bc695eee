//! Three daemons on an array of limited throughput, with faults: one daemon is stopped for half a
//! minute, one is disconnected from etcd, and etcd's leader and the daemon that divides the store
//! are killed. Nodes that reach the store keep their reservations, the remaining capacity is used,
//! and all nodes together never exceed the store's capacity.
//!
//! Meanwhile a second array delivers a third of its declared capacity: a minimum there is not met,
//! and the daemons report which disk uses the capacity instead.

use std::path::Path;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;
use suimon_rig::{
    Daemon, Etcd, EtcdNetwork, LastingLoad, Rig, Sampling, SlowDisk, fio, wait_for_value,
    wait_until,
};

use crate::caps::{Cap, LASTS_S, PATIENCE, WINDOW, assert_within, assert_within_now, wait_used};

/// Throughput of the array, limited by QEMU's throttle.
const ARRAY_BYTES_PER_S: u64 = 28_000_000;
/// Declared capacity of the array in operations of 8 KiB per second, slightly below its throughput.
const CAPACITY_IOPS: u64 = 3000;
const GOLD: u64 = 1200;
const SILVER: u64 = 600;
/// Minimum reservation of each node with disks.
const FLOOR: u64 = 64;
/// Event id: the minimum of a disk on a shared store is not met.
const MINIMUM_UNMET: u32 = 6211;
const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// Disk of each node, and its number of outstanding requests.
const DISKS: [(&str, u32); 3] = [("gold", 12), ("silver", 4), ("bulk", 16)];
/// Throughput of the second array, which is 488 operations of 8 KiB per second, and its declared
/// capacity in such operations.
const LATE_BYTES_PER_S: u64 = 4_000_000;
const LATE_CAPACITY_IOPS: u64 = 1500;
/// Minimum of the second array's disk on the first node. The disk on the second node has none.
const WISH: u64 = 900;
const LATE_DISKS: [(&str, u64); 2] = [("wish", WISH), ("thief", 0)];

struct Site {
    daemons: Vec<Daemon>,
    etcd: Etcd,
    network: EtcdNetwork,
    _array: SlowDisk,
    _late: SlowDisk,
    rig: Rig,
}

/// Returns the host file of a node with its disk on the array, and its disk on the second array if
/// it has one.
fn host(rig: &Rig, index: usize, endpoints: &str, [array, late_disk]: [&SlowDisk; 2]) -> String {
    let socket = rig.path(&format!("{}.nbd", NODES[index]));
    let store = |name: &str, slow_disk: &SlowDisk, iops: u64| {
        let path = slow_disk.path().display();
        format!(
            "[[store]]\nname = \"{name}\"\npath = \"{path}\"\nshared = true\n\
             capacity_iops = {iops}\n"
        )
    };
    let disk = |name: &str, store: &str, mib: u32, min_iops: u64| {
        format!(
            "[[disk]]\nname = \"{name}\"\nstore = \"{store}\"\nformat = \"raw\"\n\
             size_bytes = \"{mib} MiB\"\n{}[disk.nbd]\nsocket = \"{socket}\"\n",
            if min_iops > 0 {
                format!("qos = {{ min_iops = {min_iops} }}\n")
            } else {
                String::new()
            },
        )
    };
    let mut text = format!(
        "[cluster]\nname = \"lab\"\nnode = \"{}\"\nendpoints = {endpoints}\n{}{}{}",
        NODES[index],
        store("san", array, CAPACITY_IOPS),
        store("late", late_disk, LATE_CAPACITY_IOPS),
        disk(DISKS[index].0, "san", 16, 0),
    );
    if let Some((name, min_iops)) = LATE_DISKS.get(index) {
        text += &disk(name, "late", 4, *min_iops);
    }
    text
}

impl Site {
    fn new() -> Self {
        let rig = Rig::new().unwrap();
        let folder = &std::env::temp_dir();
        let array = SlowDisk::new(&rig, folder, 128 << 20, ARRAY_BYTES_PER_S).unwrap();
        let late_disk = SlowDisk::new(&rig, folder, 16 << 20, LATE_BYTES_PER_S).unwrap();
        let network = EtcdNetwork::new(&rig, NODES.len()).unwrap();
        let etcd = Etcd::start_in(&rig, &network).unwrap();
        let start = |index: usize| {
            let host = host(&rig, index, &etcd.endpoints_of(index), [&array, &late_disk]);
            Daemon::start(&rig, &host).unwrap()
        };
        // The first node divides both stores, and is never disconnected.
        let first = start(0);
        let leads = |store_status: &Value| store_status["leader"] == NODES[0];
        wait_until("the first node to lead", PATIENCE, || Ok(stores(&first).iter().all(leads)))
            .unwrap();
        let daemons = std::iter::once(first).chain((1..NODES.len()).map(start)).collect();
        let site = Self { daemons, etcd, network, _array: array, _late: late_disk, rig };
        let is_ready = |daemon| leader(daemon).is_some() && reserved(daemon) == FLOOR;
        wait_until("all nodes to have a minimum reservation", PATIENCE, || {
            Ok(site.daemons.iter().all(is_ready))
        })
        .unwrap();
        site
    }

    /// Writes the disks, each over a different node, so that later reads are served by the array.
    fn fill<'a>(&self, disks: impl Iterator<Item = &'a str>) {
        let folder = self.rig.path("fill");
        std::fs::create_dir_all(&folder).unwrap();
        for (index, disk) in disks.enumerate() {
            let options = "--rw=write --bs=64k --iodepth=4";
            let wrote = fio::run(Path::new(&folder), &self.socket(index), disk, options).unwrap();
            assert_eq!(wrote.errors, 0, "{disk}");
        }
    }

    fn socket(&self, node: usize) -> String {
        self.rig.path(&format!("{}.nbd", NODES[node]))
    }

    fn load(&self) -> Vec<LastingLoad> {
        let begin = |(index, (disk, depth)): (usize, (&str, u32))| {
            LastingLoad::begin(&self.rig, &self.socket(index), &[disk], depth, LASTS_S).unwrap()
        };
        DISKS.into_iter().enumerate().map(begin).collect()
    }

    /// Starts load on the disks of the second array.
    fn load_late(&self) -> Vec<LastingLoad> {
        let begin = |(index, (disk, _)): (usize, (&str, u64))| {
            LastingLoad::begin(&self.rig, &self.socket(index), &[disk], 8, LASTS_S).unwrap()
        };
        LATE_DISKS.into_iter().enumerate().map(begin).collect()
    }

    /// Returns the rate granted to a node on the array, and the rate of its disk there.
    fn cap(&self, node: usize) -> Cap {
        let daemon = &self.daemons[node];
        let cap = store(daemon)["cap"].take();
        let flows = daemon.json(&["qos", "flows"]).unwrap();
        let mut flows = flows.as_array().into_iter().flatten();
        let flow = flows.find(|flow| flow["disk"] == DISKS[node].0);
        let delivered = flow.and_then(|flow| flow["last_5_s"]["delivered_iops"].as_u64());
        Cap { delivered: delivered.unwrap_or(0), ..Cap::read(&cap, daemon) }
    }

    /// Asserts that the node's reserved and granted rates are at least its disk's minimum.
    fn assert_minimum(&self, node: usize, minimum: u64) {
        let cap = self.cap(node);
        let name = DISKS[node].0;
        assert!(cap.reserved >= minimum && cap.iops >= minimum, "{name}: {cap:?} of {minimum}");
    }

    /// Returns the node that divides the store, according to the node `known_to`.
    fn leader(&self, known_to: usize) -> Option<usize> {
        let name = leader(&self.daemons[known_to])?;
        NODES.iter().position(|node| *node == name)
    }
}

fn stores(daemon: &Daemon) -> Vec<Value> {
    let status = daemon.json(&["cluster", "status"]).unwrap();
    status["stores"].as_array().cloned().unwrap()
}

fn store(daemon: &Daemon) -> Value {
    stores(daemon)[0].take()
}

fn leader(daemon: &Daemon) -> Option<String> {
    Some(store(daemon)["leader"].as_str()?.to_owned())
}

fn reserved(daemon: &Daemon) -> u64 {
    store(daemon)["cap"]["reserved_iops"].as_u64().unwrap_or_default()
}

mod full {
    #[test]
    fn minimums_are_met_while_a_node_is_stopped_another_is_isolated_and_leaders_are_killed() {
        super::fail_one_after_the_other();
    }
}

fn fail_one_after_the_other() {
    let mut site = Site::new();
    site.fill(LATE_DISKS.iter().map(|(disk, _)| *disk));
    let late_load = site.load_late();
    site.fill(DISKS.iter().map(|(disk, _)| *disk));
    let started = Instant::now();
    let loads = site.load();
    let sampled: Vec<_> = site
        .daemons
        .iter()
        .zip(DISKS)
        .map(|(daemon, (disk, _))| Sampling::begin(daemon, &[disk]))
        .collect();
    let caps_of = |site: &Site| vec![site.cap(0), site.cap(1), site.cap(2)];
    wait_used("all without minimums", CAPACITY_IOPS, || caps_of(&site));
    site.daemons[0].ok(&["qos", "set", "gold", &format!("min_iops={GOLD}")]).unwrap();
    site.daemons[1].ok(&["qos", "set", "silver", &format!("min_iops={SILVER}")]).unwrap();
    let mut caps = Vec::new();
    let reserved = wait_until("the minimums to be reserved", PATIENCE, || {
        caps = caps_of(&site);
        Ok(caps[0].reserved >= GOLD && caps[1].reserved >= SILVER)
    });
    reserved.unwrap_or_else(|error| panic!("{error:#}: {caps:?}"));
    wait_used("all with minimums", CAPACITY_IOPS, || caps_of(&site));
    assert_request_is_unmet(&site.daemons[2]);

    // The third node, which has the highest demand, is stopped. Its reservation is kept; all other
    // capacity is used.
    site.daemons[2].process().signal(Signal::STOP);
    wait_used("both others", CAPACITY_IOPS - FLOOR, || {
        site.assert_minimum(0, GOLD);
        site.assert_minimum(1, SILVER);
        vec![site.cap(0), site.cap(1)]
    });
    // The node remains stopped for the minute after which an unmet minimum is reported.
    assert_unmet_reported(&site.daemons[0]);

    isolate_node(&site);
    site.daemons[2].process().signal(Signal::CONT);
    wait_until("the resumed node to get more than its minimum reservation", PATIENCE, || {
        site.assert_minimum(0, GOLD);
        let cap = site.cap(2);
        Ok(cap.iops > FLOOR && cap.delivered > 0)
    })
    .unwrap();

    let killed = kill_leaders(&mut site);
    let counts: Vec<_> = sampled.into_iter().flat_map(|sampling| sampling.end().unwrap()).collect();
    let depth = DISKS.iter().map(|(_, depth)| u64::from(*depth)).sum();
    assert_within("all", &counts, (started, Instant::now()), CAPACITY_IOPS, depth);
    for load in loads.into_iter().chain(late_load) {
        load.stop().unwrap();
    }
    until_alive(&mut site, killed);
}

/// Kills etcd's leader and the daemon that divides the store, or the third one if the first one
/// divides it. Returns the index of the killed daemon once etcd has another leader.
fn kill_leaders(site: &mut Site) -> usize {
    let member = site.etcd.leader().unwrap();
    site.etcd.kill(member).unwrap();
    let head = site.leader(0);
    eprintln!("  {head:?} divides the store");
    let killed = head.filter(|head| *head != 0).unwrap_or(2);
    site.daemons[killed].kill();
    let killed_at = Instant::now();
    wait_until("another leader of etcd", PATIENCE, || {
        site.assert_minimum(0, GOLD);
        if killed != 1 {
            site.assert_minimum(1, SILVER);
        }
        Ok(site.etcd.leader().is_some() && killed_at.elapsed() > WINDOW)
    })
    .unwrap();
    killed
}

/// Drops etcd's packets to the second node silently. Its granted rate falls to its reservation; the
/// first node uses the rest.
fn isolate_node(site: &Site) {
    site.network.cut(1).unwrap();
    let cut = Instant::now();
    let mut isolated_cap = site.cap(1);
    let is_alone = wait_until("the lease of the disconnected node to expire", PATIENCE, || {
        isolated_cap = site.cap(1);
        site.assert_minimum(0, GOLD);
        site.assert_minimum(1, SILVER);
        Ok(isolated_cap.iops <= SILVER + FLOOR)
    });
    is_alone.unwrap_or_else(|error| panic!("{error:#}: {isolated_cap:?}"));
    let silver = [(&site.daemons[1], "silver")];
    assert_within_now("silver, cut off", &silver, SILVER + FLOOR, DISKS[1].1.into());
    wait_used("the first beside it", CAPACITY_IOPS - SILVER - 2 * FLOOR, || vec![site.cap(0)]);
    wait_seen_on_store(&site.daemons[1], cut);
    site.network.restore_replies(1).unwrap();
}

/// Waits until the disconnected node reads the first node's heartbeat, written after `cut`, from
/// the store.
fn wait_seen_on_store(daemon: &Daemon, cut: Instant) {
    let mut heartbeats = Value::Null;
    let result = wait_until("the first node's heartbeat on the store", PATIENCE, || {
        let since = cut.elapsed().as_millis() as u64;
        heartbeats = store(daemon)["heartbeats"].take();
        let first = heartbeats
            .as_array()
            .into_iter()
            .flatten()
            .find(|heartbeat| heartbeat["node"] == NODES[0]);
        // The heartbeat must have been written after the disconnection.
        Ok(first.is_some_and(|first| {
            first["is_other_cluster"] == false
                && first["delivered_iops"].as_u64() > Some(0)
                && first["age_ms"].as_u64().is_some_and(|age| age < since)
        }))
    });
    result.unwrap_or_else(|error| panic!("{error:#}: {heartbeats}"));
    eprintln!("  heartbeats on the store: {heartbeats}");
}

/// Waits until the node reports the unmet minimum and the disk that exceeds its own.
fn assert_request_is_unmet(daemon: &Daemon) {
    let mut flows = Value::Null;
    let result = wait_until("the unmet minimum in the flows of the cluster", PATIENCE, || {
        flows = daemon.json(&["qos", "flows", "--cluster"])?;
        let late_flow =
            flows.as_array().into_iter().flatten().find(|flow| flow["disk"] == LATE_DISKS[0].0);
        Ok(late_flow.is_some_and(|late_flow| {
            let aggressor = &late_flow["aggressors"][0];
            late_flow["guaranteed_iops"] == WISH
                && late_flow["delivered_iops"].as_u64().is_some_and(|delivered| delivered < WISH)
                && (&aggressor["node"], &aggressor["disk"]) == (&"n2".into(), &"thief".into())
                && aggressor["delivered_iops"].as_u64() > Some(0)
        }))
    });
    result.unwrap_or_else(|error| panic!("{error:#}: {flows:#}"));
}

/// Waits for the event about the unmet minimum, which names the disk that exceeds its own.
fn assert_unmet_reported(daemon: &Daemon) {
    let event = wait_for_value("the event about the unmet minimum", PATIENCE, || {
        let events = daemon.json(&["event", "list", "--severity", "warning"])?;
        let mut matching = events.as_array().into_iter().flatten();
        Ok(matching.find(|event| event["id"] == MINIMUM_UNMET).cloned())
    });
    let event = event.unwrap();
    eprintln!("  {}", event["text"]);
    let fields = &event["fields"];
    assert_eq!((&fields["disk"], &fields["node"]), (&"wish".into(), &"n1".into()), "{event}");
    let aggressors = fields["aggressors"].as_str().unwrap();
    let iops = aggressors.strip_prefix("thief on n2 ").unwrap().parse::<u64>().unwrap();
    assert!(iops > 0, "{event}");
}

/// Restarts the killed daemon and waits until all nodes are alive.
fn until_alive(site: &mut Site, killed: usize) {
    let rig = &site.rig;
    site.daemons[killed].restart(rig).unwrap();
    wait_until("all nodes to be alive", PATIENCE, || {
        let status = site.daemons[0].json(&["cluster", "status"]).unwrap();
        Ok(status["members"].as_array().unwrap().iter().all(|member| member["is_alive"] == true))
    })
    .unwrap();
}
