//! Events of the cluster.

use suimon_cluster_qos::{
    Aggressor, Cause, DiskKey, MemberNotice, NodeId, Notice, PolicyKey, Unmet,
};
use suimon_contract::{EventKind, Name};

use crate::events::Draft;

/// Lookup of the names of nodes, disks and policies.
pub(super) trait Names {
    fn node(&self, node: NodeId) -> String;
    fn disk(&self, node: NodeId, disk: DiskKey) -> String;
    fn policy(&self, policy: PolicyKey) -> String;
}

fn of_store(kind: EventKind, store: &Name, text: impl Into<String>) -> Draft {
    Draft::new(kind, format!("store/{store}"), text)
}

/// Returns the event of a member's notice about this host.
pub(super) fn of_member(store: &Name, notice: MemberNotice, reserved_iops: u64) -> Draft {
    let draft = match notice {
        MemberNotice::Leased => of_store(
            EventKind::SharedLeaseHeld,
            store,
            "This host has a share of what is spare on the store again.",
        ),
        MemberNotice::Lapsed => of_store(
            EventKind::SharedLeaseLapsed,
            store,
            format!(
                "No grant came in time: this host's disks on the store keep to {reserved_iops} IOPS \
                 together; `suimon cluster status` says who divides it."
            ),
        ),
        MemberNotice::ClockSlow => of_store(
            EventKind::SharedClockSlow,
            store,
            "This host's clock is slower than that of the store's leader by more than a hundredth: \
             no lease is used until both agree; see whether the host stood still, and its clock \
             source.",
        ),
        MemberNotice::OtherVersion(version) => of_store(
            EventKind::NodeOfOtherVersion,
            store,
            format!("The store's leader speaks version {version}; run the same on all nodes."),
        ),
    };
    draft.with("reserved_iops", reserved_iops)
}

/// Returns the event of a leader's notice.
pub(super) fn of_leader(store: &Name, notice: &Notice, names: &dyn Names) -> Draft {
    match notice {
        Notice::Refused { node, promises } => {
            let node = names.node(*node);
            let text = format!("Node {node} keeps what it had: {promises}.");
            of_store(EventKind::SharedPromiseRefused, store, text)
                .with("node", node)
                .with("promised_iops", promises.promised_iops)
                .with("asked_iops", promises.asked_iops)
        }
        Notice::MinimumUnmet(unmet) => minimum_unmet(store, unmet, names),
        Notice::MinimumMet { node, disk } => {
            let (disk, node) = (names.disk(*node, *disk), names.node(*node));
            let text =
                format!("Disk {disk} on node {node} gets its minimum again, or asks no more.");
            of_store(EventKind::SharedMinimumMet, store, text).with("node", node).with("disk", disk)
        }
        Notice::ForeignLoad { delivered_iops, capability_iops, strangers, silent } => {
            let strangers: Vec<_> = strangers.iter().map(|of| of.name.clone()).collect();
            let silent: Vec<_> = silent.iter().map(|node| names.node(*node)).collect();
            let text = format!(
                "The store does {delivered_iops} IOPS for all nodes and can do {capability_iops}: \
                 something else loads it, or it has become slower."
            );
            of_store(EventKind::SharedForeignLoad, store, text)
                .with("delivered_iops", delivered_iops)
                .with("capability_iops", capability_iops)
                .with("seen_on_it", strangers.join(", "))
                .with("silent_nodes", silent.join(", "))
        }
        Notice::ForeignLoadGone => {
            of_store(EventKind::SharedForeignLoadGone, store, "The store does what it can again.")
        }
        Notice::StrangerSeen(stranger) => {
            let text =
                format!("{} uses the store, too, and is not of this cluster.", stranger.name);
            of_store(EventKind::SharedForeignLoad, store, text).with("seen_on_it", &stranger.name)
        }
        Notice::NodeSilent { node, reserved_iops } => {
            let node = names.node(*node);
            let text = format!(
                "Node {node} says nothing any more; the {reserved_iops} IOPS that are reserved for \
                 it stay so. If it is gone for good: `suimon cluster remove {node}`."
            );
            of_store(EventKind::NodeSilent, store, text)
                .with("node", node)
                .with("reserved_iops", reserved_iops)
        }
        Notice::Unaccounted { node, reserved_iops, known_iops } => {
            let node = names.node(*node);
            let text = format!(
                "Node {node} has {reserved_iops} IOPS reserved, and {known_iops} are known here; \
                 they are counted from now on."
            );
            of_store(EventKind::NodeUnaccounted, store, text).with("node", node)
        }
        Notice::OtherVersion { node, version } => {
            let node = names.node(*node);
            let text = format!("Node {node} speaks version {version}; run the same on all nodes.");
            of_store(EventKind::NodeOfOtherVersion, store, text).with("node", node)
        }
        Notice::PolicyInUse { policy, node } => {
            let text = "it was deleted and stays in force until they have none or another";
            of_policy(EventKind::SharedPolicyInUse, store, (*policy, *node), text, names)
        }
        Notice::PolicyUnknown { policy, node } => {
            let text = "the cluster does not have it: together they may do nothing";
            of_policy(EventKind::SharedPolicyUnknown, store, (*policy, *node), text, names)
        }
    }
}

/// Returns the event about a policy that disks of a node use.
fn of_policy(
    kind: EventKind,
    store: &Name,
    (policy, node): (PolicyKey, NodeId),
    what: &str,
    names: &dyn Names,
) -> Draft {
    let (policy, node) = (names.policy(policy), names.node(node));
    let text = format!("Disks of node {node} have policy {policy}; {what}.");
    of_store(kind, store, text).with("policy", policy).with("node", node)
}

fn minimum_unmet(store: &Name, unmet: &Unmet, names: &dyn Names) -> Draft {
    let (disk, node) = (names.disk(unmet.node, unmet.disk), names.node(unmet.node));
    let (cause, why) = match unmet.cause {
        Cause::NotAdmitted => ("not-admitted", "more would be promised than the store can keep"),
        Cause::OtherNodes => ("other-nodes", "other nodes have not made room yet"),
        Cause::OwnNode => ("own-node", "other disks of its node have it"),
        Cause::ForeignLoad => ("foreign-load", "the store does less than it can"),
        Cause::StoreLatency => ("store-latency", "the store takes too long for so few requests"),
    };
    let aggressor = |of: &Aggressor| {
        let (disk, node) = (names.disk(of.node, of.disk), names.node(of.node));
        format!("{disk} on {node} {}", of.delivered_iops)
    };
    let aggressors: Vec<String> = unmet.aggressors.iter().map(aggressor).collect();
    let first =
        aggressors.first().map_or_else(String::new, |of| format!("; most beyond its own: {of}"));
    let text = format!(
        "For {} s disk {disk} on node {node} is entitled to {} IOPS, asks for {} and gets {}: \
         {why}{first}.",
        unmet.lasting.as_secs(),
        unmet.entitled_iops,
        unmet.demanded_iops,
        unmet.delivered_iops
    );
    of_store(EventKind::SharedMinimumUnmet, store, text)
        .with("node", node)
        .with("disk", disk)
        .with("lasting_s", unmet.lasting.as_secs())
        .with("entitled_iops", unmet.entitled_iops)
        .with("demanded_iops", unmet.demanded_iops)
        .with("delivered_iops", unmet.delivered_iops)
        .with("cause", cause)
        .with("aggressors", aggressors.join(", "))
}
