//! Why a request waited.

use serde::{Deserialize, Serialize};

/// What keeps a disk's requests from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitCause {
    /// Its own `max_iops`, or its burst's rate.
    OwnMaximum,
    /// Its own `max_bandwidth`.
    OwnBandwidth,
    /// A maximum of the policy that it shares with other disks.
    SharedPolicy,
    /// Others are owed minimums, and more requests in the device would keep them from
    /// these.
    OthersMinimums,
    /// The device has as many requests as serve it.
    DeviceDepth,
    /// All disks of the store here together may do no more, because other nodes use it.
    StoreCap,
}

impl WaitCause {
    /// How many there are.
    pub const COUNT: usize = 6;
    /// All, in the order in which waits are kept.
    pub const ALL: [Self; Self::COUNT] = [
        Self::OwnMaximum,
        Self::OwnBandwidth,
        Self::SharedPolicy,
        Self::OthersMinimums,
        Self::DeviceDepth,
        Self::StoreCap,
    ];
}

/// Nanoseconds that requests waited, summed over them, by cause in the order of
/// [`WaitCause::ALL`]. They wrap; differences of two readings are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits([u64; WaitCause::COUNT]);

impl Waits {
    /// Nanoseconds of one cause.
    pub fn ns(&self, cause: WaitCause) -> u64 {
        self.0.get(cause as usize).copied().unwrap_or_default()
    }

    /// `waiting` requests waited for `ns`.
    #[inline]
    pub(crate) fn add(&mut self, cause: WaitCause, waiting: u32, ns: u64) {
        if let Some(sum) = self.0.get_mut(cause as usize) {
            *sum = sum.wrapping_add(ns.wrapping_mul(u64::from(waiting)));
        }
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        for (sum, before) in since.0.iter_mut().zip(earlier.0) {
            *sum = sum.wrapping_sub(before);
        }
        since
    }
}
