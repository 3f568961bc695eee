//! How long a ping takes: after a pause in which everybody slept, and beside a stream of
//! others that keeps the switch busy.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{LightGuest, Namespace, iperf, until};

use crate::lan::{Lan, Through, address};
use crate::network_tcp::{CPUS, LINUX_DEFAULT};
use crate::report::{Pair, Sample, Work, is_wanted};

const PEER: &str = "Linux bridge and veth";
/// A processor polls for 50 µs after a frame, then it sleeps.
const AFTER_IDLE: Pings = Pings { count: 200, seconds_between: "0.02" };
const BESIDE_A_STREAM: Pings = Pings { count: 300, seconds_between: "0.01" };
const STREAM_SECONDS: u32 = 6;
/// By then the connection stands and its window is open.
const STREAM_START_BYTES: u64 = 64 << 20;
const STREAM_START_LIMIT: Duration = Duration::from_secs(5);

struct Pings {
    count: u32,
    seconds_between: &'static str,
}

/// Medians and 99th percentiles of a measurement.
type Quantiles = [f64; 2];

/// Runs `pairs` pairs of each.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut works =
        measure_both("ping-after-idle", "Ping after 20 ms of idleness", pairs, after_idle)?;
    let title = format!("Ping of two others beside a TCP stream, {LINUX_DEFAULT}");
    works.extend(measure_both("ping-beside-a-stream", &title, pairs, beside_a_stream)?);
    Ok(works)
}

/// Two works of one measurement.
fn measure_both(
    name: &str,
    title: &str,
    pairs: usize,
    measure: fn(Through) -> Result<Quantiles>,
) -> Result<Vec<Work>> {
    let mut works = [("p50", "median"), ("p99", "99th percentile")].map(|(suffix, quantile)| {
        Work::new(&format!("{name}-{suffix}"), &format!("{title}, {quantile}"), PEER, "µs")
            .less_is_better()
    });
    while is_wanted(&works[0], pairs) {
        let peer = samples(|| measure(Through::Bridge))?;
        let suimon = samples(|| measure(Through::Suimon))?;
        for (work, (peer, suimon)) in works.iter_mut().zip(peer.into_iter().zip(suimon)) {
            work.push(Pair { peer, suimon });
        }
    }
    Ok(works.into())
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

fn after_idle(through: Through) -> Result<Quantiles> {
    let lan = Lan::new(through, 2)?;
    ping(&lan, 0, 1, &AFTER_IDLE)
}

fn beside_a_stream(through: Through) -> Result<Quantiles> {
    let lan = Lan::new(through, 4)?;
    lan.use_congestion_control(LINUX_DEFAULT)?;
    let _server = iperf::serve(&lan.rig, lan.guest(1))?;
    thread::scope(|scope| {
        let [from, to] = [0, 1].map(|nth| lan.guest(nth));
        let before = received_bytes(to)?;
        let stream = scope.spawn(|| iperf::measure(from, &address(1), STREAM_SECONDS, &[]));
        // The stream's start is not what is measured.
        until("stream to ping beside", STREAM_START_LIMIT, || {
            Ok(received_bytes(to)? >= before + STREAM_START_BYTES)
        })?;
        let quantiles = ping(&lan, 2, 3, &BESIDE_A_STREAM);
        ensure!(!stream.is_finished(), "the stream ended before the pings did");
        stream.join().map_err(|_| anyhow::anyhow!("the stream's thread panicked"))??;
        quantiles
    })
}

/// What a namespace's device has received.
fn received_bytes(of: &Namespace) -> Result<u64> {
    let path = format!("/sys/class/net/{}/statistics/rx_bytes", LightGuest::DEVICE);
    // A namespace entered by `ip netns` has its own /sys.
    Ok(of.run(&["cat", &path])?.trim().parse()?)
}

/// In microseconds.
fn ping(lan: &Lan, from: usize, to: usize, pings: &Pings) -> Result<Quantiles> {
    let count = pings.count.to_string();
    let words = ["ping", "-n", "-i", pings.seconds_between, "-c", &count, &address(to)];
    let said = lan.guest(from).run_any(&words, Duration::from_secs(30))?;
    quantiles(&said.stdout)
}

/// Of `time=0.042 ms` in each line. The first ping looks for an address too.
fn quantiles(said: &str) -> Result<Quantiles> {
    let times = said.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next());
    let mut times: Vec<f64> = times.skip(1).filter_map(|time| time.parse().ok()).collect();
    times.sort_by(f64::total_cmp);
    let at = |hundredths: usize| times.get(times.len() * hundredths / 100).map(|time| time * 1e3);
    at(50).zip(at(99)).map(|(p50, p99)| [p50, p99]).context("ping told no time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_times_that_ping_told() {
        let line =
            |time: u32| format!("64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.{time:03} ms\n");
        let said: String = (0..=100).map(line).collect();
        assert_eq!(quantiles(&said).unwrap(), [51.0, 100.0]);
        assert!(quantiles("no answer").is_err());
    }
}
