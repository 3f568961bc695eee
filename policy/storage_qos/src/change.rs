//! What a store's scheduler is told to do differently from now on.

use serde::{Deserialize, Serialize};
use suimon_quantity::{Cap, DiskId};

use crate::{Limits, PolicyId, PolicyPart};

/// A disk's place in a store's scheduler. It is given to another disk when the disk was
/// removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiskSlot(pub u32);

/// The place of what is scheduled: of a disk by itself or of the disks of a shared policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowSlot(pub u32);

/// Whose limits they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// A disk's, by itself.
    Disk(DiskId),
    /// A policy's that its disks share.
    Policy(PolicyId),
}

/// One step of a change; the steps of a change are carried out together and in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// These limits are in effect here.
    Flow {
        /// Where.
        flow: FlowSlot,
        /// Whose they are.
        holder: Holder,
        /// Which they are.
        limits: Limits,
    },
    /// The disk is here, and belongs there.
    Disk {
        /// Its place.
        slot: DiskSlot,
        /// Which it is.
        disk: DiskId,
        /// By what it is scheduled.
        flow: FlowSlot,
    },
    /// There is no disk here any more.
    RemoveDisk(DiskSlot),
    /// Nothing belongs here any more.
    RemoveFlow(FlowSlot),
    /// Normalised operations per second that the store can do; `None`: not known.
    Capability(Option<u64>),
    /// What all disks together may do, in normalised operations per second; `None`: what they
    /// can. Minimums come first inside it, so whoever sets it has to see to it that they are covered.
    Cap(Option<Cap>),
    /// What a policy's disks here may do together, of a policy that other nodes' disks have, too;
    /// `None`: its limits, as it has them. It holds for disks that get the policy later, too.
    Part(PolicyId, Option<PolicyPart>),
    /// Latency of the device that a measurement found; `None`: the store was not measured. It is what
    /// latencies are compared with, and decides nothing.
    Latency(Option<MeasuredLatency>),
}

/// Latency of a store's device, as a measurement found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredLatency {
    /// Requests in the device at a time.
    pub depth: u32,
    /// Mean latency of a request that counts as one operation, in nanoseconds.
    pub latency_ns: u64,
}
