//! State of one shared store: the member, which limits this host, and the allocator, which divides
//! the store if this host is the leader.

mod actions;
mod leading;
mod saving;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use suimon_cluster_qos::{
    Allocator, AllocatorAction, Candidacy, DiskKey, DiskLoad, DurableState, Member, MemberEvent,
    MemberNotice, NodeGrant, NodeId, Parameters, PolicyCap, SharedStoreCapacity, Term,
    TimedRateLimit,
};
use suimon_contract::Name;
use suimon_quantity::{StoreId, Time};
use suimon_recording::{MemberInitialState, RecordSink, Recorded};

pub(super) use self::actions::StoreAction;
use self::actions::{from_member_action, remove_superseded};
use super::heartbeat::SeenNodes;
use super::identity::IdentityMismatch;
use super::loads::LoadSamples;
use super::minimums::Minimums;
use super::releasing::ReleasePhase;
use super::reservation_requests::ReservationRequest;
use crate::state::ReportedFailure;

/// Time without a leader after which the disks of a store of unknown capacity get the floor of a
/// node without a lease. Until then, a node that knows the capacity may be elected.
const LEADERLESS_MAX: Duration = Duration::from_secs(5);

/// State of one shared store on this node: its member and, while this node leads the store, its
/// allocator.
pub(super) struct SharedStore {
    pub(super) name: Name,
    pub(super) id: StoreId,
    terms: Parameters,
    member: Recorded<Member>,
    allocator: Recorded<Allocator>,
    sink: Option<Arc<dyn RecordSink>>,
    /// Durable rates that the host may use without a lease.
    pub(super) durable: DurableState,
    /// Pending request to reserve minimums.
    pub(super) reservation_request: Option<ReservationRequest>,
    /// Minimums that the cluster has reserved, which are in effect.
    pub(super) minimums_in_effect: Minimums,
    /// Limit of the store's disks according to the last [`StoreAction::ApplyLimits`]: a share that
    /// is not durable yet is not in effect.
    applied: TimedRateLimit,
    /// This node's shares of the limits of policies that span nodes.
    pub(super) policy_caps: Vec<PolicyCap>,
    pub(super) load_samples: LoadSamples,
    pub(super) names: BTreeMap<DiskKey, String>,
    /// Capacity according to this host's configuration or measurement; `None`: unknown.
    pub(super) capacity: Option<SharedStoreCapacity>,
    pub(super) normalization_bytes: u64,
    /// Capacity according to other nodes' reports. Nodes that do not know it are left out.
    reported_capacities: BTreeMap<NodeId, u64>,
    /// Revision of etcd at which each node's report key was created. It changes when a node
    /// withdraws from the store and shares it again.
    reports: BTreeMap<NodeId, u64>,
    /// Capacity that the leader uses.
    capacity_in_effect: Option<SharedStoreCapacity>,
    /// Nodes with another `normalization_bytes`, already reported by an event.
    other_normalization: BTreeMap<NodeId, u64>,
    /// Name and term of the leader; `None`: no leader is known.
    pub(super) leader: Option<(String, Term)>,
    /// True while an election of this node is in progress.
    pub(super) is_candidate: bool,
    /// Time of the next attempt to be elected.
    pub(super) next_election_at: Time,
    /// Delay of elections after the store has lost its leader.
    candidacy: Candidacy,
    /// True once a check has read the store's identity.
    pub(super) is_identity_checked: bool,
    /// Reason why the store is not the one registered in the cluster under its name.
    pub(super) mismatch: Option<IdentityMismatch>,
    /// Time of the next check of the store's identity.
    pub(super) next_identity_check_at: Time,
    /// True while a check of the store's identity is in progress.
    pub(super) is_identity_check_running: bool,
    /// Nodes whose heartbeats were read from the store.
    pub(super) heartbeats: SeenNodes,
    /// Time at which this node's next heartbeat is due.
    pub(super) next_heartbeat_at: Time,
    /// True while a heartbeat is being written.
    pub(super) is_heartbeat_write_running: bool,
    /// Progress of giving back what is reserved, if a change stops sharing the store.
    pub(super) release: ReleasePhase,
    /// Delivered rate of the store's disks in the last sample.
    pub(super) delivered_iops: u64,
    /// True if the disks demand more than is reserved.
    wants_more: bool,
    /// True if an event has reported that the lease has expired.
    is_lapse_reported: bool,
    /// Time since which no leader is known.
    leaderless_since: Option<Time>,
    /// True if the disks of the store on this host get the floor: the host does not know the
    /// capacity, nothing is reserved for it, and the store has no leader.
    pub(super) is_at_floor: bool,
    /// True if an event has reported that the capacity is unknown.
    is_unmeasured_reported: bool,
    /// Pending actions of the member. A failed action is first; see
    /// [`SharedStore::requeue_failed_action`].
    todo: VecDeque<StoreAction>,
    /// Pending actions of the allocator.
    leads: VecDeque<AllocatorAction>,
    /// Failure to save [`SharedStore::durable`].
    unsaved_reservation: ReportedFailure,
    /// Failure to save [`SharedStore::minimums_in_effect`].
    pub(super) minimums_save_failure: ReportedFailure,
}

impl SharedStore {
    /// Creates a store from its durable state, before the host has joined the cluster. `sink`:
    /// recorder of inputs and decisions, if any.
    pub(super) fn new(
        now: Time,
        (name, id): (Name, StoreId),
        (durable, covered): (DurableState, Minimums),
        sink: Option<Arc<dyn RecordSink>>,
    ) -> Self {
        let terms = Parameters::default();
        let birth = MemberInitialState {
            parameters: terms,
            node: NodeId(0),
            incarnation: 0,
            durable: durable.clone(),
        };
        let begins = (now, name.as_str());
        let (member, actions) = Recorded::record_member(sink.as_ref(), begins, birth);
        let allocator = Recorded::record_allocator(sink.as_ref(), begins, terms);
        let applied = member.cap();
        Self {
            name,
            id,
            terms,
            member,
            allocator,
            sink,
            durable,
            reservation_request: None,
            minimums_in_effect: covered,
            applied,
            policy_caps: Vec::new(),
            load_samples: LoadSamples::default(),
            names: BTreeMap::new(),
            capacity: None,
            normalization_bytes: 0,
            reported_capacities: BTreeMap::new(),
            reports: BTreeMap::new(),
            capacity_in_effect: None,
            other_normalization: BTreeMap::new(),
            leader: None,
            is_candidate: false,
            next_election_at: now,
            candidacy: Candidacy::default(),
            is_identity_checked: false,
            mismatch: None,
            next_identity_check_at: now,
            is_identity_check_running: false,
            heartbeats: SeenNodes::default(),
            next_heartbeat_at: now,
            is_heartbeat_write_running: false,
            release: ReleasePhase::default(),
            delivered_iops: 0,
            wants_more: false,
            is_lapse_reported: false,
            leaderless_since: None,
            is_at_floor: false,
            is_unmeasured_reported: false,
            todo: actions.into_iter().map(from_member_action).collect(),
            leads: VecDeque::new(),
            unsaved_reservation: ReportedFailure::default(),
            minimums_save_failure: ReportedFailure::default(),
        }
    }

    /// Begins a membership with this node number. Leases of a former number end; reservations
    /// remain.
    pub(super) fn begin_membership(&mut self, now: Time, node: NodeId, incarnation: u64) {
        let (terms, durable) = (self.terms, self.durable.clone());
        let birth = MemberInitialState { parameters: terms, node, incarnation, durable };
        let (sink, begins) = (self.sink.as_ref(), (now, self.name.as_str()));
        let (member, actions) = Recorded::record_member(sink, begins, birth);
        self.allocator = Recorded::record_allocator(sink, begins, terms);
        self.member = member;
        self.leads.clear();
        (self.leader, self.is_candidate, self.next_election_at) = (None, false, now);
        self.reported_capacities.clear();
        self.reports.clear();
        self.todo = actions.into_iter().map(from_member_action).collect();
        (self.is_identity_checked, self.next_identity_check_at, self.next_heartbeat_at) =
            (false, now, now);
        (self.leaderless_since, self.is_at_floor) = (None, false);
        if self.release == ReleasePhase::RemovingRecords {
            // The result of the former session is not received.
            self.release = ReleasePhase::ReturningReservation;
        }
    }

    /// Returns the reason why this host does not take part in the store; `None` if it does.
    pub(super) fn unavailable_reason(&self) -> Option<String> {
        // A leader that knows the capacity grants leases to this host, too.
        let is_unmeasured = self.capacity.is_none() && self.leader.is_none();
        let unmeasured = || {
            let name = &self.name;
            format!(
                "the capacity of the store is unknown, so its disks get {} IOPS together and \
                 no guarantees here; measure it with `suimon store measure {name}`",
                self.terms.base_reservation_iops
            )
        };
        let mismatch_reason = self.mismatch.as_ref().map(|mismatch| mismatch.reason.clone());
        mismatch_reason.or_else(|| is_unmeasured.then(unmeasured))
    }

    /// Returns true if this host takes part in the store: the identity is right. Its reports need
    /// no capacity, which the leader knows.
    pub(super) fn takes_part(&self) -> bool {
        self.is_identity_checked && self.mismatch.is_none()
    }

    /// Updates whether the disks of the store get the floor of a node without a lease. Requests of
    /// a store whose capacity no node knows would otherwise wait for ever, because the store can
    /// have no leader. More than the floor would take reserved rates from nodes that have lost
    /// their leader.
    pub(super) fn update_floor(&mut self, now: Time) {
        let is_led = self.leader.is_some() || self.leader_term().is_some();
        if is_led || !self.takes_part() {
            (self.leaderless_since, self.is_at_floor) = (None, false);
            return;
        }
        let since = *self.leaderless_since.get_or_insert(now);
        self.is_at_floor = self.capacity.is_none()
            && self.durable == DurableState::default()
            && now >= since + LEADERLESS_MAX;
    }

    /// Returns true if an event must report a change: the capacity is unknown (`Some(true)`), or
    /// known again (`Some(false)`).
    pub(super) fn take_capacity_change(&mut self) -> Option<bool> {
        let is_unmeasured = self.takes_part() && self.capacity.is_none();
        let is_known = self.capacity.is_some();
        if is_unmeasured && !self.is_unmeasured_reported {
            self.is_unmeasured_reported = true;
            return Some(true);
        }
        (is_known && std::mem::take(&mut self.is_unmeasured_reported)).then_some(false)
    }

    /// Processes a change of the leader.
    pub(super) fn handle_leader(&mut self, now: Time, leader: Option<(String, Term)>) {
        if leader.is_none() && self.leader.is_some() {
            self.candidacy.handle_leader_absent(now);
        }
        self.leader = leader;
    }

    /// Returns true if this node may request its election.
    pub(super) fn may_be_candidate(&self, now: Time) -> bool {
        self.leader_term().is_none()
            && !self.is_candidate
            && self.next_election_at <= now
            && (self.leader.is_some() || self.candidacy.campaign_at() <= now)
    }

    /// Returns true if this node writes heartbeats: it takes part in the store, or another cluster
    /// uses the store.
    pub(super) fn writes_heartbeats(&self) -> bool {
        self.takes_part()
            || self.mismatch.as_ref().is_some_and(|mismatch| mismatch.is_of_other_cluster)
    }

    /// Returns the limit of the store's disks on this host.
    pub(super) fn cap(&self) -> TimedRateLimit {
        let mut cap = self.applied;
        if self.is_at_floor {
            cap.reserved_iops = cap.reserved_iops.max(self.terms.base_reservation_iops);
        }
        cap
    }

    /// Returns the part of the reservation that minimums of disks may use. The floor is for disks
    /// without a minimum.
    pub(super) fn minimums_max_iops(&self) -> u64 {
        self.cap().reserved_iops.saturating_sub(self.terms.base_reservation_iops)
    }

    /// Returns true if nothing is reserved for this host, and that is in effect.
    pub(super) fn has_no_reservation(&self) -> bool {
        self.durable == DurableState::default() && self.todo.is_empty()
    }

    pub(super) fn handle_grant(&mut self, now: Time, grant: NodeGrant) {
        if self.reservation_request.as_mut().is_some_and(|request| request.handle_grant(&grant)) {
            self.reservation_request = None;
        }
        self.handle_member(now, MemberEvent::Granted { grant });
    }

    fn handle_member(&mut self, now: Time, event: MemberEvent) {
        let actions = self.member.handle(now, event);
        self.todo.extend(actions.into_iter().map(from_member_action));
    }

    /// Processes a sample of the disks' load.
    pub(super) fn handle_loads(&mut self, now: Time, mut disks: Vec<DiskLoad>, latency_ns: u64) {
        let minimums = disks.iter().fold(0_u64, |sum, disk| sum.saturating_add(disk.min_iops));
        self.reservation_request.take_if(|request| !request.is_open(now, minimums));
        disks.extend(
            self.reservation_request
                .as_ref()
                .map(|request| pending_minimum_load(request.iops - minimums)),
        );
        self.delivered_iops =
            disks.iter().fold(0, |sum, disk| sum.saturating_add(disk.delivered_iops));
        let demanded = disks.iter().fold(0_u64, |sum, disk| sum.saturating_add(disk.demand_iops));
        let is_waiting = disks.iter().any(|disk| disk.waits_for_grant);
        self.wants_more = is_waiting || demanded > self.cap().reserved_iops;
        self.handle_member(now, MemberEvent::Loads { disks, latency_ns });
    }

    /// Returns true if a notice must be reported. The end of a lease without demand is not.
    pub(super) fn take_is_reportable(&mut self, notice: MemberNotice) -> bool {
        match notice {
            MemberNotice::LeaseExpired => {
                self.is_lapse_reported |= self.wants_more;
                self.wants_more
            }
            MemberNotice::LeaseObtained => std::mem::take(&mut self.is_lapse_reported),
            MemberNotice::ClockSlow | MemberNotice::OtherVersion(_) => true,
        }
    }

    /// Returns the earliest deadline of member and allocator; `None` if neither has one.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let both = [self.member.next_deadline(), self.allocator.next_deadline()];
        both.into_iter().flatten().min()
    }

    pub(super) fn handle_deadlines(&mut self, now: Time) {
        if self.member.next_deadline().is_some_and(|deadline| deadline <= now) {
            let actions = self.member.handle_deadline(now);
            self.todo.extend(actions.into_iter().map(from_member_action));
        }
        if self.allocator.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.leads.extend(self.allocator.handle_deadline(now));
        }
    }

    /// Returns the next pending action of the member.
    pub(super) fn poll_member(&mut self) -> Option<StoreAction> {
        let action = self.todo.pop_front();
        if let Some(StoreAction::ApplyLimits(limit, _)) = &action {
            self.applied = *limit;
        }
        action
    }

    /// Flushes recorded inputs and decisions to the recorder.
    pub(super) fn flush_recording(&mut self) {
        self.member.flush();
        self.allocator.flush();
    }

    /// Queues an action of the member that has failed before all other pending actions, unless a
    /// pending action supersedes it: of the actions that are pending, only the newest state is made
    /// durable, then applied, then reported, and of each kind of notice one is kept. Their number
    /// is therefore bounded however long an action fails.
    pub(super) fn requeue_failed_action(&mut self, todo: StoreAction) {
        self.todo.push_front(todo);
        remove_superseded(&mut self.todo);
    }
}

/// Returns the load of a fictitious disk with the additional minimums of a pending change.
const fn pending_minimum_load(min_iops: u64) -> DiskLoad {
    DiskLoad {
        disk: DiskKey(0),
        policy: None,
        min_iops,
        max_iops: None,
        fallback_iops: Some(0),
        weight: 1,
        demand_iops: 0,
        delivered_iops: 0,
        waits_for_grant: false,
        waits_for_store: false,
        is_fully_utilised: false,
    }
}
