//! Facts about a cluster, for checkers and the trace.

use suimon_sim_kernel::TraceFact;

/// Limit of a node on a store. Times are those of the run in ns; only the model can convert them to
/// the node's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeLimit {
    /// Leased limit in normalised operations per second, valid until `leased_until_ns`.
    pub(crate) leased_iops: u64,
    pub(crate) leased_until_ns: u64,
    /// Reserved rate in normalised operations per second, which does not expire.
    pub(crate) reserved_iops: u64,
    /// Fallback limit in normalised operations per second, valid from `late_from_ns` on; 0 for
    /// none.
    pub(crate) fallback_iops: u64,
    pub(crate) fallback_from_ns: u64,
}

impl NodeLimit {
    /// Returns the limit in normalised operations per second at a time.
    pub(crate) fn iops_at(&self, ns: u64) -> u64 {
        let leased = if ns < self.leased_until_ns { self.leased_iops } else { 0 };
        let late_iops = if ns >= self.fallback_from_ns { self.fallback_iops } else { 0 };
        leased.max(late_iops).max(self.reserved_iops)
    }

    /// Returns the next time in ns after `ns` at which the limit changes without a message; `None`
    /// if it does not.
    pub(crate) fn next_change_after(&self, ns: u64) -> Option<u64> {
        let late_from_ns = if self.fallback_iops > 0 { self.fallback_from_ns } else { 0 };
        [self.leased_until_ns, late_from_ns].into_iter().filter(|time_ns| *time_ns > ns).min()
    }
}

/// Fact about a cluster. Nodes and stores have the numbers of the scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClusterFact {
    /// The limit of a node on a store changed.
    LimitSet { node: u32, store: u32, to: NodeLimit },
    /// A node created a report about a store, with an incarnation and number that identify it.
    ReportCreated { node: u32, store: u32, incarnation: u64, number: u64 },
    /// A node received a grant that is based on a report. `grant` is its term and number; its lease
    /// is valid until `until_ns`, 0 for none.
    GrantReceived {
        node: u32,
        store: u32,
        incarnation: u64,
        number: u64,
        grant: (u64, u64),
        until_ns: u64,
    },
    /// A node became leader of a store.
    LeadershipBegan { node: u32, store: u32, term: u64 },
    /// A node ceased to lead a store.
    LeadershipEnded { node: u32, store: u32, term: u64 },
    /// A leader wrote `grants` grants in its term.
    GrantsWritten { store: u32, term: u64, grants: u32 },
    /// A node's member emitted a notice.
    NodeNotified { node: u32, store: u32, what: NodeNotice },
    /// A notice about a store was emitted.
    StoreNotified { store: u32, what: StoreNotice, node: u32, iops: u64 },
    /// A member of etcd became leader; `None` if there is none.
    EtcdLeaderChanged { member: Option<u32> },
    /// etcd, its network or leaders are impaired until this time; minimums may be late.
    Disturbed { until_ns: u64 },
    /// A node and its VMs are paused until this time.
    NodePaused { node: u32, until_ns: u64 },
}

/// Kind of a notice that a node's member emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeNotice {
    LeaseObtained,
    LeaseExpired,
    ClockSlow,
    OtherVersion,
}

/// Kind of a notice that the leader of a store emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreNotice {
    ReservationRefused,
    MinimumUnmet,
    MinimumMet,
    ExternalLoad,
    ExternalLoadEnded,
    NodeSilent,
    UnrecordedReservation,
    Other,
}

/// Fact that may concern a cluster.
pub(crate) trait AsClusterFact {
    /// Returns the fact about the cluster; `None` if the fact concerns something else.
    fn as_cluster_fact(&self) -> Option<&ClusterFact>;
}

impl TraceFact for ClusterFact {
    fn kind(&self) -> &'static str {
        match self {
            Self::LimitSet { .. } => "held",
            Self::ReportCreated { .. } => "made",
            Self::GrantReceived { .. } => "took",
            Self::LeadershipBegan { .. } => "leads",
            Self::LeadershipEnded { .. } => "leaves",
            Self::GrantsWritten { .. } => "written",
            Self::NodeNotified { .. } => "told-of-node",
            Self::StoreNotified { .. } => "told-of-store",
            Self::EtcdLeaderChanged { .. } => "etcd-led",
            Self::Disturbed { .. } => "cluster-disturbed",
            Self::NodePaused { .. } => "still",
        }
    }

    fn values(&self) -> Vec<u64> {
        match *self {
            Self::LimitSet { node, store, to: limit } => vec![
                node.into(),
                store.into(),
                limit.leased_iops,
                limit.leased_until_ns,
                limit.reserved_iops,
                limit.fallback_iops,
                limit.fallback_from_ns,
            ],
            Self::ReportCreated { node, store, incarnation, number } => {
                vec![node.into(), store.into(), incarnation, number]
            }
            Self::GrantReceived { node, store, incarnation, number, grant, until_ns } => {
                vec![node.into(), store.into(), incarnation, number, grant.0, grant.1, until_ns]
            }
            Self::LeadershipBegan { node, store, term }
            | Self::LeadershipEnded { node, store, term } => {
                vec![node.into(), store.into(), term]
            }
            Self::GrantsWritten { store, term, grants } => vec![store.into(), term, grants.into()],
            Self::NodeNotified { node, store, what: notice } => {
                vec![node.into(), store.into(), notice as u64]
            }
            Self::StoreNotified { store, what: notice, node, iops } => {
                vec![store.into(), notice as u64, node.into(), iops]
            }
            Self::EtcdLeaderChanged { member } => vec![member.map_or(u64::MAX, u64::from)],
            Self::Disturbed { until_ns } => vec![until_ns],
            Self::NodePaused { node, until_ns } => vec![node.into(), until_ns],
        }
    }
}
