//! Events of a store for the operator.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::DiskId;

use crate::LimitsOwner;

/// Time for which a minimum must be unmet before an event is emitted.
pub const UNMET_REPORT_DELAY: Duration = Duration::from_secs(60);
/// Maximum number of disks that an event names as served instead of an unmet minimum.
pub const DISPLACED_BY_MAX: usize = 8;

/// Disk that was served while a minimum was unmet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedDisk {
    /// Disk that was served instead.
    pub disk: DiskId,
    /// Normalised operations per second delivered to the disk in the last five seconds.
    pub delivered_iops: u64,
}

/// Reason for an unmet minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnmetReason {
    /// The store delivered its capacity to other disks: the sum of minimums is too high.
    OtherDisks,
    /// The store delivered less than its capacity: external load uses it, or the device has become
    /// slower.
    #[serde(rename = "foreign-load")]
    ExternalLoad,
    /// Requests are dispatched without queueing, but the client's queue depth is too small to reach
    /// the minimum at the device's latency.
    DeviceLatency,
    /// The disk's own maximum of bandwidth or operations is reached.
    OwnMaximum,
}

/// Minimum that has been unmet for some time, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmetMinimum {
    /// Disk, or policy shared by several disks, that has the minimum.
    #[serde(rename = "holder")]
    pub owner: LimitsOwner,
    /// Time since the minimum was last met. The three rates below are means over this time.
    #[serde(rename = "lasting")]
    pub unmet_for: Duration,
    /// Normalised operations per second that the minimum guaranteed for the demand.
    #[serde(rename = "entitled_iops")]
    pub guaranteed_iops: u64,
    /// Normalised operations per second that the clients demanded.
    pub demanded_iops: u64,
    /// Normalised operations per second that were delivered.
    pub delivered_iops: u64,
    /// Reason why the minimum is not met.
    #[serde(rename = "shortfall")]
    pub reason: UnmetReason,
    /// Disks that were served instead, highest throughput first.
    pub displaced_by: Vec<ServedDisk>,
    /// Mean device latency of a request, in nanoseconds.
    pub device_latency_ns: u64,
    /// Difference between capacity and throughput of the store, in normalised operations per
    /// second.
    #[serde(rename = "foreign_iops")]
    pub external_iops: u64,
}

/// Capacity of a store that is below the requirement of its minimums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityLow {
    /// Time for which the capacity has been too low.
    #[serde(rename = "lasting")]
    pub low_for: Duration,
    /// Estimated capacity in normalised operations per second.
    pub estimate_iops: u64,
    /// Sum of all minimums in normalised operations per second.
    #[serde(rename = "promised_iops")]
    pub reserved_iops: u64,
    /// Capacity that is sufficient for this sum of minimums, in normalised operations per second.
    pub needed_iops: u64,
}

/// Event of a store for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreEvent {
    /// A minimum was not met for [`UNMET_REPORT_DELAY`] although requests were queued.
    MinimumUnmet(UnmetMinimum),
    /// A minimum that was reported as unmet is met again, or there is no demand for it.
    MinimumMet {
        /// Disk, or policy shared by several disks, that has the minimum.
        #[serde(rename = "holder")]
        owner: LimitsOwner,
        /// Time for which the minimum was unmet.
        #[serde(rename = "lasted")]
        unmet_for: Duration,
    },
    /// The estimated capacity is too low to deliver all minimums concurrently.
    #[serde(rename = "capability-low")]
    CapacityLow(CapacityLow),
    /// A capacity that was reported as too low is sufficient again, or minimums were lowered since.
    #[serde(rename = "capability-enough")]
    CapacitySufficient {
        /// Time for which the capacity was too low.
        #[serde(rename = "lasted")]
        low_for: Duration,
        /// Estimated capacity in normalised operations per second.
        estimate_iops: u64,
        /// Capacity that the minimums need, in normalised operations per second.
        needed_iops: u64,
    },
}
