//! Random reads of 4 KB from vhost-user-blk back-ends, by a front-end that only polls: how
//! many a second, and how many for each second of CPU time that the back-end uses.
//!
//!     disk_speed [--json] ROUNDS SECONDS DEPTH 'NAME: COMMAND'…
//!
//! With `--json` it tells each round's figures as JSON, for `make bench`, and no medians.
//! Each command starts a back-end on the socket `SOCKET`, with a disk of at least
//! 256 MB; back-ends take turns. The front-end runs on CPU 0, back-ends on CPU 1. For
//! example, with the project's own and QEMU's:
//!
//!     disk_speed 5 3 128 \
//!       'suimon null: serve-disk disk.raw --null --vhost-user SOCKET' \
//!       'qemu null: qemu-storage-daemon --blockdev driver=null-co,node-name=d,size=1073741824
//!         --object iothread,id=io --export type=vhost-user-blk,id=e,node-name=d,iothread=io,
//!         addr.type=unix,addr.path=SOCKET,writable=on'

#[path = "../tests/bench/mod.rs"]
mod bench;

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bench::rig::{GUEST_BASE, INDIRECT, NEXT, USER_BASE, Vm, WRITE, event};
use bench::{FrontEnd, PROTOCOL_FEATURES, VERSION_1};
use vm_memory::{
    Bytes, GuestAddress, GuestMemory, GuestMemoryRegion, VolatileMemory, VolatileSlice,
};

const EVENT_IDX: u64 = 1 << 29;
const INDIRECT_DESC: u64 = 1 << 28;
/// `MQ` and `CONFIG`, and what asks for nothing in return.
const PROTOCOL: u64 = 1 | 1 << 9;

const SIZE: u16 = 256;
const READ_BYTES: u64 = 4096;
const DISK_BYTES: u64 = 256 << 20;
const MEMORY_BYTES: u64 = 8 << 20;

/// Where things lie in memory, from its start.
const DESCRIPTORS: u64 = 0;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const TABLES: u64 = 0x1_0000;
/// Each request's header, and its status in the same line, as drivers have them.
const REQUESTS: u64 = 0x2_0000;
const REQUEST_BYTES: u64 = 128;
const STATUS_AT: u64 = 16;
const BUFFERS: u64 = 0x10_0000;

/// The driver of one split ring, which has one request for each descriptor.
struct Reader<'a> {
    sectors: Vec<&'a AtomicU64>,
    available: Vec<&'a AtomicU16>,
    available_index: &'a AtomicU16,
    /// Where the back-end wants to be kicked, and where we want to be interrupted.
    kick_at: &'a AtomicU16,
    call_at: &'a AtomicU16,
    used: Vec<&'a AtomicU32>,
    used_index: &'a AtomicU16,
    statuses: Vec<&'a AtomicU8>,
    kick: OwnedFd,
    offered: u16,
    seen: u16,
    state: u64,
    kicks: u64,
}

impl<'a> Reader<'a> {
    fn new(vm: &Vm, slice: &'a VolatileSlice<'a>, kick: OwnedFd) -> Self {
        macro_rules! at {
            ($kind:ty, $offset:expr) => {
                slice.get_atomic_ref::<$kind>(($offset) as usize).expect("it is in memory")
            };
        }
        let entries = 0..u64::from(SIZE);
        for entry in entries.clone() {
            let table = GUEST_BASE + TABLES + entry * 64;
            let request = REQUESTS + entry * REQUEST_BYTES;
            let pieces = [
                (request, 16, NEXT, 1),
                (BUFFERS + entry * READ_BYTES, READ_BYTES as u32, NEXT | WRITE, 2),
                (request + STATUS_AT, 1, WRITE, 0),
            ];
            let describe = |place: u64, addr: u64, len: u32, flags: u16, next: u16| {
                let word = u128::from(addr)
                    | u128::from(len) << 64
                    | u128::from(flags) << 96
                    | u128::from(next) << 112;
                vm.memory.write_slice(&word.to_le_bytes(), GuestAddress(place)).expect("memory");
            };
            for ((addr, len, flags, next), nth) in pieces.into_iter().zip(0..) {
                describe(table + nth * 16, GUEST_BASE + addr, len, flags, next);
            }
            describe(GUEST_BASE + DESCRIPTORS + entry * 16, table, 48, INDIRECT, 0);
        }
        Self {
            sectors: entries
                .clone()
                .map(|entry| at!(AtomicU64, REQUESTS + entry * REQUEST_BYTES + 8))
                .collect(),
            available: entries
                .clone()
                .map(|entry| at!(AtomicU16, AVAILABLE + 4 + entry * 2))
                .collect(),
            available_index: at!(AtomicU16, AVAILABLE + 2),
            call_at: at!(AtomicU16, AVAILABLE + 4 + u64::from(SIZE) * 2),
            used: entries.clone().map(|entry| at!(AtomicU32, USED + 4 + entry * 8)).collect(),
            used_index: at!(AtomicU16, USED + 2),
            kick_at: at!(AtomicU16, USED + 4 + u64::from(SIZE) * 8),
            statuses: entries
                .map(|entry| at!(AtomicU8, REQUESTS + entry * REQUEST_BYTES + STATUS_AT))
                .collect(),
            kick,
            offered: 0,
            seen: 0,
            state: 0x2545_f491_4f6c_dd1d,
            kicks: 0,
        }
    }

    fn offer(&mut self, head: u16) {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let block = (self.state >> 16) % (DISK_BYTES / READ_BYTES);
        self.sectors[usize::from(head)].store(block * (READ_BYTES / 512), Ordering::Relaxed);
        let slot = usize::from(self.offered % SIZE);
        self.available[slot].store(head, Ordering::Relaxed);
        self.offered = self.offered.wrapping_add(1);
    }

    /// Makes what was offered visible, and kicks if the back-end asked for that.
    fn publish(&mut self) {
        let old = self.available_index.load(Ordering::Relaxed);
        if old == self.offered {
            return;
        }
        self.available_index.store(self.offered, Ordering::Release);
        std::sync::atomic::fence(Ordering::SeqCst);
        let wanted = self.kick_at.load(Ordering::Relaxed);
        let since = self.offered.wrapping_sub(wanted).wrapping_sub(1);
        if since < self.offered.wrapping_sub(old) {
            self.kicks += 1;
            rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).expect("a kick");
        }
    }

    /// Takes in what was answered, and asks again; how many that were.
    fn turn(&mut self) -> u64 {
        let until = self.used_index.load(Ordering::Acquire);
        let count = until.wrapping_sub(self.seen);
        for _ in 0..count {
            let head = self.used[usize::from(self.seen % SIZE)].load(Ordering::Relaxed) as u16;
            assert_eq!(
                self.statuses[usize::from(head)].load(Ordering::Relaxed),
                0,
                "a read failed"
            );
            self.seen = self.seen.wrapping_add(1);
            self.offer(head);
        }
        // One that has been passed already: no interrupts.
        self.call_at.store(self.seen.wrapping_sub(1), Ordering::Relaxed);
        self.publish();
        u64::from(count)
    }
}

/// What a back-end did in a round.
#[derive(Clone, Copy)]
struct Rates {
    per_second: f64,
    per_cpu_second: f64,
    kicks_per_second: f64,
}

struct Peer {
    name: String,
    command: String,
    rounds: Vec<Rates>,
}

/// A back-end's process, which is ended when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(peer: &Peer, time: Duration, depth: u16) -> Rates {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("disk.sock");
    let command = peer.command.replace("SOCKET", socket.to_str().expect("a path"));
    let child = Command::new("taskset")
        .args(["-c", "1"])
        .args(command.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the back-end's program");
    let running = Running(child);
    bench::wait_for("the socket", || socket.exists());
    std::thread::sleep(Duration::from_millis(100));
    let vm = Vm::with_regions(vec![MEMORY_BYTES]);
    let (kick, call) = (event(), event());
    let mut front_end = FrontEnd::connect(&socket);
    let features = VERSION_1 | PROTOCOL_FEATURES | EVENT_IDX | INDIRECT_DESC;
    let offered = front_end.get_number(1);
    assert_eq!(features & !offered, 0, "{offered:#x}");
    let protocol = front_end.get_number(15) & PROTOCOL;
    front_end.set(16, &protocol.to_ne_bytes(), &[]);
    front_end.set(3, &[], &[]);
    front_end.set(2, &features.to_ne_bytes(), &[]);
    front_end.share_memory(&vm, MEMORY_BYTES);
    front_end.set(8, &FrontEnd::state(0, SIZE.into()), &[]);
    front_end.set(10, &FrontEnd::state(0, 0), &[]);
    let places = [DESCRIPTORS, USED, AVAILABLE].map(|at| USER_BASE + at);
    let addresses = [0, places[0], places[1], places[2], 0].map(u64::to_ne_bytes).concat();
    front_end.set(9, &addresses, &[]);
    front_end.set(13, &0_u64.to_ne_bytes(), &[call.as_fd()]);
    let region = vm.memory.find_region(GuestAddress(GUEST_BASE)).expect("memory");
    let slice = region.as_volatile_slice().expect("memory");
    let mut reader = Reader::new(&vm, &slice, kick.try_clone().expect("a descriptor"));
    front_end.set(12, &0_u64.to_ne_bytes(), &[kick.as_fd()]);
    front_end.set(18, &FrontEnd::state(0, 1), &[]);
    (0..depth).for_each(|head| reader.offer(head));
    reader.publish();
    let _ = run(&mut reader, time / 8);
    let (before, kicks) = (cpu_ns(running.0.id()), reader.kicks);
    let start = Instant::now();
    let count = run(&mut reader, time) as f64;
    let elapsed = start.elapsed().as_secs_f64();
    let used = (cpu_ns(running.0.id()) - before) as f64 / 1e9;
    let kicks_per_second = (reader.kicks - kicks) as f64 / elapsed;
    Rates { per_second: count / elapsed, per_cpu_second: count / used, kicks_per_second }
}

fn run(reader: &mut Reader<'_>, time: Duration) -> u64 {
    let until = Instant::now() + time;
    let (mut count, mut last) = (0, Instant::now());
    while Instant::now() < until {
        for _ in 0..256 {
            match reader.turn() {
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

fn three(mut numbers: Vec<f64>) -> String {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers[0], numbers[numbers.len() - 1]);
    format!("{:7.2} ({low:.2} to {high:.2})", numbers[numbers.len() / 2])
}

/// What is asked for.
struct Request {
    is_json: bool,
    rounds: usize,
    time: Duration,
    depth: u16,
    peers: Vec<Peer>,
}

fn request() -> Request {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_json = words.first().is_some_and(|word| word == "--json");
    let [rounds, seconds, depth, peers @ ..] = &words[usize::from(is_json)..] else {
        panic!("usage: disk_speed [--json] ROUNDS SECONDS DEPTH 'NAME: COMMAND'…");
    };
    let rounds: usize = rounds.parse().expect("ROUNDS");
    let time = Duration::from_secs_f64(seconds.parse().expect("SECONDS"));
    let depth: u16 = depth.parse().expect("DEPTH");
    assert!(rounds > 0 && (1..=SIZE).contains(&depth), "at least one round; depth 1 to {SIZE}");
    let parse = |text: &String| {
        let (name, command) = text.split_once(": ").expect("NAME: COMMAND");
        Peer { name: name.to_owned(), command: command.to_owned(), rounds: Vec::new() }
    };
    Request { is_json, rounds, time, depth, peers: peers.iter().map(parse).collect() }
}

fn main() {
    let Request { is_json, rounds, time, depth, mut peers } = request();
    let mut own = rustix::thread::CpuSet::new();
    own.set(0);
    rustix::thread::sched_setaffinity(None, &own).expect("CPU 0");
    for _ in 0..rounds {
        for peer in &mut peers {
            let rates = measure(peer, time, depth);
            peer.rounds.push(rates);
        }
    }
    if is_json {
        tell_json(&peers);
    } else {
        tell_medians(&peers, rounds, depth);
    }
}

fn tell_json(peers: &[Peer]) {
    let of_round = |rates: &Rates| {
        serde_json::json!({
            "reads_per_second": rates.per_second,
            "reads_per_cpu_second": rates.per_cpu_second,
            "kicks_per_second": rates.kicks_per_second,
        })
    };
    let of_peer = |peer: &Peer| {
        let rounds: Vec<_> = peer.rounds.iter().map(of_round).collect();
        serde_json::json!({ "name": peer.name, "rounds": rounds })
    };
    println!("{}", peers.iter().map(of_peer).collect::<serde_json::Value>());
}

fn tell_medians(peers: &[Peer], rounds: usize, depth: u16) {
    println!(
        "reads of 4 KB, depth {depth}; millions; median (lowest to highest) of {rounds} rounds"
    );
    for peer in peers {
        let all = |rate: fn(&Rates) -> f64| three(peer.rounds.iter().map(rate).collect());
        println!(
            "{:24} a second {}   a CPU second {}   thousand kicks a second {}",
            peer.name,
            all(|rates| rates.per_second / 1e6),
            all(|rates| rates.per_cpu_second / 1e6),
            all(|rates| rates.kicks_per_second / 1e3),
        );
    }
    let Some((first, others)) = peers.split_first() else { return };
    for other in others {
        let ratio = |rate: fn(&Rates) -> f64| {
            let pairs = first.rounds.iter().zip(&other.rounds);
            three(pairs.map(|(ours, theirs)| rate(ours) / rate(theirs)).collect())
        };
        println!(
            "{} / {}: a second {}, a CPU second {}",
            first.name,
            other.name,
            ratio(|rates| rates.per_second),
            ratio(|rates| rates.per_cpu_second)
        );
    }
}
