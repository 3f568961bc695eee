//! Tables that the control plane publishes to all workers at once.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use suimon_forwarding::{PortSlot, RateLimit, RateLimitState, Tables};
use suimon_quantity::{PortId, QueueId, Time, WorkerId};
use suimon_teaming::{Distribution, MemberId};

use crate::accepted_offloads::AcceptedOffloads;
use crate::capture::CaptureWriter;
use crate::counters::PortCounters;
use crate::notice::ReportLimiter;
use crate::shared_team_state::SharedTeamState;

/// One immutable generation of the tables that all workers use, created by the registry.
pub(crate) struct PublishedTables {
    pub forwarding_tables: Arc<Tables>,
    /// Ports by slot of `forwarding_tables`, followed by the devices of team members. Other tables
    /// refer to a port by its index in this list.
    pub ports: Vec<PortRuntime>,
    /// Devices of team members: port of the device, and location of the member, in ascending order.
    pub members: Vec<(PortId, MemberTableSlot)>,
    pub teams: Vec<TeamRuntime>,
    /// Egress queues of all `ports`, each with the worker that owns it.
    pub owners: Vec<(QueueId, WorkerId)>,
}

impl PublishedTables {
    /// Returns the properties of a switch port or of a team member's device; `None` if neither has
    /// this id.
    pub(crate) fn port(&self, port: PortId) -> Option<&PortRuntime> {
        let index = match self.forwarding_tables.slot(port) {
            Some(slot) => slot.index(),
            None => self.member(port)?.port_index,
        };
        self.ports.get(index)
    }

    fn member(&self, port: PortId) -> Option<MemberTableSlot> {
        let index = self.members.binary_search_by_key(&port, |(id, _)| *id).ok()?;
        self.members.get(index).map(|(_, member)| *member)
    }

    /// Returns slot and member that frames from the device with this port are attributed to; `None`
    /// if the tables do not contain it.
    pub(crate) fn ingress(&self, port: PortId) -> Option<Ingress> {
        if let Some(slot) = self.forwarding_tables.slot(port) {
            return Some(Ingress { slot, member: None });
        }
        let member = self.member(port)?;
        Some(Ingress { slot: self.teams.get(member.team_index)?.slot, member: Some(member) })
    }
}

/// Switch port to which received frames are attributed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ingress {
    pub slot: PortSlot,
    /// Member that received the frames, if the port is a team.
    pub member: Option<MemberTableSlot>,
}

/// Location of a team's member in one generation of the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberTableSlot {
    /// Index in [`PublishedTables::teams`].
    pub team_index: usize,
    /// Index in [`TeamRuntime::members`].
    pub member_index: usize,
    /// Index in [`PublishedTables::ports`].
    pub port_index: usize,
}

/// Properties of a team that workers need.
pub(crate) struct TeamRuntime {
    pub slot: PortSlot,
    pub members: Vec<(MemberId, usize)>,
    /// Distribution at the time of publication; workers may have a later one from
    /// [`WorkerCommand::SetDistribution`].
    ///
    /// [`WorkerCommand::SetDistribution`]: crate::worker_mailbox::WorkerCommand::SetDistribution
    pub distribution: Arc<Distribution>,
    pub shared: Arc<SharedTeamState>,
}

/// Port properties that workers need in addition to the forwarding tables.
pub(crate) struct PortRuntime {
    pub shared: Arc<SharedPortState>,
    pub bandwidth_limit: Option<PortLimit>,
    pub storm_limit: Option<PortLimit>,
    /// True if the port accepts coalesced frames.
    pub receive_coalescing: bool,
    /// True if frames received from the port may be forwarded coalesced.
    pub forwards_coalesced: bool,
    pub is_uplink: bool,
    /// True if the control plane receives a notice of each address that is first observed on the
    /// port.
    pub binds_source: bool,
    pub capture: Option<Arc<CaptureWriter>>,
    /// Indices of its egress queues in [`PublishedTables::owners`].
    pub egress_queues: Range<usize>,
    /// Index in [`PublishedTables::teams`]; `None` if the port is not a team.
    pub team_index: Option<usize>,
}

/// State of one port that all workers share. It continues when new tables are published.
#[derive(Debug)]
pub(crate) struct SharedPortState {
    pub id: PortId,
    pub counters: PortCounters,
    pub accepted_offloads: AcceptedOffloads,
    pub bandwidth_limit: CurrentLimit,
    pub storm_limit: CurrentLimit,
    pub storm_reports: ReportLimiter,
    pub spoofing_reports: ReportLimiter,
    /// Number of addresses that moved to this port since the last report.
    pub address_moves: AtomicU64,
    pub move_reports: ReportLimiter,
    pub new_source_reports: ReportLimiter,
}

impl SharedPortState {
    pub(crate) fn new(id: PortId) -> Self {
        Self {
            id,
            counters: PortCounters::default(),
            accepted_offloads: AcceptedOffloads::default(),
            bandwidth_limit: CurrentLimit::default(),
            storm_limit: CurrentLimit::default(),
            storm_reports: ReportLimiter::default(),
            spoofing_reports: ReportLimiter::default(),
            address_moves: AtomicU64::new(0),
            move_reports: ReportLimiter::default(),
            new_source_reports: ReportLimiter::default(),
        }
    }
}

/// Rate limit of a port with its state, shared by all workers. The limit is not divided among
/// workers, because the share that one does not use would be lost to the others.
#[derive(Clone, Debug)]
pub(crate) struct PortLimit {
    limit: RateLimit,
    state: Arc<AtomicU64>,
}

impl PortLimit {
    /// Checks the limit without charging it.
    ///
    /// # Errors
    /// The time until which the limit is exceeded.
    pub(crate) fn check(&self, now: Time) -> Result<(), Time> {
        self.limit.admit(RateLimitState::from_u64(self.state.load(Relaxed)), now, 0).map(|_| ())
    }

    /// Charges `cost`, even beyond the limit; later checks fail until it is paid off.
    pub(crate) fn charge(&self, now: Time, cost: u32) {
        // The closure always returns a value, so this never fails.
        let _ = self.state.fetch_update(Relaxed, Relaxed, |state| {
            Some(self.limit.charge(RateLimitState::from_u64(state), now, cost).to_u64())
        });
    }

    /// Charges `cost` if the limit has room for it now. Returns false otherwise.
    pub(crate) fn admit(&self, now: Time, cost: u32) -> bool {
        self.state
            .fetch_update(Relaxed, Relaxed, |state| {
                let state = self.limit.admit(RateLimitState::from_u64(state), now, cost);
                state.ok().map(RateLimitState::to_u64)
            })
            .is_ok()
    }
}

/// Rate limit of a port, which continues when new tables are published. Its state is in units of
/// the limit, so a different limit starts with a new state.
#[derive(Debug, Default)]
pub(crate) struct CurrentLimit(Mutex<Option<PortLimit>>);

impl CurrentLimit {
    /// Returns `limit` with the state of the current limit if both are equal, and otherwise with a
    /// full burst.
    pub(crate) fn replace(&self, limit: Option<RateLimit>) -> Option<PortLimit> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().map(|current| current.limit) != limit {
            *current = limit.map(|limit| PortLimit { limit, state: Arc::default() });
        }
        current.clone()
    }
}
