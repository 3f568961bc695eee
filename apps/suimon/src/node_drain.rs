//! Commands `node drain` and `node undrain`.

use clap::{Args, Subcommand};
use suimon_contract::{ByteSize, DrainPlan, DrainRequest, Name};

use crate::change_flags::ChangeFlags;
use crate::downtime::parse_downtime_ms;
use crate::exit::Failure;
use crate::kind_specific_verb::KindSpecificVerb;
use crate::output::Context;
use crate::progress::await_end;

/// Verbs that only nodes have.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum NodeSpecificVerb {
    /// Drain a node: migrate its running VMs to other nodes, and admit none.
    Drain(DrainFlags),
    /// End the drain of a node, so that VMs can migrate to it.
    Undrain {
        /// Host name of the daemon's own host, or name of a node in `suimon node list`.
        node: String,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DrainFlags {
    /// Host name of the daemon's own host, or name of a node in `suimon node list`.
    node: String,
    /// Permitted destinations, by their names in `suimon node list` of the drained host; all nodes
    /// if absent.
    #[arg(long, value_name = "NODE,…", value_delimiter = ',')]
    to: Vec<Name>,
    /// Target downtime of each VM at the end of its migration, 1ms to 60s, such as 300ms or 2s.
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_downtime_ms)]
    downtime: u32,
    /// Limit of memory transfer in bytes per second, such as 100MiB; no limit if absent.
    #[arg(long, value_name = "SIZE")]
    bandwidth: Option<ByteSize>,
    /// Delete the image files of migrated VMs on the drained node, except in shared stores.
    #[arg(long)]
    with_files: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

impl KindSpecificVerb for NodeSpecificVerb {
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
            destinations: self.to,
            downtime_ms: self.downtime,
            bandwidth_max_bytes_per_s: self.bandwidth,
            deletes_source_files: self.with_files,
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
        return format!("node {} has no VMs\n", plan.node);
    }
    plan.vms.iter().map(|vm| format!("{vm}\n")).collect()
}
