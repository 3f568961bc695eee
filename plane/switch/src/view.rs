//! What the data plane looks like now.

use std::time::Duration;

use suimon_frame::{MacAddr, VlanId};
use suimon_ports::Placement;
use suimon_quantity::{PortId, ProcessorId, QueueId};

use crate::stages::{Nanoseconds, Stage};

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Which queue.
    pub id: QueueId,
    /// Its owner.
    pub processor: ProcessorId,
    /// Frames carried since it was attached.
    pub frames: u64,
    /// Bytes carried since it was attached.
    pub bytes: u64,
    /// Frames lost because the other side had no room.
    pub full: u64,
    /// Times it was handed over.
    pub moves: u64,
    /// Time in ns that its owners spent on it since it was attached, as of about a
    /// millisecond of their work ago. Of an ingress queue, for taking batches, deciding
    /// them and handing them to other processors; of an egress queue, for writing frames
    /// there and making them visible. The parts of queues that are worked off in the same
    /// round are estimated; their sum is never above the time of the rounds. To look for
    /// frames in vain counts for no queue.
    pub busy_ns: u64,
}

/// One processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorView {
    /// Which processor.
    pub id: ProcessorId,
    /// Where it runs.
    pub placement: Placement,
    /// Queues it owns.
    pub queues: u64,
    /// CPU time it used, as of about a millisecond of its work ago.
    pub cpu_time: Duration,
    /// Time in ns of the rounds in which it moved something, since it started: all of it
    /// in which it was neither asleep nor looked for work in vain.
    pub working_ns: u64,
    /// Its time since it started, until it was asked if it sleeps, else until about a
    /// millisecond or one round before.
    pub stages: StageTimes,
    /// Batches taken from queues.
    pub batches: u64,
    /// Frames taken from queues.
    pub frames: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Whether it sleeps.
    pub asleep: bool,
    /// Times it stopped polling for answers of devices for a while, because others want its CPU.
    pub rests: u64,
    /// Whether it does not poll for that reason.
    pub resting: bool,
}

/// A processor's time by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes(Nanoseconds);

impl StageTimes {
    pub(crate) const fn new(times: Nanoseconds) -> Self {
        Self(times)
    }

    /// Time spent in a stage, in ns.
    pub const fn ns(&self, stage: Stage) -> u64 {
        self.0[stage.index()]
    }

    /// Time in which it did not sleep, in ns.
    pub fn awake_ns(&self) -> u64 {
        Stage::ALL.iter().filter(|stage| **stage != Stage::Idle).map(|stage| self.ns(*stage)).sum()
    }
}

/// Counters of one port since it was first published; `rx` came in from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCountersView {
    /// Frames in.
    pub rx_frames: u64,
    /// Bytes in.
    pub rx_bytes: u64,
    /// Frames out.
    pub tx_frames: u64,
    /// Bytes out.
    pub tx_bytes: u64,
    /// Frames that came in and went nowhere, by reason.
    pub rx_dropped: Vec<(&'static str, u64)>,
    /// Frames for it that did not go out, by reason.
    pub tx_dropped: Vec<(&'static str, u64)>,
    /// Frames it caused to be flooded.
    pub flooded: u64,
    /// Frames segmented in software on their way out here.
    pub software_segmented: u64,
    /// Frames whose checksum was completed in software on their way out here.
    pub software_checksummed: u64,
    /// Frames that were joined with others of their stream on their way out here.
    pub software_coalesced_segments: u64,
    /// The large frames they became, which are among the frames out.
    pub software_coalesced_units: u64,
}

/// One line of a switch's forwarding table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressView {
    /// The address.
    pub mac: MacAddr,
    /// Its VLAN; `None` is the untagged network.
    pub vlan: Option<VlanId>,
    /// Where it is.
    pub port: PortId,
    /// Whether it was configured.
    pub fixed: bool,
    /// How long ago it was seen; `None` if configured.
    pub age: Option<Duration>,
}
