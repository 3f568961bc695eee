//! Command line of the lab.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, CommandFactory, Parser, Subcommand};
use suimon_contract::LAB_RESULTS_DEFAULT;
use suimon_pages::{CompletionsFlags, DocsFlags, ManFlags};

use crate::advise::AdviseFlags;
use crate::compare::CompareFlags;
use crate::report::ReportFlags;
use crate::results::Results;
use crate::run::RunFlags;
use crate::setup::SetupFlags;
use crate::shown::{ListFlags, ShowFlags};
use crate::work::{StopFlags, WorkFlags};

/// Runs published experiments on this host and compares the results with the published values.
///
/// Exit status: 0 if everything was done; 1 on a failure; 2 for an invalid command line; 3 if a
/// plan is rejected or the machine does not meet its requirements; 130 if interrupted, in which
/// case the run can be resumed.
#[derive(Clone, Debug, Parser)]
#[command(name = "suimon-lab", version, bin_name = "suimon lab")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// List plans, or runs
    List(ListFlags),
    /// Show a plan: question, published values and setup on this host
    Show(ShowFlags),
    /// Run plans, on this host or in the simulator
    Run(RunFlags),
    /// Write the report of runs: HTML, JSON, CSV
    Report(ReportFlags),
    /// Compare two runs with a statistical test
    Compare(CompareFlags),
    /// Recommend configuration changes from the results, as a changed host file
    Advise(AdviseFlags),
    /// Carry out runs requested through the daemon's API, until stopped
    Work(WorkFlags),
    /// Cancel a run requested through the daemon's API, or withdraw the request
    Stop(StopFlags),
    /// Install the programs that generate and measure load
    Setup(SetupFlags),
    /// Print a completion script for a shell
    Completions(CompletionsFlags),
    /// Print the manual page, or write one page per command
    Man(ManFlags),
    /// Write the reference page of this command line
    #[command(hide = true)]
    Docs(DocsFlags),
}

/// Default folder of disks and other large files.
pub(crate) const WORK_FOLDER: &str = "/var/tmp";

/// Arguments that locate the results.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResultsFlags {
    /// Folder of results.
    #[arg(long, value_name = "DIR", env = "SUIMON_LAB_RESULTS", default_value = LAB_RESULTS_DEFAULT)]
    results: PathBuf,
}

/// Error: the plan is rejected, or the machine does not meet its requirements.
#[derive(Debug)]
pub(crate) struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("refused")
    }
}

/// Error: interrupted on request; measured values are kept.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl ResultsFlags {
    #[cfg(test)]
    pub(crate) fn of(path: &std::path::Path) -> Self {
        Self { results: path.to_owned() }
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.results
    }

    pub(crate) fn folder(&self) -> Results {
        Results::new(self.results.clone())
    }
}

/// Returns the reference page as Markdown.
fn reference() -> String {
    format!(
        "<!-- Made by `suimon-lab docs`. Change the source, not this page. -->\n\n# The command line \
         of the lab\n\n{}",
        suimon_pages::command_line(Arguments::command())
    )
}

/// Executes the command line and returns the exit code.
pub(crate) fn run() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::List(flags) => flags.run(),
        Verb::Show(flags) => flags.run(),
        Verb::Run(flags) => flags.run(),
        Verb::Report(flags) => flags.run(),
        Verb::Compare(flags) => flags.run(),
        Verb::Advise(flags) => flags.run(),
        Verb::Work(flags) => flags.run(),
        Verb::Stop(flags) => flags.run(),
        Verb::Setup(flags) => flags.run(),
        Verb::Completions(flags) => {
            flags.write(Arguments::command(), "suimon-lab").map_err(Into::into)
        }
        Verb::Man(flags) => flags.write(Arguments::command()).map_err(Into::into),
        Verb::Docs(flags) => flags.write([("lab.md", reference())]).map_err(Into::into),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    if error.downcast_ref::<io::Error>().map(io::Error::kind) == Some(io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    eprintln!("suimon lab: {error:#}");
    if error.is::<Refused>() {
        ExitCode::from(3)
    } else if error.is::<Interrupted>() {
        ExitCode::from(130)
    } else {
        ExitCode::FAILURE
    }
}

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}
