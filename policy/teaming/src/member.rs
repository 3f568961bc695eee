//! Team members, which are uplinks of the host.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;

/// Identifier of a team member, stable for the lifetime of the uplink on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemberId(pub u32);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Configuration of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpec {
    /// Identifier of the member, that of its uplink.
    pub id: MemberId,
    /// Own MAC address of the uplink.
    pub mac: MacAddr,
}

/// Link state of a member, as reported to the team.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberLink {
    /// True if the link is up.
    pub up: bool,
    /// Speed in Mbit/s; 0 if unknown, which counts as the lowest known speed of the team.
    pub speed_mbps: u32,
    /// True if LACP permits sending (IEEE 802.1AX-2020, section 6.4.13). Ignored in other modes.
    pub distributing: bool,
    /// True if LACP permits receiving. Ignored in other modes.
    pub collecting: bool,
}
