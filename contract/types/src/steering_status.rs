//! Observed state of the classification of an uplink's received frames.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use utoipa::ToSchema;

use crate::Name;

/// Component that distributes received frames to the queues of NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SteeringMode {
    /// The device, for at least one NIC: its frames arrive on a dedicated receive queue.
    Hardware,
    /// The switch, for all NICs.
    Software,
}

/// Classification of frames received by an uplink, by destination address and VLAN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SteeringStatus {
    /// Component that classifies received frames.
    pub mode: SteeringMode,
    /// Number of receive queues of the uplink.
    pub queues: u16,
    /// True if frames of other NICs do not arrive on queues dedicated to a NIC.
    #[serde(rename = "exclusive")]
    pub queues_are_exclusive: bool,
    /// Reason why the device classifies for no NIC, or not for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// NICs with a dedicated receive queue, by queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<SteeredNic>,
}

/// NIC with a dedicated receive queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SteeredNic {
    /// Name of the NIC.
    pub nic: Name,
    /// Destination address of the frames.
    #[schema(value_type = String)]
    pub mac: MacAddr,
    /// VLAN of the frames; absent if the device's rule does not match the VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Receive queue, counted from 0.
    pub queue: u16,
}

/// Formats as `hardware, 6 of 8 queues` or `software: the device receives with one queue`.
impl fmt::Display for SteeringStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            SteeringMode::Software => f.write_str("software")?,
            SteeringMode::Hardware => {
                write!(f, "hardware, {} of {} queues", self.nics.len(), self.queues)?;
                if !self.queues_are_exclusive {
                    f.write_str(", to which other frames come too")?;
                }
            }
        }
        match (self.mode, &self.reason) {
            (_, None) => Ok(()),
            (SteeringMode::Software, Some(reason)) => write!(f, ": {reason}"),
            (SteeringMode::Hardware, Some(reason)) => write!(f, "; {reason}"),
        }
    }
}

/// Formats as `queue 2, to 52:54:00:12:34:56 in VLAN 10`.
impl fmt::Display for SteeredNic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {}, to {}", self.queue, self.mac)?;
        self.vlan.map_or(Ok(()), |vlan| write!(f, " in VLAN {vlan}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classifier_is_displayed_in_one_line() {
        let web = SteeredNic {
            nic: "web".parse().unwrap(),
            mac: MacAddr::new([0x52, 0x54, 0, 0x12, 0x34, 0x56]),
            vlan: Some(10),
            queue: 1,
        };
        let db = SteeredNic { vlan: None, queue: 2, ..web.clone() };
        assert_eq!(web.to_string(), "queue 1, to 52:54:00:12:34:56 in VLAN 10");
        assert_eq!(db.to_string(), "queue 2, to 52:54:00:12:34:56");
        let hardware = SteeringStatus {
            mode: SteeringMode::Hardware,
            queues: 4,
            queues_are_exclusive: true,
            reason: None,
            nics: vec![web, db],
        };
        assert_eq!(hardware.to_string(), "hardware, 2 of 4 queues");
        let reason = Some("no more".to_owned());
        let shared = SteeringStatus { queues_are_exclusive: false, reason, ..hardware.clone() };
        let text = "hardware, 2 of 4 queues, to which other frames come too; no more";
        assert_eq!(shared.to_string(), text);
        let (mode, nics) = (SteeringMode::Software, Vec::new());
        let software = SteeringStatus { mode, nics, ..shared };
        assert_eq!(software.to_string(), "software: no more");
    }
}
