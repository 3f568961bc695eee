//! Observed state of offloads: what could be, what is switched on, what is, and who
//! does it.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who does what an offload is about, whenever a frame asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OffloadDoer {
    /// The guest, or whoever else sends or receives at the ends.
    Guest,
    /// The uplink's device.
    Nic,
    /// The host's kernel.
    Kernel,
    /// The switch, in software.
    Software,
    /// Whoever does it for the port that the frame leaves by.
    Egress,
    /// It is not done.
    Nobody,
}

impl fmt::Display for OffloadDoer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guest => "guest",
            Self::Nic => "nic",
            Self::Kernel => "kernel",
            Self::Software => "software",
            Self::Egress => "egress",
            Self::Nobody => "nobody",
        })
    }
}

/// One offload of a NIC, a host NIC or an uplink: what is, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OffloadStatus {
    /// `rx_checksum`, `tx_tcp4_segmentation`, …, seen from the guest, or on an uplink
    /// from the switch, which uses it.
    pub name: String,
    /// Whether the other side could: the guest's driver, the kernel behind a TAP, the
    /// uplink's device. Absent if that is not known: a virtio driver is not asked for
    /// what is switched off, and some kernels do not tell what a device can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported: Option<bool>,
    /// Whether its switch is on.
    pub enabled: bool,
    /// Whether it is used.
    pub effective: bool,
    /// Who does it.
    pub by: OffloadDoer,
    /// Why.
    pub reason: String,
}

/// What a network device does itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceFeaturesStatus {
    /// Why it is not known; absent if it is, or if the uplink is a TAP, which has no
    /// device behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Those features that matter here.
    pub features: Vec<DeviceFeatureStatus>,
}

/// One feature of a network device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceFeatureStatus {
    /// As `ethtool -k` calls it, like `tx-tcp-segmentation`.
    pub name: String,
    /// As `ethtool -k` words it: `on`, `off`, `on [fixed]`, `off [fixed]`,
    /// `on [requested off]`, `off [requested on]`.
    pub state: String,
}
