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
    let mut works = Vec::new();
    for (peer, peer_title, bar) in PEERS {
        for length in LENGTHS {
            let name = format!("checksum-{length}-{peer}");
            let title = format!("Internet checksum of {length} bytes in cache");
            let mut work = Work::new(&name, &title, peer_title, "GB/s").with_bar(Bar::Ratio(bar));
            match &program {
                Ok(program) => {
                    for _ in 0..pairs {
                        let theirs = theirs(program, peer, length)?;
                        let pair = Pair {
                            peer: Sample::alone(theirs),
                            suimon: Sample::alone(ours(length)),
                        };
                        work.push(pair);
                    }
                }
                Err(error) => work.missing = Some(format!("{error:#}")),
            }
            works.push(work);
        }
    }
    Ok(works)
}

fn theirs(program: &str, peer: &str, length: usize) -> Result<f64> {
    let seconds = WINDOW.as_secs_f64().to_string();
    let said = run(&[program, peer, &length.to_string(), &seconds])?;
    said.split_whitespace().next().and_then(|rate| rate.parse().ok()).context("no rate")
}

fn ours(length: usize) -> f64 {
    let bytes: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
    let began = Instant::now();
    let mut rounds = 0_u32;
    loop {
        for _ in 0..ROUNDS {
            black_box(Sum::from_bytes(black_box(&bytes)));
        }
        rounds += ROUNDS;
        let took = began.elapsed();
        if took >= WINDOW {
            return f64::from(rounds) * length as f64 / took.as_secs_f64() / 1e9;
        }
    }
}
