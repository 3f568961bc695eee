//! Text output of the host and its daemon.

use suimon_contract::{ConfinementStatus, HostStatus, NbdStatus};

use crate::node_tables::drain_progress;
use crate::units;

/// Returns the complete state of the host.
pub fn details(host: &HostStatus) -> String {
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
        text += &format!("drained   {}\n", drain_progress(drain));
    }
    if let Some(reason) = &host.state_store.reason {
        text += &format!("state     not writable: {reason}\n");
    }
    text += &nbd(&host.nbd);
    text += &confinement(&host.confinement);
    text
}

/// Formats the number and buffer memory of NBD connections with their limits; empty for a daemon
/// that does not report them.
fn nbd(status: &NbdStatus) -> String {
    if status.connections_max == 0 {
        return String::new();
    }
    let mut text = format!(
        "nbd       {} of {} connections, {} of {} buffer memory\n",
        status.connections,
        status.connections_max,
        units::binary_bytes(status.buffer_bytes),
        units::binary_bytes(status.buffer_max_bytes),
    );
    for peer in &status.peers {
        text += &format!(
            "  {}: {} of {} connections, {} of {}\n",
            peer.peer,
            peer.connections,
            status.peer_connections_max,
            units::binary_bytes(peer.buffer_bytes),
            units::binary_bytes(status.peer_buffer_max_bytes),
        );
    }
    text
}

fn confinement(status: &ConfinementStatus) -> String {
    let mut text = format!("confined  {}\n", status.mode.as_str());
    for layer in &status.thread_confinements {
        let threads = match layer.thread_kind.as_str() {
            "processors" => "workers",
            other => other,
        };
        text += &format!("  {threads}: {}\n", layer.summary());
    }
    for feature in &status.missing {
        text += &format!("  missing: {feature}\n");
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
    fn a_host_is_shown_with_its_resources() {
        let host: HostStatus = serde_json::from_str(
            r#"{"name":"h","version":"1","uptime_s":61,"revision":7,"switches":1,"uplinks":2,
                "teams":3,"nics":4,"stores":5,"qos_policies":6,"disks":8,"vms":9,"pfs":10,"nodes":11,
                "nbd":{"connections":3,"connections_max":1024,"buffer_bytes":2097152,
                    "buffer_max_bytes":1073741824,"peer_connections_max":512,
                    "peer_buffer_max_bytes":536870912,"shortages":0,
                    "peers":[{"peer":"user 107","connections":3,"buffer_bytes":2097152}]}}"#,
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
        nbd       3 of 1024 connections, 2.00 MiB of 1.00 GiB buffer memory
          user 107: 3 of 512 connections, 2.00 MiB of 512 MiB
        confined  off
        ");
    }
}
