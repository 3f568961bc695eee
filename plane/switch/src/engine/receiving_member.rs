//! Frames received by a member of a team: acceptance, and the ports to which they may be delivered.

use suimon_forwarding::{DropReason, PortSlot, Verdict};
use suimon_frame::{Frame, MacAddr};
use suimon_quantity::Time;
use suimon_teaming::{IncomingDropReason, IncomingFrame, MemberSlot};

use super::teams::{TeamState, TeamStates};
use crate::published::{MemberTableSlot, PortRuntime, PublishedTables};

/// Member of a team that received a batch.
pub(super) struct ReceivingMember<'a> {
    /// Port of the member's device; not the port of the team.
    pub(super) port: &'a PortRuntime,
    team: &'a TeamState,
    /// Slot of the member in the team's distribution; `None` if the distribution does not contain
    /// it.
    slot: Option<MemberSlot>,
}

impl<'a> ReceivingMember<'a> {
    pub(super) fn from_slot(
        teams: &'a TeamStates,
        published: &'a PublishedTables,
        member: MemberTableSlot,
    ) -> Option<Self> {
        let team = teams.get(member.team_index)?;
        let port = published.ports.get(member.port_index)?;
        Some(Self { port, team, slot: team.slot(member.member_index) })
    }

    /// Returns true if an accepted frame may be delivered to the port in slot `egress`.
    #[inline]
    pub(super) fn may_deliver_to(&self, published: &PublishedTables, egress: PortSlot) -> bool {
        let port = published.ports.get(egress.index());
        let slot = self.slot.zip(port);
        slot.is_some_and(|(slot, port)| {
            self.team.distribution.forwards_to_port(slot, port.shared.id)
        })
    }

    /// Checks whether the team accepts frames from this member at all.
    ///
    /// # Errors
    /// The reason why they are dropped.
    fn takes(&self) -> Result<(), DropReason> {
        let distribution = &self.team.distribution;
        match self.slot {
            Some(slot) => distribution.check_member(slot).map_err(drop_reason),
            None if distribution.is_up() => Err(DropReason::NotCollecting),
            None => Err(DropReason::TeamDown),
        }
    }

    /// Returns true if a frame with this source address is a reflection of one that the team sent.
    #[inline]
    fn is_reflected(&self, now: Time, source: MacAddr) -> bool {
        let is_received_here = self.team.shared.recent_sources.was_sent_recently(source, now);
        self.team
            .distribution
            .is_reflected(&IncomingFrame { source, is_source_seen_locally: is_received_here })
    }

    /// Moves the accepted frames to the front of `frames`, in their order, and counts the others as
    /// dropped. Returns the number of accepted frames. The switch does not process the others and
    /// learns no addresses from them.
    pub(super) fn accept(&self, now: Time, frames: &mut [Frame]) -> usize {
        let tally = &self.port.shared.counters;
        if let Err(reason) = self.takes() {
            tally.count_rx_drop(reason, frames.len() as u64);
            return 0;
        }
        let mut accepted = 0;
        let mut last = None;
        for index in 0..frames.len() {
            let source = frames[index].source();
            let is_reflected = match last {
                Some((before, is_reflected)) if before == source => is_reflected,
                _ => self.is_reflected(now, source),
            };
            last = Some((source, is_reflected));
            if is_reflected {
                continue;
            }
            if accepted < index {
                frames.swap(accepted, index);
            }
            accepted += 1;
        }
        tally.count_rx_drop(DropReason::Reflected, (frames.len() - accepted) as u64);
        accepted
    }

    /// Replaces unicast verdicts by drops where another member receives a copy of the frame from
    /// which it is delivered.
    pub(super) fn drop_frames_of_other_members(
        &self,
        published: &PublishedTables,
        verdicts: &mut [Verdict],
    ) {
        if !self.team.distribution.filters_by_port() {
            return;
        }
        let mut last = None;
        for verdict in verdicts {
            let Verdict::Unicast { egress } = *verdict else { continue };
            let reaches = match last {
                Some((before, reaches)) if before == egress => reaches,
                _ => self.may_deliver_to(published, egress),
            };
            last = Some((egress, reaches));
            if !reaches {
                *verdict = Verdict::Drop(DropReason::OtherMember);
            }
        }
    }
}

fn drop_reason(reason: IncomingDropReason) -> DropReason {
    match reason {
        IncomingDropReason::TeamDown => DropReason::TeamDown,
        IncomingDropReason::NotCollecting => DropReason::NotCollecting,
        IncomingDropReason::Standby => DropReason::Standby,
        IncomingDropReason::NotPrimary => DropReason::NotPrimary,
        IncomingDropReason::Reflected => DropReason::Reflected,
        IncomingDropReason::AssignedToOtherMember => DropReason::OtherMember,
    }
}
