//! Observed state of Storage QoS: what disks are entitled to, want and get.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ClusterCap, DiskQos, Name, QosPolicyConfig};

/// A QoS policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QosPolicyStatus {
    /// As desired.
    pub config: QosPolicyConfig,
    /// The disks that have it, by name.
    pub disks: Vec<Name>,
    /// Normalised operations per second that it promises, on all stores together.
    pub promised_iops: u64,
    /// Normalised operations per second that its disks here got in the last 5 s.
    pub delivered_iops: u64,
    /// What this host has of it, by store, of one that disks of several nodes have together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<QosPolicyPart>,
}

/// What a host has of a policy that disks of several nodes have together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QosPolicyPart {
    /// Of disks on this store.
    pub store: Name,
    /// Normalised operations per second that they get together whenever they want them.
    pub min_iops: u64,
    /// What they may do together; absent if the policy has no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<ClusterCap>,
}

/// `GET /1.0/qos/flows`: what a disk gets, and what it is held to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QosFlowStatus {
    /// The disk.
    pub disk: Name,
    /// The store it is in.
    pub store: Name,
    /// Whose limits it has: `disk/NAME`, or `qos_policy/NAME` for an aggregated policy,
    /// whose disks share them.
    pub holder: String,
    /// The limits in effect.
    pub limits: DiskQos,
    /// Requests queued in the scheduler.
    pub waiting: u32,
    /// Requests in the device.
    pub in_flight: u32,
    /// Over the last 5 s.
    pub last_5_s: QosDelivery,
    /// Over the last 5 min.
    pub last_5_min: QosDelivery,
}

/// What a disk was entitled to, wanted and got over a while. Rates are normalised
/// operations per second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QosDelivery {
    /// How long that was, in ns: less than asked for while the disk is new.
    pub window_ns: u64,
    /// What it was entitled to while it had something to do.
    pub entitled_iops: u64,
    /// What it wanted.
    pub demanded_iops: u64,
    /// What it got.
    pub delivered_iops: u64,
    /// How long its requests waited, in ns summed over them, by cause: `own-maximum`,
    /// `own-bandwidth`, `shared-policy`, `others-minimums`, `device-depth`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits_ns: BTreeMap<String, u64>,
    /// Shares of the window's time by what limited the disk, the first limiting factor first. They
    /// come to 1 000 000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited_by: Vec<QosTimeShare>,
    /// Mean number of requests that were queued or in the device while there were any, in
    /// thousandths.
    #[serde(default)]
    pub queue_depth_milli: u64,
    /// Mean time of a read or write in the device, in ns; absent if none completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_latency_ns: Option<u64>,
    /// The device's own latency for these (reads and writes apart, by size) at the same depth, in ns: the lowest in the last one to two
    /// hours, or that of the store's measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_own_latency_ns: Option<u64>,
}

/// Share of time by a limiting factor of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QosTimeShare {
    /// The factor.
    pub factor: QosLimitingFactor,
    /// Share of the window's time, in parts per million.
    pub share_ppm: u32,
}

/// What limits a disk's throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QosLimitingFactor {
    /// Requests were queued because the store is full.
    StoreFull,
    /// Requests were queued because of the disk's own `max_iops`, or its burst's rate.
    OwnMaximum,
    /// Requests were queued because of the disk's own `max_bytes_per_s`.
    OwnBandwidth,
    /// Requests were queued because of a maximum of the policy that the disk shares with others.
    SharedPolicy,
    /// Requests were queued because other nodes use the store.
    StoreCap,
    /// Requests were queued because of other disks' minimums.
    OthersMinimums,
    /// Requests were queued for the device or in it: it has as many as it can serve.
    DeviceSaturated,
    /// The device took more than twice its own latency at the same depth.
    DeviceSlow,
    /// Requests were flushes, or durable writes that waited for a flush.
    Flushes,
    /// Requests waited for metadata of the image: for a read or a commit of it.
    Metadata,
    /// Requests were discards or writes of zeros.
    Discards,
    /// Requests were queued in the engine behind others of the disk; no cause was measured.
    Unmeasured,
    /// The worker's thread was runnable, and others had its CPU.
    Worker,
    /// All of the client's requests were in the device: more of them at a time get more.
    QueueDepth,
    /// The client had no request queued.
    ClientIdle,
    /// Service in the device while requests were queued for another reason. It is no limit, and always
    /// the last.
    Device,
}

impl fmt::Display for QosLimitingFactor {
    /// Its word in the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl QosLimitingFactor {
    /// All factors.
    pub const ALL: [Self; 16] = [
        Self::StoreFull,
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
        Self::Worker,
        Self::QueueDepth,
        Self::ClientIdle,
        Self::Device,
    ];

    /// Time that counts for the factor, for the reference page.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::StoreFull => "Requests were queued because the store has no space for them.",
            Self::OwnMaximum => {
                "Requests were queued because of the `max_iops` of the disk, or its burst rate."
            }
            Self::OwnBandwidth => {
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
                "Requests were queued for the device, or took longer in it than at the lowest depth."
            }
            Self::DeviceSlow => {
                "Requests took more than twice the device's own latency at the same depth."
            }
            Self::Flushes => "Flushes, and durable writes that wait for one.",
            Self::Metadata => "Waiting for a read or a commit of the image's metadata.",
            Self::Discards => "Discards and writes of zeros.",
            Self::Unmeasured => "Queued in the engine behind other requests of the disk.",
            Self::Worker => "The worker was runnable, but other threads had its CPU.",
            Self::QueueDepth => {
                "All requests of the client were in the device at its lowest latency."
            }
            Self::ClientIdle => "The client had no outstanding request.",
            Self::Device => {
                "Service in the device while requests were queued for another factor. Not a limit; always last."
            }
        }
    }

    /// Remedy, for the reference page.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::StoreFull => "Free space on the store, or move disks to another one.",
            Self::OwnMaximum | Self::OwnBandwidth => "Raise the limit of the disk.",
            Self::SharedPolicy => "Raise the limit of the policy.",
            Self::StoreCap => "Reduce the load of other nodes, or give the disk a minimum.",
            Self::OthersMinimums => "Give the disk a minimum.",
            Self::DeviceSaturated => "Move disks to another store.",
            Self::DeviceSlow => "Look for other users of the device, and for faults of it.",
            Self::Flushes => "Use a device with faster flushes.",
            Self::Metadata => "Use a fixed image.",
            Self::Discards | Self::Unmeasured => "Discard less often in the guest.",
            Self::Worker => "Give the worker a CPU of its own.",
            Self::QueueDepth => "Let the client submit more requests at a time.",
            Self::ClientIdle => "None: the client has no more demand.",
            Self::Device => "None.",
        }
    }

    /// For people: what limits the disk.
    pub const fn text(self) -> &'static str {
        match self {
            Self::StoreFull => "its full store",
            Self::OwnMaximum => "its own maximum",
            Self::OwnBandwidth => "its own bandwidth limit",
            Self::SharedPolicy => "the maximum of its shared policy",
            Self::StoreCap => "other nodes that use the store",
            Self::OthersMinimums => "other disks' minimums",
            Self::DeviceSaturated => "the device is saturated",
            Self::DeviceSlow => "the device is slow",
            Self::Flushes => "flushes and durable writes",
            Self::Metadata => "image metadata",
            Self::Discards => "discards and writes of zeros",
            Self::Unmeasured => "no measured cause",
            Self::Worker => "the worker is not scheduled",
            Self::QueueDepth => "the client's queue depth",
            Self::ClientIdle => "the client is idle",
            Self::Device => "in the device",
        }
    }
}

/// What a store would promise, or promises: the arithmetic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StorePromises {
    /// The store.
    pub store: Name,
    /// Minimums on it; one of an aggregated policy counts once.
    pub minimums: usize,
    /// What they come to, in normalised operations per second.
    pub minimums_iops: u64,
    /// What the store can do, in normalised operations per second; absent if that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_iops: Option<u64>,
    /// What of that may be promised.
    pub promisable_iops: u64,
    /// Whether the minimums fit that.
    pub fits: bool,
    /// The arithmetic in words, and what to do where they do not fit.
    pub text: String,
}

/// Answer of `POST /1.0/qos/what-if`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfAnswer {
    /// Whether every store could keep what it would promise.
    pub fits: bool,
    /// The stores that the proposals concern, by name.
    pub stores: Vec<StorePromises>,
}

#[cfg(test)]
#[path = "qos_status_tests.rs"]
mod tests;
