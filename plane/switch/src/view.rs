//! Observed state of the data plane.

use std::time::Duration;

use suimon_frame::{MacAddr, VlanId};
use suimon_ports::CpuAffinity;
use suimon_quantity::{PortId, QueueId, WorkerId};

use crate::stage::{Stage, StageNanoseconds};

/// Status of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Id of the queue.
    pub id: QueueId,
    /// Worker that owns the queue.
    pub worker: WorkerId,
    /// Frames moved since the queue was attached.
    pub frames: u64,
    /// Bytes moved since the queue was attached.
    pub bytes: u64,
    /// Frames dropped because the peer's queue was full.
    pub dropped_full: u64,
    /// Number of moves to another worker since the queue was attached.
    pub moves: u64,
    /// Time in ns that its owners spent on it since it was attached, up to about one millisecond of
    /// work ago. Ingress queues are charged for receiving batches, deciding them and sending frames
    /// to other workers; egress queues for writing frames and making them visible. The shares of
    /// queues served in the same round are estimates; their sum never exceeds the duration of the
    /// rounds. Polls without result are charged to no queue.
    pub busy_ns: u64,
}

/// Status of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Identifier of the worker.
    pub id: WorkerId,
    /// CPU and placement of the worker.
    pub placement: CpuAffinity,
    /// Number of queues that it owns.
    pub queues: u64,
    /// CPU time used, up to about one millisecond of work ago.
    pub cpu_time: Duration,
    /// Duration in ns of the rounds that moved frames or requests, since the worker started: all
    /// time except sleep and polls without result.
    pub working_ns: u64,
    /// Time by stage since the worker started: up to the query if it sleeps, otherwise up to about
    /// a millisecond or one round earlier.
    pub stages: StageTimes,
    /// Batches received from ingress queues.
    pub batches: u64,
    /// Frames received from ingress queues.
    pub frames: u64,
    /// Number of times the worker went to sleep.
    pub sleeps: u64,
    /// True if the worker sleeps.
    pub is_asleep: bool,
    /// Number of times the worker paused polling for completions of devices, because other threads
    /// compete for its CPU.
    pub polling_pauses: u64,
    /// True while polling is paused because other threads compete for the worker's CPU.
    pub is_polling_paused: bool,
}

/// Time of a worker by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes(StageNanoseconds);

impl StageTimes {
    pub(crate) const fn new(times: StageNanoseconds) -> Self {
        Self(times)
    }

    /// Returns the time spent in a stage, in ns.
    pub const fn ns(&self, stage: Stage) -> u64 {
        self.0[stage.index()]
    }

    /// Returns the time in which the worker did not sleep, in ns.
    pub fn awake_ns(&self) -> u64 {
        Stage::ALL.iter().filter(|stage| **stage != Stage::Idle).map(|stage| self.ns(*stage)).sum()
    }
}

/// Counters of one port since it was first published; `rx` is received from the port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCountersView {
    /// Frames received from the port.
    pub rx_frames: u64,
    /// Bytes received from the port.
    pub rx_bytes: u64,
    /// Frames transmitted to the port.
    pub tx_frames: u64,
    /// Bytes transmitted to the port.
    pub tx_bytes: u64,
    /// Received frames that were dropped, by reason.
    pub rx_dropped: Vec<(&'static str, u64)>,
    /// Frames for the port that were dropped, by reason.
    pub tx_dropped: Vec<(&'static str, u64)>,
    /// Received frames that were flooded.
    pub flooded: u64,
    /// Frames segmented in software before transmission to the port.
    pub software_segmented: u64,
    /// Frames whose checksum was completed in software before transmission to the port.
    pub software_checksummed: u64,
    /// Segments coalesced in software before transmission to the port.
    pub software_coalesced_segments: u64,
    /// Large frames resulting from software coalescing; they are included in the transmitted
    /// frames.
    pub software_coalesced_frames: u64,
}

/// Entry of a switch's forwarding table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressView {
    /// MAC address of the entry.
    pub mac: MacAddr,
    /// VLAN of the address; `None` is the untagged network.
    pub vlan: Option<VlanId>,
    /// Port on which the address is reachable.
    pub port: PortId,
    /// True if the address is configured rather than learned.
    pub is_static: bool,
    /// Time since the address was last observed; `None` if configured.
    pub age: Option<Duration>,
}
