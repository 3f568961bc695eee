//! The daemon dies again and again while disks of all formats are written, freed, flushed
//! and read over NBD: what was made durable is there, and all else is old or new.
//!
//! `SUIMON_DISK_DEATHS` is how often, `SUIMON_DISK_SEED` another sequence of moments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use suimon_rig::{
    Chance, Daemon, DiskPart, LoadDone, LoadEnd, NbdClient, Rig, run, until, until_some,
};

const DISKS: [(&str, &str); 3] = [("raw", "raw"), ("vhd", "vhd"), ("vhdx", "vhdx")];
const DISK_BYTES: u64 = 256 << 20;
/// Connections to each disk.
const OWNERS: usize = 4;
/// How often the daemon dies unless told otherwise.
const DEATHS: u64 = 8;
const SEED: u64 = 0x5eed;
/// The longest that a daemon lives after its clients have come.
const LIFE_MS_MAX: u64 = 900;
/// One of so many daemons dies while it starts, within this time.
const DIES_AT_START: u64 = 6;
const START_MS_MAX: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(20);

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

fn host(rig: &Rig) -> String {
    let store = rig.path("store");
    std::fs::create_dir_all(&store).unwrap();
    let disks = DISKS.map(|(name, format)| {
        let kind = if format == "raw" { "" } else { "kind = \"dynamic\"" };
        format!(
            "[[disk]]\nname = \"{name}\"\nstore = \"fast\"\nformat = \"{format}\"\n{kind}\n\
             size_bytes = {DISK_BYTES}\nnbd = {{ socket = \"{}\" }}\n",
            rig.path("nbd.sock")
        )
    });
    format!("[[store]]\nname = \"fast\"\npath = \"{store}\"\n{}", disks.concat())
}

/// A disk's part with its owner, from one death to the next.
struct Owned {
    disk: &'static str,
    part: DiskPart,
}

fn owned(seed: u64) -> Vec<Owned> {
    let of = |(nth, (disk, _)): (usize, (&'static str, &str))| {
        (0..OWNERS as u64).map(move |first| {
            let seed = seed.rotate_left(nth as u32 * 8);
            Owned { disk, part: DiskPart::new(first, OWNERS, DISK_BYTES, seed) }
        })
    };
    DISKS.into_iter().enumerate().flat_map(of).collect()
}

fn connect(socket: &str, disk: &str) -> NbdClient {
    until_some("a connection to the disk", PATIENCE, || NbdClient::connect(socket, disk).map(Some))
        .unwrap()
}

/// Begins the load of one owner, which ends when the daemon is gone; it must not be before
/// `is_killed`.
fn begin(mut owned: Owned, socket: &str, is_killed: &Arc<AtomicBool>) -> JoinHandle<Owned> {
    let mut client = connect(socket, owned.disk);
    let is_killed = Arc::clone(is_killed);
    std::thread::spawn(move || {
        match owned.part.run(&mut client) {
            LoadEnd::Gone => assert!(is_killed.load(Ordering::SeqCst), "it went by itself"),
            LoadEnd::Wrong(error) => panic!("disk {}: {error:#}", owned.disk),
        }
        owned
    })
}

/// Nobody finds anything wrong in what the daemon has left.
fn check_files(rig: &Rig, daemon: &mut Daemon) {
    for (disk, _) in DISKS {
        until("clients gone", PATIENCE, || {
            Ok(daemon.json(&["disk", "show", disk])?["nbd"]["clients"] == 0)
        })
        .unwrap();
        let said = daemon.cli(&["disk", "check", disk]).unwrap();
        let all = said.stdout.clone() + &said.stderr;
        assert!(said.is_ok() && all.contains("no damage was found"), "{disk}: {all}");
    }
    assert!(daemon.stop().unwrap().success());
    let file = |name: &str| rig.path(&format!("store/{name}"));
    run(&["qemu-img", "check", "-f", "vhdx", &file("vhdx.vhdx")]).unwrap();
    // QEMU knows no check of this format; it reads all of it.
    run(&["qemu-img", "convert", "-f", "vpc", "-O", "raw", &file("vhd.vhd"), &rig.path("copy")])
        .unwrap();
}

#[test]
fn nothing_durable_is_lost_however_often_the_daemon_dies() {
    let (deaths, seed) = (number("SUIMON_DISK_DEATHS", DEATHS), number("SUIMON_DISK_SEED", SEED));
    let rig = Rig::new().unwrap();
    let socket = rig.path("nbd.sock");
    let mut daemon = Daemon::start(&rig, &host(&rig)).unwrap();
    let (mut chance, mut all) = (Chance::new(seed), owned(seed));
    let (mut lives_ms, mut at_start, begun) = (Vec::new(), 0, Instant::now());
    println!("{deaths} deaths, SUIMON_DISK_SEED={seed}");
    for _ in 0..deaths {
        let is_killed = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> =
            all.drain(..).map(|owned| begin(owned, &socket, &is_killed)).collect();
        let life_ms = chance.below(LIFE_MS_MAX);
        // The moment is the test's input, not something that is waited for.
        std::thread::sleep(Duration::from_millis(life_ms));
        is_killed.store(true, Ordering::SeqCst);
        daemon.kill();
        all.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        lives_ms.push(life_ms);
        if chance.below(DIES_AT_START) == 0 {
            let moment = Duration::from_millis(chance.below(START_MS_MAX));
            daemon.die_at_start(&rig, moment).unwrap();
            at_start += 1;
        }
        daemon.restart(&rig).unwrap();
    }
    let mut done = LoadDone::default();
    for owned in &mut all {
        owned.part.settle_all(&mut connect(&socket, owned.disk)).unwrap();
        done += owned.part.done;
    }
    println!("lives in ms: {lives_ms:?}; {at_start} more died while they started");
    println!("{done:?} in {:.1} s", begun.elapsed().as_secs_f64());
    assert!(done.writes > 0 && done.freed > 0 && done.flushes > 0, "{done:?}");
    check_files(&rig, &mut daemon);
}
