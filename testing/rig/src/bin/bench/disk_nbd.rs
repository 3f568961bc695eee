//! Random requests of 4 KB over NBD, by fio: a daemon with a raw disk in memory beside other
//! servers. Which CPU a server and fio run on is left to the kernel, as it is in use.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use suimon_rig::{Daemon, Process, Rig, fio, system_program, until};

use crate::disk_engine::IN_MEMORY;
use crate::report::{Bar, Pair, Sample, Work};

const CPUS: [u16; 2] = [0, 1];
const MIB: u32 = 256;
const SECONDS: u32 = 2;
const START_LIMIT: Duration = Duration::from_secs(10);
/// What every server calls its disk, or is content to be asked for.
const DISK: &str = "disk";

/// What is asked.
const JOBS: [(&str, u32); 4] =
    [("randread", 64), ("randwrite", 64), ("randread", 1), ("randwrite", 1)];

/// Another server.
struct Peer {
    name: &'static str,
    title: &'static str,
    program: &'static str,
    /// Its words for a socket and a file.
    command: fn(&str, &str) -> String,
}

const PEERS: [Peer; 3] = [
    Peer {
        name: "nbdkit-memory",
        title: "nbdkit, plugin memory, 4 threads",
        program: "nbdkit",
        command: |socket, _| format!("nbdkit --foreground --threads=4 -U {socket} memory {MIB}M"),
    },
    Peer {
        name: "nbdkit-file",
        title: "nbdkit, plugin file, on a file in memory",
        program: "nbdkit",
        command: |socket, file| format!("nbdkit --foreground -U {socket} file {file}"),
    },
    Peer {
        name: "qemu-nbd",
        title: "qemu-nbd, io_uring, on a file in memory",
        program: "qemu-nbd",
        command: |socket, file| {
            format!(
                "qemu-nbd --persistent --format=raw --aio=io_uring --export-name={DISK} \
                 --socket={socket} {file}"
            )
        },
    },
];

/// Runs `pairs` pairs of each job. Each measurement of Suimon is compared with all peers.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut works: Vec<[Work; 4]> =
        PEERS.iter().map(|peer| JOBS.map(|job| work(peer, job))).collect();
    for _ in 0..pairs {
        let theirs = PEERS.iter().zip(&works).map(|(peer, works)| match &works[0].missing {
            None => through_peer(peer).map(Some),
            Some(_) => Ok(None),
        });
        let theirs: Vec<Option<[Sample; 4]>> = theirs.collect::<Result<_>>()?;
        let ours = through_suimon()?;
        for (works, theirs) in works.iter_mut().zip(theirs) {
            let Some(theirs) = theirs else { continue };
            for (work, (peer, suimon)) in works.iter_mut().zip(theirs.into_iter().zip(ours)) {
                work.push(Pair { peer, suimon });
            }
        }
    }
    Ok(works.into_iter().flatten().collect())
}

fn work(peer: &Peer, (rw, depth): (&str, u32)) -> Work {
    let Peer { name, title, program, .. } = peer;
    let name = format!("disk-nbd-{rw}-{depth}-{name}");
    let way = rw.trim_start_matches("rand");
    let of = format!("4 KB random {way}s over NBD, a disk in memory, depth {depth}");
    let mut work = Work::new(&name, &of, title, "thousand/s").with_bar(Bar::Ratio(1.5));
    work.missing = ["fio", program]
        .iter()
        .find_map(|name| system_program(name).err())
        .map(|error| error.to_string());
    work
}

fn through_peer(peer: &Peer) -> Result<[Sample; 4]> {
    let rig = Rig::new_in(Path::new(IN_MEMORY))?;
    let (socket, file) = (rig.path("nbd.sock"), rig.path("disk.raw"));
    std::fs::File::create_new(&file)?.set_len(u64::from(MIB) << 20)?;
    let command = (peer.command)(&socket, &file);
    let words: Vec<&str> = command.split_whitespace().collect();
    let mut server = Process::start(&rig, peer.name, &words)?;
    until(&format!("socket of {}", peer.name), START_LIMIT, || {
        server.check_running()?;
        Ok(Path::new(&socket).exists())
    })?;
    samples(&rig, &socket)
}

fn through_suimon() -> Result<[Sample; 4]> {
    let rig = Rig::new_in(Path::new(IN_MEMORY))?;
    let (socket, store) = (rig.path("nbd.sock"), rig.path("store"));
    std::fs::create_dir(&store)?;
    let _daemon = Daemon::start(
        &rig,
        &format!(
            "[[store]]\nname = \"memory\"\npath = \"{store}\"\ncapability_iops = 1000000\n\
             [[disk]]\nname = \"{DISK}\"\nstore = \"memory\"\nformat = \"raw\"\n\
             size_bytes = \"{MIB} MiB\"\nnbd = {{ socket = \"{socket}\" }}\n"
        ),
    )?;
    until("socket of suimond", START_LIMIT, || Ok(Path::new(&socket).exists()))?;
    samples(&rig, &socket)
}

/// All jobs, on a disk that was written as a whole.
fn samples(rig: &Rig, socket: &str) -> Result<[Sample; 4]> {
    thousands(rig, socket, "--rw=write --bs=1m --iodepth=4")?;
    let mut samples = [Sample::alone(0.0); 4];
    for (sample, (rw, depth)) in samples.iter_mut().zip(JOBS) {
        let job = format!(
            "--rw={rw} --bs=4k --iodepth={depth} --norandommap --time_based --runtime={SECONDS}"
        );
        *sample = Sample::take(CPUS, || thousands(rig, socket, &job))?;
    }
    Ok(samples)
}

/// Thousands of requests a second.
fn thousands(rig: &Rig, socket: &str, job: &str) -> Result<f64> {
    let told = fio::run(rig.folder(), socket, DISK, &format!("{job} --size={MIB}m"))?;
    ensure!(told.errors == 0, "fio {job}: {} requests failed", told.errors);
    Ok((told.read_iops + told.write_iops) / 1e3)
}
