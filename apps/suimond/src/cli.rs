//! Command line of the daemon.

use std::path::PathBuf;

use clap::Parser;

use crate::image_tool::Tool;

/// Daemon of a virtualization host: provides the switches, NICs, disks and VMs described in the
/// host file or through the API.
///
/// Exit status: 0 after an orderly stop; 1 if the host or another daemon prevents the start; 2 for
/// an invalid command line, a TCP listener without TLS or token, or an unusable console; 3 if the
/// host file is rejected.
#[derive(Clone, Debug, Parser)]
#[command(name = "suimond", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Tool to run instead of the daemon.
    #[command(subcommand)]
    pub tool: Option<Tool>,

    /// Host file (TOML). Applied if its text differs from the last applied one; otherwise the
    /// stored state with later changes remains. SIGHUP reads it again.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Unix socket of the API.
    #[arg(long, value_name = "PATH", default_value = "/run/suimon/suimon.sock")]
    pub socket: PathBuf,

    /// Directory of desired state and event log. Used by one daemon at a time.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/suimon")]
    pub state_dir: PathBuf,

    /// Log filter for stderr: `error`, `warn`, `info`, `debug`, `trace`, or filters such as
    /// `info,suimon_node=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info", env = "SUIMON_LOG")]
    pub log: String,

    /// Disable confinement, for debugging only: the daemon and its workers keep all privileges and
    /// system calls. `suimon host show` and an event report it.
    #[arg(long)]
    pub no_confine: bool,

    /// Record inputs and decisions of the policies in this file, which is overwritten. `sim replay`
    /// repeats the recording, `sim what-if` repeats it with other settings.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "vm_launcher"])]
    pub record: Option<PathBuf>,

    /// Largest size of the recording. Later inputs are not recorded.
    #[arg(long, value_name = "BYTES", requires = "record", default_value_t = 1 << 30)]
    pub record_bytes_max: u64,

    /// Check the host file only, without examining the host.
    #[arg(long, requires = "config")]
    pub check: bool,

    /// Run as launcher of VMs instead of as daemon: listen for daemons on this Unix socket, and
    /// start and end VMs for them. A daemon starts a launcher itself if none responds at
    /// `launcher.sock` beside the API's socket.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["config", "check"])]
    pub vm_launcher: Option<PathBuf>,

    /// Launcher: folder with one folder per VM, the `vm_folder` of the host file.
    #[arg(long, value_name = "DIR", requires = "vm_launcher", default_value = "/run/suimon/vms")]
    pub vm_folder: PathBuf,

    /// Launcher: exit when no VM runs and no daemon is connected.
    #[arg(long, requires = "vm_launcher")]
    pub vm_launcher_ends: bool,

    /// Path of sysfs, for CPU frequencies, idle states, energy counters and SR-IOV adapters.
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub sysfs: PathBuf,

    /// Restore CPU settings changed by a killed daemon for its power plan, and exit. For the
    /// service manager, while no daemon runs.
    #[arg(long, conflicts_with_all = ["config", "check", "vm_launcher"])]
    pub restore_power: bool,

    /// Print the OpenAPI document of the REST API and exit.
    #[arg(long)]
    pub print_openapi: bool,

    /// Print a reference of all metrics as Markdown and exit.
    #[arg(long, conflicts_with = "print_openapi")]
    pub print_metrics: bool,
}
