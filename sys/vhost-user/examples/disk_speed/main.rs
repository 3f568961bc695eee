//! Benchmark of vhost-user-blk back-ends by a front-end that polls or sleeps: requests per second,
//! and requests per second of CPU time that the back-end uses.
//!
//!     disk_speed [OPTION]… ROUNDS SECONDS DEPTH 'NAME: COMMAND'…
//!     disk_speed [OPTION]… --socket PATH ROUNDS SECONDS DEPTH
//!
//! Each command starts a back-end on the socket `SOCKET`; back-ends take turns. With `--socket`,
//! the back-end of an existing socket is measured; its CPU time is not reported. The front-end runs
//! on CPU 0, started back-ends on CPU 1. Without options all requests read 4 KB at random offsets
//! in the first 256 MiB of the disk, and the front-end polls. Example that compares the project's
//! back-end with QEMU's:
//!
//!     disk_speed 5 3 128 \
//!       'suimon null: serve-disk disk.raw --null --vhost-user SOCKET' \
//!       'qemu null: qemu-storage-daemon --blockdev driver=null-co,node-name=d,size=1073741824
//!         --object iothread,id=io --export type=vhost-user-blk,id=e,node-name=d,iothread=io,
//!         addr.type=unix,addr.path=SOCKET,writable=on'
//!
//! Options:
//!
//!     --json              prints the rates of each round as JSON, without medians
//!     --socket PATH       socket of a running back-end
//!     --block-kib N       size of a request in KiB
//!     --read-percent N    percentage of reads; other requests are writes
//!     --sequential        ascending offsets instead of random ones
//!     --disk-mib N        part of the disk that is used, from its beginning
//!     --wait              sleeps until an interrupt instead of polling
//!     --packed            packed instead of split virtqueue
//!     --without FEATURE   does not negotiate event-index or indirect
//!
//! Back-ends need `VIRTIO_F_VERSION_1`. Event index, indirect descriptors, flush requests and
//! configuration space are used if offered, and requests are split according to `size_max` and
//! `seg_max`. On failure the exit status is 1 and a message is printed.

mod driver;
mod front_end;
mod memory;
mod output;
mod packed;
mod parameters;
mod requests;
mod split;

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use driver::{Driver, Ring};
use front_end::{EVENT_INDEX, FLUSH, FrontEnd, INDIRECT, PACKED, READ_ONLY, RingLayout, VERSION_1};
use memory::{DESCRIPTORS_AT, DEVICE_AREA_AT, DRIVER_AREA_AT, ENTRIES, Memory};
use packed::PackedRing;
use parameters::Parameters;
use requests::Requests;
use rustix::event::{EventfdFlags, eventfd};
use split::SplitRing;
use suimon_test_programs::end_program;

/// Maximum time for which the queue warms up before a measurement; the time is an eighth of the
/// measured time if that is shorter.
const WARM_UP: Duration = Duration::from_millis(100);
/// Time limit for a started back-end to listen on its socket.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Time without a completion after which the back-end is considered hung.
const STANDS_STILL: Duration = Duration::from_secs(5);

/// Rates of a back-end in one round.
#[derive(Clone, Copy)]
struct Rates {
    per_second: f64,
    /// Requests per second of CPU time; `None` if the back-end's process is unknown.
    per_cpu_second: Option<f64>,
    kicks_per_second: f64,
}

struct Peer {
    name: String,
    behind: Behind,
    rounds: Vec<Rates>,
}

/// How the back-end under test is reached.
enum Behind {
    /// Command that starts the back-end, once for each round.
    Command(String),
    /// Socket of a running back-end.
    Socket(PathBuf),
}

/// Process of a back-end, killed on drop.
struct Running(Child);

impl Running {
    fn start(command: &str, socket: &Path) -> Result<Self> {
        let path = socket.to_str().context("the temporary folder has a path that is no text")?;
        let started = command.replace("SOCKET", path);
        let child = Command::new("taskset")
            .args(["-c", "1"])
            .args(started.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("taskset, which starts back-ends, cannot be run")?;
        let mut running = Self(child);
        let deadline = Instant::now() + START_LIMIT;
        while !socket.exists() {
            if let Some(status) = running.0.try_wait()? {
                bail!("the back-end `{command}` ended with {status} before it listened");
            }
            ensure!(Instant::now() < deadline, "the back-end `{command}` does not listen");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(100));
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(peer: &Peer, parameters: &Parameters) -> Result<Rates> {
    match &peer.behind {
        Behind::Command(command) => {
            let folder = tempfile::tempdir().context("there is no temporary folder")?;
            let socket = folder.path().join("disk.sock");
            let running = Running::start(command, &socket)?;
            measure_at(&socket, Some(&running), parameters)
        }
        Behind::Socket(socket) => measure_at(socket, None, parameters),
    }
}

fn measure_at(socket: &Path, running: Option<&Running>, parameters: &Parameters) -> Result<Rates> {
    let mut front_end = FrontEnd::connect(socket)?;
    let form = if parameters.is_packed { PACKED } else { 0 };
    // Without FLUSH the back-end would have to write through.
    let disk = front_end.negotiate(parameters.features | FLUSH, VERSION_1 | form)?;
    let is_read_only = disk.features & READ_ONLY != 0;
    ensure!(!is_read_only || parameters.load.read_percent >= 100, "the disk is read-only");
    let memory = Memory::new(parameters.load.bytes)?;
    let slice = memory.slice()?;
    let requests = Requests::new(&slice, parameters.load, &disk)?;
    let is_indirect = disk.features & INDIRECT != 0;
    let ring = if parameters.is_packed {
        Ring::Packed(PackedRing::new(&slice, &requests, is_indirect)?)
    } else {
        let has_event_index = disk.features & EVENT_INDEX != 0;
        Ring::Split(SplitRing::new(&slice, &requests, (is_indirect, has_event_index))?)
    };
    let slots = ring.slot_count();
    ensure!(
        usize::from(parameters.depth) <= slots,
        "without indirect descriptors {slots} requests fit into the ring; choose a smaller DEPTH"
    );
    let event = || -> Result<OwnedFd> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).context("no eventfd")
    };
    let mut driver = Driver {
        requests,
        ring,
        kick: event()?,
        call: event()?,
        depth: parameters.depth,
        kicks: 0,
    };
    front_end.share_memory(&memory)?;
    let layout = RingLayout {
        entries: ENTRIES,
        base: if parameters.is_packed { packed::INITIAL_POSITION } else { 0 },
        descriptors: DESCRIPTORS_AT,
        driver: DRIVER_AREA_AT,
        device: DEVICE_AREA_AT,
    };
    front_end.start(layout, driver.kick.as_fd(), driver.call.as_fd())?;
    driver.fill()?;
    run(&mut driver, parameters, WARM_UP.max(parameters.time / 8))?;
    let used_ns = || running.map(|running| cpu_ns(running.0.id())).transpose();
    let (before, kicks) = (used_ns()?, driver.kicks);
    let start = Instant::now();
    let count = run(&mut driver, parameters, parameters.time)? as f64;
    let elapsed = start.elapsed().as_secs_f64();
    let used = used_ns()?.zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(Rates {
        per_second: count / elapsed,
        per_cpu_second: used.filter(|used| *used > 0).map(|used| count / (used as f64 / 1e9)),
        kicks_per_second: (driver.kicks - kicks) as f64 / elapsed,
    })
}

/// Keeps `depth` requests in flight for `time`, and at least until one request is complete. Returns
/// the number of completed requests.
fn run(driver: &mut Driver<'_>, parameters: &Parameters, time: Duration) -> Result<u64> {
    // A sleeping driver checks the clock on each turn, a polling one every 256 turns.
    let polls = if parameters.uses_interrupts { 1 } else { 256 };
    let deadline = Instant::now() + time;
    let (mut count, mut last) = (0, Instant::now());
    while Instant::now() < deadline || count == 0 {
        for _ in 0..polls {
            match driver.poll()? {
                0 if parameters.uses_interrupts => driver.wait()?,
                0 => std::hint::spin_loop(),
                completed => {
                    count += completed;
                    last = Instant::now();
                }
            }
        }
        ensure!(
            last.elapsed() < STANDS_STILL,
            "the back-end has answered nothing for {} s",
            STANDS_STILL.as_secs()
        );
    }
    Ok(count)
}

/// Returns the CPU time that all threads of a process have used, in nanoseconds
/// (`/proc/PID/task/TID/schedstat`).
fn cpu_ns(process: u32) -> Result<u64> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"))
        .context("the back-end has ended while it was measured")?;
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    Ok(threads.filter_map(of_thread).sum())
}

fn measure_all() -> Result<()> {
    let (parameters, mut peers) = Parameters::parse()?;
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(0);
    rustix::thread::sched_setaffinity(None, &cpus).context("CPU 0 cannot be used")?;
    for _ in 0..parameters.rounds {
        for peer in &mut peers {
            let rates = measure(peer, &parameters).with_context(|| peer.name.clone())?;
            peer.rounds.push(rates);
        }
    }
    if parameters.is_json {
        output::print_json(&peers);
    } else {
        output::print_medians(&peers, &parameters);
    }
    Ok(())
}

fn main() -> ExitCode {
    end_program("disk_speed", measure_all())
}
