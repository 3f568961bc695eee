//! Tests of several nodes with a cluster store in memory, and of failures between them.

use suimon_contract::{ErrorCode, EventKind, Health, OperationState, QosPolicyConfig};
use suimon_ports::{ClusterChange, ClusterKvStore, StoreFiles};
use suimon_quantity::{DiskId, StoreId, Time, TimedRateLimit, WorkerId};
use suimon_storage::StoreView;
use suimon_storage_engine::{StoreRole, WorkerStoreStatus};
use suimon_storage_qos::{DeliveryStats, DiskQosCounters, DiskQosStatus, Limits, LimitsOwner};

use crate::testing::{
    DISK_STORE, FakeCluster, FakeDisks, Faults, Harness, MemoryStore, host, name, wait_until,
};
use crate::{ChangeOptions, ClusterEdit, Edit, ResourceEdit};

mod bounds;
mod membership;
mod outages;
mod policies;
mod removed_keys;
mod shared_stores;

/// Key of the report of the first node on store `san`.
pub(super) const REPORT: &str = "/suimon/lab/reports/san/0000000001";
/// Key of the shared policy `batch`.
pub(super) const BATCH: &str = "/suimon/lab/policies/batch";

/// Returns the configuration of a node with one disk that has this minimum; 0: none.
pub(super) fn config(node: &str, min: u64) -> String {
    let qos = if min == 0 { String::new() } else { format!("qos = {{ min_iops = {min} }}\n") };
    format!(
        "[cluster]\nname = \"lab\"\nnode = \"{node}\"\nendpoints = [\"http://etcd:2379\"]\n\
         [[store]]\nname = \"san\"\npath = \"{DISK_STORE}\"\nshared = true\n\
         capability_iops = 10000\n\
         [[disk]]\nname = \"d-{node}\"\nstore = \"san\"\nformat = \"raw\"\nsize_bytes = \"1 MiB\"\n{qos}"
    )
}

/// Starts a node that shares the store's directory with the other nodes of its cluster.
pub(super) fn node(cluster: &FakeCluster, node: &str, min: u64) -> Harness {
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let harness = Harness::in_cluster(MemoryStore::default(), disks, cluster.clone());
    harness.apply_ok(&host(&config(node, min)));
    harness
}

/// Returns a node once the cluster has confirmed its minimum and the 64 IOPS that each node has.
pub(super) fn node_with_reservation(cluster: &FakeCluster, name: &str, min: u64) -> Harness {
    let harness = node(cluster, name, min);
    wait_until(&format!("node {name} has a reservation of {} IOPS", min + 64), || {
        cap(&harness).reserved_iops == min + 64
    });
    harness
}

/// Returns the limit of the disks on the only store.
pub(super) fn cap(node: &Harness) -> TimedRateLimit {
    node.disks.caps().first().copied().unwrap_or_default()
}

pub(super) fn cap_now(node: &Harness) -> u64 {
    cap(node).iops_at(node.plane_now())
}

/// Simulates a disk that has demanded and received this rate since the start.
pub(super) fn load(node: &Harness, iops: u64) {
    let seconds = node.plane_now().as_ns() / 1_000_000;
    let done_count = iops * seconds / 1000;
    let flow = DiskQosStatus {
        disk: DiskId(0),
        owner: LimitsOwner::Disk(DiskId(0)),
        limits: Limits::default(),
        waiting: 32,
        in_flight: 1,
        counters: DiskQosCounters {
            demanded_operations: done_count,
            delivered_operations: done_count,
            ..DiskQosCounters::default()
        },
        short: DeliveryStats::default(),
        long: DeliveryStats::default(),
    };
    let status = WorkerStoreStatus {
        role: StoreRole::Sole,
        waiting: 32,
        in_flight_of_worker: 1,
        in_flight_of_all_workers: 1,
        depth_limit: 8,
        mean_latency_ns: 100_000,
        estimate: None,
    };
    let view = StoreView {
        store: StoreId(0),
        worker: WorkerId(0),
        status,
        read_at: Time::ZERO,
        flows: vec![flow],
        is_current: true,
    };
    node.disks.set_views(vec![view]);
}

pub(super) fn has_event(node: &Harness, kind: EventKind) -> bool {
    !node.events(kind.id()).is_empty()
}

/// Returns the error of a rejected change.
pub(super) fn refusal(node: &Harness, text: &str) -> Option<String> {
    let errors = node.node.submit(Edit::Apply(Box::new(host(text)))).err()?;
    Some(errors[0].to_string())
}

/// Returns the configuration of a node with a shared policy, and a disk that uses it.
pub(super) fn with_policy(node: &str, max: u64) -> String {
    format!(
        "{}qos_policy = \"batch\"\n[[qos_policy]]\nname = \"batch\"\nkind = \"aggregated\"\n\
         shared = true\nmax_iops = {max}\n",
        config(node, 0)
    )
}

pub(super) fn max_of(node: &Harness, policy: &str) -> Option<u64> {
    let config = node.node.config();
    config.qos_policies.iter().find(|policy_config| policy_config.name.as_str() == policy)?.max_iops
}

pub(super) fn policy(node: &Harness, edit: ResourceEdit<QosPolicyConfig>) -> Result<(), String> {
    let operation =
        node.node.submit(Edit::QosPolicy(edit)).map_err(|errors| errors[0].to_string())?;
    let operation = node.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    operation.error.map_or(Ok(()), |error| Err(error.to_string()))
}

pub(super) fn without_disks(node_name: &str) -> String {
    let text = config(node_name, 1);
    text[..text.find("[[disk]]").unwrap()].to_owned()
}

/// Starts a node with a disk that has a shared policy, and a second one that knows the policy.
pub(super) fn with_batch(cluster: &FakeCluster) -> (Harness, Harness) {
    let start = |cluster: FakeCluster| {
        let disks = FakeDisks::default();
        disks.put_store(DISK_STORE, cluster.files());
        Harness::in_cluster(MemoryStore::default(), disks, cluster)
    };
    let (first, second) = (start(cluster.clone()), start(cluster.new_client()));
    first.apply_ok(&host(&with_policy("n1", 1000)));
    wait_until("the policy is the cluster's", || cluster.value(BATCH).is_some());
    second.apply_ok(&host(&without_disks("n2")));
    wait_until("the second node has the policy with max_iops 1000", || {
        max_of(&second, "batch") == Some(1000)
    });
    wait_until("the report contains the policy", || {
        cluster.value(REPORT).is_some_and(|text| !text.contains("\"policies\":[]"))
    });
    (first, second)
}
