//! LACP counters of a member.

use serde::{Deserialize, Serialize};

/// LACP counters of one member since it joined the team (IEEE 802.1AX-2014, 7.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Valid LACPDUs received on the member.
    pub lacpdus_rx: u64,
    /// LACPDUs sent on the member.
    pub lacpdus_tx: u64,
    /// Markers received on the member.
    pub markers_rx: u64,
    /// Markers not answered: rate limit exceeded, or link down.
    pub markers_unanswered: u64,
    /// Marker Responses received. This implementation sends no Markers.
    pub marker_responses_rx: u64,
    /// Marker Responses sent on the member.
    pub marker_responses_tx: u64,
    /// Frames of the slow protocols' type that are malformed or have an invalid subtype.
    pub illegal_rx: u64,
    /// PDUs of other slow protocols, and frames that belong to no slow protocol.
    pub unknown_rx: u64,
    /// LACPDUs from another Partner than the recorded one, received while the member was selected.
    /// Caused by recabling or forged frames.
    pub partner_changes: u64,
    /// LACPDUs received that this System had sent.
    pub loopbacks: u64,
}
