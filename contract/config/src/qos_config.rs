//! Desired state of Storage QoS: guaranteed shares and limits of disks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ByteSize, Name};

/// Scope of a policy's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum QosPolicyKind {
    /// Each disk of the policy has the limits.
    #[default]
    Dedicated,
    /// Disks of the policy on the same store share the limits.
    Aggregated,
}

/// `[[qos_policy]]`: limits for several disks. Operations are normalised: a request counts as one
/// operation for each started `normalization_bytes` of its store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosPolicyConfig {
    /// Name of the QoS policy, unique among QoS policies.
    pub name: Name,
    /// Scope of the limits: `dedicated` (each disk of the policy has them for itself) or
    /// `aggregated` (all disks of the policy in one store share them).
    #[serde(default)]
    pub kind: QosPolicyKind,
    /// True if the policy exists on all nodes of the cluster with the same limits, so that a change
    /// on one node applies to all. Disks of an aggregated policy in a shared store then share the
    /// limits across nodes. No effect on a host without cluster.
    #[serde(default, skip_serializing_if = "is_not")]
    pub shared: bool,
    /// Guaranteed minimum in normalised IOPS (operations of `normalization_bytes` of the store, 8
    /// KiB by default), in effect while the disk has requests; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by
    /// default); no limit if absent. In each period of t seconds, the store gets at most `max_iops`
    /// × (t + c) operations and one more request, where the tolerance c is 0.02 s, or 0.08 s with
    /// `min_iops`. With `burst_iops`, the operations of the burst credit are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Maximum in bytes per second; no limit if absent. In each period of t seconds, the store gets
    /// at most `max_bytes_per_s` × (t + c) bytes and one more request, where the tolerance c is
    /// 0.02 s, or 0.08 s with `min_iops`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes_per_s: Option<ByteSize>,
    /// Weight in the distribution of capacity beyond the minimums, relative to the weights of other
    /// disks.
    #[serde(default = "default_weight")]
    pub weight: u16,
    /// Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by
    /// default) while the disk has burst credit, higher than `max_iops`; no bursts if absent.
    /// Requires `max_iops` and `burst_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_iops: Option<u64>,
    /// Longest time in seconds for which a disk with full credit can use `burst_iops`: the credit
    /// is at most (`burst_iops` − `max_iops`) × `burst_s` operations. The disk collects credit
    /// while it uses less than `max_iops`. Requires `burst_iops`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
}

impl QosPolicyConfig {
    /// Returns a policy with the given limits.
    pub const fn new(name: Name, kind: QosPolicyKind, limits: QosLimits) -> Self {
        let QosLimits { min_iops, max_iops, max_bytes_per_s, weight, burst_iops, burst_s } = limits;
        let shared = false;
        Self {
            name,
            kind,
            shared,
            min_iops,
            max_iops,
            max_bytes_per_s,
            weight,
            burst_iops,
            burst_s,
        }
    }

    /// Returns true if disks of several nodes may share the limits.
    pub const fn spans_nodes(&self) -> bool {
        self.shared && matches!(self.kind, QosPolicyKind::Aggregated)
    }

    /// Returns the limits of the policy.
    pub const fn limits(&self) -> QosLimits {
        QosLimits {
            min_iops: self.min_iops,
            max_iops: self.max_iops,
            max_bytes_per_s: self.max_bytes_per_s,
            weight: self.weight,
            burst_iops: self.burst_iops,
            burst_s: self.burst_s,
        }
    }
}

/// `[disk.qos]`: limits of one disk, equivalent to a dedicated policy for it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[serde(rename = "DiskQos")]
#[schema(as = DiskQos)]
pub struct QosLimits {
    /// Guaranteed minimum in normalised IOPS (operations of `normalization_bytes` of the store, 8
    /// KiB by default), in effect while the disk has requests; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by
    /// default); no limit if absent. In each period of t seconds, the store gets at most `max_iops`
    /// × (t + c) operations and one more request, where the tolerance c is 0.02 s, or 0.08 s with
    /// `min_iops`. With `burst_iops`, the operations of the burst credit are added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Maximum in bytes per second; no limit if absent. In each period of t seconds, the store gets
    /// at most `max_bytes_per_s` × (t + c) bytes and one more request, where the tolerance c is
    /// 0.02 s, or 0.08 s with `min_iops`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes_per_s: Option<ByteSize>,
    /// Weight in the distribution of capacity beyond the minimums, relative to the weights of other
    /// disks.
    pub weight: u16,
    /// Maximum in normalised IOPS (operations of `normalization_bytes` of the store, 8 KiB by
    /// default) while the disk has burst credit, higher than `max_iops`; no bursts if absent.
    /// Requires `max_iops` and `burst_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_iops: Option<u64>,
    /// Longest time in seconds for which a disk with full credit can use `burst_iops`: the credit
    /// is at most (`burst_iops` − `max_iops`) × `burst_s` operations. The disk collects credit
    /// while it uses less than `max_iops`. Requires `burst_iops`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
}

impl QosLimits {
    /// Limits of a disk without configuration: neither minimum nor maximum, and the default weight.
    pub const NONE: Self = Self {
        min_iops: None,
        max_iops: None,
        max_bytes_per_s: None,
        weight: default_weight(),
        burst_iops: None,
        burst_s: None,
    };

    /// Returns true if every limit has its default value.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for QosLimits {
    fn default() -> Self {
        Self::NONE
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_not(flag: &bool) -> bool {
    !*flag
}

const fn default_weight() -> u16 {
    100
}
