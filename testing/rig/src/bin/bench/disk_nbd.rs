//! Random requests of 4 KB over NBD: a daemon with a raw disk in memory beside other servers.
//! Which CPU a server and its client run on is left to the kernel, as it is in use.
//!
//! fio's client uses all of a CPU at depth 64, whoever answers; so there it is also asked by a
//! client that takes little, and told how many requests a server answers for each second of CPU
//! time that it used itself, and how many come from a server that does nothing: more than that
//! nobody can have.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Daemon, Process, Rig, fio, is_listening, run, system_program, until};

use crate::c_program::{Needs, compile};
use crate::disk_engine::IN_MEMORY;
use crate::report::{Bar, Pair, Sample, Work};

const CPUS: [u16; 2] = [0, 1];
const MIB: u32 = 256;
const SECONDS: u32 = 2;
const START_LIMIT: Duration = Duration::from_secs(10);
/// What every server calls its disk, or is content to be asked for.
const DISK: &str = "disk";

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    Fio,
    /// `nbd_client.c`, which leaves the CPU to others.
    Sparing,
}

/// What is asked.
#[derive(Clone, Copy)]
struct Job {
    /// `read` or `write`.
    way: &'static str,
    depth: u32,
    asker: Asker,
}

/// At depth 1 it is wake-ups that take a client's time, of which the sparing one has as many.
const JOBS: [Job; 6] = [
    Job { way: "read", depth: 64, asker: Asker::Sparing },
    Job { way: "write", depth: 64, asker: Asker::Sparing },
    Job { way: "read", depth: 64, asker: Asker::Fio },
    Job { way: "write", depth: 64, asker: Asker::Fio },
    Job { way: "read", depth: 1, asker: Asker::Fio },
    Job { way: "write", depth: 1, asker: Asker::Fio },
];

/// Another server.
struct Peer {
    name: &'static str,
    title: &'static str,
    program: &'static str,
    /// Its words for a socket and a file; behind those of a program that is compiled from
    /// `source` first, if there is one.
    command: fn(&str, &str) -> String,
    source: Option<&'static str>,
}

const PEERS: [Peer; 4] = [
    Peer {
        name: "nbdkit-memory",
        title: "nbdkit, plugin memory, 4 threads",
        program: "nbdkit",
        command: |socket, _| format!("nbdkit --foreground --threads=4 -U {socket} memory {MIB}M"),
        source: None,
    },
    Peer {
        name: "nbdkit-file",
        title: "nbdkit, plugin file, on a file in memory",
        program: "nbdkit",
        command: |socket, file| format!("nbdkit --foreground -U {socket} file {file}"),
        source: None,
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
        source: None,
    },
    Peer {
        name: "nothing",
        title: "a program that only receives requests and answers them",
        program: "gcc",
        command: |socket, _| format!("{socket} {}", u64::from(MIB) << 20),
        source: Some(concat!(include_str!("nbd_wire.h"), include_str!("nbd_nothing.c"))),
    },
];

const CLIENT: &str = concat!(include_str!("nbd_wire.h"), include_str!("nbd_client.c"));

/// What is told of a job.
#[derive(Clone, Copy)]
enum Figure {
    /// Requests for each second of the clock. A client that uses all of its CPU bounds it.
    Rate,
    /// Requests for each second of CPU time that the server used, whatever its client does.
    Thrift,
}

const FIGURES: [Figure; 2] = [Figure::Rate, Figure::Thrift];

/// A server with a disk that was written as a whole.
struct Server {
    program: Program,
    socket: String,
    /// Its folder goes when the program has ended.
    rig: Rig,
}

enum Program {
    Peer(Process),
    Suimon(Box<Daemon>),
}

/// Runs `pairs` pairs of each job. Each measurement of Suimon is compared with all peers. All
/// servers are there at once, and each job is done on one after the other, so that the CPUs
/// are the same for all as nearly as they can be.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut works: Vec<Vec<[Work; 2]>> = PEERS
        .iter()
        .map(|peer| JOBS.iter().map(|job| FIGURES.map(|figure| work(peer, *job, figure))).collect())
        .collect();
    let is_there = |works: &[[Work; 2]]| works.iter().flatten().all(|work| work.missing.is_none());
    if !works.iter().any(|works| is_there(works)) {
        return Ok(works.into_iter().flatten().flatten().collect());
    }
    let servers = PEERS.iter().zip(&works).map(|(peer, works)| {
        let server = is_there(works).then(|| Server::of_peer(peer));
        server.transpose()
    });
    let mut servers = servers.collect::<Result<Vec<_>>>()?;
    let mut suimon = Server::of_suimon()?;
    let rig = Rig::new_in(Path::new(IN_MEMORY))?;
    let client = compile(&rig, "nbd_client", CLIENT, Needs::Nothing)?;
    for _ in 0..pairs {
        for (nth, job) in JOBS.iter().enumerate() {
            let theirs = servers.iter_mut().map(|server| {
                server.as_mut().map(|server| server.samples(&client, *job)).transpose()
            });
            let theirs = theirs.collect::<Result<Vec<_>>>()?;
            let ours = suimon.samples(&client, *job)?;
            for (works, theirs) in works.iter_mut().zip(theirs) {
                let Some(theirs) = theirs else { continue };
                for (work, (peer, suimon)) in
                    works[nth].iter_mut().zip(theirs.into_iter().zip(ours))
                {
                    work.push(Pair { peer, suimon });
                }
            }
        }
    }
    Ok(works.into_iter().flatten().flatten().collect())
}

fn work(peer: &Peer, Job { way, depth, asker }: Job, figure: Figure) -> Work {
    let Peer { name, title, program, source, .. } = peer;
    // It is no server that anybody could use.
    let has_bar = source.is_none();
    let (by, from) = match asker {
        Asker::Fio => ("", ""),
        Asker::Sparing => ("-sparing", ", a client that takes little of a CPU"),
    };
    let of = format!("4 KB random {way}s over NBD, a disk in memory, depth {depth}{from}");
    let (kind, of, unit, bar) = match figure {
        Figure::Rate => ("", of, "thousand/s", Some(Bar::Ratio(1.5))),
        // One request at a time is all wake-ups, or looking instead of them.
        Figure::Thrift => {
            let bar = (depth > 1).then_some(Bar::Ratio(1.5));
            let of = format!("{of}, for each second of the server's CPU time");
            ("-cpu", of, "thousand", bar)
        }
    };
    let name = format!("disk-nbd{kind}-rand{way}-{depth}{by}-{name}");
    let mut work = Work::new(&name, &of, title, unit);
    work.bar = bar.filter(|_| has_bar);
    work.missing = ["fio", program]
        .iter()
        .find_map(|name| system_program(name).err())
        .map(|error| error.to_string());
    work
}

impl Server {
    fn of_peer(peer: &Peer) -> Result<Self> {
        let rig = Rig::new_in(Path::new(IN_MEMORY))?;
        let (socket, file) = (rig.path("nbd.sock"), rig.path("disk.raw"));
        std::fs::File::create_new(&file)?.set_len(u64::from(MIB) << 20)?;
        let mut command = (peer.command)(&socket, &file);
        if let Some(source) = peer.source {
            let program = compile(&rig, "nbd_nothing", source, Needs::Nothing)?;
            command = format!("{program} {command}");
        }
        let words: Vec<&str> = command.split_whitespace().collect();
        let mut server = Process::start(&rig, peer.name, &words)?;
        until(&format!("socket of {}", peer.name), START_LIMIT, || {
            server.check_running()?;
            Ok(is_listening(&socket))
        })?;
        Self { rig, socket, program: Program::Peer(server) }.filled()
    }

    fn of_suimon() -> Result<Self> {
        let rig = Rig::new_in(Path::new(IN_MEMORY))?;
        let (socket, store) = (rig.path("nbd.sock"), rig.path("store"));
        std::fs::create_dir(&store)?;
        let daemon = Daemon::start(
            &rig,
            &format!(
                "[[store]]\nname = \"memory\"\npath = \"{store}\"\ncapability_iops = 1000000\n\
                 [[disk]]\nname = \"{DISK}\"\nstore = \"memory\"\nformat = \"raw\"\n\
                 size_bytes = \"{MIB} MiB\"\nnbd = {{ socket = \"{socket}\" }}\n"
            ),
        )?;
        until("socket of suimond", START_LIMIT, || Ok(is_listening(&socket)))?;
        Self { rig, socket, program: Program::Suimon(Box::new(daemon)) }.filled()
    }

    fn filled(self) -> Result<Self> {
        self.job("--rw=write --bs=1m --iodepth=4")?;
        Ok(self)
    }

    /// The figures of a job, in thousands; `client` is the program of the sparing one.
    fn samples(&mut self, client: &str, job: Job) -> Result<[Sample; 2]> {
        let before = self.process().cpu_time()?;
        let mut requests = 0;
        let rate = Sample::take(CPUS, || {
            let told = match job.asker {
                Asker::Fio => self.asked_by_fio(job),
                Asker::Sparing => self.asked_sparingly(client, job),
            };
            let rate;
            (requests, rate) = told?;
            Ok(rate / 1e3)
        })?;
        let used = self.process().cpu_time()?.saturating_sub(before);
        let thrift = requests as f64 / used.as_secs_f64() / 1e3;
        Ok([rate, Sample { rate: thrift, ..rate }])
    }

    /// How many requests there were, and for each second.
    fn asked_by_fio(&self, Job { way, depth, .. }: Job) -> Result<(u64, f64)> {
        let told = self.job(&format!(
            "--rw=rand{way} --bs=4k --iodepth={depth} --norandommap --time_based \
             --runtime={SECONDS}"
        ))?;
        Ok((told.requests, told.read_iops + told.write_iops))
    }

    fn asked_sparingly(&self, client: &str, Job { way, depth, .. }: Job) -> Result<(u64, f64)> {
        let [depth, mib, seconds] = [depth, MIB, SECONDS].map(|number| number.to_string());
        let told = run(&[client, &self.socket, DISK, way, &depth, "4096", &mib, &seconds])?;
        let (requests, rate) = told.trim().split_once(' ').context("its figures are missing")?;
        Ok((requests.parse()?, rate.parse()?))
    }

    fn process(&mut self) -> &mut Process {
        match &mut self.program {
            Program::Peer(process) => process,
            Program::Suimon(daemon) => daemon.process(),
        }
    }

    fn job(&self, job: &str) -> Result<fio::FioResult> {
        let told =
            fio::run(self.rig.folder(), &self.socket, DISK, &format!("{job} --size={MIB}m"))?;
        ensure!(told.errors == 0, "fio {job}: {} requests failed", told.errors);
        Ok(told)
    }
}
