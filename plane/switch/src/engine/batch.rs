//! Properties common to all frames of a batch.

use suimon_forwarding::PortSlot;
use suimon_quantity::{PortId, Time};

use super::arrivals::ReceivingMember;
use super::teams::Teams;
use crate::published::{PortRuntime, Published};

/// Source of a batch, and the tables under which it is forwarded.
pub(super) struct Batch<'a> {
    pub(super) now: Time,
    pub(super) published: &'a Published,
    /// Slot of the port through which the switch receives the frames.
    pub(super) ingress: PortSlot,
    pub(super) port: &'a PortRuntime,
    /// Identifier of `port`.
    pub(super) from: PortId,
    pub(super) teams: &'a Teams,
    /// Member that received the frames; `None` if the port is not a team.
    pub(super) receiving_member: Option<ReceivingMember<'a>>,
}
