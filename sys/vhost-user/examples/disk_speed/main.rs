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
//!     --packed            a packed ring instead of a split one
//!     --without FEATURE   without event-index or indirect, also if the back-end offers it
//!
//! It takes any back-end of a disk with `VIRTIO_F_VERSION_1`: event index, indirect descriptors, flush
//! requests and the configuration space are used where they are offered, and requests are divided as
//! `size_max` and `seg_max` say. It ends with status 1 and a sentence if something fails.

mod driver;
mod front_end;
mod memory;
mod packed;
mod requests;
mod split;
mod tell;
mod wanted;

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use driver::{Driver, Ring};
use front_end::{EVENT_INDEX, FLUSH, FrontEnd, INDIRECT, PACKED, READ_ONLY, RingPlace, VERSION_1};
use memory::{DESCRIPTORS, DEVICE, DRIVER, ENTRIES, Memory};
use packed::PackedRing;
use requests::Requests;
use rustix::event::{EventfdFlags, eventfd};
use split::SplitRing;
use suimon_test_programs::end_program;
use wanted::Wanted;

/// Rings are warm after this, or an eighth of the time that is measured.
const WARM_UP: Duration = Duration::from_millis(100);
/// A back-end listens within this.
const START_LIMIT: Duration = Duration::from_secs(30);
/// A back-end that answers nothing for so long stands still.
const STANDS_STILL: Duration = Duration::from_secs(5);

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
        let until = Instant::now() + START_LIMIT;
        while !socket.exists() {
            if let Some(status) = running.0.try_wait()? {
                bail!("the back-end `{command}` ended with {status} before it listened");
            }
            ensure!(Instant::now() < until, "the back-end `{command}` does not listen");
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

fn measure(peer: &Peer, wanted: &Wanted) -> Result<Rates> {
    match &peer.behind {
        Behind::Command(command) => {
            let folder = tempfile::tempdir().context("there is no temporary folder")?;
            let socket = folder.path().join("disk.sock");
            let running = Running::start(command, &socket)?;
            measure_at(&socket, Some(&running), wanted)
        }
        Behind::Socket(socket) => measure_at(socket, None, wanted),
    }
}

fn measure_at(socket: &Path, running: Option<&Running>, wanted: &Wanted) -> Result<Rates> {
    let mut front_end = FrontEnd::connect(socket)?;
    let form = if wanted.is_packed { PACKED } else { 0 };
    // Without FLUSH a disk would write through.
    let disk = front_end.negotiate(wanted.features | FLUSH, VERSION_1 | form)?;
    let is_read_only = disk.features & READ_ONLY != 0;
    ensure!(!is_read_only || wanted.load.read_percent >= 100, "the disk is read-only");
    let memory = Memory::new(wanted.load.bytes)?;
    let slice = memory.slice()?;
    let requests = Requests::new(&slice, wanted.load, &disk)?;
    let is_indirect = disk.features & INDIRECT != 0;
    let ring = if wanted.is_packed {
        Ring::Packed(PackedRing::new(&slice, &requests, is_indirect)?)
    } else {
        let has_event_index = disk.features & EVENT_INDEX != 0;
        Ring::Split(SplitRing::new(&slice, &requests, (is_indirect, has_event_index))?)
    };
    let slots = ring.slots();
    ensure!(
        usize::from(wanted.depth) <= slots,
        "without indirect descriptors {slots} requests fit into the ring; choose a smaller DEPTH"
    );
    let event = || -> Result<OwnedFd> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).context("no eventfd")
    };
    let mut driver =
        Driver { requests, ring, kick: event()?, call: event()?, depth: wanted.depth, kicks: 0 };
    front_end.share(&memory)?;
    let place = RingPlace {
        entries: ENTRIES,
        base: if wanted.is_packed { packed::BASE } else { 0 },
        descriptors: DESCRIPTORS,
        driver: DRIVER,
        device: DEVICE,
    };
    front_end.start(place, driver.kick.as_fd(), driver.call.as_fd())?;
    driver.fill()?;
    run(&mut driver, wanted, WARM_UP.max(wanted.time / 8))?;
    let used_ns = || running.map(|running| cpu_ns(running.0.id())).transpose();
    let (before, kicks) = (used_ns()?, driver.kicks);
    let start = Instant::now();
    let count = run(&mut driver, wanted, wanted.time)? as f64;
    let elapsed = start.elapsed().as_secs_f64();
    let used = used_ns()?.zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(Rates {
        per_second: count / elapsed,
        per_cpu_second: used.filter(|used| *used > 0).map(|used| count / (used as f64 / 1e9)),
        kicks_per_second: (driver.kicks - kicks) as f64 / elapsed,
    })
}

/// Keeps the ring full for `time`, or longer until one request is complete. Returns the number of
/// completed requests.
fn run(driver: &mut Driver<'_>, wanted: &Wanted, time: Duration) -> Result<u64> {
    // A driver that sleeps looks at the clock each time, one that polls now and then.
    let turns = if wanted.is_waiting { 1 } else { 256 };
    let until = Instant::now() + time;
    let (mut count, mut last) = (0, Instant::now());
    while Instant::now() < until || count == 0 {
        for _ in 0..turns {
            match driver.turn()? {
                0 if wanted.is_waiting => driver.wait()?,
                0 => std::hint::spin_loop(),
                some => {
                    count += some;
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

/// CPU time of a process: that of its threads (`/proc/PID/task/TID/schedstat`).
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
    let (wanted, mut peers) = Wanted::of_arguments()?;
    let mut own = rustix::thread::CpuSet::new();
    own.set(0);
    rustix::thread::sched_setaffinity(None, &own).context("CPU 0 cannot be used")?;
    for _ in 0..wanted.rounds {
        for peer in &mut peers {
            let rates = measure(peer, &wanted).with_context(|| peer.name.clone())?;
            peer.rounds.push(rates);
        }
    }
    if wanted.is_json {
        tell::tell_json(&peers);
    } else {
        tell::tell_medians(&peers, &wanted);
    }
    Ok(())
}

fn main() -> ExitCode {
    end_program("disk_speed", measure_all())
}
