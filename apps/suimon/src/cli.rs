//! Definition and parsing of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{
    Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand,
};
use suimon_client::Client;
use suimon_contract::{SOCKET_DEFAULT, SOCKET_VARIABLE};
use suimon_pages::{CompletionsFlags, DocsFlags, ManFlags};

use crate::apply::{ApplyFlags, CheckFlags, ExportFlags};
use crate::cluster::ClusterVerb;
use crate::console::ConsoleVerb;
use crate::disk::DiskVerb;
use crate::event::EventVerb;
use crate::exit::{EXIT_CODES, Failure, usage_error_json};
use crate::help;
use crate::host::HostVerb;
use crate::image::ImageVerb;
use crate::lab::LabFlags;
use crate::node_flags::NodeFlags;
use crate::offload::OffloadVerb;
use crate::old_names;
use crate::operation::OperationVerb;
use crate::output::Context;
use crate::power::PowerVerb;
use crate::qos::QosVerb;
use crate::queue::{QueueVerb, WorkerVerb};
use crate::resource::{NicVerb, NodeVerb, PfVerb, SwitchVerb, TeamVerb, UplinkVerb};
use crate::store::StoreVerb;
use crate::top::TopFlags;
use crate::vf::VfVerb;
use crate::vm::VmVerb;
use crate::vmq::VmqVerb;

/// Show and change switches, NICs, disks and VMs of a host that runs the daemon `suimond`.
///
/// Commands that make changes modify the desired state of the host and return when the host has
/// reached it. The daemon stores the desired state, so that it survives restarts. A host file
/// describes the whole desired state: `suimon apply` replaces the desired state with a host file,
/// and `suimon export` prints the desired state as a host file. `--dry-run` prints the planned
/// steps of a change and changes nothing.
///
/// A key is a setting of an object, such as `mtu` of a NIC. The host file and the options of `add`
/// and `set` have the same keys: `ageing_s` in the file is the option `--ageing-s`.
///
/// `suimon COMMAND --help` describes a command with its effect on running VMs, the range and
/// default of each option, and examples; `-h` prints a summary.
#[derive(Clone, Debug, Parser)]
#[command(name = "suimon", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Unix socket of the daemon. May also follow the command, unless the command has an option of
    /// this name.
    #[arg(
        long,
        value_name = "PATH",
        env = SOCKET_VARIABLE,
        hide_env_values = true,
        default_value = SOCKET_DEFAULT
    )]
    socket: PathBuf,
    #[command(flatten)]
    node: NodeFlags,
    /// Print data as JSON on standard output, and errors as JSON on standard error.
    #[arg(long, global = true, display_order = 900)]
    json: bool,
    #[command(subcommand)]
    noun: Noun,
}

#[derive(Clone, Debug, Subcommand)]
enum Noun {
    /// Show the host and its daemon.
    #[command(subcommand)]
    Host(HostVerb),
    /// Manage virtual switches, and show their forwarding tables.
    #[command(subcommand)]
    Switch(SwitchVerb),
    /// Manage uplinks, which connect switches to the physical network.
    #[command(subcommand)]
    Uplink(UplinkVerb),
    /// Manage teams of uplinks (link aggregation, load balancing, failover).
    #[command(subcommand)]
    Team(Box<TeamVerb>),
    /// Manage virtual NICs of VMs and network namespaces.
    #[command(subcommand)]
    Nic(Box<NicVerb>),
    /// Show and change checksum, segmentation and coalescing offloads of ports.
    #[command(subcommand)]
    Offload(OffloadVerb),
    /// Show and change the assignment of queues of ports to workers (VMQ).
    #[command(subcommand)]
    Vmq(VmqVerb),
    /// Manage stores: directories and block devices that contain disks.
    #[command(subcommand)]
    Store(Box<StoreVerb>),
    /// Manage virtual disks and their image files.
    #[command(subcommand)]
    Disk(Box<DiskVerb>),
    /// Inspect, check and repair image files (raw, VHD, VHDX).
    #[command(subcommand)]
    Image(ImageVerb),
    /// Show and change Storage QoS: minimums, maximums and delivered IOPS of disks.
    #[command(subcommand)]
    Qos(Box<QosVerb>),
    /// Manage VMs: configure, start, stop and migrate.
    #[command(subcommand)]
    Vm(Box<VmVerb>),
    /// Show and change the power plan of the host.
    #[command(subcommand)]
    Power(PowerVerb),
    /// Manage the configuration of SR-IOV adapters (physical functions).
    #[command(subcommand)]
    Pf(Box<PfVerb>),
    /// Show and change virtual functions (VFs) of SR-IOV adapters.
    #[command(subcommand)]
    Vf(Box<VfVerb>),
    /// Manage other hosts as destinations of live migration, and drain nodes.
    #[command(subcommand)]
    Node(Box<NodeVerb>),
    /// Manage the membership of this host in a cluster with shared stores.
    #[command(subcommand)]
    Cluster(ClusterVerb),
    /// Log in to the web console.
    #[command(subcommand)]
    Console(ConsoleVerb),
    /// Run performance experiments on this host, report and compare their results.
    Lab(LabFlags),
    /// Show the queues of ports, and move a queue to another worker.
    #[command(subcommand)]
    Queue(QueueVerb),
    /// Show workers (data-plane threads) and their CPU time.
    #[command(subcommand)]
    Worker(WorkerVerb),
    /// Show the event log.
    #[command(subcommand)]
    Event(EventVerb),
    /// Show, wait for and cancel operations (changes in progress).
    #[command(subcommand)]
    Operation(OperationVerb),
    /// Replace the desired state of the host with a host file.
    Apply(ApplyFlags),
    /// Print the desired state as a host file, or write it to one.
    Export(ExportFlags),
    /// Check a host file without a daemon.
    Check(CheckFlags),
    /// Show live rates of NICs, uplinks, disks and workers, and power in watts.
    Top(TopFlags),
    /// Print the daemon's metrics in Prometheus text format.
    Metrics,
    /// Print a completion script for a shell.
    Completions(CompletionsFlags),
    /// Print the manual page, or write one page per command.
    Man(ManFlags),
    /// Print the OpenAPI document of the daemon's REST API.
    Openapi,
    /// Write the reference pages.
    #[command(hide = true)]
    Docs(DocsFlags),
}

impl Cli {
    /// Returns true if JSON output is requested.
    pub(crate) fn prints_json(&self) -> bool {
        self.json
    }

    /// Executes the command.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if let Noun::Lab(flags) = self.noun {
            return flags.run(&self.socket, self.json);
        }
        let client = match self.node.client() {
            Some(client) => client?,
            None => Client::unix(self.socket.clone()),
        };
        let context = Context { client, prints_json: self.json, socket: self.socket };
        let context = &context;
        match self.noun {
            Noun::Host(verb) => verb.run(context).await,
            Noun::Switch(verb) => verb.run(context).await,
            Noun::Uplink(verb) => verb.run(context).await,
            Noun::Team(verb) => verb.run(context).await,
            Noun::Nic(verb) => verb.run(context).await,
            Noun::Offload(verb) => verb.run(context).await,
            Noun::Vmq(verb) => verb.run(context).await,
            Noun::Store(verb) => verb.run(context).await,
            Noun::Disk(verb) => verb.run(context).await,
            Noun::Image(verb) => verb.run(context).await,
            Noun::Qos(verb) => verb.run(context).await,
            Noun::Vm(verb) => verb.run(context).await,
            Noun::Power(verb) => verb.run(context).await,
            Noun::Pf(verb) => verb.run(context).await,
            Noun::Vf(verb) => verb.run(context).await,
            Noun::Node(verb) => verb.run(context).await,
            Noun::Cluster(verb) => verb.run(context).await,
            Noun::Console(verb) => verb.run(context).await,
            Noun::Lab(_) => Ok(()),
            Noun::Queue(verb) => verb.run(context).await,
            Noun::Worker(verb) => verb.run(context).await,
            Noun::Event(verb) => verb.run(context).await,
            Noun::Operation(verb) => verb.run(context).await,
            Noun::Apply(flags) => flags.run(context).await,
            Noun::Export(flags) => flags.run(context).await,
            Noun::Check(flags) => flags.run(context),
            Noun::Top(flags) => flags.run(context).await,
            Noun::Metrics if context.prints_json => {
                let text = "metrics exist in Prometheus text format only; omit --json";
                Err(Failure::Usage(text.to_owned()))
            }
            Noun::Metrics => Ok(crate::output::print(&context.client.metrics().await?)?),
            Noun::Completions(flags) => Ok(flags.write(command(), "suimon")?),
            Noun::Man(flags) => Ok(flags.write(command())?),
            Noun::Openapi => Ok(crate::output::print(&context.client.openapi().await?)?),
            Noun::Docs(flags) => Ok(flags.write(crate::reference::pages(command()))?),
        }
    }
}

/// Parses the command line. Exits if it is invalid or requests help.
pub(crate) fn parse() -> Cli {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let parsed = parse_from(arguments.clone());
    if let Ok(cli) = &parsed {
        let warnings = old_names::old_name_warnings(&command(), &arguments, |name| {
            std::env::var_os(name).is_some()
        });
        old_names::print_warnings(cli.json, &warnings);
    }
    parsed.unwrap_or_else(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        // The parser returns no options for an invalid command line, so `--json` is searched here.
        if arguments.iter().any(|argument| argument == "--json") {
            eprintln!("{}", usage_error_json(error.render().to_string().trim_end().to_owned()));
        } else {
            // Standard error may be closed.
            let _ = error.print();
        }
        std::process::exit(if is_image_check(&arguments) { 1 } else { error.exit_code() })
    })
}

/// Returns true for `image check` and `image repair`, whose exit code for a damaged image is the
/// one that other commands use for an invalid command line.
fn is_image_check(arguments: &[OsString]) -> bool {
    let mut arguments = arguments.iter().skip_while(|argument| *argument != "image").skip(1);
    let verb = arguments.find(|argument| !argument.as_encoded_bytes().starts_with(b"-"));
    verb.is_some_and(|verb| verb == "check" || verb == "repair")
}

/// Parses a command line.
pub(crate) fn parse_from<I, T>(args: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<std::ffi::OsString> + Clone,
{
    let mut matches = command_with_aliases().try_get_matches_from(args)?;
    let late_socket = late_socket(&matches).cloned();
    let is_written = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
    // Flags take precedence over environment variables.
    let wants_socket = (late_socket.is_some() || is_written("socket")) && !is_written("node");
    let mut cli = Cli::from_arg_matches_mut(&mut matches)?;
    if wants_socket {
        cli.node = NodeFlags::default();
    }
    if let Some(socket) = late_socket {
        cli.socket = socket;
    }
    Ok(cli)
}

/// Returns the command line as shown in help, completions and manual pages.
pub(crate) fn command() -> Command {
    let codes: String =
        EXIT_CODES.iter().map(|(code, meaning)| format!("  {code:<4} {meaning}\n")).collect();
    help::with_long_help(Cli::command())
        .mut_subcommand("metrics", |metrics| metrics.arg(rejected_json()))
        .after_long_help(format!("Exit codes:\n{codes}"))
}

/// Returns a hidden flag `--json` for a command that rejects it. It replaces the global flag.
fn rejected_json() -> Arg {
    Arg::new("json").long("json").hide(true).action(ArgAction::SetTrue)
}

/// Returns the command line as parsed.
pub(crate) fn command_with_aliases() -> Command {
    old_names::with_old_name_aliases(socket_everywhere(command()))
}

const LATE_SOCKET: &str = "late-socket";

/// Accepts `--socket` after the verb too, unless the verb has a flag `--socket` of its own (the
/// socket of a NIC).
fn socket_everywhere(command: Command) -> Command {
    command.mut_subcommands(|sub| {
        let sub = socket_everywhere(sub);
        if sub.get_arguments().any(|arg| arg.get_long() == Some("socket")) {
            return sub;
        }
        sub.arg(
            Arg::new(LATE_SOCKET)
                .long("socket")
                .value_name("PATH")
                .value_parser(clap::value_parser!(PathBuf))
                .hide(true),
        )
    })
}

/// Returns the value of the last `--socket` that follows a noun; `None` if there is none.
fn late_socket(matches: &ArgMatches) -> Option<&PathBuf> {
    let (_, sub) = matches.subcommand()?;
    late_socket(sub).or_else(|| {
        let is_given = sub.try_contains_id(LATE_SOCKET).is_ok_and(|is_known| is_known)
            && sub.value_source(LATE_SOCKET) == Some(ValueSource::CommandLine);
        if is_given { sub.get_one(LATE_SOCKET) } else { None }
    })
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
