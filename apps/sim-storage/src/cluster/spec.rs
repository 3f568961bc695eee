//! Cluster in a scenario.

use serde::Deserialize;
use suimon_sim_kernel::InvalidKeys;

use crate::cluster::etcd::EtcdSpec;
use crate::cluster::network::NetworkSpec;

/// Cluster of nodes that share stores.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterSpec {
    pub(crate) etcd: EtcdSpec,
    pub(crate) network: NetworkSpec,
    /// Declared capacity in percent of a store's actual one. It is the limit of all nodes together.
    #[serde(rename = "declared_percent")]
    pub(crate) declared_capacity_percent: u64,
}

impl ClusterSpec {
    /// Reports keys of the cluster with invalid values.
    pub(crate) fn check(&self, invalid: &mut InvalidKeys) {
        let etcd = &self.etcd;
        invalid.check_range("cluster.etcd.members", etcd.members.into(), 1, 9);
        invalid.check_range("cluster.etcd.write_us", etcd.write_us, 1, 1_000_000);
        invalid.check_range("cluster.etcd.sync_us", etcd.sync_us, 0, 1_000_000);
        invalid.check_range("cluster.etcd.peer_us", etcd.peer_us, 0, 1_000_000);
        invalid.check_range("cluster.etcd.election_ms", etcd.election_ms, 10, 50_000);
        invalid.check_range("cluster.etcd.session_s", etcd.session_s, 2, 3600);
        invalid.check_range("cluster.etcd.patience_ms", etcd.response_timeout_ms, 10, 60_000);
        invalid.check_range("cluster.network.delay_us", self.network.delay_us, 0, 1_000_000);
        invalid.check_range("cluster.network.jitter_us", self.network.jitter_us, 0, 1_000_000);
        invalid.check_range("cluster.network.lost_permille", self.network.loss_permille, 0, 900);
        invalid.check_range("cluster.declared_percent", self.declared_capacity_percent, 1, 1000);
    }
}
