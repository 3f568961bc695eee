//! Desired state of Storage QoS: what disks are entitled to and held to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ByteSize, Name};

/// Whether disks of a policy each have its limits, or all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum QosPolicyKind {
    /// Each disk by itself.
    #[default]
    Dedicated,
    /// All its disks on a store together.
    Aggregated,
}

/// `[[qos_policy]]`: limits that several disks refer to. Operations are normalised: a
/// request counts as one for each `normalization_bytes` of its store that it has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosPolicyConfig {
    /// Unique among QoS policies.
    pub name: Name,
    /// `dedicated`: each disk of the policy has these limits. `aggregated`: all its disks on a store
    /// have them together.
    #[serde(default)]
    pub kind: QosPolicyKind,
    /// True: the policy exists on all nodes of the cluster with the same limits, and a change on one
    /// node applies to all. If it is aggregated, its disks on a shared store have the limits together
    /// across nodes. Without effect outside of a cluster.
    #[serde(default, skip_serializing_if = "is_not")]
    pub shared: bool,
    /// Minimum of normalised operations per second, guaranteed while there is demand, 1 to
    /// 1 000 000 000; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Maximum of normalised operations per second, 1 to 1 000 000 000; no limit if absent. In any
    /// interval, 20 ms of it (80 ms with a minimum) and one request may come on top, and a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Maximum of bytes per second, 512 to 1 TiB; no limit if absent. The same comes on top as with
    /// `max_iops`, except a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes_per_s: Option<ByteSize>,
    /// Share of the capacity beyond all minimums, in proportion to the weights of others, 1 to
    /// 10 000.
    #[serde(default = "default_weight")]
    pub weight: u16,
    /// Maximum during a burst, in normalised operations per second, above `max_iops` and up to
    /// 1 000 000 000; needs `burst_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_iops: Option<u64>,
    /// Length of a burst after idle time, in seconds, 1 to 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
}

impl QosPolicyConfig {
    /// A policy with these limits.
    pub const fn new(name: Name, kind: QosPolicyKind, limits: DiskQos) -> Self {
        let DiskQos { min_iops, max_iops, max_bytes_per_s, weight, burst_iops, burst_s } = limits;
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

    /// Whether disks of several nodes may have its limits together.
    pub const fn spans_nodes(&self) -> bool {
        self.shared && matches!(self.kind, QosPolicyKind::Aggregated)
    }

    /// Its limits.
    pub const fn limits(&self) -> DiskQos {
        DiskQos {
            min_iops: self.min_iops,
            max_iops: self.max_iops,
            max_bytes_per_s: self.max_bytes_per_s,
            weight: self.weight,
            burst_iops: self.burst_iops,
            burst_s: self.burst_s,
        }
    }
}

/// `[disk.qos]`: limits of one disk, as a dedicated policy of its own would have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiskQos {
    /// Minimum of normalised operations per second, guaranteed while there is demand, 1 to
    /// 1 000 000 000; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Maximum of normalised operations per second, 1 to 1 000 000 000; no limit if absent. In any
    /// interval, 20 ms of it (80 ms with a minimum) and one request may come on top, and a burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Maximum of bytes per second, 512 to 1 TiB; no limit if absent. The same comes on top as with
    /// `max_iops`, except a burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes_per_s: Option<ByteSize>,
    /// Share of the capacity beyond all minimums, in proportion to the weights of others, 1 to
    /// 10 000.
    pub weight: u16,
    /// Maximum during a burst, in normalised operations per second, above `max_iops` and up to
    /// 1 000 000 000; needs `burst_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_iops: Option<u64>,
    /// Length of a burst after idle time, in seconds, 1 to 3600.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
}

impl DiskQos {
    /// No minimum, no maximum and the weight that all have.
    pub const NONE: Self = Self {
        min_iops: None,
        max_iops: None,
        max_bytes_per_s: None,
        weight: default_weight(),
        burst_iops: None,
        burst_s: None,
    };

    /// Whether everything stands as it does where nothing is written.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for DiskQos {
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
