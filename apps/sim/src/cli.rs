//! Command line of the simulator.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, CommandFactory, Parser, Subcommand};
use suimon_pages::{CompletionsFlags, DocsFlags, ManFlags};

use crate::fleet;
use crate::host;
use crate::network;
use crate::outcome::{Options, Outcome};
use crate::recording::{ReplayFlags, WhatIfFlags};
use crate::scenario::{Refused, Scenario};
use crate::storage;
use crate::swarm;

/// Commit from which the program was built.
pub(crate) const COMMIT: &str = env!("SUIMON_COMMIT");

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

/// Run the policies of Suimon (VMQ, teams, Storage QoS, cluster) in virtual time on models of hosts.
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
    /// Run a scenario once with one seed
    ///
    /// Prints the figures of the scenario, the failed checks, and the hash of the trace.
    #[command(
        after_long_help = "Example:\n  sim run qos-host.toml --seed 7 --trace qos-host.trace"
    )]
    Run(RunFlags),
    /// Run a scenario many times with random changes and faults
    ///
    /// Each run has its own seed. A failed check is printed with its seed and the command that
    /// repeats the run.
    #[command(after_long_help = "Example:\n  sim swarm qos-host.toml --seeds 500")]
    Swarm(swarm::Flags),
    /// Find the value of the parameter that a scenario selects for calibration
    ///
    /// Prints the value with which the simulated array reaches the published rate that `[calibrate]` in
    /// the scenario names. The scenario file is not changed.
    #[command(after_long_help = "Example:\n  sim calibrate qos-host.toml")]
    Calibrate(CalibrateFlags),
    /// Run scenarios and print their published and simulated figures as Markdown
    #[command(after_long_help = "Example:\n  sim tables apps/sim/scenarios/*.toml")]
    Tables(TablesFlags),
    /// Replay a recording of a daemon, and compare each decision of the policies
    ///
    /// The exit code is 1 if a decision differs from the recorded one.
    #[command(after_long_help = "Example:\n  sim replay decisions.rec")]
    Replay(ReplayFlags),
    /// Replay a recording of a daemon with other settings
    ///
    /// Prints recorded figures beside those computed with the changed settings. Neither the recording
    /// nor the daemon is changed.
    #[command(
        after_long_help = "Example:\n  sim what-if decisions.rec --set vmq.wan.max_processors=2"
    )]
    WhatIf(WhatIfFlags),
    /// Print a completion script for a shell
    Completions(CompletionsFlags),
    /// Print the manual page, or write one page per command
    Man(ManFlags),
    /// Write the reference page of this command line
    #[command(hide = true)]
    Docs(DocsFlags),
}

/// Arguments of `run`.
#[derive(Clone, Debug, Args)]
struct RunFlags {
    /// Scenario file (TOML).
    scenario: PathBuf,
    /// Seed of the random numbers; the seed in the scenario if absent.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Make random changes and faults instead of the steps of the scenario, as `sim swarm` does.
    #[arg(long)]
    swarm: bool,
    /// File to write the trace to, one simulated event per line: time in ns, keyword, values.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, Args)]
struct CalibrateFlags {
    /// Scenario file (TOML).
    scenario: PathBuf,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, Args)]
struct TablesFlags {
    /// Scenario files (TOML).
    #[arg(required = true)]
    scenarios: Vec<PathBuf>,
}

/// Returns the reference page as Markdown.
fn reference() -> String {
    format!(
        "<!-- Made by `sim docs`. Change the source, not this page. -->\n\n# The command line \
         of the simulator\n\n{}",
        suimon_pages::command_line(Arguments::command())
    )
}

/// Converts the result of writing pages to that of a command.
fn written(result: io::Result<()>) -> Result<bool> {
    Ok(result.map(|()| true)?)
}

/// Executes the command line and returns the exit code.
pub(crate) fn run() -> ExitCode {
    let done = match Arguments::parse().verb {
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
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let is_gone = error.downcast_ref::<io::Error>().map(io::Error::kind);
            if is_gone == Some(io::ErrorKind::BrokenPipe) {
                return ExitCode::SUCCESS;
            }
            eprintln!("sim: {error:#}");
            ExitCode::from(if error.is::<Refused>() { 3 } else { 1 })
        }
    }
}

/// Reads and validates a scenario's file.
pub(crate) fn read(path: &Path) -> Result<Scenario> {
    let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let told = || format!("{} is rejected", path.display());
    Scenario::read(&text).with_context(told)
}

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

/// Runs a scenario of any kind.
pub(crate) fn simulate(scenario: &Scenario, options: Options) -> Result<Outcome> {
    match scenario {
        Scenario::Storage(of) => storage::run(of, options),
        Scenario::Network(of) => network::run(of, options),
        Scenario::Fleet(of) => fleet::run(of, options),
        Scenario::Host(of) => host::run(of, options),
    }
}

/// Returns the report of a failed run: failed checks, seed, commit, and the command that reproduces
/// it.
pub(crate) fn failure(path: &Path, seed: u64, is_swarm: bool, outcome: &Outcome) -> String {
    let mut text = String::new();
    for complaint in &outcome.complaints {
        let seconds = complaint.at_ns as f64 / 1e9;
        text.push_str(&format!("{}: at {seconds:.3} s: {}\n", complaint.checker, complaint.what));
    }
    let more = outcome.complaints_count - outcome.complaints.len() as u64;
    if more > 0 {
        text.push_str(&format!("and {more} more\n"));
    }
    let swarm = if is_swarm { " --swarm" } else { "" };
    text.push_str(&format!(
        "seed {seed}, commit {COMMIT}; repeat with: sim run {} --seed {seed}{swarm}\n",
        path.display()
    ));
    text
}

impl RunFlags {
    fn run(self) -> Result<bool> {
        let scenario = read(&self.scenario)?;
        let seed = self.seed.unwrap_or(scenario.seed());
        let keeps_lines = self.trace.is_some();
        let options = Options { seed, is_swarm: self.swarm, keeps_lines };
        let outcome = simulate(&scenario, options)?;
        if let Some(path) = &self.trace {
            fs::write(path, &outcome.lines).with_context(|| format!("{}", path.display()))?;
        }
        if self.json {
            let mut value = serde_json::to_value(&outcome)?;
            value["scenario"] = scenario.name().into();
            value["seed"] = seed.into();
            value["commit"] = COMMIT.into();
            print(&format!("{value:#}\n"))?;
        } else {
            print(&outcome.text())?;
        }
        if outcome.complaints_count > 0 {
            eprint!("{}", failure(&self.scenario, seed, self.swarm, &outcome));
        }
        Ok(outcome.complaints_count == 0)
    }
}

impl CalibrateFlags {
    fn run(self) -> Result<bool> {
        let Scenario::Storage(scenario) = read(&self.scenario)? else {
            bail!("only scenarios of kind `storage` can be calibrated")
        };
        let found = storage::calibrate(&scenario, scenario.seed)?;
        if self.json {
            print(&format!("{:#}\n", serde_json::to_value(&found)?))?;
        } else {
            print(&format!("{found}\n"))?;
        }
        Ok(true)
    }
}

impl TablesFlags {
    fn run(self) -> Result<bool> {
        let mut all_held = true;
        for path in &self.scenarios {
            let scenario = read(path)?;
            // Fleet scenarios have no published figures.
            if matches!(scenario, Scenario::Fleet(_)) {
                continue;
            }
            let seed = scenario.seed();
            let options = Options { seed, is_swarm: false, keeps_lines: false };
            let outcome = simulate(&scenario, options)?;
            let agree = outcome.figures.iter().filter(|figure| figure.agrees).count();
            let (name, all) = (scenario.name(), outcome.figures.len());
            let table = outcome.markdown();
            print(&format!("### `{name}`, seed {seed}: {agree} of {all} agree\n\n{table}\n"))?;
            match &scenario {
                Scenario::Storage(of) if of.calibrate.is_some() => {
                    print(&format!("{}.\n\n", storage::calibrate(of, seed)?))?;
                }
                _ => {}
            }
            all_held &= outcome.complaints_count == 0;
        }
        Ok(all_held)
    }
}
