//! Commands of `qos`: policies, delivered rates, and what-if calculation.

use core::convert::Infallible;
use core::time::Duration;

use clap::{Args, Subcommand};
use suimon_contract::{DiskConfig, Name, QosFlowStatus, QosPolicyConfig};
use suimon_tables::cluster_tables;
use suimon_tables::qos_tables::{flow_details, flow_table};

use crate::exit::Failure;
use crate::output::{Context, is_stdout_terminal, print};
use crate::qos_set::SetFlags;
use crate::qos_what_if::WhatIfFlags;
use crate::resource::{NameArgument, ResourceVerb};

/// Verbs of `qos policy`, without specific ones.
pub(crate) type PolicyVerb = ResourceVerb<QosPolicyConfig, Infallible>;

/// Verbs of `qos`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum QosVerb {
    /// Manage QoS policies, which are limits for several disks.
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// Show the limits and the delivered IOPS of a disk.
    Show(NameArgument<DiskConfig>),
    /// Set the limits of a disk, or its policy.
    Set(SetFlags),
    /// Show guaranteed, demanded and delivered IOPS of disks, and what limits them.
    Flows(FlowFlags),
    /// Compute whether stores could guarantee proposed minimums.
    WhatIf(WhatIfFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct FlowFlags {
    /// Disks to show; all open disks if absent.
    #[arg(value_name = "DISK")]
    disks: Vec<Name>,
    /// Show disks on shared stores of all nodes of the cluster. Per node: the 8 disks furthest
    /// above their guarantee, and the 8 disks furthest below it. For each of the latter, also the
    /// disks of the same store that are furthest above their guarantee.
    #[arg(long)]
    cluster: bool,
    /// Only disks in this store; all stores if absent.
    #[arg(long, value_name = "STORE")]
    store: Option<Name>,
    /// Print the table again after each `--interval`, until interrupted.
    #[arg(long)]
    watch: bool,
    /// With `--watch`: interval in milliseconds, 100 to 60 000.
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 1000,
        requires = "watch",
        value_parser = clap::value_parser!(u32).range(100..=60_000)
    )]
    interval: u32,
}

impl QosVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Policy(verb) => verb.run(context).await,
            Self::Show(flags) => show(context, flags.name).await,
            Self::Set(flags) => flags.run(context).await,
            Self::Flows(flags) => flags.run(context).await,
            Self::WhatIf(flags) => flags.run(context).await,
        }
    }
}

/// Prints a table in place of the previous one.
fn redraw(table: &str) -> std::io::Result<()> {
    // Moves the cursor home and clears the screen on a terminal; a file gets the tables one after
    // the other.
    let head = if is_stdout_terminal() { "\x1b[H\x1b[2J" } else { "" };
    let tail = if is_stdout_terminal() { "" } else { "\n" };
    print(&format!("{head}{table}{tail}"))
}

/// Shows the details of one disk's flow.
async fn show(context: &Context, disk: Name) -> Result<(), Failure> {
    let flags =
        FlowFlags { disks: vec![disk], cluster: false, store: None, watch: false, interval: 1000 };
    for flow in flags.flows(context).await? {
        context.show(&flow, flow_details)?;
    }
    Ok(())
}

impl FlowFlags {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        if self.cluster {
            return self.run_cluster(context).await;
        }
        if !self.watch {
            let flows = self.flows(context).await?;
            return Ok(context.show(&flows, |flows| flow_table(flows).render())?);
        }
        let interval = Duration::from_millis(self.interval.into());
        loop {
            let flows = self.flows(context).await?;
            if context.prints_json {
                context.show_line(&flows, |_| String::new())?;
            } else {
                redraw(&flow_table(&flows).render())?;
            }
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                interrupt = tokio::signal::ctrl_c() => return Ok(interrupt?),
            }
        }
    }

    async fn run_cluster(self, context: &Context) -> Result<(), Failure> {
        let interval = Duration::from_millis(self.interval.into());
        loop {
            let mut disks = context.client.cluster_flows().await?;
            disks.retain(|disk| {
                let is_named = self.disks.iter().any(|name| name.as_str() == disk.disk);
                (self.disks.is_empty() || is_named)
                    && self.store.as_ref().is_none_or(|store| disk.store == store.as_str())
            });
            if !self.watch {
                return Ok(
                    context.show(&disks, |disks| cluster_tables::flow_table(disks).render())?
                );
            }
            if context.prints_json {
                context.show_line(&disks, |_| String::new())?;
            } else {
                redraw(&cluster_tables::flow_table(&disks).render())?;
            }
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                interrupt = tokio::signal::ctrl_c() => return Ok(interrupt?),
            }
        }
    }

    /// Returns the requested flows. A disk without a flow is not open or does not exist.
    async fn flows(&self, context: &Context) -> Result<Vec<QosFlowStatus>, Failure> {
        let mut flows = context.client.qos_flows().await?;
        for disk in &self.disks {
            if !flows.iter().any(|flow| flow.disk == *disk) {
                context.client.show::<DiskConfig>(disk).await?;
                return Err(Failure::not_found(format!(
                    "disk `{disk}` is not open, so it has no rates; `suimon disk show {disk}` prints why"
                )));
            }
        }
        flows.retain(|flow| {
            (self.disks.is_empty() || self.disks.contains(&flow.disk))
                && self.store.as_ref().is_none_or(|store| flow.store == *store)
        });
        Ok(flows)
    }
}
