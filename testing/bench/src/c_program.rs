//! Programs in C, compiled for this CPU when a benchmark runs.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Rig, run, run_any};

/// Time limit for compiling.
const LIMIT: Duration = Duration::from_secs(60);

/// Dependencies of a program besides the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// Headers of DPDK.
    DpdkHeaders,
    /// Headers and libraries of DPDK.
    Dpdk,
}

/// Compiles `source` and returns the program's path.
///
/// # Errors
/// The compiler or a dependency is not installed.
pub(crate) fn compile(rig: &Rig, name: &str, source: &str, needs: Needs) -> Result<String> {
    let file = rig.path(&format!("{name}.c"));
    std::fs::write(&file, source)?;
    let program = rig.path(name);
    let options =
        |kind| run(&["pkg-config", kind, "libdpdk"]).context("DPDK's headers are not installed");
    let (flags, libraries) = match needs {
        Needs::Nothing => Default::default(),
        Needs::DpdkHeaders => (options("--cflags")?, String::new()),
        Needs::Dpdk => (options("--cflags")?, options("--libs")?),
    };
    let mut arguments = vec!["gcc", "-O3"];
    arguments.extend(flags.split_whitespace());
    // DPDK's headers require options that select an old CPU; this option comes last and overrides
    // them.
    arguments.extend(["-march=native", "-o", &program, &file]);
    arguments.extend(libraries.split_whitespace());
    let output = run_any(&arguments, LIMIT)?;
    ensure!(output.is_ok(), "gcc: {}", output.stderr.trim());
    Ok(program)
}
