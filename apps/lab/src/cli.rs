//! Command line of the lab.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use suimon_pages::{CompletionsFlags, DocsFlags, ManFlags};

use crate::advise::AdviseFlags;
use crate::compare::CompareFlags;
use crate::exit::exit_code;
use crate::list::ListFlags;
use crate::report::ReportFlags;
use crate::run::RunFlags;
use crate::setup::SetupFlags;
use crate::show::ShowFlags;
use crate::work::{StopFlags, WorkFlags};

/// Exit codes and examples, printed by `--help`.
const AFTER_HELP: &str = "\
Exit codes:
  0    success
  1    the command failed
  2    the command line is invalid
  3    the plan is rejected, or the host does not meet its requirements
  130  interrupted (Ctrl-C); `suimon lab run --resume RUN` continues the run

Examples:
  suimon lab setup disk-io
  suimon lab run disk-io --scale quick
  suimon lab report disk-io";

/// Run published performance experiments on this host, and compare the results with the published
/// values.
///
/// A plan describes an experiment; `suimon lab list` lists the shipped plans. An experiment runs in
/// a daemon and network namespaces of its own and does not change the daemon of the host. Its load
/// on CPUs and disks slows down running VMs.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "suimon-lab",
    version,
    bin_name = "suimon lab",
    max_term_width = 100,
    after_long_help = AFTER_HELP
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// List the shipped plans, or the runs with their results.
    ///
    /// A plan is listed with its name, duration and title, and with what this host lacks to run it.
    /// A run is listed with its id, origin (`real` or `simulated`), scale, start time and state.
    #[command(after_long_help = "Examples:\n  suimon lab list\n  suimon lab list --runs")]
    List(ListFlags),
    /// Show the question, published values and setup of a plan on this host.
    ///
    /// Prints the question, its source, the published values, the setup and the cases. Nothing is
    /// executed.
    #[command(after_long_help = "Example:\n  suimon lab show disk-io --scale full")]
    Show(ShowFlags),
    /// Run plans on this host or in the simulator, and write their reports.
    ///
    /// Requires root. Ctrl-C ends the run and keeps the values measured so far; `--resume`
    /// continues it. Files of the experiment in the work folder are removed at the end.
    #[command(
        after_long_help = "Examples:\n  suimon lab run disk-io --scale quick\n  suimon lab run vmq-teaming --simulated\n  suimon lab run --resume RUN"
    )]
    Run(RunFlags),
    /// Write the report of runs again (HTML, JSON, CSV).
    ///
    /// The files are written into the folder of each run and their paths are printed.
    #[command(
        after_long_help = "Examples:\n  suimon lab report disk-io\n  suimon lab report disk-io qos-host --output all.html"
    )]
    Report(ReportFlags),
    /// Compare two runs with a statistical test.
    ///
    /// Each measure that both runs contain is compared by the Mann-Whitney U test with Holm's
    /// correction. Three repetitions per run are too few to show a significant difference.
    #[command(after_long_help = "Example:\n  suimon lab compare RUN disk-io")]
    Compare(CompareFlags),
    /// Recommend changes of the host file from the results of runs.
    ///
    /// Evaluates the last run of each plan whose scale was not `quick`. Nothing is applied; review
    /// the written file with `suimon apply --dry-run --file FILE`.
    #[command(
        after_long_help = "Example:\n  suimon lab advise --host /etc/suimon/host.toml --output advised.toml"
    )]
    Advise(AdviseFlags),
    /// Run the experiments that are requested through the API and the console.
    ///
    /// Requires root. Executes the requests in the folder of results one after the other until it
    /// is stopped (Ctrl-C, SIGTERM). At most one such process can use a folder of results at a
    /// time.
    #[command(after_long_help = "Example:\n  suimon lab work")]
    Work(WorkFlags),
    /// Stop a run that was requested through the API, or withdraw its request.
    ///
    /// The values measured so far are kept. `suimon lab run --resume` continues the run.
    #[command(after_long_help = "Example:\n  suimon lab stop")]
    Stop(StopFlags),
    /// Install the programs that plans use to generate and measure load.
    ///
    /// Installs Debian packages with apt-get, which requires root.
    #[command(after_long_help = "Example:\n  suimon lab setup disk-io --dry-run")]
    Setup(SetupFlags),
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
        "<!-- Made by `suimon-lab docs`. Change the source, not this page. -->\n\n# The command line \
         of the lab\n\n{}",
        suimon_pages::command_reference(Arguments::command())
    )
}

/// Executes the command line and returns the exit code.
pub(crate) fn run() -> ExitCode {
    let result = match Arguments::parse().verb {
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
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit_code(&error),
    }
}
