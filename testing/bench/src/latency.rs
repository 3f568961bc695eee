//! Benchmark of ping latency: after a pause in which all threads slept, and beside a stream that
//! keeps the switch busy.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Namespace, iperf, ovs, wait_until};

use crate::lan::{Lan, Through, address};
use crate::network_tcp::{CPUS, KERNEL_PATH, LINUX_DEFAULT};
use crate::report::{Pair, Sample, Work, needs_measurement};
use crate::wake_up::{self, Pings};

/// A worker polls for 50 µs after a frame, then it sleeps.
const AFTER_IDLE: Pings = Pings { count: 300, between: Duration::from_millis(20) };
const BESIDE_A_STREAM: Pings = Pings { count: 300, between: Duration::from_millis(10) };
const STREAM_SECONDS: u32 = 6;
/// Received bytes after which the connection is established and its window is open.
const STREAM_START_BYTES: u64 = 64 << 20;
const STREAM_START_LIMIT: Duration = Duration::from_secs(5);

/// Median and 99th percentile of a measurement in microseconds.
type Quantiles = [f64; 2];

/// Measurement that Suimon is compared with.
struct Peer {
    name: &'static str,
    title: &'static str,
    measure: fn() -> Result<Quantiles>,
    /// Reason why the peer cannot be measured on this machine; `None` if it can.
    missing: Option<&'static str>,
}

/// Measures `pairs` pairs of each case.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let open_vswitch = |measure| Peer {
        name: "ovs",
        title: Through::OpenVSwitch.title(),
        measure,
        missing: (!ovs::is_installed()).then_some("openvswitch-switch-dpdk is not installed"),
    };
    // Lower bound for any switch outside of the kernel: the time of this machine to wake a thread
    // on another CPU, and to wake the first thread again.
    let wake_ups = Peer {
        name: "threads",
        title: "Two threads on two CPUs that wake each other",
        measure: || wake_up::round_trips(CPUS, &AFTER_IDLE).and_then(quantiles),
        missing: None,
    };
    let peers = [
        bridge(|| after_idle(Through::Bridge)),
        open_vswitch(|| after_idle(Through::OpenVSwitch)),
        wake_ups,
    ];
    let title = "Ping after 20 ms of idleness";
    let suimon = || after_idle(Through::Suimon);
    let mut benchmarks = measure_beside("ping-after-idle", title, pairs, &peers, suimon)?;
    let peers = [
        bridge(|| latency_during_stream(Through::Bridge)),
        open_vswitch(|| latency_during_stream(Through::OpenVSwitch)),
    ];
    let title = format!("Ping of two others beside a TCP stream, {LINUX_DEFAULT}");
    let suimon = || latency_during_stream(Through::Suimon);
    benchmarks.extend(measure_beside("ping-beside-a-stream", &title, pairs, &peers, suimon)?);
    benchmarks.extend(on_the_kernels_path(pairs)?);
    Ok(benchmarks)
}

fn bridge(measure: fn() -> Result<Quantiles>) -> Peer {
    Peer { name: "bridge", title: Through::Bridge.title(), measure, missing: None }
}

/// Measures latency with forwarding offloaded to the kernel.
fn on_the_kernels_path(pairs: usize) -> Result<Vec<Work>> {
    let idle = bridge(|| after_idle(Through::Bridge));
    let title = format!("Ping after 20 ms of idleness{KERNEL_PATH}");
    let suimon = || after_idle(Through::KernelPath);
    let name = "ping-after-idle-kernel-path";
    let mut benchmarks = measure_beside(name, &title, pairs, &[idle], suimon)?;
    let busy = bridge(|| latency_during_stream(Through::Bridge));
    let title = format!("Ping of two others beside a TCP stream, {LINUX_DEFAULT}{KERNEL_PATH}");
    let suimon = || latency_during_stream(Through::KernelPath);
    let name = "ping-beside-a-stream-kernel-path";
    benchmarks.extend(measure_beside(name, &title, pairs, &[busy], suimon)?);
    Ok(benchmarks)
}

/// Compares each measurement of Suimon with all peers, at both quantiles.
fn measure_beside(
    name: &str,
    title: &str,
    pairs: usize,
    peers: &[Peer],
    suimon: fn() -> Result<Quantiles>,
) -> Result<Vec<Work>> {
    let comparisons_of = |peer: &Peer| {
        [("p50", "median"), ("p99", "99th percentile")].map(|(suffix, quantile)| {
            let name = format!("{name}-{}-{suffix}", peer.name);
            let title = format!("{title}, {quantile}");
            let mut work = Work::new(&name, &title, peer.title, "µs").less_is_better();
            work.missing = peer.missing.map(str::to_owned);
            work
        })
    };
    let mut benchmarks: Vec<[Work; 2]> = peers.iter().map(comparisons_of).collect();
    while benchmarks.iter().any(|of_peer| needs_measurement(&of_peer[0], pairs)) {
        let mut peer_samples = Vec::new();
        for peer in peers {
            peer_samples.push(match peer.missing {
                None => Some(samples(peer.measure)?),
                Some(_) => None,
            });
        }
        let suimon_samples = samples(suimon)?;
        for (benchmarks, peer_samples) in benchmarks.iter_mut().zip(peer_samples) {
            let Some(peer_samples) = peer_samples else { continue };
            for (work, (peer, suimon)) in
                benchmarks.iter_mut().zip(peer_samples.into_iter().zip(suimon_samples))
            {
                work.push(Pair { peer, suimon });
            }
        }
    }
    Ok(benchmarks.into_iter().flatten().collect())
}

fn samples(measure: impl FnOnce() -> Result<Quantiles>) -> Result<[Sample; 2]> {
    let mut p99 = 0.0;
    let sample = Sample::take(CPUS, || {
        let [median, high] = measure()?;
        p99 = high;
        Ok(median)
    })?;
    Ok([sample, Sample { rate: p99, ..sample }])
}

fn after_idle(network: Through) -> Result<Quantiles> {
    let lan = Lan::new(network, 2)?;
    ping(&lan, 0, 1, &AFTER_IDLE)
}

fn latency_during_stream(network: Through) -> Result<Quantiles> {
    let lan = Lan::new(network, 4)?;
    lan.use_congestion_control(LINUX_DEFAULT)?;
    let _server = iperf::serve(&lan.rig, lan.guest(1))?;
    thread::scope(|scope| {
        let [from, to] = [0, 1].map(|nth| lan.guest(nth));
        let before = received_bytes(to)?;
        let stream = scope.spawn(|| iperf::measure(from, &address(1), STREAM_SECONDS, &[]));
        // The start of the stream is not measured.
        wait_until("stream beside the pings", STREAM_START_LIMIT, || {
            Ok(received_bytes(to)? >= before + STREAM_START_BYTES)
        })?;
        let quantiles = ping(&lan, 2, 3, &BESIDE_A_STREAM);
        ensure!(!stream.is_finished(), "the stream ended before the pings did");
        stream.join().map_err(|_| anyhow::anyhow!("the stream's thread panicked"))??;
        quantiles
    })
}

/// Returns the bytes that a namespace has received. Its TAP device does not count bytes forwarded
/// by the kernel.
fn received_bytes(namespace: &Namespace) -> Result<u64> {
    namespace.snmp("IpExt", "InOctets")
}

fn ping(lan: &Lan, from: usize, to: usize, pings: &Pings) -> Result<Quantiles> {
    let count = pings.count.to_string();
    let interval = pings.between.as_secs_f64().to_string();
    let arguments = ["ping", "-n", "-i", &interval, "-c", &count, &address(to)];
    let output = lan.guest(from).run_any(&arguments, Duration::from_secs(30))?;
    quantiles(parse_times(&output.stdout))
}

/// Parses `time=0.042 ms` of each line to microseconds. The first ping includes address resolution
/// and is skipped.
fn parse_times(output: &str) -> Vec<f64> {
    let times = output.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next());
    times.skip(1).filter_map(|time| time.parse::<f64>().ok()).map(|ms| ms * 1e3).collect()
}

fn quantiles(mut times: Vec<f64>) -> Result<Quantiles> {
    times.sort_by(f64::total_cmp);
    let quantile = |hundredths: usize| times.get(times.len() * hundredths / 100).copied();
    quantile(50).zip(quantile(99)).map(|(p50, p99)| [p50, p99]).context("ping printed no time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_computed_from_the_times_that_ping_printed() {
        let line =
            |time: u32| format!("64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.{time:03} ms\n");
        let output: String = (0..=100).map(line).collect();
        assert_eq!(quantiles(parse_times(&output)).unwrap(), [51.0, 100.0]);
        assert!(quantiles(parse_times("no answer")).is_err());
    }
}
