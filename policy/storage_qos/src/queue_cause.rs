//! Causes for which requests are queued.

use serde::{Deserialize, Serialize};

/// Cause for which requests of a disk are queued in the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueCause {
    /// The disk's own `max_iops`, or the rate of its burst.
    OwnMaximum,
    /// Maximum bandwidth of the disk: `max_bandwidth`.
    OwnBandwidth,
    /// Maximum of the policy that the disk shares with other disks.
    SharedPolicy,
    /// Minimums of other disks: further requests in the device would delay their requests.
    OthersMinimums,
    /// Queue depth limit of the device.
    DeviceDepth,
    /// Share of this node in a store that other nodes use.
    StoreCap,
}

impl QueueCause {
    /// Number of causes of queueing.
    pub const COUNT: usize = 6;
    /// Causes in the order of their discriminants.
    pub const ALL: [Self; Self::COUNT] = [
        Self::OwnMaximum,
        Self::OwnBandwidth,
        Self::SharedPolicy,
        Self::OthersMinimums,
        Self::DeviceDepth,
        Self::StoreCap,
    ];
}

/// Queueing time in nanoseconds, summed over requests, by cause in the order of
/// [`QueueCause::ALL`]. Counters wrap; differences of two readings are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueTime([u64; QueueCause::COUNT]);

impl QueueTime {
    /// Returns the queueing time of one cause in nanoseconds.
    pub fn ns(&self, cause: QueueCause) -> u64 {
        self.0.get(cause as usize).copied().unwrap_or_default()
    }

    /// Adds `ns` nanoseconds for each of `waiting` requests.
    #[inline]
    pub(crate) fn add(&mut self, cause: QueueCause, waiting: u32, ns: u64) {
        if let Some(sum) = self.0.get_mut(cause as usize) {
            *sum = sum.wrapping_add(ns.wrapping_mul(u64::from(waiting)));
        }
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut difference = *self;
        for (sum, before) in difference.0.iter_mut().zip(earlier.0) {
            *sum = sum.wrapping_sub(before);
        }
        difference
    }
}
