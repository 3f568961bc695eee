//! Actions that result from team events, and that the team thread executes after it has passed new
//! distributions to the plane.

use std::collections::BTreeMap;

use suimon_quantity::{PortId, SwitchId};
use suimon_teaming::lacp::SlowFrame;

use crate::events::EventDraft;

/// Actions that the team thread has not executed yet: frames, announcements and events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// LACPDUs and Marker responses by the member's port. Their number is bounded by LACP's rate
    /// limit.
    pub(crate) frames: Vec<(PortId, SlowFrame)>,
    /// Ports of the switch with addresses to announce, and the member that sends the announcements.
    pub(crate) announcements: BTreeMap<PortId, AnnouncementTarget>,
    /// Events; the log combines repeated ones.
    pub(crate) drafts: Vec<EventDraft>,
}

/// Switch and team member by which a port's addresses are announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncementTarget {
    /// Switch that the port belongs to.
    pub(crate) switch: SwitchId,
    /// Port of the member's device.
    pub(crate) member: PortId,
}
