//! `make bench`: Suimon compared with its peers, in one run on one machine.
//!
//! Peer and Suimon do the same work alternately, in pairs. The report contains the median of the
//! pairs' ratios and their spread. The samples are written to `target/bench/`, the table to
//! `docs/benchmarks.md`. A peer that is not installed is reported as not measured.
//!
//! The first argument (`make bench PART=NAME`) names a group, `network` or `disks`, whose section
//! of that page is replaced, or one part, which is printed only. `BENCH_PAIRS` sets the number of
//! pairs (5).
#![forbid(unsafe_code)]

mod bond;
mod c_program;
mod checksum;
mod cpu_distance;
mod cpu_times;
mod disk_engine;
mod disk_file;
mod disk_formats;
mod disk_nbd;
mod disk_qos;
mod disk_vhost_user;
mod disks_many;
mod engine_cost;
mod guest_discard;
mod idle;
mod inward;
mod lacp_partner;
mod lan;
mod large_frames;
mod latency;
mod machine;
mod network_tcp;
mod node_line;
mod outward;
mod page;
mod report;
mod segmentation;
mod team;
mod vhost_user;
mod vmq;
mod wake_up;
mod wires;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use suimon_test_programs::end_program;

use crate::page::Group;
use crate::report::Work;

/// Function that measures a number of pairs of one or more comparisons.
type Measure = fn(usize) -> Result<Vec<Work>>;

/// Parts of the benchmark.
const PARTS: [(Group, &str, Measure); 19] = [
    (Group::Network, "vhost-user", vhost_user::measure),
    (Group::Network, "large-frames", large_frames::measure),
    (Group::Network, "idle", idle::measure),
    (Group::Network, "tcp", network_tcp::measure),
    (Group::Network, "latency", latency::measure),
    (Group::Network, "checksum", checksum::measure),
    (Group::Network, "segmentation", segmentation::measure),
    (Group::Network, "engine", engine_cost::measure),
    (Group::Network, "team", team::measure),
    (Group::Network, "bond", bond::measure),
    (Group::Network, "vmq", vmq::measure),
    (Group::Network, "node-line", node_line::measure),
    (Group::Disks, "disk-vhost-user", disk_vhost_user::measure),
    (Group::Disks, "disk-nbd", disk_nbd::measure),
    (Group::Disks, "disk-file", disk_file::measure),
    (Group::Disks, "disk-formats", disk_formats::measure),
    (Group::Disks, "disk-qos", disk_qos::measure),
    (Group::Disks, "disks-many", disks_many::measure),
    (Group::Disks, "guest-discard", guest_discard::measure),
];

fn main() -> ExitCode {
    end_program("bench", measure_all())
}

fn measure_all() -> Result<()> {
    let pairs = match env::var("BENCH_PAIRS") {
        Ok(text) => text.parse::<usize>().context("BENCH_PAIRS is a number")?.max(1),
        Err(_) => 5,
    };
    let selection = env::args().nth(1);
    let selection = selection.as_deref();
    let names = || Group::ALL.map(Group::name).into_iter().chain(PARTS.map(|(_, name, _)| name));
    ensure!(
        selection.is_none_or(|selected| names().any(|name| name == selected)),
        "there is no part {}; choose one of {}",
        selection.unwrap_or_default(),
        names().collect::<Vec<_>>().join(", ")
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sections = Vec::new();
    for group in Group::ALL {
        let is_whole = selection.is_none_or(|is_whole_group| is_whole_group == group.name());
        let parts = PARTS.iter().filter(|(part_group, name, _)| {
            *part_group == group && (is_whole || selection == Some(name))
        });
        let mut benchmarks: Vec<Work> = Vec::new();
        for (_, _, measure) in parts {
            benchmarks.extend(measure(pairs)?);
        }
        if benchmarks.is_empty() {
            continue;
        }
        report::write_samples(&root.join("target/bench"), &benchmarks)?;
        let table = report::render(&benchmarks, &machine::describe());
        println!("{table}");
        sections.extend(is_whole.then_some((group, table)));
    }
    if !sections.is_empty() {
        let file = root.join("docs/benchmarks.md");
        let page = std::fs::read_to_string(&file).unwrap_or_default();
        std::fs::write(&file, page::with_sections(&page, &sections))?;
    }
    Ok(())
}
