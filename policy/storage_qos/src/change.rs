//! Configuration changes of a store's scheduler.

use serde::{Deserialize, Serialize};
use suimon_quantity::{DiskId, TimedRateLimit};

use crate::{Limits, PolicyId, PolicyShare};

/// Slot of a disk in a store's scheduler. Another disk may get the slot after its disk was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiskSlot(pub u32);

/// Slot of a flow: of a disk with its own limits, or of the disks of a shared policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowSlot(pub u32);

/// Owner of limits: a disk or a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitsOwner {
    /// Disk with its own limits.
    Disk(DiskId),
    /// Policy with limits that its disks share.
    Policy(PolicyId),
}

/// One step of a configuration change. The steps of a change must be applied together and in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigStep {
    /// Sets the limits of a flow.
    #[serde(rename = "flow")]
    SetFlow {
        /// Slot of the flow in the scheduler.
        flow: FlowSlot,
        /// Disk or policy that owns the limits.
        #[serde(rename = "holder")]
        owner: LimitsOwner,
        /// Limits that apply from now on.
        limits: Limits,
    },
    /// Sets the disk in a slot and its flow.
    #[serde(rename = "disk")]
    SetDisk {
        /// Slot of the disk in the scheduler.
        slot: DiskSlot,
        /// Disk that occupies the slot.
        disk: DiskId,
        /// Flow that the disk belongs to.
        flow: FlowSlot,
    },
    /// Removes the disk from its slot.
    RemoveDisk(DiskSlot),
    /// Removes the flow from its slot.
    RemoveFlow(FlowSlot),
    /// Sets the capacity of the store in normalised operations per second; `None` if not known.
    #[serde(rename = "capability")]
    SetCapacity(Option<u64>),
    /// Limits all disks of this node together, in normalised operations per second; `None` removes
    /// the limit. Minimums have priority within the limit. The caller must therefore ensure that
    /// the limit covers them.
    #[serde(rename = "cap")]
    SetCap(Option<TimedRateLimit>),
    /// Limits the disks of a policy on this node, if the policy also has disks on other nodes.
    /// `None`: the policy's limits apply to this node alone. Also applies to disks that are
    /// assigned to the policy later.
    #[serde(rename = "part")]
    SetPolicyShare(PolicyId, Option<PolicyShare>),
    /// Sets the device latency from a measurement of the store; `None` if it was not measured.
    /// Observed latencies are compared with this value. It does not affect scheduling.
    #[serde(rename = "latency")]
    SetMeasuredLatency(Option<MeasuredLatency>),
}

/// Latency of a store's device from a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredLatency {
    /// Queue depth of the device during the measurement.
    pub depth: u32,
    /// Mean latency, in nanoseconds, of a request that counts as one operation.
    pub latency_ns: u64,
}
