//! `make experiment`: runs plans of `lab/` on a real suimond and records what happens.
//!
//! Each argument is a plan; its `kind` says what it is about. What happened is written as
//! JSON while it happens, a summary is printed at the end.
#![forbid(unsafe_code)]

mod bounds;
mod circumstances;
mod disk_io;
mod lab;
mod plan;
mod power_plan;
mod qos_host;
mod spread;
mod sriov_host_cpu;

use std::env;

use anyhow::{Context, Result, bail, ensure};

use crate::lab::Lab;
use crate::plan::Plan;

fn main() -> Result<()> {
    let files: Vec<String> = env::args().skip(1).collect();
    if files.is_empty() {
        bail!("name plans, like lab/qos-host.toml");
    }
    let read = |file: String| {
        let text = std::fs::read_to_string(&file).with_context(|| file.clone())?;
        Plan::parse(&text).with_context(|| file)
    };
    // All before the first is run: who comes back hours later finds no spelling mistake.
    let plans: Vec<Plan> = files.into_iter().map(read).collect::<Result<_>>()?;
    let lab = Lab::new()?;
    let mut failures = 0;
    for plan in plans {
        let outcome = plan.run(&lab)?;
        println!("{}", outcome.summary);
        println!("{}", lab.record_of(plan.name()).display());
        failures += outcome.failures;
    }
    ensure!(failures == 0, "{failures} runs did not reach their end");
    Ok(())
}
