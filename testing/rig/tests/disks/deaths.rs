//! The daemon is killed repeatedly while disks of all formats are written, discarded, flushed and
//! read over NBD: every acknowledged write persists, flushed or not, and each block of a request in
//! flight is old or new.
//!
//! `SUIMON_DISK_DEATHS` sets the number of kills in the full tier, `SUIMON_DISK_SEED` the seed of
//! their times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use suimon_rig::{
    Daemon, DiskPart, LoadDone, LoadEnd, NbdClient, Random, Rig, run, wait_for_value, wait_until,
};

const DISKS: [(&str, &str); 3] = [("raw", "raw"), ("vhd", "vhd"), ("vhdx", "vhdx")];
const DISK_BYTES: u64 = 256 << 20;
/// Number of connections to each disk, each with a separate part of the disk.
const OWNERS: usize = 4;
/// Number of kills in the fast tier, and default in the full tier.
const DEATHS: u64 = 4;
const FULL_DEATHS: u64 = 100;
const SEED: u64 = 0x5eed;
/// Upper bound of the requests of all clients after which the daemon is killed. It is a number of
/// requests instead of a time, so that load on the machine does not reduce the writes between two
/// kills.
const LIFE_STEPS_MAX: u64 = 6000;
/// One of this many daemons is also killed while it starts, within the following time in
/// milliseconds.
const DIES_AT_START: u64 = 6;
const START_MS_MAX: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(120);

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

/// Part of a disk with its disk's name; it persists over restarts of the daemon.
struct Owned {
    disk: &'static str,
    part: DiskPart,
}

fn owned(seed: u64) -> Vec<Owned> {
    let owned_of = |(nth, (disk, _)): (usize, (&'static str, &str))| {
        (0..OWNERS as u64).map(move |first| {
            let seed = seed.rotate_left(nth as u32 * 8);
            Owned { disk, part: DiskPart::new(first, OWNERS, DISK_BYTES, seed) }
        })
    };
    DISKS.into_iter().enumerate().flat_map(owned_of).collect()
}

fn connect(socket: &str, disk: &str) -> NbdClient {
    wait_for_value("a connection to the disk", PATIENCE, || {
        NbdClient::connect(socket, disk).map(Some)
    })
    .unwrap()
}

/// State of the load between a start and a kill of the daemon.
#[derive(Default)]
struct Lifetime {
    /// Number of completed requests of all connections.
    steps: AtomicU64,
    is_killed: AtomicBool,
}

/// Starts the load of one part of a disk. It ends when the daemon has ended, which must not happen
/// before the kill.
fn begin(mut owned: Owned, socket: &str, life: &Arc<Lifetime>) -> JoinHandle<Owned> {
    let mut client = connect(socket, owned.disk);
    let life = Arc::clone(life);
    std::thread::spawn(move || {
        match owned.part.run(&mut client, &life.steps) {
            LoadEnd::Gone => {
                assert!(life.is_killed.load(Ordering::SeqCst), "the daemon closed {}", owned.disk);
            }
            LoadEnd::Wrong(error) => panic!("disk {}: {error:#}", owned.disk),
        }
        owned
    })
}

/// Checks that Suimon and QEMU find no damage in the images that the daemon has left.
fn check_files(rig: &Rig, daemon: &mut Daemon) {
    for (disk, _) in DISKS {
        wait_until("closed connections of clients", PATIENCE, || {
            Ok(daemon.json(&["disk", "show", disk])?["nbd"]["clients"] == 0)
        })
        .unwrap();
        let output = daemon.cli(&["disk", "check", disk]).unwrap();
        let text = output.stdout.clone() + &output.stderr;
        assert!(output.is_ok() && text.contains("no damage was found"), "{disk}: {text}");
    }
    assert!(daemon.stop().unwrap().success());
    let file = |name: &str| rig.path(&format!("store/{name}"));
    run(&["qemu-img", "check", "-f", "vhdx", &file("vhdx.vhdx")]).unwrap();
    // QEMU has no check of this format; it reads all of the image.
    run(&["qemu-img", "convert", "-f", "vpc", "-O", "raw", &file("vhd.vhd"), &rig.path("copy")])
        .unwrap();
}

#[test]
fn no_completed_write_is_lost_when_the_daemon_is_killed_repeatedly() {
    kill_repeatedly(DEATHS);
}

mod full {
    #[test]
    fn no_completed_write_is_lost_when_the_daemon_is_killed_repeatedly() {
        super::kill_repeatedly(super::number("SUIMON_DISK_DEATHS", super::FULL_DEATHS));
    }
}

fn kill_repeatedly(deaths: u64) {
    let seed = number("SUIMON_DISK_SEED", SEED);
    let rig = Rig::new().unwrap();
    let socket = rig.path("nbd.sock");
    let mut daemon = Daemon::start(&rig, &host(&rig)).unwrap();
    let (mut random, mut owned_parts) = (Random::new(seed), owned(seed));
    let (mut requests_per_life, mut at_start, started) = (Vec::new(), 0, Instant::now());
    println!("{deaths} deaths, SUIMON_DISK_SEED={seed}");
    for _ in 0..deaths {
        let life = Arc::new(Lifetime::default());
        let threads: Vec<_> =
            owned_parts.drain(..).map(|owned| begin(owned, &socket, &life)).collect();
        let steps = random.below(LIFE_STEPS_MAX);
        let started = Instant::now();
        while life.steps.load(Ordering::Relaxed) < steps
            && threads.iter().all(|thread| !thread.is_finished())
            && started.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        life.is_killed.store(true, Ordering::SeqCst);
        daemon.kill();
        owned_parts.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        let completed = life.steps.load(Ordering::Relaxed);
        assert!(
            completed >= steps,
            "{completed} of {steps} requests were completed within {PATIENCE:?}"
        );
        requests_per_life.push(completed);
        if random.below(DIES_AT_START) == 0 {
            let moment = Duration::from_millis(random.below(START_MS_MAX));
            daemon.kill_at_start(&rig, moment).unwrap();
            at_start += 1;
        }
        daemon.restart(&rig).unwrap();
    }
    let mut totals = LoadDone::default();
    for owned in &mut owned_parts {
        owned.part.settle_all(&mut connect(&socket, owned.disk)).unwrap();
        totals += owned.part.done;
    }
    println!("requests between kills: {requests_per_life:?}; {at_start} more kills during starts");
    println!("{totals:?} in {:.1} s", started.elapsed().as_secs_f64());
    assert!(totals.writes > 0 && totals.freed > 0 && totals.flushes > 0, "{totals:?}");
    check_files(&rig, &mut daemon);
}
