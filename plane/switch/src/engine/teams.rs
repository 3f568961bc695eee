//! Teams: by which member a frame leaves, and which frames that arrive on one are taken.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use suimon_forwarding::{DropReason, PortSlot, Verdict};
use suimon_frame::{Frame, MacAddr, VlanTag};
use suimon_quantity::{Direction, PortId, ProcessorId, Time};
use suimon_teaming::{
    Acceptance, Choice, Distribution, FlowletState, Incoming, IncomingDrop, MEMBERS_MAX, MemberSlot,
};

use super::{Batch, Engine};
use crate::published::{MemberPlace, PortRuntime, Published, TeamRuntime};
use crate::stages::Probe;
use crate::team_shared::{BucketTallies, TeamShared};

/// All teams, parallel to [`Published::teams`].
#[derive(Default)]
pub(crate) struct Teams(Vec<Team>);

/// One team as one processor knows it.
struct Team {
    port: PortId,
    /// In [`Published::ports`].
    place: usize,
    distribution: Arc<Distribution>,
    /// Places in [`Published::ports`].
    places: [Option<usize>; MEMBERS_MAX],
    /// Parallel to [`TeamRuntime::members`].
    slots: Vec<Option<MemberSlot>>,
    shared: Arc<TeamShared>,
    carried: BucketTallies,
    last: Option<Last>,
}

/// What was chosen for the last frame. It is good for the next one of its flow at the
/// same time: a flowlet's state would not change either, unless the frame is longer.
struct Last {
    now: Time,
    ingress: PortId,
    alike: Alike,
    bytes: usize,
    bucket: Option<usize>,
    choice: Choice,
}

/// All of a TCP or UDP packet that its key is made of, and some more.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Alike {
    tag: Option<VlanTag>,
    /// Addresses, type, version and length of the header.
    link: [u64; 2],
    /// Fragment and protocol.
    kind: u64,
    /// Of IPv4 the last three are 0.
    addresses: [u64; 4],
    ports: u32,
}

impl Alike {
    /// Without options and extensions, as nearly all are; `None` for others.
    #[inline]
    fn of(frame: &Frame) -> Option<Self> {
        const PORTED: [u64; 2] = [6, 17];
        let head = frame.front().first_chunk::<38>()?;
        let link = [word(head, 0)?, word(head, 8)?];
        let tag = frame.meta.tag;
        // The words are big endian, so that a byte's place counts from the left.
        match link[1] as u32 >> 8 {
            0x0008_0045 => {
                // Without the type of service, and without the time to live.
                let kind = word(head, 20)? >> 32 & 0xffff_00ff;
                let addresses = [word(head, 26)?, 0, 0, 0];
                let ports = word(head, 30)? as u32;
                let link = [link[0], link[1] & !0xff];
                let is_ported = PORTED.contains(&(kind & 0xff));
                is_ported.then_some(Self { tag, link, kind, addresses, ports })
            }
            kind if kind >> 4 == 0x0008_6dd6 => {
                let head = frame.front().first_chunk::<58>()?;
                let kind = word(head, 14)? >> 8 & 0xff;
                let addresses =
                    [word(head, 22)?, word(head, 30)?, word(head, 38)?, word(head, 46)?];
                let ports = word(head, 50)? as u32;
                let link = [link[0], link[1] & !0xfff];
                PORTED.contains(&kind).then_some(Self { tag, link, kind, addresses, ports })
            }
            _ => None,
        }
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Teams {
    pub(crate) fn of(published: &Published, processor: ProcessorId) -> Self {
        Self(published.teams.iter().map(|team| Team::of(published, team, processor)).collect())
    }

    fn get(&self, at: usize) -> Option<&Team> {
        self.0.get(at)
    }
}

impl Team {
    fn of(published: &Published, team: &TeamRuntime, processor: ProcessorId) -> Self {
        let mut new = Self {
            port: published.ports[team.slot.index()].shared.id,
            place: team.slot.index(),
            distribution: Arc::clone(&team.distribution),
            places: [None; MEMBERS_MAX],
            slots: Vec::new(),
            shared: Arc::clone(&team.shared),
            carried: team.shared.tallies_of(processor),
            last: None,
        };
        new.seat(team);
        new
    }

    /// Finds out which member is where.
    fn seat(&mut self, team: &TeamRuntime) {
        self.last = None;
        self.places = [None; MEMBERS_MAX];
        let slots = team.members.iter().map(|(id, _)| self.distribution.slot(*id));
        self.slots = slots.collect();
        for (slot, (_, place)) in self.slots.iter().zip(&team.members) {
            if let Some(slot) = slot {
                self.places[slot.index()] = Some(*place);
            }
        }
    }

    /// Where a frame leaves; `None` if the team is down.
    #[inline]
    fn choose(&mut self, now: Time, ingress: PortId, frame: &Frame) -> Option<Choice> {
        let alike = Alike::of(frame);
        let bytes = frame.len();
        let is_same = |last: &&Last| {
            last.now == now
                && last.ingress == ingress
                && Some(last.alike) == alike
                && (last.bucket.is_none() || bytes <= last.bytes)
        };
        if let Some(last) = self.last.as_ref().filter(is_same) {
            if let Some(tally) = last.bucket.and_then(|bucket| self.carried.get(bucket)) {
                tally.add(bytes as u64);
            }
            return Some(last.choice);
        }
        let (choice, bucket) = self.choose_anew(now, ingress, frame)?;
        if choice.source.is_none() {
            self.shared.sent.note(frame.source(), now);
        }
        self.last = alike.map(|alike| Last { now, ingress, alike, bytes, bucket, choice });
        Some(choice)
    }

    fn choose_anew(
        &self,
        now: Time,
        ingress: PortId,
        frame: &Frame,
    ) -> Option<(Choice, Option<usize>)> {
        let key = self.distribution.key(frame, ingress);
        let Some(bucket) = self.distribution.bucket(&key) else {
            return Some((self.distribution.choose(&key)?, None));
        };
        // A frame holds less than 2^32 bytes by far.
        let bytes = frame.len() as u32;
        let mut choice = None;
        // An error says that the new state is the old one, or that the team is down.
        let _ = self.shared.flowlet(bucket)?.fetch_update(Relaxed, Relaxed, |number| {
            let state = FlowletState::from_u64(number);
            let (chosen, next) = self.distribution.choose_flowlet(&key, state, now, bytes)?;
            choice = Some(chosen);
            (next != state).then_some(next.to_u64())
        });
        let choice = choice?;
        self.carried.get(bucket.index())?.add(u64::from(bytes));
        Some((choice, Some(bucket.index())))
    }
}

/// The member that a batch came in by.
pub(super) struct Arrival<'a> {
    /// The member's own.
    pub(super) port: &'a PortRuntime,
    distribution: Arc<Distribution>,
    shared: &'a TeamShared,
    /// `None` if the distribution does not have it.
    slot: Option<MemberSlot>,
}

impl Arrival<'_> {
    /// Whether a frame that was taken goes to this port.
    #[inline]
    pub(super) fn reaches(&self, published: &Published, egress: PortSlot) -> bool {
        let port = published.ports.get(egress.index());
        let slot = self.slot.zip(port);
        slot.is_some_and(|(slot, port)| self.distribution.reaches(slot, port.shared.id))
    }

    fn judge(&self, now: Time, frame: &Frame) -> Option<DropReason> {
        let slot = match self.slot {
            Some(slot) => slot,
            None if self.distribution.is_up() => return Some(DropReason::NotCollecting),
            None => return Some(DropReason::TeamDown),
        };
        let is_heard_here = self.shared.sent.holds(frame.source(), now);
        match self.distribution.accepts(slot, &Incoming::of(frame, is_heard_here)) {
            Acceptance::Accept => None,
            Acceptance::Drop(reason) => Some(reason_of(reason)),
        }
    }

    /// Puts the frames that are taken first, in their order, and counts the others;
    /// says how many are taken. So the switch does not see the others, and learns
    /// nothing from them.
    pub(super) fn accept(&self, now: Time, frames: &mut [Frame]) -> usize {
        let mut taken = 0;
        let mut last: Option<(MacAddr, Option<DropReason>)> = None;
        for at in 0..frames.len() {
            let source = frames[at].source();
            let dropped = match last {
                Some((before, dropped)) if before == source => dropped,
                _ => self.judge(now, &frames[at]),
            };
            last = Some((source, dropped));
            match dropped {
                Some(reason) => self.port.shared.tally.drop_rx(reason, 1),
                None => {
                    frames.swap(taken, at);
                    taken += 1;
                }
            }
        }
        taken
    }

    /// Leaves out what another member's copy is for.
    pub(super) fn leave_to_others(&self, published: &Published, verdicts: &mut [Verdict]) {
        if !self.distribution.is_by_port() {
            return;
        }
        for verdict in verdicts {
            if let Verdict::Unicast { egress } = *verdict {
                if !self.reaches(published, egress) {
                    *verdict = Verdict::Drop(DropReason::OtherMember);
                }
            }
        }
    }
}

fn reason_of(reason: IncomingDrop) -> DropReason {
    match reason {
        IncomingDrop::TeamDown => DropReason::TeamDown,
        IncomingDrop::NotCollecting => DropReason::NotCollecting,
        IncomingDrop::Standby => DropReason::Standby,
        IncomingDrop::NotPrimary => DropReason::NotPrimary,
        IncomingDrop::Reflected => DropReason::Reflected,
        IncomingDrop::OtherMember => DropReason::OtherMember,
    }
}

impl Engine {
    /// From now on this team's frames go by this distribution.
    pub(crate) fn set_distribution(&mut self, port: PortId, distribution: &Arc<Distribution>) {
        let teams = self.teams.0.iter_mut().zip(&self.published.teams);
        for (team, published) in teams.filter(|(team, _)| team.port == port) {
            team.distribution = Arc::clone(distribution);
            team.seat(published);
        }
    }

    pub(super) fn arrival<'a>(
        &self,
        published: &'a Published,
        member: MemberPlace,
    ) -> Option<Arrival<'a>> {
        let team = self.teams.get(member.team)?;
        Some(Arrival {
            port: published.ports.get(member.place)?,
            distribution: Arc::clone(&team.distribution),
            shared: &published.teams.get(member.team)?.shared,
            slot: team.slots.get(member.nth).copied().flatten(),
        })
    }

    /// Takes one frame to one member of a team. The member is chosen for the frame as
    /// it is, before it is cut into segments.
    pub(super) fn deliver_to_team(
        &mut self,
        of: &Batch<'_>,
        team: usize,
        frame: &mut Frame,
        is_only: bool,
        probe: &mut Probe<'_>,
    ) {
        let Some(team) = self.teams.0.get_mut(team) else { return };
        let Some(port) = of.published.ports.get(team.place) else { return };
        let Some(choice) = team.choose(of.now, of.port.shared.id, frame) else {
            return port.shared.tally.drop_tx(DropReason::TeamDown, 1);
        };
        let Some(place) = team.places[choice.member.index()] else {
            return port.shared.tally.drop_tx(DropReason::EgressDown, 1);
        };
        let original = choice.source.map(|source| {
            let original = frame.source();
            frame.set_source(source);
            original
        });
        if let Some(tap) = &port.capture {
            frame.gather();
            tap.take(of.now, Direction::Egress, frame);
        }
        self.deliver(of, place, frame, is_only, probe);
        if let Some(original) = original.filter(|_| !is_only) {
            frame.set_source(original);
        }
    }
}

#[cfg(test)]
#[path = "teams_tests.rs"]
mod tests;
