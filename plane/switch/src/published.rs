//! What the control plane publishes to all processors at once.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use suimon_forwarding::{Limit, LimitState, PortSlot, Tables};
use suimon_quantity::{PortId, ProcessorId, QueueId, Time};
use suimon_teaming::{Distribution, MemberId};

use crate::capture::CaptureTap;
use crate::coalescing::EgressForms;
use crate::link::Link;
use crate::notice::Told;
use crate::tally::PortTally;
use crate::team_shared::TeamShared;

/// One generation of everything the processors need to know. Immutable.
pub(crate) struct Published {
    pub tables: Tables,
    /// By slot of `tables`, then the members of teams. An index here is a *place*.
    pub ports: Vec<PortRuntime>,
    /// Ascending by port.
    pub members: Vec<(PortId, MemberPlace)>,
    pub teams: Vec<TeamRuntime>,
    /// All egress queues of `ports` and their owners.
    pub owners: Vec<(QueueId, ProcessorId)>,
    /// By processor.
    pub links: Vec<Option<Arc<Link>>>,
}

impl Published {
    pub(crate) fn link(&self, id: ProcessorId) -> Option<&Arc<Link>> {
        self.links.get(usize::from(id.0))?.as_ref()
    }

    pub(crate) fn processors(&self) -> usize {
        self.links.iter().flatten().count()
    }

    /// The port of a switch or member of a team with this identifier.
    pub(crate) fn port(&self, port: PortId) -> Option<&PortRuntime> {
        let place = match self.tables.slot(port) {
            Some(slot) => slot.index(),
            None => self.member(port)?.place,
        };
        self.ports.get(place)
    }

    fn member(&self, port: PortId) -> Option<MemberPlace> {
        let at = self.members.binary_search_by_key(&port, |(id, _)| *id).ok()?;
        self.members.get(at).map(|(_, member)| *member)
    }

    /// As what frames from this port are handled.
    pub(crate) fn ingress(&self, port: PortId) -> Option<Ingress> {
        if let Some(slot) = self.tables.slot(port) {
            return Some(Ingress { slot, member: None });
        }
        let member = self.member(port)?;
        Some(Ingress { slot: self.teams.get(member.team)?.slot, member: Some(member) })
    }
}

/// As what frames are handled that come in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ingress {
    pub slot: PortSlot,
    /// By which member, if the port is a team.
    pub member: Option<MemberPlace>,
}

/// Where a team's member is found in one generation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberPlace {
    /// In [`Published::teams`].
    pub team: usize,
    /// In [`TeamRuntime::members`].
    pub nth: usize,
    /// In [`Published::ports`].
    pub place: usize,
}

/// One team, as processors need it.
pub(crate) struct TeamRuntime {
    pub slot: PortSlot,
    pub members: Vec<(MemberId, usize)>,
    /// That of when this was published; see [`Command::Distribute`].
    ///
    /// [`Command::Distribute`]: crate::link::Command::Distribute
    pub distribution: Arc<Distribution>,
    pub shared: Arc<TeamShared>,
}

/// One port, as processors need it beside the tables.
pub(crate) struct PortRuntime {
    pub shared: Arc<PortShared>,
    pub bandwidth: Option<PortLimit>,
    pub storm: Option<PortLimit>,
    /// Whether it may be given joined frames.
    pub receive_coalescing: bool,
    /// Whether what it received may be handed on joined.
    pub hands_over_joined: bool,
    pub is_uplink: bool,
    /// True if first sightings of addresses on the port are reported.
    pub binds_source: bool,
    pub capture: Option<Arc<CaptureTap>>,
    /// Its egress queues, as indices into [`Published::owners`].
    pub egress: Range<usize>,
    /// Which of [`Published::teams`] it is.
    pub team: Option<usize>,
}

/// What all processors share of one port, over all generations.
#[derive(Debug)]
pub(crate) struct PortShared {
    pub id: PortId,
    pub tally: PortTally,
    pub egress_forms: EgressForms,
    pub bandwidth: CurrentLimit,
    pub storm: CurrentLimit,
    pub storm_told: Told,
    pub spoofing_told: Told,
    /// Addresses that moved to this port since the last report of one.
    pub moves: AtomicU64,
    pub move_told: Told,
    pub source_told: Told,
}

impl PortShared {
    pub(crate) fn new(id: PortId) -> Self {
        Self {
            id,
            tally: PortTally::default(),
            egress_forms: EgressForms::default(),
            bandwidth: CurrentLimit::default(),
            storm: CurrentLimit::default(),
            storm_told: Told::default(),
            spoofing_told: Told::default(),
            moves: AtomicU64::new(0),
            move_told: Told::default(),
            source_told: Told::default(),
        }
    }
}

/// A limit of a port with its state, which several processors draw on: one limit, not a share
/// of it for each, because a share that one does not use is lost to the others.
#[derive(Clone, Debug)]
pub(crate) struct PortLimit {
    limit: Limit,
    state: Arc<AtomicU64>,
}

impl PortLimit {
    /// Whether the limit is not exceeded so far; if it is, until when.
    pub(crate) fn check(&self, now: Time) -> Result<(), Time> {
        self.limit.admit(LimitState::from_u64(self.state.load(Relaxed)), now, 0).map(|_| ())
    }

    /// Takes `cost`, even beyond the limit; later checks wait for that.
    pub(crate) fn charge(&self, now: Time, cost: u32) {
        // The closure never declines, so this never fails.
        let _ = self.state.fetch_update(Relaxed, Relaxed, |state| {
            Some(self.limit.charge(LimitState::from_u64(state), now, cost).to_u64())
        });
    }

    /// Takes `cost` if the limit has room for it now.
    pub(crate) fn admit(&self, now: Time, cost: u32) -> bool {
        self.state
            .fetch_update(Relaxed, Relaxed, |state| {
                let state = self.limit.admit(LimitState::from_u64(state), now, cost);
                state.ok().map(LimitState::to_u64)
            })
            .is_ok()
    }
}

/// The limit that a port has now, kept over publications. Its state counts in units of the limit,
/// so another limit begins with a state of its own: the old one would mean another time.
#[derive(Debug, Default)]
pub(crate) struct CurrentLimit(Mutex<Option<PortLimit>>);

impl CurrentLimit {
    /// Returns `limit` with the state that it has if it is the current one, and with a full burst
    /// otherwise.
    pub(crate) fn follow(&self, limit: Option<Limit>) -> Option<PortLimit> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().map(|current| current.limit) != limit {
            *current = limit.map(|limit| PortLimit { limit, state: Arc::default() });
        }
        current.clone()
    }
}
