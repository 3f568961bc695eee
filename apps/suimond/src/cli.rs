//! Command line of the daemon.

use std::path::PathBuf;

use clap::Parser;

use crate::image_tool::Tool;

/// Exit codes and examples, printed by `--help`.
const AFTER_HELP: &str = "\
Exit codes:
  0  orderly stop (SIGTERM, SIGINT), or the requested output was printed
  1  the host, or another daemon with this state directory, prevents the start
  2  the command line is invalid, or all errors of a rejected host file concern `[api]` or
     `[console]`
  3  the host file is rejected for another reason

With stored state, a rejected host file does not prevent the start (event 1008); --check fails.

Examples:
  suimond --config /etc/suimon/host.toml
  suimond --config /etc/suimon/host.toml --check
  suimond --vm-launcher /run/suimon/launcher.sock";

/// Run the daemon of a virtualization host, which provides switches, NICs, disks and VMs.
///
/// The desired state is set by the host file (`--config`) and by commands of `suimon`, and stored
/// in the state directory. When the daemon stops, VMs continue to run; their NICs and disks pause
/// until the next daemon has started.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "suimond",
    version,
    args_conflicts_with_subcommands = true,
    max_term_width = 100,
    after_long_help = AFTER_HELP
)]
pub struct Arguments {
    /// Tool to run instead of the daemon.
    #[command(subcommand)]
    pub tool: Option<Tool>,

    /// Host file (TOML). It is applied at the start and at SIGHUP if its text has changed since it
    /// was last applied (at a start, at SIGHUP, or by `suimon apply` of this file). Otherwise the
    /// stored desired state stays in effect, with all changes by commands. SIGHUP also reads the
    /// files again that the host file names, such as certificates, keys and tokens. `[api]`,
    /// `[console]` and `[lab]`, and the files that they name, are read at the start only: at
    /// SIGHUP, the log names those that have changed and need a restart. If absent, the stored
    /// desired state is used.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Unix socket on which the daemon serves the API, for root and the group of the daemon.
    #[arg(long, value_name = "PATH", default_value = "/run/suimon/suimon.sock")]
    pub socket: PathBuf,

    /// Directory in which desired state and the event log are stored; created if it does not exist.
    /// One daemon at a time can use it.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/suimon")]
    pub state_dir: PathBuf,

    /// Least severity of messages on standard error: `error`, `warn`, `info`, `debug` or `trace`,
    /// optionally per module, such as `info,suimon_node=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info", env = "SUIMON_LOG")]
    pub log: String,

    /// Disable confinement: the threads of the daemon keep all privileges and system calls. For
    /// debugging only. `suimon host show` and event 1011 report it.
    #[arg(long)]
    pub no_confine: bool,

    /// File in which inputs and decisions of VMQ, teams and Storage QoS are recorded; it is
    /// overwritten. `sim replay` repeats the recording, `sim what-if` repeats it with other
    /// settings.
    #[arg(long = "record", value_name = "FILE", conflicts_with_all = ["check", "vm_launcher_socket"])]
    pub recording_file: Option<PathBuf>,

    /// Largest size of the recording in bytes. Recording stops when it is reached.
    #[arg(long, value_name = "BYTES", requires = "recording_file", default_value_t = 1 << 30)]
    pub record_bytes_max: u64,

    /// Check the host file without examining the host, print errors with their lines, and exit.
    #[arg(long, requires = "config")]
    pub check: bool,

    /// Run as launcher instead of as daemon: start and end QEMU processes for the daemons that
    /// connect to this Unix socket. A daemon starts a launcher by itself if none responds at
    /// `launcher.sock` in the directory of its API socket.
    #[arg(long = "vm-launcher", value_name = "PATH", conflicts_with_all = ["config", "check"])]
    pub vm_launcher_socket: Option<PathBuf>,

    /// With `--vm-launcher`: folder that contains one folder per VM, as `vm_folder` of `[host]` in
    /// the host file.
    #[arg(
        long,
        value_name = "DIR",
        requires = "vm_launcher_socket",
        default_value = "/run/suimon/vms"
    )]
    pub vm_folder: PathBuf,

    /// With `--vm-launcher`: exit when no VM runs and no daemon is connected.
    #[arg(long = "vm-launcher-ends", requires = "vm_launcher_socket")]
    pub vm_launcher_exits_when_unused: bool,

    /// Mount point of sysfs, with CPU frequencies, idle states, energy counters and SR-IOV
    /// adapters.
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub sysfs: PathBuf,

    /// Restore the CPU settings that a killed daemon had changed for its power plan, and exit.
    /// Fails while a daemon runs with this state directory.
    #[arg(long, conflicts_with_all = ["config", "check", "vm_launcher_socket"])]
    pub restore_power: bool,

    /// Print the OpenAPI document (JSON) of the REST API and exit.
    #[arg(long)]
    pub print_openapi: bool,

    /// Print the reference of all metrics as Markdown and exit.
    #[arg(long, conflicts_with = "print_openapi")]
    pub print_metrics: bool,
}
