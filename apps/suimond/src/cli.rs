//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::image_tool::Tool;

/// The daemon of a virtualization host: switches, NICs and uplinks as one file
/// or the API describes them.
///
/// Exit status: 0 after an orderly stop; 1 if the host or another daemon is in
/// the way; 2 for a wrong command line, a TCP listener without TLS or token,
/// or a console that cannot be;
/// 3 if the host file is refused.
#[derive(Clone, Debug, Parser)]
#[command(name = "suimond", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// What is done instead of being the daemon.
    #[command(subcommand)]
    pub tool: Option<Tool>,

    /// Host file (TOML). It is applied when its text differs from the one applied
    /// last; otherwise stored state, with what was changed since, holds. SIGHUP
    /// reads it again.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Unix socket of the API.
    #[arg(long, value_name = "PATH", default_value = "/run/suimon/suimon.sock")]
    pub socket: PathBuf,

    /// Directory of desired state and event log; one daemon at a time.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/suimon")]
    pub state_dir: PathBuf,

    /// What to log to stderr: `error`, `warn`, `info`, `debug`, `trace`, or
    /// filters like `info,suimon_node=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info", env = "SUIMON_LOG")]
    pub log: String,

    /// For debugging only: give nothing up, so that the daemon and its processors keep
    /// all privileges and system calls. `suimon host show` and an event say so.
    #[arg(long)]
    pub no_confine: bool,

    /// Record what the policies are told and what they decide into this file, which is made anew:
    /// `sim replay` drives them by it again, `sim what-if` with other settings.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "vm_launcher"])]
    pub record: Option<PathBuf>,

    /// The recording is no longer than this; what comes later is not recorded.
    #[arg(long, value_name = "BYTES", requires = "record", default_value_t = 1 << 30)]
    pub record_bytes_max: u64,

    /// Only check the host file, without looking at the host.
    #[arg(long, requires = "config")]
    pub check: bool,

    /// Be the launcher of VMs instead of the daemon: listen on this Unix socket for daemons, and
    /// start and end VMs for them. A daemon starts one itself if none answers beside its API's
    /// socket (`launcher.sock`).
    #[arg(long, value_name = "PATH", conflicts_with_all = ["config", "check"])]
    pub vm_launcher: Option<PathBuf>,

    /// The launcher's: folder in which each VM has one, the `vm_folder` of the host file.
    #[arg(long, value_name = "DIR", requires = "vm_launcher", default_value = "/run/suimon/vms")]
    pub vm_folder: PathBuf,

    /// The launcher's: end when no VM runs and no daemon is connected.
    #[arg(long, requires = "vm_launcher")]
    pub vm_launcher_ends: bool,

    /// Where sysfs is: CPUs' frequencies, idle states and energy counters are below it, and adapters
    /// with SR-IOV.
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub sysfs: PathBuf,

    /// Only put back what a daemon that was killed has changed of CPUs for its power plan. For
    /// the service manager, when no daemon runs.
    #[arg(long, conflicts_with_all = ["config", "check", "vm_launcher"])]
    pub restore_power: bool,

    /// Print the OpenAPI document of the REST API and exit.
    #[arg(long)]
    pub print_openapi: bool,

    /// Print a reference of all metrics as Markdown and exit.
    #[arg(long, conflicts_with = "print_openapi")]
    pub print_metrics: bool,
}
