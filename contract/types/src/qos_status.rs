//! Observed state of Storage QoS: guaranteed, demanded and delivered rates of disks.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ClusterCap, Name, QosLimits, QosPolicyConfig};

/// Observed state of a QoS policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QosPolicyStatus {
    /// Desired state of the policy.
    pub config: QosPolicyConfig,
    /// Disks with the policy, by name.
    pub disks: Vec<Name>,
    /// Sum of the minimums reserved for the policy on all stores, in normalised operations per
    /// second.
    pub reserved_iops: u64,
    /// Delivered rate of the policy's disks on this host in the last 5 s, in normalised operations
    /// per second.
    pub delivered_iops: u64,
    /// This host's parts of the limits by store; empty unless disks of several nodes share them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "parts")]
    pub shares: Vec<QosPolicyShare>,
}

/// Part of a policy's limits granted to a host, for a policy shared by disks of several nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "QosPolicyPart")]
#[schema(as = QosPolicyPart)]
pub struct QosPolicyShare {
    /// Store of the disks concerned.
    pub store: Name,
    /// Guaranteed minimum of these disks together, in normalised operations per second.
    pub min_iops: u64,
    /// Limit of these disks together; absent if the policy has no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<ClusterCap>,
}

/// Entry of `GET /1.0/qos/flows`: limits and delivered rates of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QosFlowStatus {
    /// Name of the disk.
    pub disk: Name,
    /// Store that contains the disk.
    pub store: Name,
    /// Holder of the limits: `disk/NAME`, or `qos_policy/NAME` for an aggregated policy, whose
    /// disks share them.
    pub holder: String,
    /// Limits in effect for the holder.
    pub limits: QosLimits,
    /// Requests queued in the scheduler.
    pub queued: u32,
    /// Requests in flight at the device.
    pub in_flight: u32,
    /// True if no worker with disks of the store responds: requests and rates are the last known
    /// ones.
    #[serde(default)]
    pub stale: bool,
    /// Rates of the last 5 s.
    pub last_5_s: QosDelivery,
    /// Rates of the last 5 min.
    pub last_5_min: QosDelivery,
}

/// Guaranteed, demanded and delivered rates of a disk in a time window, in normalised operations
/// per second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QosDelivery {
    /// Length of the window in ns; shorter than nominal after the disk was opened.
    pub window_ns: u64,
    /// Guaranteed rate: the minimum, multiplied by the share of the window in which the disk had
    /// requests. With an aggregated policy, the guarantee of all its disks in the store.
    pub guaranteed_iops: u64,
    /// Demanded rate: the rate of the client's requests.
    pub demand_iops: u64,
    /// Delivered rate: the rate of completed requests.
    pub delivered_iops: u64,
    /// Time that requests were queued, in ns, summed over requests, by cause: `own-maximum`,
    /// `own-bandwidth`, `shared-policy`, `others-minimums`, `device-depth`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queued_ns: BTreeMap<String, u64>,
    /// Shares of the window's time by limiting factor, first limiting factor first. Their sum is 1
    /// 000 000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited_by: Vec<QosTimeShare>,
    /// Mean number of requests queued or in flight, over times with at least one, in thousandths.
    #[serde(default)]
    pub queue_depth_milli: u64,
    /// Mean service time of reads and writes at the device in ns; absent if none completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_latency_ns: Option<u64>,
    /// Baseline latency of the device for these requests (reads and writes separately, by size) at
    /// the same depth, in ns: the lowest of the last one to two hours, or that of the store's
    /// measurement.
    #[serde(
        rename = "device_baseline_latency_ns",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub device_baseline_latency_ns: Option<u64>,
}

/// Share of time by a limiting factor of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QosTimeShare {
    /// Factor that limited the disk.
    pub factor: QosLimitingFactor,
    /// Share of the window's time, in parts per million.
    pub share_ppm: u32,
}

/// Factor that limits a disk's throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QosLimitingFactor {
    /// Requests were queued because the store is full.
    StoreFull,
    /// Requests were queued because of the disk's own `max_iops`, or its burst's rate.
    #[serde(rename = "own-maximum")]
    DiskMaximum,
    /// Requests were queued because of the disk's own `max_bytes_per_s`.
    #[serde(rename = "own-bandwidth")]
    DiskBandwidth,
    /// Requests were queued because of a maximum of the policy that the disk shares with others.
    SharedPolicy,
    /// Requests were queued because of the node's limit on a shared store.
    StoreCap,
    /// Requests were queued because of other disks' minimums.
    OthersMinimums,
    /// Requests were queued for the device or in flight at it: its queue depth is exhausted.
    DeviceSaturated,
    /// The device took more than twice its baseline latency at the same depth, and at least 0.1 ms
    /// more.
    DeviceSlow,
    /// Requests were flushes, or durable writes that waited for a flush.
    Flushes,
    /// Requests were waiting for a read or commit of the image's metadata.
    Metadata,
    /// Requests were discards or writes of zeros.
    Discards,
    /// Requests were queued in the storage engine behind a discard or write of zeros of the same
    /// disk with an overlapping range.
    #[serde(rename = "unmeasured")]
    OverlappingDiscard,
    /// The worker's thread was runnable, but other threads occupied its CPU.
    #[serde(rename = "worker")]
    WorkerNotScheduled,
    /// Every request of the client was in flight: a larger queue depth would increase throughput.
    QueueDepth,
    /// The client had no request outstanding.
    ClientIdle,
    /// Requests were in service at the device while others were queued for another reason. Not a
    /// limit; always last.
    Device,
}

impl fmt::Display for QosLimitingFactor {
    /// Writes the factor as serialized by the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl QosLimitingFactor {
    /// Limiting factors in the order of the reference page.
    pub const ALL: [Self; 16] = [
        Self::StoreFull,
        Self::DiskMaximum,
        Self::DiskBandwidth,
        Self::SharedPolicy,
        Self::StoreCap,
        Self::OthersMinimums,
        Self::DeviceSaturated,
        Self::DeviceSlow,
        Self::Flushes,
        Self::Metadata,
        Self::Discards,
        Self::OverlappingDiscard,
        Self::WorkerNotScheduled,
        Self::QueueDepth,
        Self::ClientIdle,
        Self::Device,
    ];

    /// Returns the condition under which time counts for the factor, for the reference page.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::StoreFull => "Requests were queued because the store has no space for them.",
            Self::DiskMaximum => {
                "Requests were queued because of the `max_iops` of the disk, or its burst rate."
            }
            Self::DiskBandwidth => {
                "Requests were queued because of the `max_bytes_per_s` of the disk."
            }
            Self::SharedPolicy => {
                "Requests were queued because of a maximum of the aggregated policy of the disk."
            }
            Self::StoreCap => "Requests were queued because other nodes use the shared store.",
            Self::OthersMinimums => {
                "Requests were queued while minimums of other disks were served."
            }
            Self::DeviceSaturated => {
                "Requests were queued for the device, or took longer in it than at the lowest \
                 depth."
            }
            Self::DeviceSlow => {
                "Requests took more than twice the device's own latency at the same depth, and at \
                 least 0.1 ms more."
            }
            Self::Flushes => "Requests were flushes, or durable writes that waited for a flush.",
            Self::Metadata => {
                "Requests were queued for a read or a commit of the image's metadata."
            }
            Self::Discards => "Requests were discards or writes of zeros.",
            Self::OverlappingDiscard => {
                "Requests were queued in the storage engine behind a discard or write of zeros of the same \
                 disk with an overlapping range."
            }
            Self::WorkerNotScheduled => "The worker was runnable, but other threads had its CPU.",
            Self::QueueDepth => {
                "All requests of the client were in the device at its lowest latency."
            }
            Self::ClientIdle => "The client had no outstanding request.",
            Self::Device => {
                "Service in the device at its own latency, while other requests of the disk were \
                 queued. Not a limit; listed last, also if it has the largest share."
            }
        }
    }

    /// Returns the action that reduces the effect of the factor, for the reference page.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::StoreFull => "Free space on the store, or move disks to another one.",
            Self::DiskMaximum | Self::DiskBandwidth => "Raise the limit of the disk.",
            Self::SharedPolicy => "Raise the limit of the policy.",
            Self::StoreCap => "Reduce the load of other nodes, or give the disk a minimum.",
            Self::OthersMinimums => "Give the disk a minimum.",
            Self::DeviceSaturated => "Move disks to another store.",
            Self::DeviceSlow => "Look for other users of the device, and for faults of it.",
            Self::Flushes => "Use a device with faster flushes.",
            Self::Metadata => {
                "Use a fixed image: stop the VM, convert the disk (`suimon disk convert DISK FILE \
                 --format FORMAT --kind fixed`), and use the file (`suimon disk set DISK --file \
                 FILE --unset kind --unset parent`)."
            }
            Self::Discards | Self::OverlappingDiscard => "Discard less often in the guest.",
            Self::WorkerNotScheduled => "Give the worker a CPU of its own.",
            Self::QueueDepth => "Let the client submit more requests at a time.",
            Self::ClientIdle => "None: the client has no more demand.",
            Self::Device => "None.",
        }
    }

    /// Returns the limiting factor as a phrase for messages.
    pub const fn text(self) -> &'static str {
        match self {
            Self::StoreFull => "its full store",
            Self::DiskMaximum => "its own maximum",
            Self::DiskBandwidth => "its own bandwidth limit",
            Self::SharedPolicy => "the maximum of its shared policy",
            Self::StoreCap => "other nodes that use the store",
            Self::OthersMinimums => "other disks' minimums",
            Self::DeviceSaturated => "the device is saturated",
            Self::DeviceSlow => "the device is slow",
            Self::Flushes => "flushes and durable writes",
            Self::Metadata => "image metadata",
            Self::Discards => "discards and writes of zeros",
            Self::OverlappingDiscard => "an overlapping discard or write of zeros",
            Self::WorkerNotScheduled => "the worker is not scheduled",
            Self::QueueDepth => "the client's queue depth",
            Self::ClientIdle => "the client is idle",
            Self::Device => "in the device",
        }
    }
}

/// Reservations of a store, actual or proposed, with the calculation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "StorePromises")]
#[schema(as = StorePromises)]
pub struct StoreReservations {
    /// Name of the store.
    pub store: Name,
    /// Number of minimums; one of an aggregated policy counts once.
    #[serde(rename = "minimums")]
    pub minimum_count: usize,
    /// Sum of the minimums in normalised operations per second.
    pub minimums_iops: u64,
    /// Capacity of the store in normalised operations per second; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_iops: Option<u64>,
    /// Part of the capacity available for reservations, in normalised operations per second.
    pub reservable_iops: u64,
    /// True if the sum does not exceed `reservable_iops`.
    pub fits: bool,
    /// The calculation as text, with the action to take if the minimums do not fit.
    #[serde(rename = "text")]
    pub explanation: String,
}

/// Response of `POST /1.0/qos/what-if`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "WhatIfAnswer")]
#[schema(as = WhatIfAnswer)]
pub struct WhatIfResponse {
    /// True if the reservations fit on every store.
    pub fits: bool,
    /// Stores concerned by the proposals, by name.
    pub stores: Vec<StoreReservations>,
    /// Warnings about the request, such as the use of an old name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[cfg(test)]
#[path = "qos_status_tests.rs"]
mod tests;
