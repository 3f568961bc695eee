//! Events of the cluster.

use suimon_cluster_qos::{
    AdmissionCheck, DiskBelowMinimum, DiskKey, ExternalUser, MemberNotice, NodeId, Notice,
    OverGuaranteeDisk, PolicyKey, UnmetMinimumCause,
};
use suimon_contract::{EventKind, Name};
use suimon_ports::StateStoreError;

use crate::events::EventDraft;

/// Lookup of the names of nodes, disks and policies.
pub(super) trait ClusterNames {
    fn node_name(&self, node: NodeId) -> String;
    fn disk_name(&self, node: NodeId, disk: DiskKey) -> String;
    fn policy_name(&self, policy: PolicyKey) -> String;
}

fn of_store(kind: EventKind, store: &Name, text: impl Into<String>) -> EventDraft {
    EventDraft::new(kind, format!("store/{store}"), text)
}

/// Returns the event of a record of this host that cannot be saved. `record`: `reservation` or
/// `minimums`.
pub(super) fn record_not_saved_event(
    store: &Name,
    record: &str,
    error: &StateStoreError,
) -> EventDraft {
    let text = format!(
        "The new {record} of this host on the store cannot be saved. The former one is in effect \
         until the state directory can be written; the daemon retries. {error}"
    );
    of_store(EventKind::RecordNotSaved, store, text)
        .with("record", record)
        .with("reason", error)
        .rate_limited()
}

/// Returns the event of shared policies of the cluster that cannot be saved.
pub(super) fn policies_not_saved(error: &StateStoreError) -> EventDraft {
    let text = format!(
        "The shared policies of the cluster cannot be saved. Changes of them are not in effect on \
         this host until the state directory can be written; the daemon retries. {error}"
    );
    EventDraft::new(EventKind::RecordNotSaved, "cluster", text)
        .with("record", "policies")
        .with("reason", error)
        .rate_limited()
}

/// Returns the event for a notice of this host's cluster member about a shared store.
pub(super) fn member_event(store: &Name, notice: MemberNotice, reserved_iops: u64) -> EventDraft {
    let draft = match notice {
        MemberNotice::LeaseObtained => of_store(
            EventKind::SharedLeaseHeld,
            store,
            "This host holds a lease of spare IOPS on the store again.",
        ),
        MemberNotice::LeaseExpired => of_store(
            EventKind::SharedLeaseLapsed,
            store,
            format!(
                "The lease of spare IOPS on the store expired: this host's disks are limited to \
                 their reservation, {reserved_iops} IOPS in total. Check the leader (`suimon \
                 cluster status`)."
            ),
        ),
        MemberNotice::ClockSlow => of_store(
            EventKind::SharedClockSlow,
            store,
            "This host's clock runs over 1 % slower than that of the store's leader; this host uses \
             no lease until both run at the same rate. Check whether the host was suspended, and its clock \
             source.",
        ),
        MemberNotice::OtherVersion(version) => of_store(
            EventKind::NodeOfOtherVersion,
            store,
            format!(
                "The store's leader has cluster protocol version {version}. Run the same version \
                 of Suimon on all nodes."
            ),
        )
        .rate_limited(),
    };
    draft.with("reserved_iops", reserved_iops)
}

/// Returns the event of a leader's notice.
pub(super) fn leader_event(store: &Name, notice: &Notice, names: &dyn ClusterNames) -> EventDraft {
    match notice {
        Notice::ReservationRefused { node, admission } => {
            reservation_refused(store, names.node_name(*node), admission)
        }
        Notice::MinimumUnmet(unmet) => minimum_unmet(store, unmet, names),
        Notice::MinimumMet { node, disk } => {
            let (disk, node) = (names.disk_name(*node, *disk), names.node_name(*node));
            let text =
                format!("Disk {disk} on node {node} gets its minimum again, or has less demand.");
            of_store(EventKind::SharedMinimumMet, store, text).with("node", node).with("disk", disk)
        }
        Notice::ExternalLoad {
            delivered_iops,
            capacity_iops,
            external_users,
            silent_nodes: silent,
        } => {
            let external_users: Vec<_> =
                external_users.iter().map(|user| user.name.clone()).collect();
            let silent: Vec<_> = silent.iter().map(|node| names.node_name(*node)).collect();
            external_load(store, *delivered_iops, *capacity_iops)
                .with("seen_on_it", external_users.join(", "))
                .with("silent_nodes", silent.join(", "))
        }
        Notice::ExternalLoadEnded => of_store(
            EventKind::SharedForeignLoadGone,
            store,
            "The store delivers its capacity again.",
        ),
        Notice::ExternalUserDetected(user) => external_user_detected(store, user),
        Notice::NodeSilent { node, reserved_iops } => {
            let node = names.node_name(*node);
            let text = format!(
                "Node {node} has stopped sending reports; its reservation of {reserved_iops} IOPS \
                 is kept. Check the node. If it will not return, make sure that it is switched off, \
                 then run `suimon cluster remove {node}`."
            );
            of_store(EventKind::NodeSilent, store, text)
                .with("node", node)
                .with("reserved_iops", reserved_iops)
        }
        Notice::Unaccounted { node, reserved_iops, known_iops } => {
            let node = names.node_name(*node);
            let text = format!(
                "Node {node} holds a reservation of {reserved_iops} IOPS, of which the cluster \
                 has recorded {known_iops}; the leader counts all of it from now on. If the node \
                 was removed from the cluster, it runs nevertheless: switch it off, because its \
                 VMs may also run on another node."
            );
            of_store(EventKind::NodeUnaccounted, store, text).with("node", node).rate_limited()
        }
        Notice::OtherVersion { node, version } => {
            let node = names.node_name(*node);
            let text = format!(
                "Node {node} has cluster protocol version {version}. Run the same version of \
                 Suimon on all nodes."
            );
            of_store(EventKind::NodeOfOtherVersion, store, text).with("node", node).rate_limited()
        }
        Notice::PolicyInUse { policy, node } => {
            of_policy(EventKind::SharedPolicyInUse, store, (*policy, *node), names)
        }
        Notice::PolicyUnknown { policy, node } => {
            of_policy(EventKind::SharedPolicyUnknown, store, (*policy, *node), names)
        }
    }
}

fn external_user_detected(store: &Name, user: &ExternalUser) -> EventDraft {
    let text = format!(
        "{} also uses the store and is not a node of this cluster. Stop that load, or let that host \
         join the cluster.",
        user.name
    );
    of_store(EventKind::SharedForeignLoad, store, text).with("seen_on_it", &user.name)
}

fn reservation_refused(store: &Name, node: String, admission: &AdmissionCheck) -> EventDraft {
    let text = format!(
        "Node {node} requests a higher reservation than the store has left, and keeps its former \
         one: {admission}. Lower minimums, or move disks to another store."
    );
    of_store(EventKind::SharedPromiseRefused, store, text)
        .with("node", node)
        .with("promised_iops", admission.guaranteed_iops)
        .with("asked_iops", admission.requested_iops)
        .rate_limited()
}

/// Returns the event of a store that delivers less than its capacity.
fn external_load(store: &Name, delivered_iops: u64, capacity_iops: u64) -> EventDraft {
    let text = format!(
        "The store delivers {delivered_iops} IOPS to all nodes; its capacity is {capacity_iops} \
         IOPS. Find the external load, or measure the capacity again."
    );
    of_store(EventKind::SharedForeignLoad, store, text)
        .with("delivered_iops", delivered_iops)
        .with("capability_iops", capacity_iops)
}

/// Returns an event about a shared QoS policy that disks of a node use.
fn of_policy(
    kind: EventKind,
    store: &Name,
    (policy, node): (PolicyKey, NodeId),
    names: &dyn ClusterNames,
) -> EventDraft {
    let (policy, node) = (names.policy_name(policy), names.node_name(node));
    let predicate = if kind == EventKind::SharedPolicyInUse {
        "the cluster deleted it, and it stays in effect until these disks get another policy, or none"
    } else {
        "the cluster does not have it. If it is aggregated, they may be limited to 0 IOPS: create \
         the policy, or set another one"
    };
    let text = format!("Disks of node {node} use policy {policy}; {predicate}.");
    of_store(kind, store, text).with("policy", policy).with("node", node).rate_limited()
}

fn minimum_unmet(store: &Name, unmet: &DiskBelowMinimum, names: &dyn ClusterNames) -> EventDraft {
    let (disk, node) = (names.disk_name(unmet.node, unmet.disk), names.node_name(unmet.node));
    let (cause, reason) = match unmet.cause {
        UnmetMinimumCause::NotAdmitted => {
            ("not-admitted", "the minimums exceed the capacity of the store")
        }
        UnmetMinimumCause::OtherNodes => {
            ("other-nodes", "other nodes have not reduced their use yet")
        }
        UnmetMinimumCause::OtherDisksOnNode => ("own-node", "other disks of its node use it"),
        UnmetMinimumCause::ExternalLoad => {
            ("foreign-load", "the store delivers less than its capacity")
        }
        UnmetMinimumCause::StoreLatency => {
            ("store-latency", "the latency of the store is too high for so few requests in flight")
        }
    };
    let aggressor = |over_guarantee_disk: &OverGuaranteeDisk| {
        let (disk, node) = (
            names.disk_name(over_guarantee_disk.node, over_guarantee_disk.disk),
            names.node_name(over_guarantee_disk.node),
        );
        format!("{disk} on {node} {} IOPS", over_guarantee_disk.delivered_iops)
    };
    let aggressors: Vec<String> = unmet.disks_over_guarantee.iter().map(aggressor).collect();
    let first = aggressors
        .first()
        .map_or_else(String::new, |text| format!("; most above its own guarantee: {text}"));
    let text = format!(
        "Disk {disk} on node {node} has missed its minimum for {} s: guaranteed {} IOPS, demand \
         {} IOPS, delivered {} IOPS; {reason}{first}. Check LIMITED BY in `suimon qos flows`; \
         lower minimums, or move disks to another store.",
        unmet.unmet_for.as_secs(),
        unmet.guaranteed_iops,
        unmet.demand_iops,
        unmet.delivered_iops
    );
    of_store(EventKind::SharedMinimumUnmet, store, text)
        .with("node", node)
        .with("disk", disk)
        .with("lasting_s", unmet.unmet_for.as_secs())
        .with("entitled_iops", unmet.guaranteed_iops)
        .with("demanded_iops", unmet.demand_iops)
        .with("delivered_iops", unmet.delivered_iops)
        .with("cause", cause)
        .with("aggressors", aggressors.join(", "))
}
