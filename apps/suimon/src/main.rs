//! `suimon`: command-line client of the daemon's REST API.
//!
//! The program does not access the host itself. It shows data from the daemon and changes the host
//! through the daemon. `check`, which reads a host file, and generated pages need no daemon.
//!
//! Data goes to standard output, messages go to standard error, and the exit code reports the
//! result (see [`exit`]).
#![forbid(unsafe_code)]

mod apply;
mod atomic_write;
mod capture;
mod change_flags;
mod choices;
mod cli;
mod cluster;
mod console;
mod disk;
mod disk_export;
mod disk_job_flags;
mod disk_snapshot;
mod downtime;
mod event;
mod exit;
mod help;
mod host;
mod image;
mod key_flags;
mod key_help;
mod kind_specific_verb;
mod lab;
mod node_drain;
mod node_flags;
mod offload;
mod old_names;
mod operation;
mod output;
mod power;
mod progress;
mod qos;
mod qos_set;
mod qos_what_if;
mod queue;
mod reference;
mod resource;
mod resource_help;
mod settings;
mod storage_flags;
mod store;
mod top;
mod vf;
mod vm;
mod vm_console;
mod vmq;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::parse();
    let json = cli.prints_json();
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return exit::Failure::from(error).report(json),
        };
    let result = runtime.block_on(cli.run());
    // The thread that reads the terminal cannot be interrupted and would delay the exit until the
    // next key press.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}
