//! `host`: the host and its daemon.

use clap::Subcommand;
use suimon_contract::HostStatus;

use crate::exit::Failure;
use crate::output::Context;
use crate::units;

/// Verbs of `host`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum HostVerb {
    /// Show the host.
    Show,
}

impl HostVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show => Ok(context.show(&context.client.host().await?, details)?),
        }
    }
}

fn details(host: &HostStatus) -> String {
    format!(
        "name      {}\nversion   {}\nuptime    {}\nrevision  {}\nswitches  {}\nuplinks   {}\n\
         nics      {}\n",
        host.name,
        host.version,
        units::age(host.uptime_s),
        host.revision,
        host.switches,
        host.uplinks,
        host.nics
    )
}
