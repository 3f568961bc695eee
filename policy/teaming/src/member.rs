//! A team's member: an uplink of the host.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;

/// A member of a team, for as long as the uplink exists on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemberId(pub u32);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A member as it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpec {
    /// Which uplink.
    pub id: MemberId,
    /// Its own address.
    pub mac: MacAddr,
}

/// What is known of a member's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberLink {
    /// Whether the link carries frames.
    pub up: bool,
    /// Megabits per second; 0 if the device does not say, then it counts as the
    /// slowest of the team that does.
    pub speed_mbps: u32,
    /// Whether LACP lets frames out (IEEE 802.1AX-2020, section 6.4.13). Means
    /// nothing in other modes.
    pub distributing: bool,
    /// Whether LACP lets frames in. Means nothing in other modes.
    pub collecting: bool,
}
