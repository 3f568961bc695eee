//! What the control plane wants the data plane to be.

use suimon_forwarding::{PortSpec, SwitchSpec, TablesError};
use suimon_quantity::{BitRate, ProcessorId, QueueId};
use thiserror::Error;

/// Switches and their ports. Queues come separately, from devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The switches.
    pub switches: Vec<SwitchSpec>,
    /// Their ports.
    pub ports: Vec<PortTopology>,
}

/// One port and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortTopology {
    /// What forwarding needs to know of it.
    pub spec: PortSpec,
    /// Most bits per second that come in from it. What is beyond waits where it
    /// is, in the guest's ring or the device's queue.
    pub bandwidth: Option<BitRate>,
    /// Most frames per second it may cause to be flooded; the rest is dropped.
    pub storm_limit_fps: Option<u32>,
    /// A NIC's: whether it may be given large frames that an uplink's device joined
    /// from received segments, and segments of one stream joined here. Else those of a
    /// device are segmented again for it, and nothing is joined. An uplink's: whether
    /// what it received may be handed on so, to whoever wants it.
    pub receive_coalescing: bool,
}

/// Why a topology was not published. Everything is as before.
#[derive(Debug, Error)]
pub enum TopologyError {
    /// It makes no sense.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// A processor did not take it in time.
    #[error("a processor did not adopt the new tables within {0} s; see the log")]
    Stuck(u64),
}

/// Why a queue was not handed over. It stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MoveError {
    /// There is no such queue now.
    #[error("there is no such queue now; its VM or device may be gone")]
    NoSuchQueue(QueueId),
    /// There is no such processor.
    #[error("there is no processor {0}; see the list of processors")]
    NoSuchProcessor(ProcessorId),
    /// A processor did not answer in time.
    #[error("the hand-over was not confirmed in time; see the log")]
    Stuck,
}
