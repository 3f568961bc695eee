//! Worker that does not proceed. It is stopped in the middle of a round while it serves a disk, as
//! by a blocking system call or a page fault.

use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{Daemon, DaemonOptions, LastingLoad, NbdClient, Rig, wait_for_value, wait_until};

use crate::support::frozen::Frozen;

const LIMIT: Duration = Duration::from_secs(90);
/// Longest round of a worker for which the daemon reports to systemd's watchdog: half of the
/// interval that systemd requests here.
const ROUND_MAX: Duration = Duration::from_secs(2);
/// Duration of a worker's round after which event 5006 is emitted
/// (`plane/switch/src/round_progress.rs`).
const STALLED_AFTER: Duration = Duration::from_secs(5);
/// Maximum of the disk without load in requests per second.
const MAX: u32 = 200;
/// System calls on the socket of a disk's client, which a worker makes only while it serves the
/// disk.
const SOCKET_CALLS: [i64; 6] = [
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_readv,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_writev,
];

/// Daemon with two workers and a disk of one store on each, one of them under load.
struct Site {
    daemon: Daemon,
    socket: String,
    load: Option<LastingLoad>,
    /// Times of reports to the watchdog.
    reports: Arc<Mutex<Vec<Instant>>>,
    _rig: Rig,
}

/// Records the times of reports received by the watchdog socket.
fn record(socket: UnixDatagram) -> Arc<Mutex<Vec<Instant>>> {
    let reports: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let recorded = Arc::clone(&reports);
    std::thread::spawn(move || {
        let mut buffer = [0; 256];
        while let Ok(length) = socket.recv(&mut buffer) {
            if buffer[..length] == *b"WATCHDOG=1" {
                recorded.lock().unwrap().push(Instant::now());
            }
        }
    });
    reports
}

impl Site {
    /// Starts the daemon, and load on a disk.
    fn new(loaded: &str) -> Self {
        let rig = Rig::new().unwrap();
        let [socket, notify] = ["nbd.sock", "notify.sock"].map(|name| rig.path(name));
        let reports = record(UnixDatagram::bind(&notify).unwrap());
        let store = rig.path("store");
        std::fs::create_dir(&store).unwrap();
        let mut host = format!(
            "[host]\nfloating_workers = 2\n\
             [[store]]\nname = \"s\"\npath = \"{store}\"\ncapacity_iops = 100000\n"
        );
        for disk in ["a", "b"] {
            let limit = if disk == loaded {
                String::new()
            } else {
                format!("qos = {{ max_iops = {MAX} }}\n")
            };
            host += &format!(
                "[[disk]]\nname = \"{disk}\"\nstore = \"s\"\nformat = \"raw\"\n\
                 size_bytes = \"16 MiB\"\nnbd = {{ socket = \"{socket}\" }}\n{limit}"
            );
        }
        let interval = (2 * ROUND_MAX).as_micros();
        let environment = vec![("NOTIFY_SOCKET", notify), ("WATCHDOG_USEC", interval.to_string())];
        let options = DaemonOptions { environment, ..DaemonOptions::default() };
        let daemon = Daemon::start_with(&rig, &host, &options).unwrap();
        let load = LastingLoad::begin(&rig, &socket, &[loaded], 8, 600).unwrap();
        Self { daemon, socket, load: Some(load), reports, _rig: rig }
    }

    fn worker_of(&self, disk: &str) -> u64 {
        wait_for_value("worker of a disk", LIMIT, || {
            Ok(self.daemon.json(&["disk", "show", disk])?["worker"].as_u64())
        })
        .unwrap()
    }

    /// Stops the worker of the disk with load, while it serves the disk.
    fn freeze(&mut self, worker: u64) -> Frozen {
        let folder = format!("/proc/{}/task", self.daemon.process().id());
        let name = format!("processor-{worker}");
        let thread = std::fs::read_dir(folder).unwrap().flatten().find_map(|task| {
            let thread_name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            (thread_name.trim() == name)
                .then(|| task.file_name().to_string_lossy().parse().unwrap())
        });
        Frozen::after_call(thread.unwrap(), &SOCKET_CALLS)
    }

    fn wait_event(&self, id: &str) -> Value {
        wait_for_value(&format!("event {id}"), LIMIT, || {
            Ok(self
                .daemon
                .json(&["event", "list", "--id", id])?
                .as_array()
                .and_then(|events| events.last().cloned()))
        })
        .unwrap()
    }

    fn last_report(&self) -> Option<Instant> {
        self.reports.lock().unwrap().last().copied()
    }
}

/// Stops the worker of the disk `loaded`, while the worker of the disk `other` proceeds.
fn other_workers_proceed(loaded: &str, other: &str) {
    let mut site = Site::new(loaded);
    let worker = site.worker_of(loaded);
    assert_ne!(worker, site.worker_of(other));
    let mut client = NbdClient::connect(&site.socket, other).unwrap();
    wait_until("a report to the watchdog", LIMIT, || Ok(site.last_report().is_some())).unwrap();
    let frozen = site.freeze(worker);
    let stopped = Instant::now();
    // The other worker serves its disk of the same store, within its maximum.
    client.write(0, &[7; 4096], true).unwrap();
    let started = Instant::now();
    for _ in 0..2 * MAX {
        client.write(0, &[7; 4096], false).unwrap();
    }
    assert!(started.elapsed() > Duration::from_millis(1900), "{:?}", started.elapsed());
    let event = site.wait_event("5006");
    assert_eq!(event["subject"], format!("processor/{worker}"), "{event}");
    let device = format!("disk/{loaded}");
    assert_eq!(event["fields"]["device"], device.as_str(), "{event}");
    assert!(event["text"].as_str().unwrap().contains(&device), "{event}");
    // A new client is served, too.
    let mut client = NbdClient::connect(&site.socket, other).unwrap();
    let mut read = [0; 4096];
    client.read(0, &mut read).unwrap();
    assert_eq!(read, [7; 4096]);
    // Reports end one check after the longest round, before event 5006. Their times are those of a
    // thread of this test, which may be delayed.
    let last = site.last_report().unwrap().saturating_duration_since(stopped);
    assert!(last < STALLED_AFTER, "{last:?}");
    assert!(stopped.elapsed() > ROUND_MAX * 2);
    let resumed = Instant::now();
    drop(frozen);
    let event = site.wait_event("5007");
    assert_eq!(event["subject"], format!("processor/{worker}"), "{event}");
    wait_until("a report to the watchdog", LIMIT, || {
        Ok(site.last_report().is_some_and(|reported_at| reported_at > resumed))
    })
    .unwrap();
    site.load.take().unwrap().stop().unwrap();
    assert!(site.daemon.stop().unwrap().success());
}

#[test]
fn a_stalled_worker_is_reported_with_its_device_and_others_proceed() {
    other_workers_proceed("a", "b");
}

/// The worker that uses the store second is stalled.
#[test]
fn the_first_worker_of_a_store_proceeds_without_the_second() {
    other_workers_proceed("b", "a");
}

mod full {
    use rustix::process::Signal;

    use super::*;

    /// `END_MAX` of the daemon, and time for a loaded machine.
    const END_MAX: Duration = Duration::from_secs(30);

    #[test]
    fn a_daemon_with_a_stalled_worker_ends_in_time() {
        let mut site = Site::new("a");
        let worker = site.worker_of("a");
        let frozen = site.freeze(worker);
        let started = Instant::now();
        site.daemon.process().signal(Signal::TERM);
        frozen.wait_end();
        site.daemon.process().wait(LIMIT).unwrap();
        let elapsed = started.elapsed();
        assert!(elapsed < END_MAX + Duration::from_secs(10), "{elapsed:?}");
    }
}
