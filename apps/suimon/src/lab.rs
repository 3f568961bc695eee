//! `lab`: a program of its own, which this one becomes.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use suimon_contract::SOCKET_VARIABLE;

use crate::exit::Failure;

const PROGRAM: &str = "suimon-lab";

/// What the lab is told: `suimon lab --help` shows it.
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LabFlags {
    /// A verb of the lab and its flags; without them the lab's help.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "VERB")]
    arguments: Vec<OsString>,
}

impl LabFlags {
    /// Comes back only if there is no such program.
    pub(crate) fn run(self, socket: &Path, json: bool) -> Result<(), Failure> {
        let path = beside().unwrap_or_else(|| PathBuf::from(PROGRAM));
        let is_told = self.arguments.iter().any(|of| of == "--json");
        let mut lab = Command::new(&path);
        lab.args(&self.arguments).env(SOCKET_VARIABLE, socket);
        if json && !is_told {
            lab.arg("--json");
        }
        let source = lab.exec();
        Err(Failure::File { path: path.display().to_string(), source })
    }
}

/// The program in the folder of this one, if it is there; else the shell's folders have it.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.join(PROGRAM);
    path.is_file().then_some(path)
}
