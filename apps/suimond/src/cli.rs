//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// The daemon of a virtualization host: switches, NICs and uplinks as one file
/// or the API describes them.
///
/// Exit status: 0 after an orderly stop; 1 if the host or another daemon is in
/// the way; 2 for a wrong command line or a TCP listener without TLS or token;
/// 3 if the host file is refused.
#[derive(Clone, Debug, Parser)]
#[command(name = "suimond", version)]
pub struct Arguments {
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

    /// Only be the launcher of VMs that listens at this Unix socket: the process that starts
    /// QEMU for the daemon, which may start no program.
    #[arg(long, value_name = "PATH")]
    pub vm_launcher: Option<PathBuf>,

    /// The launcher ends when no VM runs and no daemon is connected.
    #[arg(long, hide = true, requires = "vm_launcher")]
    pub vm_launcher_passes: bool,

    /// Directory in which each VM has one of its own: sockets, logs, its firmware's variables.
    #[arg(long, value_name = "DIR", default_value = "/run/suimon/vms")]
    pub vm_folder: PathBuf,

    /// Only check the host file, without looking at the host.
    #[arg(long, requires = "config")]
    pub check: bool,

    /// Only print the API's OpenAPI document.
    #[arg(long)]
    pub print_openapi: bool,
}
