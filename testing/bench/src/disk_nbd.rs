//! Benchmark of random 4 KB requests over NBD: a daemon with a raw disk in memory compared with
//! other servers. The kernel places servers and clients on CPUs, as in production.
//!
//! fio's client saturates a CPU at depth 64 with any server. Therefore a client that uses little
//! CPU time measures this depth too. The benchmark reports requests per second of the server's CPU
//! time, and the rate of a server that does nothing as an upper bound.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Daemon, Process, Rig, fio, is_listening, run, system_program, wait_until};

use crate::c_program::{Needs, compile};
use crate::disk_engine::IN_MEMORY;
use crate::report::{Bar, Pair, Sample, Work};

const CPUS: [u16; 2] = [0, 1];
const MIB: u32 = 256;
const SECONDS: u32 = 2;
const START_LIMIT: Duration = Duration::from_secs(10);
/// Name of the disk on every server that uses names.
const DISK: &str = "disk";

/// Client that generates the load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadClient {
    Fio,
    /// `nbd_client.c`, which uses little CPU time.
    LowCpu,
}

/// Load of a measurement: direction, outstanding requests and client.
#[derive(Clone, Copy)]
struct Job {
    /// `read` or `write`.
    pattern: &'static str,
    depth: u32,
    load_client: LoadClient,
}

/// At depth 1 wake-ups dominate a client's time, of which both clients have equally many.
const JOBS: [Job; 6] = [
    Job { pattern: "read", depth: 64, load_client: LoadClient::LowCpu },
    Job { pattern: "write", depth: 64, load_client: LoadClient::LowCpu },
    Job { pattern: "read", depth: 64, load_client: LoadClient::Fio },
    Job { pattern: "write", depth: 64, load_client: LoadClient::Fio },
    Job { pattern: "read", depth: 1, load_client: LoadClient::Fio },
    Job { pattern: "write", depth: 1, load_client: LoadClient::Fio },
];

/// Server that Suimon is compared with.
struct Peer {
    name: &'static str,
    title: &'static str,
    program: &'static str,
    /// Returns the command line of the server for a socket and a file, preceded by the program
    /// compiled from `source`, if there is one.
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

/// Reported value of a measurement.
#[derive(Clone, Copy)]
enum Figure {
    /// Requests per second. The client bounds the rate if it saturates its CPU.
    Rate,
    /// Requests per second of CPU time that the server used, independent of the client.
    PerCpuSecond,
}

const FIGURES: [Figure; 2] = [Figure::Rate, Figure::PerCpuSecond];

/// Server with a fully written disk.
struct Server {
    program: Program,
    socket: String,
    /// Rig of the server's folder; declared last, so that it is dropped after the program has
    /// ended.
    rig: Rig,
}

enum Program {
    Peer(Process),
    Suimon(Box<Daemon>),
}

/// Measures `pairs` pairs of each job. Each measurement of Suimon is compared with all peers. All
/// servers run at once, and each job is run on one after the other, so that the placement of CPUs
/// is as equal as possible.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut benchmarks: Vec<Vec<[Work; 2]>> = PEERS
        .iter()
        .map(|peer| {
            JOBS.iter().map(|job| FIGURES.map(|figure| new_work(peer, *job, figure))).collect()
        })
        .collect();
    let has_no_missing =
        |benchmarks: &[[Work; 2]]| benchmarks.iter().flatten().all(|work| work.missing.is_none());
    if !benchmarks.iter().any(|benchmarks| has_no_missing(benchmarks)) {
        return Ok(benchmarks.into_iter().flatten().flatten().collect());
    }
    let servers = PEERS.iter().zip(&benchmarks).map(|(peer, benchmarks)| {
        let server = has_no_missing(benchmarks).then(|| Server::of_peer(peer));
        server.transpose()
    });
    let mut servers = servers.collect::<Result<Vec<_>>>()?;
    let mut suimon = Server::of_suimon()?;
    let rig = Rig::new_in(Path::new(IN_MEMORY))?;
    let client = compile(&rig, "nbd_client", CLIENT, Needs::Nothing)?;
    for _ in 0..pairs {
        for (nth, job) in JOBS.iter().enumerate() {
            let peer_samples = servers.iter_mut().map(|server| {
                server.as_mut().map(|server| server.samples(&client, *job)).transpose()
            });
            let peer_samples = peer_samples.collect::<Result<Vec<_>>>()?;
            let suimon_samples = suimon.samples(&client, *job)?;
            for (benchmarks, peer_samples) in benchmarks.iter_mut().zip(peer_samples) {
                let Some(peer_samples) = peer_samples else { continue };
                for (work, (peer, suimon)) in
                    benchmarks[nth].iter_mut().zip(peer_samples.into_iter().zip(suimon_samples))
                {
                    work.push(Pair { peer, suimon });
                }
            }
        }
    }
    Ok(benchmarks.into_iter().flatten().flatten().collect())
}

fn new_work(peer: &Peer, Job { pattern, depth, load_client }: Job, figure: Figure) -> Work {
    let Peer { name, title, program, source, .. } = peer;
    // This program is not a usable server, so there is no bar.
    let has_bar = source.is_none();
    let (suffix, origin) = match load_client {
        LoadClient::Fio => ("", ""),
        LoadClient::LowCpu => ("-sparing", ", a client that takes little of a CPU"),
    };
    let description =
        format!("4 KB random {pattern}s over NBD, a disk in memory, depth {depth}{origin}");
    let (kind, description, unit, bar) = match figure {
        Figure::Rate => ("", description, "thousand/s", Some(Bar::Ratio(1.5))),
        // At depth 1, wake-ups or polling dominate.
        Figure::PerCpuSecond => {
            let bar = (depth > 1).then_some(Bar::Ratio(1.5));
            let description = format!("{description}, for each second of the server's CPU time");
            ("-cpu", description, "thousand", bar)
        }
    };
    let name = format!("disk-nbd{kind}-rand{pattern}-{depth}{suffix}-{name}");
    let mut work = Work::new(&name, &description, title, unit);
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
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let mut server = Process::start(&rig, peer.name, &arguments)?;
        wait_until(&format!("socket of {}", peer.name), START_LIMIT, || {
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
                "[[store]]\nname = \"memory\"\npath = \"{store}\"\ncapacity_iops = 1000000\n\
                 [[disk]]\nname = \"{DISK}\"\nstore = \"memory\"\nformat = \"raw\"\n\
                 size_bytes = \"{MIB} MiB\"\nnbd = {{ socket = \"{socket}\" }}\n"
            ),
        )?;
        wait_until("socket of suimond", START_LIMIT, || Ok(is_listening(&socket)))?;
        Self { rig, socket, program: Program::Suimon(Box::new(daemon)) }.filled()
    }

    fn filled(self) -> Result<Self> {
        self.job("--rw=write --bs=1m --iodepth=4")?;
        Ok(self)
    }

    /// Measures a job, in thousand requests. `client` is the path of the client with low CPU usage.
    fn samples(&mut self, client: &str, job: Job) -> Result<[Sample; 2]> {
        let before = self.process().cpu_time()?;
        let mut requests = 0;
        let rate = Sample::take(CPUS, || {
            let result = match job.load_client {
                LoadClient::Fio => self.measure_with_fio(job),
                LoadClient::LowCpu => self.measure_with_low_cpu_client(client, job),
            };
            let rate;
            (requests, rate) = result?;
            Ok(rate / 1e3)
        })?;
        let used = self.process().cpu_time()?.saturating_sub(before);
        let per_cpu_second = requests as f64 / used.as_secs_f64() / 1e3;
        Ok([rate, Sample { rate: per_cpu_second, ..rate }])
    }

    /// Returns the number of requests and their rate per second.
    fn measure_with_fio(&self, Job { pattern, depth, .. }: Job) -> Result<(u64, f64)> {
        let fio_result = self.job(&format!(
            "--rw=rand{pattern} --bs=4k --iodepth={depth} --norandommap --time_based \
             --runtime={SECONDS}"
        ))?;
        Ok((fio_result.requests, fio_result.read_iops + fio_result.write_iops))
    }

    fn measure_with_low_cpu_client(
        &self,
        client: &str,
        Job { pattern, depth, .. }: Job,
    ) -> Result<(u64, f64)> {
        let [depth, mib, seconds] = [depth, MIB, SECONDS].map(|number| number.to_string());
        let output = run(&[client, &self.socket, DISK, pattern, &depth, "4096", &mib, &seconds])?;
        let (requests, rate) = output.trim().split_once(' ').context("its figures are missing")?;
        Ok((requests.parse()?, rate.parse()?))
    }

    fn process(&mut self) -> &mut Process {
        match &mut self.program {
            Program::Peer(process) => process,
            Program::Suimon(daemon) => daemon.process(),
        }
    }

    fn job(&self, job: &str) -> Result<fio::FioResult> {
        let result =
            fio::run(self.rig.folder(), &self.socket, DISK, &format!("{job} --size={MIB}m"))?;
        ensure!(result.errors == 0, "fio {job}: {} requests failed", result.errors);
        Ok(result)
    }
}
