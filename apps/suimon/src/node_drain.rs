//! `node drain` and `undrain`.

use clap::{Args, Subcommand};
use suimon_contract::{ByteSize, DrainPlan, DrainRequest, Name};

use crate::cli::ChangeFlags;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::await_end;
use crate::resource::OwnVerb;
use crate::vm::downtime_ms;

/// What can be done with a node as a whole.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum OwnNodeVerb {
    /// Have no VM come to a node any more, and those that run there go to others.
    Drain(DrainFlags),
    /// Have VMs come to a node again; those that left it stay where they are.
    Undrain {
        /// The daemon's own host, or a node as `suimon node list` shows it.
        node: String,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DrainFlags {
    /// The daemon's own host, or a node as `suimon node list` shows it.
    node: String,
    /// Nodes that VMs may go to, as that host knows them; all that it knows if absent.
    #[arg(long, value_name = "NODE,…", value_delimiter = ',')]
    to: Vec<Name>,
    /// For how long each may stand still at the end, like 300ms or 2s.
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = downtime_ms)]
    downtime: u32,
    /// Memory sent in a second at most, like 100MiB; as much as the connection carries if absent.
    #[arg(long, value_name = "SIZE")]
    bandwidth: Option<ByteSize>,
    /// Delete the files of their disks there once they run elsewhere.
    #[arg(long)]
    with_files: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

impl OwnVerb for OwnNodeVerb {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Drain(flags) => flags.run(context).await,
            Self::Undrain { node } => Ok(context.client.undrain_node(&node).await?),
        }
    }
}

impl DrainFlags {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let request = DrainRequest {
            to: self.to,
            downtime_ms: self.downtime,
            bandwidth: self.bandwidth,
            with_files: self.with_files,
        };
        if self.change.dry_run {
            let plan = context.client.check_drain(&self.node, &request).await?;
            return Ok(context.show(&plan, lines)?);
        }
        let operation = context.client.drain_node(&self.node, &request).await?;
        await_end(context, operation, self.change.no_wait).await
    }
}

fn lines(plan: &DrainPlan) -> String {
    if plan.vms.is_empty() {
        return format!("node {} has no VM\n", plan.node);
    }
    plan.vms.iter().map(|vm| format!("{vm}\n")).collect()
}
