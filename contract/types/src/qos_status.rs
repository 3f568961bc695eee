//! Observed state of Storage QoS: what disks are entitled to, want and get.

use std::collections::BTreeMap;

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
    /// Requests that wait.
    pub waiting: u32,
    /// Requests that the device has.
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
