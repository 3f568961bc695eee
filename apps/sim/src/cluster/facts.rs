//! What happens in a cluster, as checkers and the trace hear it.

use crate::kernel::Note;

/// What a node is held to, in the run's time: which of its own clock's times these are only the
/// model knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldTo {
    /// So much until then.
    pub(crate) leased_iops: u64,
    pub(crate) leased_until_ns: u64,
    /// So much at least, always.
    pub(crate) reserved_iops: u64,
    /// So much from then on; 0: never.
    pub(crate) late_iops: u64,
    pub(crate) late_from_ns: u64,
}

impl HeldTo {
    /// Normalised operations per second that may be done at a time.
    pub(crate) fn iops_at(&self, ns: u64) -> u64 {
        let leased = if ns < self.leased_until_ns { self.leased_iops } else { 0 };
        let late = if ns >= self.late_from_ns { self.late_iops } else { 0 };
        leased.max(late).max(self.reserved_iops)
    }

    /// When it is next something else.
    pub(crate) fn changes_after(&self, ns: u64) -> Option<u64> {
        let late = if self.late_iops > 0 { self.late_from_ns } else { 0 };
        [self.leased_until_ns, late].into_iter().filter(|at| *at > ns).min()
    }
}

/// Something happened in a cluster. Nodes and stores are numbered as the scenario has them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClusterFact {
    /// A node is held to this now.
    Held { node: u32, store: u32, to: HeldTo },
    /// A node made a report.
    Made { node: u32, store: u32, incarnation: u64, number: u64 },
    /// A node heard a grant that answers a report, and has a lease until then; 0: none.
    Took { node: u32, store: u32, incarnation: u64, number: u64, grant: (u64, u64), until_ns: u64 },
    /// A node leads a store.
    Leads { node: u32, store: u32, term: u64 },
    /// It does not any more.
    Leaves { node: u32, store: u32, term: u64 },
    /// Grants were written in a leader's term.
    Written { store: u32, term: u64, grants: u32 },
    /// A node is told something of itself.
    ToldOfNode { node: u32, store: u32, what: MemberWord },
    /// Somebody is told something of a store.
    ToldOfStore { store: u32, what: StoreWord, node: u32, iops: u64 },
    /// A member of etcd leads; `None`: nobody does.
    EtcdLed { member: Option<u32> },
    /// Until then nothing can be expected of etcd, of the network to it, or of leaders.
    Disturbed { until_ns: u64 },
    /// A node stands still until then, with its VMs.
    Still { node: u32, until_ns: u64 },
}

/// What a node is told of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberWord {
    Leased,
    Lapsed,
    ClockSlow,
    OtherVersion,
}

/// What is told of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreWord {
    Refused,
    MinimumUnmet,
    MinimumMet,
    ForeignLoad,
    ForeignLoadGone,
    NodeSilent,
    Unaccounted,
    Other,
}

/// A fact that may be one of a cluster.
pub(crate) trait OfCluster {
    /// Which, if it is.
    fn cluster(&self) -> Option<&ClusterFact>;
}

impl Note for ClusterFact {
    fn word(&self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::Made { .. } => "made",
            Self::Took { .. } => "took",
            Self::Leads { .. } => "leads",
            Self::Leaves { .. } => "leaves",
            Self::Written { .. } => "written",
            Self::ToldOfNode { .. } => "told-of-node",
            Self::ToldOfStore { .. } => "told-of-store",
            Self::EtcdLed { .. } => "etcd-led",
            Self::Disturbed { .. } => "cluster-disturbed",
            Self::Still { .. } => "still",
        }
    }

    fn figures(&self) -> Vec<u64> {
        match *self {
            Self::Held { node, store, to } => vec![
                node.into(),
                store.into(),
                to.leased_iops,
                to.leased_until_ns,
                to.reserved_iops,
                to.late_iops,
                to.late_from_ns,
            ],
            Self::Made { node, store, incarnation, number } => {
                vec![node.into(), store.into(), incarnation, number]
            }
            Self::Took { node, store, incarnation, number, grant, until_ns } => {
                vec![node.into(), store.into(), incarnation, number, grant.0, grant.1, until_ns]
            }
            Self::Leads { node, store, term } | Self::Leaves { node, store, term } => {
                vec![node.into(), store.into(), term]
            }
            Self::Written { store, term, grants } => vec![store.into(), term, grants.into()],
            Self::ToldOfNode { node, store, what } => vec![node.into(), store.into(), what as u64],
            Self::ToldOfStore { store, what, node, iops } => {
                vec![store.into(), what as u64, node.into(), iops]
            }
            Self::EtcdLed { member } => vec![member.map_or(u64::MAX, u64::from)],
            Self::Disturbed { until_ns } => vec![until_ns],
            Self::Still { node, until_ns } => vec![node.into(), until_ns],
        }
    }
}
