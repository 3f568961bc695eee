//! Properties common to all frames of a batch.

use suimon_forwarding::PortSlot;
use suimon_quantity::{PortId, Time};

use super::receiving_member::ReceivingMember;
use super::teams::TeamStates;
use crate::published::{PortRuntime, PublishedTables};

/// Source of a batch, and the tables under which it is forwarded.
pub(super) struct BatchContext<'a> {
    pub(super) now: Time,
    pub(super) published: &'a PublishedTables,
    /// Slot of the port through which the switch receives the frames.
    pub(super) ingress: PortSlot,
    pub(super) port: &'a PortRuntime,
    /// Identifier of `port`.
    pub(super) port_id: PortId,
    pub(super) teams: &'a TeamStates,
    /// Member that received the frames; `None` if the port is not a team.
    pub(super) receiving_member: Option<ReceivingMember<'a>>,
}
