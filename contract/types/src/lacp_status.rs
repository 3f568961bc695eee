//! Observed state of LACP on one link. States are called as the standard calls them
//! (IEEE 802.1AX-2014, 6.4), in small letters.

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use utoipa::ToSchema;

/// LACP on the link of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LacpMemberStatus {
    /// Our end.
    pub actor: LacpPortStatus,
    /// The other end, as it was heard last or is assumed.
    pub partner: LacpPortStatus,
    /// State of the Receive machine, like `current`.
    pub receive: String,
    /// State of the Periodic Transmission machine, like `slow-periodic`.
    pub periodic: String,
    /// State of the Mux machine, like `waiting`.
    pub mux: String,
    /// What the Selection Logic decided: `selected`, `standby` or `unselected`.
    pub selected: String,
    /// Whether frames from it are taken.
    pub collecting: bool,
    /// Whether frames may be sent on it.
    pub distributing: bool,
    /// State of our churn detection, like `churn`: we do not get in sync.
    pub actor_churn: String,
    /// State of churn detection for the other end.
    pub partner_churn: String,
    /// The port of this host that the link leads back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looped_port: Option<u16>,
    /// Milliseconds since the last LACPDU was taken; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pdu_age_ms: Option<u64>,
    /// What was counted.
    pub counters: LacpCounters,
}

/// One end of a link. Priorities: the lower number goes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LacpPortStatus {
    /// Priority of the System.
    pub system_priority: u16,
    /// The System's address; all zero if no System is known.
    #[schema(value_type = String)]
    pub system: MacAddr,
    /// Ports of one System and one key can aggregate.
    pub key: u16,
    /// Priority of the port.
    pub port_priority: u16,
    /// The port's number within its System.
    pub port: u16,
    /// The bits of its state that are set, such as `activity` and `synchronization`.
    pub state: Vec<String>,
}

/// Counters of LACP on one link, since it joined the team (IEEE 802.1AX-2014, 7.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LacpCounters {
    /// LACPDUs received that were valid.
    pub lacpdus_rx: u64,
    /// LACPDUs sent.
    pub lacpdus_tx: u64,
    /// Markers received.
    pub markers_rx: u64,
    /// Markers that were left without response: too many at a time, or no link.
    pub markers_unanswered: u64,
    /// Marker Responses received, for which nobody here asks.
    pub marker_responses_rx: u64,
    /// Marker Responses sent.
    pub marker_responses_tx: u64,
    /// Frames of the slow protocols that were malformed, or of a subtype that cannot be.
    pub illegal_rx: u64,
    /// PDUs of other slow protocols.
    pub unknown_rx: u64,
    /// LACPDUs that named another partner than the one that was known: cables were
    /// changed, or somebody forges.
    pub partner_changes: u64,
    /// LACPDUs of this very host.
    pub loopbacks: u64,
}
