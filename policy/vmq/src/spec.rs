//! VMQ configuration and workers of the host.

use serde::{Deserialize, Serialize};
use suimon_quantity::{PortId, WorkerId};

use crate::thresholds::{
    HIGH_MARK_DEFAULT, LOW_MARK_DEFAULT, PACK_LIMIT_DEFAULT, SHED_TARGET_DEFAULT, WEIGHT_MAX,
};
use crate::{Load, VmqSpecError};

/// Method of assigning queues to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VmqMode {
    /// Static: a queue is assigned once, when it is added, balanced by weight.
    Static,
    /// Dynamic: queues are moved by load, so that few workers are used at low load and many at high
    /// load.
    #[default]
    Dynamic,
}

/// VMQ configuration of one team or uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmqSpec {
    /// True if VMQ is enabled. Otherwise the base worker services all queues.
    pub enabled: bool,
    /// Method of assigning queues to workers.
    pub mode: VmqMode,
    /// Lowest permitted worker, used first; `None`: the lowest existing one.
    #[serde(rename = "base_processor")]
    pub base_worker: Option<WorkerId>,
    /// Maximum number of workers in use, at least 1. May exceed the number of workers.
    #[serde(rename = "max_processors")]
    pub max_workers: u16,
    /// Highest permitted worker; `None`: the highest existing one.
    #[serde(rename = "max_processor_number")]
    pub max_worker_number: Option<WorkerId>,
    /// Only permitted NUMA node; `None`: any.
    pub numa_node: Option<u16>,
    /// Water marks of dynamic placement.
    #[serde(rename = "water")]
    pub water_marks: WaterMarks,
    /// True if under-used workers are emptied, so that they park.
    pub parking: bool,
}

/// Water marks of dynamic placement. Two more follow from the high mark: shedding ends 10
/// percentage points below it, and packing fills workers up to 25 points below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaterMarks {
    /// Load above which a worker sheds queues.
    pub high: Load,
    /// Load of a worker's queues up to which the worker is under-used.
    pub low: Load,
}

impl WaterMarks {
    /// Returns the high mark minus `distance`, the difference between
    /// [`thresholds::HIGH_MARK_DEFAULT`](crate::thresholds::HIGH_MARK_DEFAULT) and another
    /// constant.
    fn below(self, distance: Load) -> Load {
        self.high - distance
    }

    pub(crate) fn shed_target(self) -> Load {
        self.below(HIGH_MARK_DEFAULT - SHED_TARGET_DEFAULT)
    }

    pub(crate) fn pack_limit(self) -> Load {
        self.below(HIGH_MARK_DEFAULT - PACK_LIMIT_DEFAULT)
    }
}

impl Default for WaterMarks {
    fn default() -> Self {
        Self { high: HIGH_MARK_DEFAULT, low: LOW_MARK_DEFAULT }
    }
}

impl VmqSpec {
    /// Default maximum number of workers in use, as in Hyper-V.
    pub const MAX_WORKERS_DEFAULT: u16 = 4;
}

impl Default for VmqSpec {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: VmqMode::default(),
            base_worker: None,
            max_workers: Self::MAX_WORKERS_DEFAULT,
            max_worker_number: None,
            numa_node: None,
            water_marks: WaterMarks::default(),
            parking: true,
        }
    }
}

/// Worker of the data plane, pinned to one logical CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpec {
    /// Identifier of the worker.
    pub number: WorkerId,
    /// Physical core that the worker's CPU belongs to. Sibling threads have the same value, which
    /// is unique on the host.
    pub core: u32,
    /// NUMA node of the worker.
    pub numa_node: u16,
}

/// VMQ configuration of a NIC on the team or uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicSpec {
    /// Weight in the static assignment, 0 to 100. With 0 the NIC has no queue of its own but uses
    /// the default queue, which the base worker services.
    pub vmq_weight: u8,
    /// Maximum number of queues in each direction, at least 1.
    pub queues: u16,
}

impl NicSpec {
    /// Default weight of a NIC.
    pub const WEIGHT_DEFAULT: u8 = 100;

    /// Validates the configuration of `nic` on a device that provides `queues_max` queues for it.
    ///
    /// # Errors
    ///
    /// The invalid value, with accepted values.
    pub fn check(&self, nic: PortId, queues_max: u16) -> Result<(), VmqSpecError> {
        if self.vmq_weight > WEIGHT_MAX {
            return Err(VmqSpecError::Weight { nic, weight: self.vmq_weight });
        }
        if self.queues == 0 || self.queues > queues_max {
            return Err(VmqSpecError::Queues { nic, requested: self.queues, queues_max });
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
