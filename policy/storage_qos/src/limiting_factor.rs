//! Limiting factors of a disk as shares of time, derived from the states of its requests.
//!
//! The whole time of a window is divided among the factors. Time without requests is attributed to
//! the client. The remaining time is divided in proportion to the time of requests in each state:
//! queued, by cause; in flight, by phase; and for data in the device, by the device's own latency.
//! Each amount is an integral over time of the number of requests in the state, so requests in
//! flight are counted like completed ones.
//!
//! The device's own latency is its latency without other load (`own_latency.rs`). Time in the
//! device up to the own latency at the lowest depth is service. Time beyond that, up to the own
//! latency at the current depth, is queueing in the device. Time beyond the own latency in which
//! the worker was not scheduled is attributed to the worker. The remainder counts as a slow device
//! if it exceeds the own latency. A smaller remainder is normal variation and is divided like the
//! own latency.

use serde::{Deserialize, Serialize};

use crate::{DeliveryStats, QueueCause, RequestTime};

/// Whole window, in parts per million.
pub const WHOLE_WINDOW_PPM: u32 = 1_000_000;
/// Minimum share of queueing in the request time, in parts per million, from which the disk counts
/// as queued in the scheduler. Above it, service time in the device is not a limit, and a larger
/// queue depth of the client has no effect.
const QUEUED_PPM: u128 = 50_000;

/// Time in nanoseconds per request by which the latency must exceed the own latency for the device
/// to count as slow. Differences below it are mostly caused by the storage engine.
const SHORT_NS: u128 = 100_000;

/// Factor that limits a disk's throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitingFactor {
    /// The disk's own `max_iops`, or the rate of its burst.
    OwnMaximum,
    /// Maximum bandwidth of the disk: `max_bandwidth`.
    OwnBandwidth,
    /// Maximum of the policy that the disk shares with other disks.
    SharedPolicy,
    /// Share of this node in a store that other nodes use.
    StoreCap,
    /// Queueing while requests were dispatched for minimums of other disks.
    OthersMinimums,
    /// Device at its capacity: requests are queued for the device or within it.
    DeviceSaturated,
    /// Device whose latency exceeds its own latency at the same depth.
    DeviceSlow,
    /// Flushes, and durable writes that wait for the device to make data durable.
    Flushes,
    /// Reads and commits of image metadata.
    Metadata,
    /// The disk's own discards and writes of zeros: the share of time for which requests were
    /// queued behind them, or executed.
    Discards,
    /// Requests queued in the engine behind other requests of the disk. Their cause is not
    /// measured.
    Unmeasured,
    /// Worker thread that was runnable but that the kernel did not run.
    #[serde(rename = "worker")]
    WorkerNotScheduled,
    /// Queue depth of the client: all its requests are in the device, at the device's lowest
    /// latency.
    QueueDepth,
    /// Idle client: no requests are queued or in flight.
    ClientIdle,
    /// Service in the device while requests are queued for another reason. It is not a limit.
    #[serde(rename = "device")]
    DeviceService,
}

impl LimitingFactor {
    /// Number of limiting factors that are distinguished.
    pub const COUNT: usize = 15;
    /// Limiting factors in a fixed order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::OwnMaximum,
        Self::OwnBandwidth,
        Self::SharedPolicy,
        Self::StoreCap,
        Self::OthersMinimums,
        Self::DeviceSaturated,
        Self::DeviceSlow,
        Self::Flushes,
        Self::Metadata,
        Self::Discards,
        Self::Unmeasured,
        Self::WorkerNotScheduled,
        Self::QueueDepth,
        Self::ClientIdle,
        Self::DeviceService,
    ];
}

impl From<QueueCause> for LimitingFactor {
    fn from(cause: QueueCause) -> Self {
        match cause {
            QueueCause::OwnMaximum => Self::OwnMaximum,
            QueueCause::OwnBandwidth => Self::OwnBandwidth,
            QueueCause::SharedPolicy => Self::SharedPolicy,
            QueueCause::OthersMinimums => Self::OthersMinimums,
            QueueCause::DeviceDepth => Self::DeviceSaturated,
            QueueCause::StoreCap => Self::StoreCap,
        }
    }
}

/// Share of a window's time that is attributed to one factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeShare {
    /// Factor that limited the disk in this share.
    pub factor: LimitingFactor,
    /// Share of the factor in parts per million, above 0.
    pub share_ppm: u32,
}

/// Amounts of time, indexed by factor.
#[derive(Clone, Copy, Debug, Default)]
struct Amounts([u128; LimitingFactor::COUNT]);

impl Amounts {
    fn add(&mut self, factor: LimitingFactor, ns: u128) {
        if let Some(sum) = self.0.get_mut(factor as usize) {
            *sum += ns;
        }
    }

    fn take(&mut self, factor: LimitingFactor, ns: u128) {
        if let Some(sum) = self.0.get_mut(factor as usize) {
            *sum = sum.saturating_sub(ns);
        }
    }

    fn sum(&self) -> u128 {
        self.0.iter().sum()
    }
}

impl RequestTime {
    /// Returns the time of requests in flight in phases other than
    /// [`RequestPhase::Data`](crate::RequestPhase::Data), by factor.
    const fn phases(&self) -> [(LimitingFactor, u64); 4] {
        [
            (LimitingFactor::Flushes, self.flush_ns),
            (LimitingFactor::Metadata, self.metadata_ns),
            (LimitingFactor::Discards, self.discard_ns),
            (LimitingFactor::Unmeasured, self.unmeasured_ns),
        ]
    }
}

impl DeliveryStats {
    /// Returns the shares of time of this window, in descending order except for
    /// [`LimitingFactor::DeviceService`], which is last. Their sum is [`WHOLE_WINDOW_PPM`]. Empty
    /// for a window of length 0.
    #[must_use]
    pub fn time_shares(&self) -> Vec<TimeShare> {
        if self.window_ns == 0 {
            return Vec::new();
        }
        let window_ns = u128::from(self.window_ns);
        let of_requests = self.of_requests();
        let sum = of_requests.sum();
        // Without request time there were no requests. Busy time is counted only together with
        // request time.
        let busy_ns = if sum == 0 { 0 } else { u128::from(self.time.busy_ns).min(window_ns) };
        let idle_ns = window_ns - busy_ns;
        let unserviced_ns = u128::from(self.time.unserviced_ns).min(idle_ns);
        let mut amounts = Amounts::default();
        // Fixed-point arithmetic: `excess` bits are dropped so that the products fit into 128 bits.
        let scale = u128::from(WHOLE_WINDOW_PPM);
        let excess = (u128::BITS - sum.leading_zeros()).saturating_sub(40);
        for (factor, ns) in LimitingFactor::ALL.into_iter().zip(of_requests.0) {
            amounts.add(factor, (ns >> excess) * busy_ns * scale / (sum >> excess).max(1));
        }
        amounts.add(LimitingFactor::WorkerNotScheduled, unserviced_ns * scale);
        amounts.add(LimitingFactor::ClientIdle, (idle_ns - unserviced_ns) * scale);
        shares(&amounts)
    }

    /// Returns the mean number of queued and in-flight requests during the time with requests, in
    /// thousandths of a request.
    #[must_use]
    pub fn queue_depth_milli(&self) -> u64 {
        let sum = self.of_requests().sum() * 1000;
        let depth = sum.checked_div(u128::from(self.time.busy_ns)).unwrap_or_default();
        u64::try_from(depth).unwrap_or(u64::MAX)
    }

    /// Returns the mean time of a read or write in the device, and the device's own latency at the
    /// same depth, both in nanoseconds. `None` if no read or write completed.
    #[must_use]
    pub fn device_latency_ns(&self) -> Option<(u64, u64)> {
        let time = &self.time;
        let measured = time.completed_requests.saturating_sub(time.requests_without_device_time);
        Some((time.device_ns.checked_div(measured)?, time.own_latency_ns.checked_div(measured)?))
    }

    /// Returns the time of requests by limiting factor, in nanoseconds, summed over requests.
    fn of_requests(&self) -> Amounts {
        let mut amounts = Amounts::default();
        for cause in QueueCause::ALL {
            amounts.add(cause.into(), self.queue_time.ns(cause).into());
        }
        // Part of the queueing for the device, caused by requests that were dispatched for other
        // disks' minimums.
        let for_device = u128::from(self.queue_time.ns(QueueCause::DeviceDepth));
        let rounds = u128::from(self.store_dispatches.max(1));
        let held_back =
            for_device * u128::from(self.others_minimum_dispatches).min(rounds) / rounds;
        amounts.take(LimitingFactor::DeviceSaturated, held_back);
        amounts.add(LimitingFactor::OthersMinimums, held_back);
        let queued = amounts.sum();
        let in_flight = u128::from(self.time.in_flight_ns);
        let mut data = in_flight;
        for (factor, ns) in self.time.phases() {
            let ns = u128::from(ns).min(data);
            amounts.add(factor, ns);
            data -= ns;
        }
        let own_ns = u128::from(self.time.own_latency_ns).min(data);
        let unloaded = u128::from(self.time.unloaded_latency_ns).min(own_ns);
        // Requests that the device has not completed have no own latency. All their time counts as
        // time beyond it.
        let excess = data - own_ns;
        let unscheduled = excess.min(self.time.unscheduled_ns.into());
        amounts.add(LimitingFactor::WorkerNotScheduled, unscheduled);
        let mut variation = excess - unscheduled;
        let measured =
            self.time.completed_requests.saturating_sub(self.time.requests_without_device_time);
        if variation > own_ns.max(u128::from(measured) * SHORT_NS) {
            amounts.add(LimitingFactor::DeviceSlow, variation);
            variation = 0;
        }
        let saturated = own_ns - unloaded
            + (variation * (own_ns - unloaded)).checked_div(own_ns).unwrap_or_default();
        amounts.add(LimitingFactor::DeviceSaturated, saturated);
        let is_queued = queued * u128::from(WHOLE_WINDOW_PPM) >= (queued + in_flight) * QUEUED_PPM;
        let service =
            if is_queued { LimitingFactor::DeviceService } else { LimitingFactor::QueueDepth };
        amounts.add(service, own_ns + variation - saturated);
        amounts
    }
}

/// Returns the amounts as shares of their sum, in descending order. The rounding error is added to
/// the first share.
fn shares(amounts: &Amounts) -> Vec<TimeShare> {
    let sum = amounts.sum().max(1);
    let share = |ns: u128| {
        u32::try_from(ns * u128::from(WHOLE_WINDOW_PPM) / sum).unwrap_or(WHOLE_WINDOW_PPM)
    };
    let time_shares = LimitingFactor::ALL.into_iter().zip(amounts.0);
    let time_shares = time_shares.map(|(factor, ns)| TimeShare { factor, share_ppm: share(ns) });
    let mut shares: Vec<TimeShare> =
        time_shares.filter(|time_share| time_share.share_ppm > 0).collect();
    shares.sort_by_key(|time_share| {
        (
            time_share.factor == LimitingFactor::DeviceService,
            core::cmp::Reverse(time_share.share_ppm),
            time_share.factor,
        )
    });
    let assigned_ppm: u32 = shares.iter().map(|time_share| time_share.share_ppm).sum();
    if let Some(first) = shares.first_mut() {
        first.share_ppm += WHOLE_WINDOW_PPM.saturating_sub(assigned_ppm);
    }
    shares
}

#[cfg(test)]
#[path = "limiting_factor_tests.rs"]
mod tests;
