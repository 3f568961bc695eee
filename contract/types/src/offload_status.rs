//! Observed state of offloads: support, configuration, use, and the component that performs each.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Component that performs an offload for frames that require it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OffloadDoer)]
pub enum OffloadPerformer {
    /// The guest, or another endpoint of the traffic.
    Guest,
    /// Network device of the uplink.
    Nic,
    /// Kernel of the host, on the path of the frames.
    Kernel,
    /// Virtual switch, in software.
    Software,
    /// The component of the egress port.
    Egress,
    /// No component: the offload is not performed.
    #[serde(rename = "nobody")]
    None,
}

impl fmt::Display for OffloadPerformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guest => "guest",
            Self::Nic => "nic",
            Self::Kernel => "kernel",
            Self::Software => "software",
            Self::Egress => "egress",
            Self::None => "nobody",
        })
    }
}

/// State of one offload of a NIC, host NIC or uplink, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OffloadStatus {
    /// Name, such as `rx_checksum` or `tx_tcp4_segmentation`, as seen by the guest; on an uplink,
    /// as seen by the switch, which uses the device.
    pub name: String,
    /// True if the other side supports the offload: the guest's driver, the kernel of a TAP, the
    /// uplink's device. Absent if unknown: disabled features are not offered to a virtio driver,
    /// and some kernels do not report a device's features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported: Option<bool>,
    /// True if the configuration enables the offload.
    pub enabled: bool,
    /// True if the offload is in use.
    pub effective: bool,
    /// Component that performs the offload.
    #[serde(rename = "by")]
    pub performer: OffloadPerformer,
    /// Reason for the offload's state.
    pub reason: String,
}

/// Offload features of a network device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceFeaturesStatus {
    /// Reason why the features are unknown; absent if they are known, and for a TAP uplink, which
    /// has no hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "unknown")]
    pub unknown_reason: Option<String>,
    /// Features relevant to the switch.
    pub features: Vec<DeviceFeatureStatus>,
}

/// Feature of a network device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceFeatureStatus {
    /// Name as in `ethtool -k`, such as `tx-tcp-segmentation`.
    pub name: String,
    /// State as in `ethtool -k`: `on`, `off`, `on [fixed]`, `off [fixed]`, `on [requested off]`,
    /// `off [requested on]`.
    pub state: String,
}
