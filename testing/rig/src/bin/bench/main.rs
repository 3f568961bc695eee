//! `make bench`: Suimon beside its peers, in one run on one machine.
//!
//! Peer and Suimon do the same work alternately, in pairs; what is reported is the
//! median of the ratios of the pairs and their spread. The samples are written to
//! `target/bench/`, the table to `docs/benchmarks.md`. A peer that is not
//! installed is reported as not measured.
//!
//! `BENCH_PAIRS` sets the number of pairs (5).
#![forbid(unsafe_code)]

mod bond;
mod c_program;
mod checksum;
mod cpu_times;
mod disk_engine;
mod disk_file;
mod disk_formats;
mod disk_nbd;
mod disk_qos;
mod disk_vhost_user;
mod disks_many;
mod engine_cost;
mod idle;
mod inward;
mod lacp_partner;
mod lan;
mod large_frames;
mod latency;
mod machine;
mod network_tcp;
mod outward;
mod report;
mod segmentation;
mod team;
mod vhost_user;
mod vmq;
mod wake_up;
mod wires;

use std::env;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::report::Work;

/// Measures so many pairs of one or more works.
type Measure = fn(usize) -> Result<Vec<Work>>;

/// All there is; the first argument may name one.
const PARTS: [(&str, Measure); 17] = [
    ("vhost-user", vhost_user::measure),
    ("large-frames", large_frames::measure),
    ("idle", idle::measure),
    ("tcp", network_tcp::measure),
    ("latency", latency::measure),
    ("checksum", checksum::measure),
    ("segmentation", segmentation::measure),
    ("engine", engine_cost::measure),
    ("team", team::measure),
    ("bond", bond::measure),
    ("vmq", vmq::measure),
    ("disk-vhost-user", disk_vhost_user::measure),
    ("disk-nbd", disk_nbd::measure),
    ("disk-file", disk_file::measure),
    ("disk-formats", disk_formats::measure),
    ("disk-qos", disk_qos::measure),
    ("disks-many", disks_many::measure),
];

fn main() -> Result<()> {
    let pairs = match env::var("BENCH_PAIRS") {
        Ok(text) => text.parse::<usize>().context("BENCH_PAIRS is a number")?.max(1),
        Err(_) => 5,
    };
    let only = env::args().nth(1);
    let mut works: Vec<Work> = Vec::new();
    for (name, measure) in PARTS {
        if only.as_deref().is_none_or(|only| only == name) {
            works.extend(measure(pairs)?);
        }
    }
    ensure!(!works.is_empty(), "choose from {:?}", PARTS.map(|(name, _)| name));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    report::write_samples(&root.join("target/bench"), &works)?;
    let table = report::render(&works, &machine::describe());
    if only.is_none() {
        std::fs::write(root.join("docs/benchmarks.md"), &table)?;
    }
    println!("{table}");
    Ok(())
}
