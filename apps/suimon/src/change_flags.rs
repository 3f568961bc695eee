//! Flags of commands that change the desired state.

use clap::Args;
use suimon_client::ChangeOptions;

/// Flags common to commands that change the desired state.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ChangeFlags {
    /// Print the planned steps and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the number of the operation and return without waiting for its end.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) no_wait: bool,
}

impl ChangeFlags {
    /// Returns the flags as options of the request.
    pub(crate) fn options(self) -> ChangeOptions {
        ChangeOptions { dry_run: self.dry_run, ..ChangeOptions::default() }
    }
}
