//! Command line of the simulator.

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use suimon_pages::{CompletionsFlags, DocsFlags, ManFlags};

use crate::calibrate::CalibrateFlags;
use crate::recording::{ReplayFlags, WhatIfFlags};
use crate::run::RunFlags;
use crate::scenario::ScenarioError;
use crate::swarm::SwarmFlags;
use crate::tables::TablesFlags;

/// Exit codes and examples, printed by `--help`.
const AFTER_HELP: &str = "\
Exit codes:
  0  all checks passed
  1  a check failed, a replayed decision differs, or another error occurred
  2  the command line is invalid
  3  the scenario is rejected

Examples:
  sim run apps/sim/scenarios/qos-host.toml
  sim swarm apps/sim/scenarios/qos-host.toml --seeds 500
  sim replay decisions.rec";

/// Run the policies of Suimon (VMQ, teams, Storage QoS, cluster) in virtual time on models of
/// hosts.
///
/// A run needs no daemon and changes nothing on the host. The same scenario and seed give the same
/// result. `docs/simulator.md` describes the models and scenarios.
#[derive(Clone, Debug, Parser)]
#[command(name = "sim", version, bin_name = "sim", max_term_width = 100, after_long_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// Run a scenario once with one seed.
    ///
    /// Prints the figures of the scenario, the failed checks, and the hash of the trace.
    #[command(
        after_long_help = "Example:\n  sim run qos-host.toml --seed 7 --trace qos-host.trace"
    )]
    Run(RunFlags),
    /// Run a scenario many times with random changes and faults.
    ///
    /// Each run has its own seed. A failed check is printed with its seed and the command that
    /// repeats the run.
    #[command(after_long_help = "Example:\n  sim swarm qos-host.toml --seeds 500")]
    Swarm(SwarmFlags),
    /// Find the value of the parameter that a scenario selects for calibration.
    ///
    /// Varies the parameter that `[calibrate]` of the scenario selects until the simulated storage
    /// array delivers the published IOPS given there, and prints the value. The scenario file is
    /// not changed.
    #[command(after_long_help = "Example:\n  sim calibrate qos-host.toml")]
    Calibrate(CalibrateFlags),
    /// Run scenarios and print their published and simulated figures as Markdown.
    ///
    /// Prints one table per scenario. The files are not changed.
    #[command(after_long_help = "Example:\n  sim tables apps/sim/scenarios/*.toml")]
    Tables(TablesFlags),
    /// Replay a recording of a daemon, and compare each decision of the policies.
    ///
    /// The exit code is 1 if a decision differs from the recorded one.
    #[command(after_long_help = "Example:\n  sim replay decisions.rec")]
    Replay(ReplayFlags),
    /// Replay a recording of a daemon with other settings.
    ///
    /// Prints recorded figures beside those computed with the changed settings. Neither the
    /// recording nor the daemon is changed.
    #[command(
        after_long_help = "Example:\n  sim what-if decisions.rec --set vmq.wan.max_workers=2"
    )]
    WhatIf(WhatIfFlags),
    /// Print a completion script for a shell.
    ///
    /// Prints the script on standard output.
    Completions(CompletionsFlags),
    /// Print the manual page, or write one page per command.
    ///
    /// Prints the page of the program itself in roff format, unless `--dir` is given.
    Man(ManFlags),
    /// Write the reference page of this command line
    #[command(hide = true)]
    Docs(DocsFlags),
}

/// Returns the reference page as Markdown.
fn reference() -> String {
    format!(
        "<!-- Made by `sim docs`. Change the source, not this page. -->\n\n# The command line \
         of the simulator\n\n{}",
        suimon_pages::command_reference(Arguments::command())
    )
}

/// Converts the result of writing pages to that of a command.
fn written(result: io::Result<()>) -> Result<bool> {
    Ok(result.map(|()| true)?)
}

/// Executes the command line and returns the exit code.
pub(crate) fn run() -> ExitCode {
    let result = match Arguments::parse().verb {
        Verb::Run(flags) => flags.run(),
        Verb::Swarm(flags) => flags.run(),
        Verb::Calibrate(flags) => flags.run(),
        Verb::Tables(flags) => flags.run(),
        Verb::Replay(flags) => flags.run(),
        Verb::WhatIf(flags) => flags.run(),
        Verb::Completions(flags) => written(flags.write(Arguments::command(), "sim")),
        Verb::Man(flags) => written(flags.write(Arguments::command())),
        Verb::Docs(flags) => written(flags.write([("sim.md", reference())])),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let error_kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            if error_kind == Some(io::ErrorKind::BrokenPipe) {
                return ExitCode::SUCCESS;
            }
            eprintln!("sim: {error:#}");
            ExitCode::from(if error.is::<ScenarioError>() { 3 } else { 1 })
        }
    }
}
