//! Three daemons on an array that others limit, and what goes wrong with them: one stands still for
//! half a minute, one is cut off from etcd, etcd's leader and the daemon that divides the store die.
//! Whoever reaches the store has what was promised, what is left is used, and all together never
//! ask for more than the store can do.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use suimon_rig::{
    Daemon, Delivered, Etcd, EtcdNetwork, LastingLoad, Rig, SlowDisk, extremes, now_ms, until,
};

const PATIENCE: Duration = Duration::from_secs(60);
/// What QEMU's throttle lets the array do.
const ARRAY_BYTES_PER_S: u64 = 26_000_000;
/// What it is said to be able to do, in operations of 8 KiB a second: a little less.
const CAPABILITY: u64 = 3000;
const GOLD: u64 = 1200;
const SILVER: u64 = 600;
/// What each node with disks has at least.
const FLOOR: u64 = 64;
/// So long a change may take until it is in effect.
const SETTLES_MS: u64 = 5000;
const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// Disks by nodes, and how many requests of each are outstanding.
const DISKS: [(&str, u32); 3] = [("gold", 4), ("silver", 4), ("bulk", 16)];

struct Site {
    daemons: Vec<Daemon>,
    etcd: Etcd,
    network: EtcdNetwork,
    _array: SlowDisk,
    rig: Rig,
}

impl Site {
    fn new() -> Self {
        let rig = Rig::new().unwrap();
        let bytes = 512 << 20;
        let array = SlowDisk::new(&rig, std::path::Path::new("/var/tmp"), bytes, ARRAY_BYTES_PER_S)
            .unwrap();
        let network = EtcdNetwork::new(&rig, NODES.len()).unwrap();
        let etcd = Etcd::start_in(&rig, &network).unwrap();
        let store = array.path().to_string_lossy().into_owned();
        let daemons = NODES.iter().zip(DISKS).enumerate().map(|(at, (node, (disk, _)))| {
            let host = format!(
                "[cluster]\nname = \"lab\"\nnode = \"{node}\"\nendpoints = {}\n\
                 [[store]]\nname = \"san\"\npath = \"{store}\"\nshared = true\n\
                 capability_iops = {CAPABILITY}\n\
                 [[disk]]\nname = \"{disk}\"\nstore = \"san\"\nformat = \"raw\"\n\
                 size_bytes = \"64 MiB\"\n[disk.nbd]\nsocket = \"{}\"\n",
                etcd.endpoints_of(at),
                rig.path(&format!("{node}.nbd"))
            );
            Daemon::start(&rig, &host).unwrap()
        });
        let daemons = daemons.collect();
        let site = Self { daemons, etcd, network, _array: array, rig };
        let is_ready = |daemon| leader(daemon).is_some() && reserved(daemon) == FLOOR;
        until("all nodes to have a floor", PATIENCE, || Ok(site.daemons.iter().all(is_ready)))
            .unwrap();
        site
    }

    fn load(&self, seconds: u32) -> Vec<LastingLoad> {
        let begin = |(node, (disk, depth)): (&&str, (&'static str, u32))| {
            let socket = self.rig.path(&format!("{node}.nbd"));
            LastingLoad::begin(&self.rig, &socket, &[disk], depth, seconds).unwrap()
        };
        NODES.iter().zip(DISKS).map(begin).collect()
    }

    /// Which node divides the store, as this one knows.
    fn leader(&self, known_to: usize) -> Option<usize> {
        let name = leader(&self.daemons[known_to])?;
        NODES.iter().position(|node| *node == name)
    }
}

fn store(daemon: &Daemon) -> Value {
    daemon.json(&["cluster", "status"]).unwrap()["stores"][0].take()
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
    site.daemons[2].process().signal(Signal::STOP);
    let cut = frozen + 14_000;
    wait_until(cut);
    site.network.cut(1).unwrap();
    let mended = cut + 12_000;
    wait_until(mended);
    site.network.mend(1).unwrap();
    let thawed = frozen + 30_000;
    wait_until(thawed);
    site.daemons[2].process().signal(Signal::CONT);

    // Then etcd's leader dies, and the daemon that divides the store, if it is not gold's own.
    let dead = thawed + 10_000;
    wait_until(dead);
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
    until_alive(&mut site, ended);
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
