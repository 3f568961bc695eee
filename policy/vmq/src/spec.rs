//! What the operator says, and what the host has.

use serde::{Deserialize, Serialize};
use suimon_quantity::{PortId, ProcessorId};

use crate::marks::{FIT, HIGH, LOW, SHED_TO};
use crate::{Load, SpecError};

/// The largest weight of a NIC, Hyper-V's.
pub(crate) const WEIGHT_MAX: u8 = 100;

/// How queues are given to processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VmqMode {
    /// Once, when they are added, evenly by weight.
    Static,
    /// By load: few processors at little load, many at much.
    #[default]
    Dynamic,
}

/// VMQ of one team or uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmqSpec {
    /// If not, all queues are worked off where the default queue is: by the base
    /// processor.
    pub enabled: bool,
    /// How queues are given to processors.
    pub mode: VmqMode,
    /// The lowest processor that may be used, which is used first; `None`: the lowest
    /// there is.
    pub base_processor: Option<ProcessorId>,
    /// How many processors may be used at a time; at least 1. More than there are do no
    /// harm.
    pub max_processors: u16,
    /// The highest processor that may be used; `None`: the highest there is.
    pub max_processor_number: Option<ProcessorId>,
    /// The only NUMA node whose processors may be used; `None`: any.
    pub numa_node: Option<u16>,
    /// What counts as much and as little to do.
    pub water: WaterMarks,
    /// Whether under-used processors are emptied, so that they park.
    pub parking: bool,
}

/// The water marks that dynamic placement goes by. Two more follow from the high one: queues
/// are shed until a processor is 10 % below it, and processors are filled to 25 % below it
/// where others are emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaterMarks {
    /// A processor above this sheds.
    pub high: Load,
    /// A processor whose queues take no more than this is under-used.
    pub low: Load,
}

impl WaterMarks {
    /// What is below [`marks::HIGH`](crate::marks::HIGH) by `below` is below the high mark by
    /// as much.
    fn below(self, below: Load) -> Load {
        self.high - below
    }

    pub(crate) fn shed_to(self) -> Load {
        self.below(HIGH - SHED_TO)
    }

    pub(crate) fn fit(self) -> Load {
        self.below(HIGH - FIT)
    }
}

impl Default for WaterMarks {
    fn default() -> Self {
        Self { high: HIGH, low: LOW }
    }
}

impl VmqSpec {
    /// Processors that may be used at a time unless configured: what Hyper-V allows an
    /// adapter.
    pub const MAX_PROCESSORS_DEFAULT: u16 = 4;
}

impl Default for VmqSpec {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: VmqMode::default(),
            base_processor: None,
            max_processors: Self::MAX_PROCESSORS_DEFAULT,
            max_processor_number: None,
            numa_node: None,
            water: WaterMarks::default(),
            parking: true,
        }
    }
}

/// A processor of the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// Which.
    pub number: ProcessorId,
    /// The core it is a thread of; siblings share it. Numbers of cores are unique on the
    /// host, not only on a node.
    pub core: u32,
    /// The NUMA node it is on.
    pub numa_node: u16,
}

/// VMQ of one NIC on the team or uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicSpec {
    /// Its share of processors where queues are assigned by weight, to 100. 0: it has no
    /// queue of its own but uses the default queue, which the base processor works off.
    pub vmq_weight: u8,
    /// Queues it may have in each direction; at least 1.
    pub queues: u16,
}

impl NicSpec {
    /// The weight of a NIC unless configured.
    pub const WEIGHT_DEFAULT: u8 = 100;

    /// Whether the NIC `nic` may be configured so, on a device that has `queues_max`
    /// queues left for it.
    ///
    /// # Errors
    /// What is wrong and what would be accepted.
    pub fn check(&self, nic: PortId, queues_max: u16) -> Result<(), SpecError> {
        if self.vmq_weight > WEIGHT_MAX {
            return Err(SpecError::Weight { nic, weight: self.vmq_weight });
        }
        if self.queues == 0 || self.queues > queues_max {
            return Err(SpecError::Queues { nic, asked: self.queues, queues_max });
        }
        Ok(())
    }

    pub(crate) const fn uses_default_queue(&self) -> bool {
        self.vmq_weight == 0
    }
}

impl Default for NicSpec {
    fn default() -> Self {
        Self { vmq_weight: Self::WEIGHT_DEFAULT, queues: 1 }
    }
}
