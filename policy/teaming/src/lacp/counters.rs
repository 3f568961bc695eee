//! What a port counts.

use serde::{Deserialize, Serialize};

/// Counters of one member, since it joined (IEEE 802.1AX-2014, 7.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// LACPDUs received that were valid.
    pub lacpdus_rx: u64,
    /// LACPDUs sent.
    pub lacpdus_tx: u64,
    /// Markers received.
    pub markers_rx: u64,
    /// Markers that were left without response: too many at a time, or no link.
    pub markers_unanswered: u64,
    /// Marker Responses received; nobody here asks for them.
    pub marker_responses_rx: u64,
    /// Marker Responses sent.
    pub marker_responses_tx: u64,
    /// Frames of the slow protocols' type that were malformed, or of a subtype that
    /// cannot be.
    pub illegal_rx: u64,
    /// PDUs of other slow protocols, and frames that are of none.
    pub unknown_rx: u64,
    /// LACPDUs that named another Partner on a selected member whose Partner was
    /// known: cables were changed, or somebody forges.
    pub partner_changes: u64,
    /// LACPDUs of our own System.
    pub loopbacks: u64,
}
