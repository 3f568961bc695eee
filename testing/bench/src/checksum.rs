//! Benchmark of the Internet checksum of a packet in the cache, compared with DPDK's and with a
//! plain loop. Both are C, compiled for this CPU when the benchmark runs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use suimon_frame::Sum;
use suimon_rig::{Rig, run};

use crate::c_program::{Needs, compile};
use crate::report::{Bar, Pair, Sample, Work};

const SOURCE: &str = include_str!("checksum.c");
/// Lengths in bytes of a usual packet and of a large frame.
const LENGTHS: [usize; 2] = [1500, 65_536];
const PEERS: [(&str, &str, f64); 2] =
    [("dpdk", "DPDK's rte_raw_cksum", 1.0), ("scalar", "A loop over 16-bit words, in C", 2.0)];
const WINDOW: Duration = Duration::from_millis(500);
/// Checksums between two clock reads.
const ROUNDS: u32 = 1000;

/// Measures `pairs` pairs of each length with each peer.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let rig = Rig::new()?;
    let program = compile(&rig, "checksum", SOURCE, Needs::DpdkHeaders);
    let mut benchmarks = Vec::new();
    for (peer, peer_title, bar) in PEERS {
        for length in LENGTHS {
            let name = format!("checksum-{length}-{peer}");
            let title = format!("Internet checksum of {length} bytes in cache");
            let mut work = Work::new(&name, &title, peer_title, "GB/s").with_bar(Bar::Ratio(bar));
            match &program {
                Ok(program) => {
                    for _ in 0..pairs {
                        let peer_rate = measure_peer(program, peer, length)?;
                        let pair = Pair {
                            peer: Sample::without_distance(peer_rate),
                            suimon: Sample::without_distance(measure_suimon(length)),
                        };
                        work.push(pair);
                    }
                }
                Err(error) => work.missing = Some(format!("{error:#}")),
            }
            benchmarks.push(work);
        }
    }
    Ok(benchmarks)
}

fn measure_peer(program: &str, peer: &str, length: usize) -> Result<f64> {
    let seconds = WINDOW.as_secs_f64().to_string();
    let output = run(&[program, peer, &length.to_string(), &seconds])?;
    output.split_whitespace().next().and_then(|rate| rate.parse().ok()).context("no rate")
}

fn measure_suimon(length: usize) -> f64 {
    let bytes: Vec<u8> = (0..length).map(|index| (index * 7) as u8).collect();
    let started = Instant::now();
    let mut rounds = 0_u32;
    loop {
        for _ in 0..ROUNDS {
            black_box(Sum::from_bytes(black_box(&bytes)));
        }
        rounds += ROUNDS;
        let elapsed = started.elapsed();
        if elapsed >= WINDOW {
            return f64::from(rounds) * length as f64 / elapsed.as_secs_f64() / 1e9;
        }
    }
}
