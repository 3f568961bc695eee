//! Planned events of a cluster, and the interface to the model of its disks.

use suimon_cluster_qos::DiskLoad;
use suimon_quantity::Time;
use suimon_sim_kernel::SECOND_NS;

use crate::cluster::facts::NodeLimit;
use crate::cluster::keyspace::{Entry, Key, Response};

/// Interval at which nodes sample the loads of their disks, as in the data plane.
pub(crate) const TICK_NS: u64 = SECOND_NS / 2;

/// Planned event in the cluster.
#[derive(Clone, Debug)]
pub(crate) enum ControlEvent {
    /// The daemon of a node starts.
    DaemonStarts { node: u32, epoch: u32 },
    /// A node performs its periodic work and samples its disks.
    Tick { node: u32, epoch: u32 },
    /// A deadline passes that the state machine of a member or allocator has set.
    DeadlinePassed { node: u32, participant: u32, machine: MachineKind, time: Time },
    /// A request arrives at a member of etcd.
    RequestArrives { member: u32, call: u64 },
    /// Requests in etcd may be complete.
    RequestsComplete,
    /// A response arrives at a node.
    ResponseReceived { node: u32, epoch: u32, call: u64, answer: Response },
    /// A node receives a change of a watched key.
    KeyChanged { node: u32, stream: u32, key: Key, entry: Option<Entry> },
    /// A lease in etcd may have expired.
    LeaseExpires { lease: u32 },
    /// Members of etcd may elect a leader.
    EtcdElects,
    /// A failed member of etcd works again; with `None`, a partition of the members' network ends.
    EtcdRecovered { member: Option<u32> },
    /// The slowdown of etcd ends.
    EtcdSlowdownEnded,
}

/// State machine of a node for a store: member or allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineKind {
    Member,
    Allocator,
}

/// Interface to the model of disks.
pub(crate) trait DiskModel {
    /// Appends the loads of all disks of a store on a node since the last call. Returns the mean
    /// service time of a request of the store in ns.
    fn append_loads(&mut self, now: Time, node: u32, store: u32, loads: &mut Vec<DiskLoad>) -> u64;
    /// Sets the limit of all disks of the store on the node together.
    fn set_limit(&mut self, now: Time, node: u32, store: u32, limit: NodeLimit);
    /// Pauses the node and its VMs until a time.
    fn pause_node(&mut self, now: Time, node: u32, until: Time);
}
