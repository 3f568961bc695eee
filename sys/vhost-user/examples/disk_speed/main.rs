//! Requests to vhost-user-blk back-ends, by a front-end that only polls or one that sleeps:
//! how many a second, and how many for each second of CPU time that the back-end uses.
//!
//!     disk_speed [OPTION]… ROUNDS SECONDS DEPTH 'NAME: COMMAND'…
//!     disk_speed [OPTION]… --socket PATH ROUNDS SECONDS DEPTH
//!
//! Each command starts a back-end on the socket `SOCKET`; back-ends take turns. With
//! `--socket` somebody listens already, whose CPU time is not known. The front-end runs on
//! CPU 0, back-ends that it starts on CPU 1. Without options all requests read 4 KB anywhere in the
//! first 256 MiB of the disk, and the front-end polls. For example, with the project's own
//! and QEMU's:
//!
//!     disk_speed 5 3 128 \
//!       'suimon null: serve-disk disk.raw --null --vhost-user SOCKET' \
//!       'qemu null: qemu-storage-daemon --blockdev driver=null-co,node-name=d,size=1073741824
//!         --object iothread,id=io --export type=vhost-user-blk,id=e,node-name=d,iothread=io,
//!         addr.type=unix,addr.path=SOCKET,writable=on'
//!
//! Options:
//!
//!     --json              tells each round's figures as JSON, for programs, and no medians
//!     --socket PATH       where a back-end listens
//!     --block-kib N       what a request moves
//!     --read-percent N    how many of a hundred requests read; the others write
//!     --sequential        one behind the other, instead of anywhere
//!     --disk-mib N        how much of the disk is used
//!     --wait              sleeps until it is interrupted, instead of polling

#[path = "../../tests/integration/bench/mod.rs"]
mod bench;
mod driver;
mod tell;
mod wanted;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench::rig::{GUEST_BASE, USER_BASE, Vm, event};
use bench::{FrontEnd, PROTOCOL_FEATURES, VERSION_1};
use driver::{AVAILABLE, DESCRIPTORS, Driver, SIZE, USED};
use vm_memory::{GuestAddress, GuestMemory, GuestMemoryRegion};
use wanted::Wanted;

const EVENT_IDX: u64 = 1 << 29;
const INDIRECT_DESC: u64 = 1 << 28;
/// Without it a disk would write through. It is asked for where it is offered.
const FLUSH: u64 = 1 << 9;
/// `MQ` and `CONFIG`, and what asks for nothing in return.
const PROTOCOL: u64 = 1 | 1 << 9;
/// Rings are warm after this, or an eighth of the time that is measured.
const WARM_UP: Duration = Duration::from_millis(100);

/// What a back-end did in a round.
#[derive(Clone, Copy)]
struct Rates {
    per_second: f64,
    /// None if it is not known who the back-end is.
    per_cpu_second: Option<f64>,
    kicks_per_second: f64,
}

struct Peer {
    name: String,
    behind: Behind,
    rounds: Vec<Rates>,
}

/// Who serves the disk.
enum Behind {
    /// A program that is started for each round.
    Command(String),
    /// Somebody who listens at this socket.
    Socket(PathBuf),
}

/// A back-end's process, which is ended when this is dropped.
struct Running(Child);

impl Running {
    fn start(command: &str, socket: &Path) -> Self {
        let command = command.replace("SOCKET", socket.to_str().expect("a path"));
        let child = Command::new("taskset")
            .args(["-c", "1"])
            .args(command.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the back-end's program");
        let running = Self(child);
        bench::wait_for("the socket", || socket.exists());
        std::thread::sleep(Duration::from_millis(100));
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(peer: &Peer, wanted: &Wanted) -> Rates {
    let folder = tempfile::tempdir().expect("a folder");
    match &peer.behind {
        Behind::Command(command) => {
            let socket = folder.path().join("disk.sock");
            let running = Running::start(command, &socket);
            measure_at(&socket, Some(&running), wanted)
        }
        Behind::Socket(socket) => measure_at(socket, None, wanted),
    }
}

fn measure_at(socket: &Path, running: Option<&Running>, wanted: &Wanted) -> Rates {
    let memory_bytes = wanted.load.memory_bytes();
    let vm = Vm::with_regions(vec![memory_bytes]);
    let (kick, call) = (event(), event());
    let mut front_end = FrontEnd::connect(socket);
    let features = VERSION_1 | PROTOCOL_FEATURES | EVENT_IDX | INDIRECT_DESC;
    let offered = front_end.get_number(1);
    assert_eq!(features & !offered, 0, "{offered:#x}");
    let features = features | (FLUSH & offered);
    let protocol = front_end.get_number(15) & PROTOCOL;
    front_end.set(16, &protocol.to_ne_bytes(), &[]);
    front_end.set(3, &[], &[]);
    front_end.set(2, &features.to_ne_bytes(), &[]);
    front_end.share_memory(&vm, memory_bytes);
    front_end.set(8, &FrontEnd::state(0, SIZE.into()), &[]);
    front_end.set(10, &FrontEnd::state(0, 0), &[]);
    let places = [DESCRIPTORS, USED, AVAILABLE].map(|at| USER_BASE + at);
    let addresses = [0, places[0], places[1], places[2], 0].map(u64::to_ne_bytes).concat();
    front_end.set(9, &addresses, &[]);
    front_end.set(13, &0_u64.to_ne_bytes(), &[call.as_fd()]);
    let region = vm.memory.find_region(GuestAddress(GUEST_BASE)).expect("memory");
    let slice = region.as_volatile_slice().expect("memory");
    let own_kick = kick.try_clone().expect("a descriptor");
    let mut driver = Driver::new(&vm, &slice, [own_kick, call], wanted.load);
    front_end.set(12, &0_u64.to_ne_bytes(), &[kick.as_fd()]);
    front_end.set(18, &FrontEnd::state(0, 1), &[]);
    (0..wanted.depth).for_each(|head| driver.offer(head));
    driver.publish();
    let _ = run(&mut driver, wanted, WARM_UP.max(wanted.time / 8));
    let used_ns = || running.map(|running| cpu_ns(running.0.id()));
    let (before, kicks) = (used_ns(), driver.kicks);
    let start = Instant::now();
    let count = run(&mut driver, wanted, wanted.time) as f64;
    let elapsed = start.elapsed().as_secs_f64();
    let used = used_ns().zip(before).map(|(after, before)| (after - before) as f64 / 1e9);
    Rates {
        per_second: count / elapsed,
        per_cpu_second: used.map(|used| count / used),
        kicks_per_second: (driver.kicks - kicks) as f64 / elapsed,
    }
}

/// Keeps the ring full for so long; how many requests were answered.
fn run(driver: &mut Driver<'_>, wanted: &Wanted, time: Duration) -> u64 {
    // A driver that sleeps looks at the clock each time, one that polls now and then.
    let turns = if wanted.is_waiting { 1 } else { 256 };
    let until = Instant::now() + time;
    let (mut count, mut last) = (0, Instant::now());
    while Instant::now() < until {
        for _ in 0..turns {
            match driver.turn() {
                0 if wanted.is_waiting => driver.wait(),
                0 => std::hint::spin_loop(),
                some => {
                    count += some;
                    last = Instant::now();
                }
            }
        }
        assert!(last.elapsed() < Duration::from_secs(5), "the back-end stands still");
    }
    count
}

/// CPU time of a process: that of its threads (`/proc/PID/task/TID/schedstat`).
fn cpu_ns(process: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("the back-end");
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    threads.filter_map(of_thread).sum()
}

fn main() {
    let (wanted, mut peers) = Wanted::of_arguments();
    let mut own = rustix::thread::CpuSet::new();
    own.set(0);
    rustix::thread::sched_setaffinity(None, &own).expect("CPU 0");
    for _ in 0..wanted.rounds {
        for peer in &mut peers {
            let rates = measure(peer, &wanted);
            peer.rounds.push(rates);
        }
    }
    if wanted.is_json {
        tell::tell_json(&peers);
    } else {
        tell::tell_medians(&peers, &wanted);
    }
}
