//! The command line.

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

/// Runs published experiments on this host, and lays what comes out beside what was published.
///
/// Exit status: 0 if all was done; 1 if something failed; 2 for a wrong command line; 3 if a plan
/// is refused or the machine lacks what it needs; 130 if it was interrupted, and can be resumed.
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
    /// Show a plan: the question, what was published, what is set up here
    Show(ShowFlags),
    /// Run plans, on this host or in the simulator
    Run(RunFlags),
    /// Write the report of runs: HTML, JSON, CSV
    Report(ReportFlags),
    /// Say whether two runs differ, with a statistical test
    Compare(CompareFlags),
    /// Say what the results mean for a host's configuration, as a changed host file
    Advise(AdviseFlags),
    /// Run what is asked for through the daemon's API, until it is stopped
    Work(WorkFlags),
    /// End a run that was asked for through the daemon's API, or withdraw it
    Stop(StopFlags),
    /// Install the programs that load and measure
    Setup(SetupFlags),
    /// Print completions for a shell
    Completions(CompletionsFlags),
    /// Print the manual page, or write all
    Man(ManFlags),
    /// Write the reference page of this command line
    #[command(hide = true)]
    Docs(DocsFlags),
}

/// Where disks and other large files are made, unless it is said otherwise.
pub(crate) const WORK_FOLDER: &str = "/var/tmp";

/// Where results are.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResultsFlags {
    /// The folder of results.
    #[arg(long, value_name = "DIR", env = "SUIMON_LAB_RESULTS", default_value = LAB_RESULTS_DEFAULT)]
    results: PathBuf,
}

/// The plan is refused, or the machine lacks what it needs.
#[derive(Debug)]
pub(crate) struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("refused")
    }
}

/// It was asked to stop; what was measured is kept.
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

/// The reference page.
fn reference() -> String {
    format!(
        "<!-- Made by `suimon-lab docs`. Change the source, not this page. -->\n\n# The command line \
         of the lab\n\n{}",
        suimon_pages::command_line(Arguments::command())
    )
}

/// Does what the command line says.
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

/// Writes to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}
