//! Observed state of LACP on one link. State names are those of IEEE 802.1AX-2014, section 6.4, in
//! lower case.

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use utoipa::ToSchema;

/// State of LACP on a member's link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LacpMemberStatus {
    /// Local end of the link (Actor).
    pub actor: LacpPortStatus,
    /// Remote end (Partner), as last received or as assumed by default.
    pub partner: LacpPortStatus,
    /// State of the Receive machine, such as `current`.
    #[serde(rename = "receive")]
    pub receive_state: String,
    /// State of the Periodic Transmission machine, such as `slow-periodic`.
    #[serde(rename = "periodic")]
    pub periodic_state: String,
    /// State of the Mux machine, such as `waiting`.
    #[serde(rename = "mux")]
    pub mux_state: String,
    /// Result of the Selection Logic: `selected`, `standby` or `unselected`.
    #[serde(rename = "selected")]
    pub selection: String,
    /// True if frames received on the link are accepted.
    pub collecting: bool,
    /// True if frames may be sent on the link.
    pub distributing: bool,
    /// State of Actor churn detection, such as `churn`: the Actor does not reach synchronization.
    pub actor_churn: String,
    /// State of Partner churn detection.
    pub partner_churn: String,
    /// Port of this host that the link is looped back to; absent without a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looped_port: Option<u16>,
    /// Time since the last accepted LACPDU in ms; absent if none was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pdu_age_ms: Option<u64>,
    /// Counters of LACP and Marker PDUs.
    pub counters: LacpCounters,
}

/// One end of a link. Lower priority values take precedence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LacpPortStatus {
    /// System priority of this end.
    pub system_priority: u16,
    /// MAC address of the System; all zero if unknown.
    #[schema(value_type = String)]
    pub system: MacAddr,
    /// Aggregation key. Ports of one System with equal keys can aggregate.
    pub key: u16,
    /// Port priority of this end.
    pub port_priority: u16,
    /// Number of the port within its System.
    pub port: u16,
    /// State bits that are set, such as `activity` and `synchronization`.
    pub state: Vec<String>,
}

/// Counters of LACP on one link since it joined the team (IEEE 802.1AX-2014, section 7.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LacpCounters {
    /// Valid LACPDUs received on the link.
    pub lacpdus_rx: u64,
    /// LACPDUs sent on the link.
    pub lacpdus_tx: u64,
    /// Marker PDUs received on the link.
    pub markers_rx: u64,
    /// Marker PDUs without a response: rate limit exceeded, or link down.
    pub markers_unanswered: u64,
    /// Marker Response PDUs received. This host sends no Marker PDUs.
    pub marker_responses_rx: u64,
    /// Marker Response PDUs sent on the link.
    pub marker_responses_tx: u64,
    /// Slow Protocols frames that were malformed or had an illegal subtype.
    pub illegal_rx: u64,
    /// PDUs of other Slow Protocols.
    pub unknown_rx: u64,
    /// LACPDUs that named a partner other than the known one: cables were changed, or LACPDUs are
    /// forged.
    pub partner_changes: u64,
    /// LACPDUs that originated from this host.
    pub loopbacks: u64,
}
