//! Command `lab`: executes the separate program of the lab.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use suimon_contract::SOCKET_VARIABLE;

use crate::exit::Failure;

const PROGRAM: &str = "suimon-lab";

/// Arguments of `lab`, passed to the lab's program.
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LabFlags {
    /// Command of `suimon-lab` and its options; prints the help of `suimon-lab` if absent.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    arguments: Vec<OsString>,
}

impl LabFlags {
    /// Replaces this process by the lab's program. Returns only on failure.
    pub(crate) fn run(self, socket: &Path, json: bool) -> Result<(), Failure> {
        let path = sibling_program().unwrap_or_else(|| PathBuf::from(PROGRAM));
        let is_told = self.arguments.iter().any(|argument| argument == "--json");
        let mut lab = Command::new(&path);
        lab.args(&self.arguments).env(SOCKET_VARIABLE, socket);
        if json && !is_told {
            lab.arg("--json");
        }
        let source = lab.exec();
        Err(Failure::File { path: path.display().to_string(), source })
    }
}

/// Returns the path of the program in the directory of this one; `None` if it is not there and
/// `PATH` has to be searched.
fn sibling_program() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.join(PROGRAM);
    path.is_file().then_some(path)
}
