//! What follows from what a team hears, for the teams' thread to carry out once the plane
//! has the new distributions.

use std::collections::BTreeMap;

use suimon_quantity::{PortId, SwitchId};
use suimon_teaming::lacp::SlowFrame;

use crate::events::Draft;

/// What is left to be done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// LACPDUs and answers to Markers, by the member's port. LACP bounds them.
    pub(crate) frames: Vec<(PortId, SlowFrame)>,
    /// By port of the switch: whose addresses are to be announced, and where.
    pub(crate) announcements: BTreeMap<PortId, AnnounceAt>,
    /// Events, which the log joins if they are repeated.
    pub(crate) drafts: Vec<Draft>,
}

/// Where a port's addresses are to be announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnounceAt {
    /// The port's switch.
    pub(crate) switch: SwitchId,
    /// The port of the member's device.
    pub(crate) member: PortId,
}
