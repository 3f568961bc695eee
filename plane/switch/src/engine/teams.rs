//! Teams: selection of the member by which a frame leaves.
//!
//! The member is selected per frame at delivery; lookups that all frames of a batch share are
//! cached. Selecting for a whole batch first was not faster (decision 15).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use suimon_forwarding::DropReason;
use suimon_frame::{Frame, MacAddr};
use suimon_quantity::{PortId, Time, WorkerId};
use suimon_teaming::{
    Bucket, Distribution, FlowletState, IngressContext, MEMBERS_MAX, MemberChoice, MemberSlot,
    OutgoingKey,
};

use crate::capture::CaptureWriter;
use crate::published::{PublishedTables, TeamRuntime};
use crate::shared_team_state::{BucketCounters, SharedTeamState};

/// State of all teams in one worker, in the order of [`PublishedTables::teams`].
#[derive(Default)]
pub(super) struct TeamStates(Vec<TeamState>);

/// State of one team in one worker.
pub(super) struct TeamState {
    port: PortId,
    /// Index of the team's port in [`PublishedTables::ports`].
    slot: usize,
    pub(super) capture: Option<Arc<CaptureWriter>>,
    pub(super) distribution: Arc<Distribution>,
    /// Indices of the members' ports in [`PublishedTables::ports`], by member slot.
    member_ports: [Option<usize>; MEMBERS_MAX],
    /// Slots of the members in the distribution, in the order of [`TeamRuntime::members`].
    slots: Vec<Option<MemberSlot>>,
    pub(super) shared: Arc<SharedTeamState>,
    carried: BucketCounters,
    /// Ingress port of the last frame, and its cached context for the selection of members.
    origin: Cell<Option<(PortId, IngressContext)>>,
    /// Source address that this worker last recorded in [`SharedTeamState::recent_sources`], and
    /// the time of the record.
    last_recorded: Cell<Option<(MacAddr, Time)>>,
}

impl TeamStates {
    pub(super) fn from_published(published: &PublishedTables, processor: WorkerId) -> Self {
        Self(published.teams.iter().map(|team| TeamState::of(published, team, processor)).collect())
    }

    /// Sets the distribution of the team with this port.
    pub(super) fn set_distribution(
        &mut self,
        published: &PublishedTables,
        port: PortId,
        distribution: &Arc<Distribution>,
    ) {
        let teams = self.0.iter_mut().zip(&published.teams);
        for (team, published) in teams.filter(|(team, _)| team.port == port) {
            team.distribution = Arc::clone(distribution);
            team.assign_slots(published);
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&TeamState> {
        self.0.get(index)
    }
}

impl TeamState {
    fn of(published: &PublishedTables, team: &TeamRuntime, processor: WorkerId) -> Self {
        let port = &published.ports[team.slot.index()];
        let mut new = Self {
            port: port.shared.id,
            slot: team.slot.index(),
            capture: port.capture.clone(),
            distribution: Arc::clone(&team.distribution),
            member_ports: [None; MEMBERS_MAX],
            slots: Vec::new(),
            shared: Arc::clone(&team.shared),
            carried: team.shared.bucket_counters(processor),
            origin: Cell::default(),
            last_recorded: Cell::default(),
        };
        new.assign_slots(team);
        new
    }

    /// Determines the slots of the team's members in the distribution, and the ports by slot.
    fn assign_slots(&mut self, team: &TeamRuntime) {
        self.origin = Cell::default();
        self.member_ports = [None; MEMBERS_MAX];
        let slots = team.members.iter().map(|(id, _)| self.distribution.slot(*id));
        self.slots = slots.collect();
        for (slot, (_, index)) in self.slots.iter().zip(&team.members) {
            if let Some(slot) = slot {
                self.member_ports[slot.index()] = Some(*index);
            }
        }
    }

    /// Returns the distribution slot of the member at an index of [`TeamRuntime::members`]; `None`
    /// if the distribution does not contain it.
    pub(super) fn slot(&self, index: usize) -> Option<MemberSlot> {
        self.slots.get(index).copied().flatten()
    }

    /// Returns the index in [`PublishedTables::ports`] of the member by which a frame leaves, and
    /// the source address to write to the frame if it is replaced. If the frame must be dropped,
    /// counts it as dropped and returns `None`.
    #[inline]
    pub(super) fn select_egress_member(
        &self,
        published: &PublishedTables,
        (now, from): (Time, PortId),
        frame: &Frame,
    ) -> Option<(usize, Option<MacAddr>)> {
        let Some(choice) = self.choose(now, from, frame) else {
            self.count_lost(published, DropReason::TeamDown);
            return None;
        };
        let Some(index) = self.member_ports[choice.member.index()] else {
            self.count_lost(published, DropReason::EgressDown);
            return None;
        };
        Some((index, choice.source))
    }

    /// Selects the member for a frame. Returns `None` if the team is down.
    #[inline]
    fn choose(&self, now: Time, ingress: PortId, frame: &Frame) -> Option<MemberChoice> {
        let key = self.distribution.key(frame, self.ingress_context(ingress));
        let choice = match self.distribution.bucket(&key) {
            None => self.distribution.choose(&key)?,
            Some(bucket) => self.choose_flowlet(&key, bucket, now, frame.len())?,
        };
        if choice.source.is_none() {
            self.record(frame.source(), now);
        }
        Some(choice)
    }

    /// Returns the selection context of an ingress port, from the cache if the last frame had the
    /// same port.
    #[inline]
    fn ingress_context(&self, ingress: PortId) -> IngressContext {
        match self.origin.get() {
            Some((port, origin)) if port == ingress => origin,
            _ => {
                let origin = self.distribution.ingress_context(ingress);
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
    ) -> Option<MemberChoice> {
        let mut choice = None;
        // An error means that the state is unchanged, or that the team is down.
        let _ = self.shared.flowlet(bucket)?.fetch_update(Relaxed, Relaxed, |number| {
            let state = FlowletState::from_u64(number);
            // A frame is far smaller than 2^32 bytes.
            let (chosen, next) = self.distribution.choose_flowlet(key, state, now, bytes as u32)?;
            choice = Some(chosen);
            (next != state).then_some(next.to_u64())
        });
        let choice = choice?;
        self.carried.get(bucket.index())?.add(bytes as u64);
        Some(choice)
    }

    #[cold]
    fn count_lost(&self, published: &PublishedTables, reason: DropReason) {
        if let Some(port) = published.ports.get(self.slot) {
            port.shared.counters.count_tx_drop(reason, 1);
        }
    }

    /// Records that a frame with this source address leaves by the team. A repetition at the same
    /// time is skipped.
    #[inline]
    fn record(&self, source: MacAddr, now: Time) {
        if self.last_recorded.get() != Some((source, now)) {
            self.last_recorded.set(Some((source, now)));
            self.shared.recent_sources.record(source, now);
        }
    }
}
