//! `make bench`: Suimon beside its peers, in one run on one machine.
//!
//! Peer and Suimon do the same work alternately, in pairs; what is reported is the
//! median of the ratios of the pairs and their spread. The samples are written to
//! `target/bench/`, the table to `docs/benchmarks.md`. A peer that is not
//! installed is reported as not measured.
//!
//! `BENCH_PAIRS` sets the number of pairs (5).
#![forbid(unsafe_code)]

mod machine;
mod network_tcp;
mod report;
mod vhost_user;

use std::env;
use std::path::Path;

use anyhow::{Context, Result};

use crate::report::Work;

fn main() -> Result<()> {
    let pairs = match env::var("BENCH_PAIRS") {
        Ok(text) => text.parse::<usize>().context("BENCH_PAIRS is a number")?.max(1),
        Err(_) => 5,
    };
    let only = env::args().nth(1);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let mut works: Vec<Work> = Vec::new();
    if wanted("vhost-user") {
        works.extend(vhost_user::measure(pairs)?);
    }
    if wanted("tcp") {
        works.extend(network_tcp::measure(pairs)?);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    report::write_samples(&root.join("target/bench"), &works)?;
    let table = report::render(&works, &machine::describe());
    if only.is_none() {
        std::fs::write(root.join("docs/benchmarks.md"), &table)?;
    }
    println!("{table}");
    Ok(())
}
