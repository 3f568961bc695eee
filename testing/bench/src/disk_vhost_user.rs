//! Benchmark of random 4 KB reads over vhost-user-blk by a front-end that only polls, per second of
//! CPU time that the back-end uses: a worker with disks compared with QEMU's storage daemon.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use suimon_rig::{Rig, example, program, run, system_program};

use crate::disk_engine::{DISK_BYTES, IN_MEMORY, write_file};
use crate::report::{Bar, Pair, Sample, Work, needs_measurement};

/// CPUs of `disk_speed`'s front-end and of the back-ends.
const CPUS: [u16; 2] = [0, 1];
const DEPTH: &str = "128";
const SECONDS: &str = "3";
/// Options with which QEMU's storage daemon serves its disk `d`, which must be defined before them,
/// on `disk_speed`'s socket in a separate thread.
const QEMU_EXPORT: &str = "--object iothread,id=io --export \
    type=vhost-user-blk,id=e,node-name=d,iothread=io,addr.type=unix,addr.path=SOCKET,writable=on";

/// Storage that the measured back-ends use.
struct Behind {
    name: &'static str,
    title: &'static str,
    peer: &'static str,
    suimon_disk: String,
    peer_disk: String,
}

/// Measures `pairs` pairs of each storage.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let rig = Rig::new_in(Path::new(IN_MEMORY))?;
    let file = rig.path("disk.raw");
    write_file(Path::new(&file), DISK_BYTES)?;
    let serve = program("serve-disk")?;
    let peers = [
        Behind {
            name: "null",
            title: "nothing behind it",
            peer: "qemu-storage-daemon, null-co",
            suimon_disk: format!("{serve} {file} --null --vhost-user SOCKET"),
            peer_disk: qemu(&format!("driver=null-co,size={DISK_BYTES}")),
        },
        Behind {
            name: "memory",
            title: "a file in memory behind it",
            peer: "qemu-storage-daemon, io_uring",
            suimon_disk: format!("{serve} {file} --vhost-user SOCKET"),
            peer_disk: qemu(&format!("driver=file,aio=io_uring,filename={file}")),
        },
    ];
    peers.iter().map(|peer| measure_with(peer, pairs)).collect()
}

fn qemu(disk: &str) -> String {
    format!("qemu-storage-daemon --blockdev node-name=d,{disk} {QEMU_EXPORT}")
}

fn measure_with(comparison: &Behind, pairs: usize) -> Result<Work> {
    let Behind { name, title, peer, .. } = comparison;
    let title = format!(
        "4 KB random reads over vhost-user-blk, depth {DEPTH}, {title}, for each second of the \
         back-end's CPU time"
    );
    let mut work = Work::new(&format!("disk-vhost-user-{name}"), &title, peer, "million")
        .with_bar(Bar::Ratio(3.0));
    work.missing = system_program("qemu-storage-daemon").err().map(|error| error.to_string());
    while needs_measurement(&work, pairs) {
        let peer = Sample::take(CPUS, || reads(&comparison.peer_disk))?;
        work.push(Pair { peer, suimon: Sample::take(CPUS, || reads(&comparison.suimon_disk))? });
    }
    Ok(work)
}

/// Measures reads, in millions per second of CPU time.
fn reads(command: &str) -> Result<f64> {
    let back_end = format!("back-end: {command}");
    let output = run(&[example("disk_speed")?.as_str(), "--json", "1", SECONDS, DEPTH, &back_end])?;
    let result: Value =
        serde_json::from_str(&output).with_context(|| format!("no JSON: {output}"))?;
    let rate = result[0]["rounds"][0]["requests_per_cpu_second"].as_f64();
    Ok(rate.with_context(|| format!("no rate: {output}"))? / 1e6)
}
