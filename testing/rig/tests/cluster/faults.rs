//! Three daemons on an array that others limit, and what goes wrong with them: one stands still for
//! half a minute, one is cut off from etcd, etcd's leader and the daemon that divides the store die.
//! Whoever reaches the store has what was promised, what is left is used, and all together never
//! ask for more than the store can do.
//!
//! Meanwhile another array of theirs does a third of what it is said to: a minimum there is not met, and
//! it is told who has it instead.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use suimon_rig::{
    Daemon, Delivered, Etcd, EtcdNetwork, LastingLoad, Rig, SlowDisk, extremes, fio, now_ms, until,
    until_some,
};

const PATIENCE: Duration = Duration::from_secs(60);
/// What QEMU's throttle lets the array do.
const ARRAY_BYTES_PER_S: u64 = 28_000_000;
/// What it is said to be able to do, in operations of 8 KiB a second: a little less.
const CAPABILITY: u64 = 3000;
const GOLD: u64 = 1200;
const SILVER: u64 = 600;
/// What each node with disks has at least.
const FLOOR: u64 = 64;
/// The event of a minimum of a shared store that is not met.
const MINIMUM_UNMET: u32 = 6211;
/// So long a change may take until it is in effect.
const SETTLES_MS: u64 = 5000;
const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// Disks by nodes, and how many requests of each are outstanding.
const DISKS: [(&str, u32); 3] = [("gold", 12), ("silver", 4), ("bulk", 16)];
/// What QEMU's throttle lets the other array do, 488 operations of 8 KiB a second, and what it is said
/// to be able to do.
const LATE_BYTES_PER_S: u64 = 4_000_000;
const LATE_CAPABILITY: u64 = 1500;
/// What is promised to its disk on the first node. The one on the second is promised nothing.
const WISH: u64 = 900;
const LATE_DISKS: [(&str, u64); 2] = [("wish", WISH), ("thief", 0)];

/// After so long a node that lost etcd has seen on the store what others did since: they write each 5 s.
const SEEN_MS: u64 = 11_000;

struct Site {
    daemons: Vec<Daemon>,
    etcd: Etcd,
    network: EtcdNetwork,
    _array: SlowDisk,
    _late: SlowDisk,
    rig: Rig,
}

/// A node with its disk on the array, and one on the other where there is one.
fn host(rig: &Rig, at: usize, endpoints: &str, [array, late]: [&SlowDisk; 2]) -> String {
    let socket = rig.path(&format!("{}.nbd", NODES[at]));
    let store = |name: &str, of: &SlowDisk, iops: u64| {
        let path = of.path().display();
        format!(
            "[[store]]\nname = \"{name}\"\npath = \"{path}\"\nshared = true\n\
             capability_iops = {iops}\n"
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
        NODES[at],
        store("san", array, CAPABILITY),
        store("late", late, LATE_CAPABILITY),
        disk(DISKS[at].0, "san", 16, 0),
    );
    if let Some((name, min_iops)) = LATE_DISKS.get(at) {
        text += &disk(name, "late", 4, *min_iops);
    }
    text
}

impl Site {
    fn new() -> Self {
        let rig = Rig::new().unwrap();
        let folder = Path::new("/var/tmp");
        let array = SlowDisk::new(&rig, folder, 128 << 20, ARRAY_BYTES_PER_S).unwrap();
        let late = SlowDisk::new(&rig, folder, 16 << 20, LATE_BYTES_PER_S).unwrap();
        let network = EtcdNetwork::new(&rig, NODES.len()).unwrap();
        let etcd = Etcd::start_in(&rig, &network).unwrap();
        let start = |at: usize| {
            let host = host(&rig, at, &etcd.endpoints_of(at), [&array, &late]);
            Daemon::start(&rig, &host).unwrap()
        };
        // The first one divides both stores, and is never cut off.
        let first = start(0);
        let leads = |of: &Value| of["leader"] == NODES[0];
        until("the first node to lead", PATIENCE, || Ok(stores(&first).iter().all(leads))).unwrap();
        let daemons = std::iter::once(first).chain((1..NODES.len()).map(start)).collect();
        let site = Self { daemons, etcd, network, _array: array, _late: late, rig };
        let is_ready = |daemon| leader(daemon).is_some() && reserved(daemon) == FLOOR;
        until("all nodes to have a floor", PATIENCE, || Ok(site.daemons.iter().all(is_ready)))
            .unwrap();
        site
    }

    /// Writes disks, each of another node, so that what is read is the array's.
    fn fill<'a>(&self, disks: impl Iterator<Item = &'a str>) {
        let folder = self.rig.path("fill");
        std::fs::create_dir_all(&folder).unwrap();
        for (at, disk) in disks.enumerate() {
            let words = "--rw=write --bs=64k --iodepth=4";
            let wrote = fio::run(Path::new(&folder), &self.socket(at), disk, words).unwrap();
            assert_eq!(wrote.errors, 0, "{disk}");
        }
    }

    fn socket(&self, node: usize) -> String {
        self.rig.path(&format!("{}.nbd", NODES[node]))
    }

    fn load(&self, seconds: u32) -> Vec<LastingLoad> {
        let begin = |(at, (disk, depth)): (usize, (&str, u32))| {
            LastingLoad::begin(&self.rig, &self.socket(at), &[disk], depth, seconds).unwrap()
        };
        DISKS.into_iter().enumerate().map(begin).collect()
    }

    /// The same of the array that does too little.
    fn load_late(&self, seconds: u32) -> Vec<LastingLoad> {
        let begin = |(at, (disk, _)): (usize, (&str, u64))| {
            LastingLoad::begin(&self.rig, &self.socket(at), &[disk], 8, seconds).unwrap()
        };
        LATE_DISKS.into_iter().enumerate().map(begin).collect()
    }

    /// Which node divides the store, as this one knows.
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

fn wait_until(at: u64) {
    std::thread::sleep(Duration::from_millis(at.saturating_sub(now_ms())));
}

/// Its minimum is met in every window between these times, in milliseconds.
fn assert_minimum(name: &str, got: &Delivered, minimum: u64, (from, until): (u64, u64)) {
    let (least, _) = extremes(std::slice::from_ref(got), from, until);
    eprintln!("  {name}: {least:.0} at least of {minimum}");
    assert!(least >= minimum as f64 * 0.98, "{name}: {least}");
}

#[test]
fn promises_hold_while_a_node_stands_still_another_is_cut_off_and_leaders_die() {
    let mut site = Site::new();
    site.fill(LATE_DISKS.iter().map(|(disk, _)| *disk));
    let late = site.load_late(84);
    site.fill(DISKS.iter().map(|(disk, _)| *disk));
    let began = now_ms();
    let loads = site.load(76);
    wait_until(began + 6_000);
    site.daemons[0].ok(&["qos", "set", "gold", &format!("min_iops={GOLD}")]).unwrap();
    site.daemons[1].ok(&["qos", "set", "silver", &format!("min_iops={SILVER}")]).unwrap();
    let set = now_ms();

    // The third node, which wants most, stands still for 30 s; meanwhile the second is cut off from
    // etcd, without a word, for 12 s.
    let frozen = began + 18_000;
    wait_until(frozen);
    assert_wish_is_unmet(&site.daemons[2]);
    site.daemons[2].process().signal(Signal::STOP);
    let cut = frozen + 14_000;
    wait_until(cut);
    site.network.cut(1).unwrap();
    wait_until(cut + SEEN_MS);
    assert_seen_on_store(&site.daemons[1]);
    let mended = cut + 12_000;
    wait_until(mended);
    site.network.mend(1).unwrap();
    let thawed = frozen + 30_000;
    wait_until(thawed);
    site.daemons[2].process().signal(Signal::CONT);

    // Then etcd's leader dies, and the daemon that divides the store, if it is not gold's own.
    let dead = thawed + 10_000;
    wait_until(dead);
    assert_unmet_is_told(&site.daemons[0]);
    let member = site.etcd.leader().unwrap();
    site.etcd.kill(member).unwrap();
    let head = site.leader(0);
    eprintln!("  {head:?} divides the store");
    let ended = head.filter(|head| *head != 0).unwrap_or(2);
    site.daemons[ended].kill();

    let told = loads.into_iter().map(|load| load.end().unwrap());
    let got: Vec<Delivered> = told.flatten().collect();
    let end = began + 75_000;
    let (_, most) = extremes(&got, began, end);
    eprintln!("  at most {most:.0} of {CAPABILITY} in 5 s");
    assert!(most <= CAPABILITY as f64 * 1.02, "{most}");
    let sum = |from, until| got.iter().map(|of| of.rate(from, until)).sum::<f64>();
    let used = [sum(began + 1000, set), sum(set + SETTLES_MS, frozen)];
    eprintln!("  used {:.0}, and {:.0} with minimums", used[0], used[1]);
    assert_minimum("gold", &got[0], GOLD, (set + SETTLES_MS, end));
    // From when it can have known; and as long as its daemon lives.
    let until = if ended == 1 { dead } else { end };
    assert_minimum("silver", &got[1], SILVER, (set + SETTLES_MS, until));
    assert!(used.iter().all(|used| *used >= CAPABILITY as f64 * 0.95), "{used:?}");
    // What the node that stands still has been promised is kept for it; all else is used.
    let (beside, _) = extremes(&got[..2], frozen + SETTLES_MS, cut);
    eprintln!("  {beside:.0} at least used while one stood still");
    assert!(beside >= (CAPABILITY - FLOOR) as f64 * 0.95, "{beside}");
    // Who is cut off may do what is reserved for it; the other uses the rest.
    let cut_off = |of: &Delivered| of.rate(cut + SETTLES_MS, mended);
    let (first, second) = (cut_off(&got[0]), cut_off(&got[1]));
    eprintln!("  {first:.0} beside {second:.0} of who was cut off");
    assert!(second <= (SILVER + FLOOR) as f64 * 1.02, "{second}");
    assert!(first >= (CAPABILITY - SILVER - 2 * FLOOR) as f64 * 0.95, "{first}");
    let rest = got[2].rate(thawed + SETTLES_MS, dead);
    eprintln!("  who stood still: {rest:.0} from {SETTLES_MS} ms after it");
    assert!(rest > FLOOR as f64, "{rest}");
    for load in late {
        load.end().unwrap();
    }
    until_alive(&mut site, ended);
}

/// Who is cut off from etcd sees on the store itself what the first node does there.
fn assert_seen_on_store(daemon: &Daemon) {
    let seen = store(daemon)["seen"].take();
    let first = seen.as_array().into_iter().flatten().find(|of| of["node"] == NODES[0]);
    let first = first.unwrap_or_else(|| panic!("{} is not seen: {seen}", NODES[0]));
    eprintln!("  seen on the store: {first}");
    assert_eq!(first["is_stranger"], false, "{first}");
    assert!(first["delivered_iops"].as_u64().unwrap() > 0, "{first}");
    // Not from before it was cut off.
    assert!(first["age_ms"].as_u64().unwrap() < SEEN_MS, "{first}");
}

/// Each node knows what the disk lacks, and who has it.
fn assert_wish_is_unmet(daemon: &Daemon) {
    let flows = daemon.json(&["qos", "flows", "--cluster"]).unwrap();
    let flows = flows.as_array().unwrap();
    let wish = flows.iter().find(|of| of["disk"] == LATE_DISKS[0].0).unwrap();
    eprintln!("  {wish}");
    assert_eq!(wish["entitled_iops"], WISH, "{wish}");
    assert!(wish["delivered_iops"].as_u64().unwrap() < WISH, "{wish}");
    assert_named(&wish["aggressors"][0]);
}

/// The disk that has most of the other array beyond what is promised to it.
fn assert_named(aggressor: &Value) {
    assert_eq!((&aggressor["node"], &aggressor["disk"]), (&"n2".into(), &"thief".into()));
    assert!(aggressor["delivered_iops"].as_u64().unwrap() > 0, "{aggressor}");
}

/// The minimum was not met for a minute: the event says who has it.
fn assert_unmet_is_told(daemon: &Daemon) {
    let event = until_some("the unmet minimum to be told", PATIENCE, || {
        let events = daemon.json(&["event", "list", "--severity", "warning"])?;
        let mut of_it = events.as_array().into_iter().flatten();
        Ok(of_it.find(|of| of["id"] == MINIMUM_UNMET).cloned())
    });
    let event = event.unwrap();
    eprintln!("  {}", event["text"]);
    let fields = &event["fields"];
    assert_eq!((&fields["disk"], &fields["node"]), (&"wish".into(), &"n1".into()), "{event}");
    let aggressors = fields["aggressors"].as_str().unwrap();
    let iops = aggressors.strip_prefix("thief on n2 ").unwrap().parse::<u64>().unwrap();
    assert!(iops > 0, "{event}");
}

/// The daemon that was killed comes back and is a node of the cluster as before.
fn until_alive(site: &mut Site, ended: usize) {
    let rig = &site.rig;
    site.daemons[ended].restart(rig).unwrap();
    until("all nodes to be alive", PATIENCE, || {
        let status = site.daemons[0].json(&["cluster", "status"]).unwrap();
        Ok(status["members"].as_array().unwrap().iter().all(|of| of["is_alive"] == true))
    })
    .unwrap();
}
