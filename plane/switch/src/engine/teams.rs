//! Teams: by which member a frame leaves.
//!
//! For all unicasts of a batch that is chosen before the first is handed over. Whether
//! that is of use is open (decision 15).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use suimon_forwarding::{DropReason, Verdict};
use suimon_frame::{BATCH_FRAMES_MAX, Coalesced, Frame, MacAddr};
use suimon_quantity::{Direction, PortId, ProcessorId, Time};
use suimon_teaming::{
    Bucket, Choice, Distribution, FlowletState, MEMBERS_MAX, MemberSlot, Origin, OutgoingKey,
};

use super::{Batch, Engine};
use crate::capture::CaptureTap;
use crate::published::{Published, TeamRuntime};
use crate::stages::Probe;
use crate::team_shared::{BucketTallies, TeamShared};
use crate::ways::Exit;

/// All teams, parallel to [`Published::teams`].
#[derive(Default)]
pub(super) struct Teams(Vec<Team>);

/// The place of no port: a frame for it is counted as lost already.
const NOWHERE: u32 = u32::MAX;

/// By place in a batch, where frames leave that go to a team.
pub(super) type Chosen = [u32; BATCH_FRAMES_MAX];

/// One team as one processor knows it.
pub(super) struct Team {
    port: PortId,
    /// In [`Published::ports`].
    place: usize,
    capture: Option<Arc<CaptureTap>>,
    pub(super) distribution: Arc<Distribution>,
    /// Places in [`Published::ports`]; [`NOWHERE`] of those that are not there.
    places: [u32; MEMBERS_MAX],
    /// Parallel to [`TeamRuntime::members`].
    slots: Vec<Option<MemberSlot>>,
    pub(super) shared: Arc<TeamShared>,
    carried: BucketTallies,
    /// That of the last frame's port.
    origin: Cell<Option<(PortId, Origin)>>,
    /// Which source was noted last in [`TeamShared::sent`], and when.
    noted: Cell<Option<(MacAddr, Time)>>,
}

impl Teams {
    pub(super) fn of(published: &Published, processor: ProcessorId) -> Self {
        Self(published.teams.iter().map(|team| Team::of(published, team, processor)).collect())
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&Team> {
        self.0.get(at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Team {
    fn of(published: &Published, team: &TeamRuntime, processor: ProcessorId) -> Self {
        let port = &published.ports[team.slot.index()];
        let mut new = Self {
            port: port.shared.id,
            place: team.slot.index(),
            capture: port.capture.clone(),
            distribution: Arc::clone(&team.distribution),
            places: [NOWHERE; MEMBERS_MAX],
            slots: Vec::new(),
            shared: Arc::clone(&team.shared),
            carried: team.shared.tallies_of(processor),
            origin: Cell::default(),
            noted: Cell::default(),
        };
        new.seat(team);
        new
    }

    /// Finds out which member is where.
    fn seat(&mut self, team: &TeamRuntime) {
        self.origin = Cell::default();
        self.places = [NOWHERE; MEMBERS_MAX];
        let slots = team.members.iter().map(|(id, _)| self.distribution.slot(*id));
        self.slots = slots.collect();
        for (slot, (_, place)) in self.slots.iter().zip(&team.members) {
            if let Some(slot) = slot {
                // Ports are counted by the control plane and come nowhere near 2^32.
                self.places[slot.index()] = *place as u32;
            }
        }
    }

    /// The slot of one of [`TeamRuntime::members`].
    pub(super) fn slot(&self, nth: usize) -> Option<MemberSlot> {
        self.slots.get(nth).copied().flatten()
    }

    /// Where a frame leaves and with which source, or that it is lost, which is counted.
    #[inline]
    fn place_for(&self, of: &Batch<'_>, frame: &Frame) -> (u32, Option<MacAddr>) {
        let Some(choice) = self.choose(of.now, of.from, frame) else {
            self.count_lost(of.published, DropReason::TeamDown);
            return (NOWHERE, None);
        };
        let place = self.places[choice.member.index()];
        if place == NOWHERE {
            self.count_lost(of.published, DropReason::EgressDown);
        }
        (place, choice.source)
    }

    /// Where a frame leaves; `None` if the team is down.
    #[inline]
    fn choose(&self, now: Time, ingress: PortId, frame: &Frame) -> Option<Choice> {
        let key = self.distribution.key(frame, self.origin(ingress));
        let choice = match self.distribution.bucket(&key) {
            None => self.distribution.choose(&key)?,
            Some(bucket) => self.choose_flowlet(&key, bucket, now, frame.len())?,
        };
        if choice.source.is_none() {
            self.note(frame.source(), now);
        }
        Some(choice)
    }

    /// All frames of a batch have one.
    #[inline]
    fn origin(&self, ingress: PortId) -> Origin {
        match self.origin.get() {
            Some((port, origin)) if port == ingress => origin,
            _ => {
                let origin = self.distribution.origin(ingress);
                self.origin.set(Some((ingress, origin)));
                origin
            }
        }
    }

    #[inline]
    fn choose_flowlet(
        &self,
        key: &OutgoingKey,
        bucket: Bucket,
        now: Time,
        bytes: usize,
    ) -> Option<Choice> {
        let mut choice = None;
        // An error says that the new state is the old one, or that the team is down.
        let _ = self.shared.flowlet(bucket)?.fetch_update(Relaxed, Relaxed, |number| {
            let state = FlowletState::from_u64(number);
            // A frame holds less than 2^32 bytes by far.
            let (chosen, next) = self.distribution.choose_flowlet(key, state, now, bytes as u32)?;
            choice = Some(chosen);
            (next != state).then_some(next.to_u64())
        });
        let choice = choice?;
        self.carried.get(bucket.index())?.add(bytes as u64);
        Some(choice)
    }

    #[cold]
    fn count_lost(&self, published: &Published, reason: DropReason) {
        if let Some(port) = published.ports.get(self.place) {
            port.shared.tally.drop_tx(reason, 1);
        }
    }

    /// A frame with this source leaves. What was noted at the same time is not again.
    #[inline]
    fn note(&self, source: MacAddr, now: Time) {
        if self.noted.get() != Some((source, now)) {
            self.noted.set(Some((source, now)));
            self.shared.sent.note(source, now);
        }
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

    /// Chooses for all frames of a batch that go to a team alone where they leave, and
    /// has them show the address that they leave with. A frame is asked about as it is,
    /// before it is cut into segments.
    #[inline(never)]
    pub(super) fn choose_members(
        &mut self,
        of: &Batch<'_>,
        coalesced: Coalesced,
        frames: &mut [Frame],
    ) {
        let batch = frames.iter_mut().zip(&self.verdicts).zip(&mut self.chosen);
        for (at, ((frame, verdict), chosen)) in batch.enumerate() {
            let Verdict::Unicast { egress } = *verdict else { continue };
            let Exit::Team(team) = self.ways.exit(egress.index()) else { continue };
            // What was joined to another frame leaves with that.
            if coalesced.is_absorbed(at) {
                continue;
            }
            let Some(team) = of.teams.get(team as usize) else { continue };
            let (place, source) = team.place_for(of, frame);
            *chosen = place;
            if let Some(source) = source {
                frame.set_source(source);
            }
        }
    }

    /// Takes a frame for a team to the member that was chosen for it.
    #[inline]
    pub(super) fn deliver_by_member(
        &mut self,
        of: &Batch<'_>,
        (team, place): (u32, u32),
        frame: &mut Frame,
        is_only: bool,
        probe: &mut Probe<'_>,
    ) {
        let Some(team) = of.teams.get(team as usize).filter(|_| place != NOWHERE) else { return };
        if let Some(tap) = &team.capture {
            frame.gather();
            tap.take(of.now, Direction::Egress, frame);
        }
        match self.ways.exit(place as usize) {
            Exit::Sink(sink) => self.transmit(sink as usize, frame, probe),
            _ => self.deliver_to_queue(of, place as usize, frame, is_only, probe),
        }
    }

    /// Takes a frame that goes to other ports too to one member of a team.
    pub(super) fn flood_to_team(
        &mut self,
        of: &Batch<'_>,
        team: u32,
        frame: &mut Frame,
        probe: &mut Probe<'_>,
    ) {
        let Some(chooser) = of.teams.get(team as usize) else { return };
        let (place, source) = chooser.place_for(of, frame);
        let original = frame.source();
        if let Some(source) = source {
            frame.set_source(source);
        }
        self.deliver_by_member(of, (team, place), frame, false, probe);
        if source.is_some() {
            frame.set_source(original);
        }
    }
}
