//! Commands of `host`: the host and its daemon.

use clap::Subcommand;
use suimon_tables::host_tables::details;

use crate::exit::Failure;
use crate::output::Context;

/// Verbs of `host`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum HostVerb {
    /// Show the state of the host and its daemon.
    Show,
}

impl HostVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show => Ok(context.show(&context.client.host().await?, details)?),
        }
    }
}
