//! What is worth telling the operator.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::DiskId;

use crate::Holder;

/// So long a minimum is not met before it is told.
pub const TOLD_AFTER: Duration = Duration::from_secs(60);
/// So many disks are named that a minimum was displaced by.
pub const DISPLACERS_MAX: usize = 8;

/// A disk that was served meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Displacer {
    /// Which.
    pub disk: DiskId,
    /// Normalised operations per second that it got in the last five seconds.
    pub delivered_iops: u64,
}

/// Why a minimum was not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shortfall {
    /// The store did what it can do, for other disks: more is promised than it can keep.
    OtherDisks,
    /// The store did less than it can do: something that is not scheduled here uses it, or
    /// it has become slower.
    ForeignLoad,
    /// Its requests go to the device at once, and so few at a time that the device's
    /// latency allows no more.
    DeviceLatency,
    /// Its own maximum, of bandwidth or of operations, allows no more.
    OwnMaximum,
}

/// An unmet minimum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmet {
    /// Whose.
    pub holder: Holder,
    /// For how long, so far.
    pub lasting: Duration,
    /// Normalised operations per second that it is entitled to; this and the next two are
    /// means over `lasting`.
    pub entitled_iops: u64,
    /// What it asked for.
    pub demanded_iops: u64,
    /// What it got.
    pub delivered_iops: u64,
    /// Why.
    pub shortfall: Shortfall,
    /// Who else was served, most first.
    pub displaced_by: Vec<Displacer>,
    /// What the device takes for a request, in nanoseconds.
    pub device_latency_ns: u64,
    /// Normalised operations per second by which the store does less than it can do.
    pub foreign_iops: u64,
}

/// A store that does less than its minimums need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityLow {
    /// For how long, so far.
    pub lasting: Duration,
    /// Normalised operations per second that it does while requests wait for it.
    pub estimate_iops: u64,
    /// What all its minimums come to.
    pub promised_iops: u64,
    /// What it would have to do, so that so much may be promised.
    pub needed_iops: u64,
}

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A minimum has not been met for [`TOLD_AFTER`], while there was a backlog.
    MinimumUnmet(Unmet),
    /// One of which this was told is met again, or nobody asks for it.
    MinimumMet {
        /// Whose.
        holder: Holder,
        /// For how long it was not met.
        lasted: Duration,
    },
    /// While requests wait for it, the store does so little that not all minimums can be kept
    /// if all are asked for at once.
    CapabilityLow(CapabilityLow),
    /// A store of which this was told does enough again, or less is promised.
    CapabilityEnough {
        /// For how long it did not.
        lasted: Duration,
        /// Normalised operations per second that it does.
        estimate_iops: u64,
        /// What its minimums need.
        needed_iops: u64,
    },
}
