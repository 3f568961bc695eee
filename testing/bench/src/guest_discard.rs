//! Benchmark of discards of a guest: `fstrim` of freed files, and removal of files on a file system
//! mounted with `discard`, on a dynamic image. Discards must not delay flushes of other files.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use suimon_rig::{
    Daemon, Guest, GuestDisk, GuestSpec, Process, Rig, run, system_program, wait_until,
};

use crate::report::{Pair, Sample, Work};

const DISK_GIB: u32 = 64;
/// Files that are written and removed before each discard. They are a part of the guest's memory, so
/// that the guest writes them back in one go.
const FILES: u32 = 64;
const FILE_MIB: u32 = 4;
/// Time limit of a command of the guest, which may be emulated.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);
const START_LIMIT: Duration = Duration::from_secs(20);

/// Measured values of one guest.
#[derive(Clone, Copy)]
struct Figures {
    /// Duration of `fstrim` in milliseconds.
    fstrim_ms: f64,
    /// 99th percentile and maximum of the time of an `fsync` beside `fstrim`, in milliseconds.
    fsync_ms: [f64; 2],
    /// Duration of the removal of the files, with a following `sync`, on a file system mounted with
    /// `discard`, in milliseconds.
    removal_ms: f64,
}

impl Figures {
    fn values(self) -> [f64; 4] {
        let [p99, max] = self.fsync_ms;
        [self.fstrim_ms, p99, max, self.removal_ms]
    }
}

/// Names and titles of [`Figures::values`].
const VALUES: [[&str; 2]; 4] = [
    ["fstrim", "fstrim of a 64 GiB disk after 256 MiB of files were removed"],
    ["fsync-p99", "fsync of a 4 KB file beside fstrim, 99th percentile"],
    ["fsync-max", "fsync of a 4 KB file beside fstrim, maximum"],
    ["removal", "removal of 256 MiB of files and sync, mounted with discard"],
];

/// Measures `pairs` pairs. The peer serves a qcow2 image, its dynamic format with discards.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut benchmarks = VALUES.map(|[name, title]| {
        let name = format!("guest-discard-{name}");
        let title = format!("Guest on a dynamic image: {title}");
        Work::new(&name, &title, "qemu-storage-daemon, qcow2", "ms").less_is_better()
    });
    let missing_programs: Vec<String> = ["qemu-storage-daemon", "fstrim", "mkfs.ext4", "fio"]
        .into_iter()
        .filter_map(|name| system_program(name).err().map(|error| error.to_string()))
        .collect();
    if !missing_programs.is_empty() {
        let missing = missing_programs.join("; ");
        benchmarks.iter_mut().for_each(|work| work.missing = Some(missing.clone()));
        return Ok(benchmarks.into());
    }
    for _ in 0..pairs {
        let (peer, suimon) = (through_qemu()?.values(), through_suimon()?.values());
        for (work, (peer, suimon)) in benchmarks.iter_mut().zip(peer.into_iter().zip(suimon)) {
            work.push(Pair {
                peer: Sample::without_distance(peer),
                suimon: Sample::without_distance(suimon),
            });
        }
    }
    Ok(benchmarks.into())
}

fn through_qemu() -> Result<Figures> {
    let rig = Rig::new()?;
    let (image, socket) = (rig.path("disk.qcow2"), rig.path("disk.sock"));
    run(&["qemu-img", "create", "-q", "-f", "qcow2", &image, &format!("{DISK_GIB}G")])?;
    let command = format!(
        "qemu-storage-daemon --object iothread,id=io \
         --blockdev node-name=file,driver=file,filename={image},discard=unmap,aio=io_uring \
         --blockdev node-name=d,driver=qcow2,file=file,discard=unmap \
         --export type=vhost-user-blk,id=e,node-name=d,iothread=io,addr.type=unix,\
         addr.path={socket},writable=on"
    );
    let arguments: Vec<&str> = command.split_whitespace().collect();
    let _server = Process::start(&rig, "qemu-storage-daemon", &arguments)?;
    wait_until("socket of qemu-storage-daemon", START_LIMIT, || Ok(Path::new(&socket).exists()))?;
    measure_guest(&rig, &socket, Path::new(&image))
}

fn through_suimon() -> Result<Figures> {
    let rig = Rig::new()?;
    let (store, socket) = (rig.path("store"), rig.path("disk.sock"));
    std::fs::create_dir(&store)?;
    let bytes = u64::from(DISK_GIB) << 30;
    let host = format!(
        "[[store]]\nname = \"s\"\npath = \"{store}\"\n\
         [[disk]]\nname = \"d\"\nstore = \"s\"\nformat = \"vhdx\"\nkind = \"dynamic\"\n\
         size_bytes = {bytes}\nvhost_user = {{ socket = \"{socket}\" }}\n"
    );
    let daemon = Daemon::start(&rig, &host)?;
    wait_until("the disk", START_LIMIT, || {
        Ok(daemon.json(&["disk", "show", "d"])?["state"] == "ready")
    })?;
    let image = Path::new(&store).join("d.vhdx");
    measure_guest(&rig, &socket, &image)
}

fn measure_guest(rig: &Rig, socket: &str, image: &Path) -> Result<Figures> {
    let programs = ["fstrim", "mkfs.ext4", "fio"].map(system_program);
    let spec = GuestSpec {
        name: "vm".to_owned(),
        disks: vec![GuestDisk::new(socket)],
        programs: programs.into_iter().collect::<Result<_>>()?,
        memory_mib: 768,
        ..GuestSpec::default()
    };
    let mut guest = Guest::start(rig, &spec)?;
    let mut run = |command: &str| {
        let output = guest.run_any(command, COMMAND_LIMIT)?;
        ensure!(output.is_ok(), "`{command}` in the guest: {}", output.stdout);
        Ok::<_, anyhow::Error>(output.stdout)
    };
    run("mkfs.ext4 -q -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 /dev/vda && mkdir /mnt")?;
    // Without it, the guest initializes its inode tables meanwhile.
    run("mount -t ext4 -o noinit_itable /dev/vda /mnt")?;
    run(&write_files())?;
    let allocated = allocated_bytes(image)?;
    run("rm /mnt/old.* && sync")?;
    let beside = "fio --name=beside --filename=/mnt/beside --rw=write --bs=4k --size=4k --fsync=1 \
                  --time_based --runtime=600 --output-format=json --output=/tmp/beside & job=$!; \
                  sleep 1";
    let trim = timed("fstrim /mnt");
    let fstrim_ms = milliseconds(&run(&format!(
        "{beside}; {trim}; sleep 1; kill -INT $job; wait $job; true"
    ))?)?;
    let fsync_ms = fsync_times(&run("cat /tmp/beside")?)?;
    wait_for_deallocation(image, allocated)?;
    run("mount -o remount,discard /mnt")?;
    run(&write_files())?;
    let allocated = allocated_bytes(image)?;
    let removal_ms = milliseconds(&run(&timed("rm /mnt/old.* && sync"))?)?;
    wait_for_deallocation(image, allocated)?;
    Ok(Figures { fstrim_ms, fsync_ms, removal_ms })
}

/// Waits until most of the removed files' space is deallocated in the image, which may continue after
/// the discards have ended. `before`: allocated bytes of the image with the files.
fn wait_for_deallocation(image: &Path, before: u64) -> Result<()> {
    let files_bytes = u64::from(FILES * FILE_MIB) << 20;
    ensure!(before > files_bytes, "{before} bytes are allocated for {files_bytes} bytes of files");
    wait_until("deallocation of the files", START_LIMIT, || {
        let now = allocated_bytes(image)?;
        ensure!(
            before.saturating_sub(now) > files_bytes / 4 * 3,
            "{} had {before} bytes allocated and has {now} after the discard of {files_bytes}",
            image.display()
        );
        Ok(true)
    })
}

fn allocated_bytes(image: &Path) -> Result<u64> {
    Ok(std::fs::metadata(image)?.blocks() * 512)
}

/// Returns a command that writes the files and flushes them to the disk.
fn write_files() -> String {
    format!(
        "i=0; while [ $i -lt {FILES} ]; do \
         dd if=/dev/zero of=/mnt/old.$i bs=1M count={FILE_MIB} 2>/dev/null || exit 1; \
         i=$((i + 1)); done; sync"
    )
}

/// Returns a command that runs `command` and prints the uptime of the guest before and after it.
fn timed(command: &str) -> String {
    format!("cut -d' ' -f1 /proc/uptime; {command} && cut -d' ' -f1 /proc/uptime")
}

/// Parses the output of [`timed`].
fn milliseconds(output: &str) -> Result<f64> {
    let times: Vec<f64> = output.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let [before, after] = times[..] else { bail!("no two times in {output:?}") };
    Ok((after - before) * 1e3)
}

/// Returns the 99th percentile and the maximum of fio's `fsync` times in milliseconds.
fn fsync_times(output: &str) -> Result<[f64; 2]> {
    let start = output.find('{').context("fio printed no JSON")?;
    let result: Value = serde_json::from_str(&output[start..]).context("fio's output")?;
    let times = &result["jobs"][0]["sync"]["lat_ns"];
    let value = |value: &Value| value.as_f64().context("fio reported no time of fsync");
    Ok([value(&times["percentile"]["99.000000"])? / 1e6, value(&times["max"])? / 1e6])
}
