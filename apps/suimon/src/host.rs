//! Commands of `host`: the host and its daemon.

use clap::Subcommand;
use suimon_contract::{ConfinementStatus, HostStatus};

use crate::exit::Failure;
use crate::node_tables::drained;
use crate::output::Context;
use crate::units;

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

fn details(host: &HostStatus) -> String {
    let mut text = format!(
        "name      {}\nversion   {}\nuptime    {}\nrevision  {}\nswitches  {}\nuplinks   {}\n\
         teams     {}\nnics      {}\nstores    {}\npolicies  {}\ndisks     {}\n\
         vms       {}\npfs       {}\nnodes     {}\n",
        host.name,
        host.version,
        units::age(host.uptime_s),
        host.revision,
        host.switches,
        host.uplinks,
        host.teams,
        host.nics,
        host.stores,
        host.qos_policies,
        host.disks,
        host.vms,
        host.pfs,
        host.nodes
    );
    if let Some(drain) = &host.drain {
        text += &format!("drained   {}\n", drained(drain));
    }
    if let Some(reason) = &host.state_store.reason {
        text += &format!("state     not writable: {reason}\n");
    }
    text += &confinement(&host.confinement);
    text
}

fn confinement(status: &ConfinementStatus) -> String {
    let mut text = format!("confined  {}\n", status.mode.as_str());
    for layer in &status.layers {
        text += &format!("  {}: {}\n", layer.threads, layer.in_words());
    }
    for lacking in &status.lacking {
        text += &format!("  missing: {lacking}\n");
    }
    if status.refused_calls > 0 {
        text +=
            &format!("  denied system calls: {} (see `suimon event list`)\n", status.refused_calls);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_shown_with_what_it_has() {
        let host: HostStatus = serde_json::from_str(
            r#"{"name":"h","version":"1","uptime_s":61,"revision":7,"switches":1,"uplinks":2,
                "teams":3,"nics":4,"stores":5,"qos_policies":6,"disks":8,"vms":9,"pfs":10,"nodes":11}"#,
        )
        .unwrap();
        insta::assert_snapshot!(details(&host), @r"
        name      h
        version   1
        uptime    1 min 01 s
        revision  7
        switches  1
        uplinks   2
        teams     3
        nics      4
        stores    5
        policies  6
        disks     8
        vms       9
        pfs       10
        nodes     11
        confined  off
        ");
    }
}
