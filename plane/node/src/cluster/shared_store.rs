//! State of one shared store: the member, which limits this host, and the allocator, which divides
//! the store if this host is the leader.

use std::collections::{BTreeMap, VecDeque};
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, Candidacy, DiskKey, DiskLoad, DurableState,
    LoadReport, Member, MemberAction, MemberEvent, MemberNotice, NodeGrant, NodeId, Parameters,
    PolicyCap, PolicyKey, PolicyLimits, SharedStoreCapacity, Term, TimedRateLimit,
};
use suimon_contract::Name;
use suimon_quantity::{StoreId, Time};
use suimon_recording::{MemberInitialState, Recorded, Sink};

use super::covered::Minimums;
use super::heartbeat::SeenNodes;
use super::identity::Mismatch;
use super::keys::NodeReport;
use super::loads::Loads;
use super::releasing::Release;
use super::reservation_requests::ReservationRequest;

/// Time without a leader after which the disks of a store of unknown capacity get the floor of a node
/// without a lease. Until then, a node that knows the capacity may be elected.
const LEADERLESS_MAX: Duration = Duration::from_secs(5);

/// Pending action of the member of a store.
pub(super) enum StoreAction {
    /// Set the limit of the store's disks, and this node's parts of policies that span nodes.
    Apply(TimedRateLimit, Vec<PolicyCap>),
    /// Make this state durable, for the next start of the daemon.
    Keep(DurableState),
    /// Write the report for the store's leader.
    Send(LoadReport),
    TellMember(MemberNotice),
}

/// State of one shared store on this node: its member and, while this node leads the store, its
/// allocator.
pub(super) struct SharedStore {
    pub(super) name: Name,
    pub(super) id: StoreId,
    terms: Parameters,
    member: Recorded<Member>,
    allocator: Recorded<Allocator>,
    sink: Option<Arc<dyn Sink>>,
    /// Durable rates that the host may use without a lease.
    pub(super) durable: DurableState,
    /// Pending request to reserve minimums.
    pub(super) reservation_request: Option<ReservationRequest>,
    /// Minimums that the cluster has reserved, which are in effect.
    pub(super) covered: Minimums,
    /// This node's parts of policies that span nodes.
    pub(super) policy_caps: Vec<PolicyCap>,
    pub(super) loads: Loads,
    pub(super) names: BTreeMap<DiskKey, String>,
    /// Capacity according to this host's configuration or measurement; `None`: unknown.
    pub(super) capacity: Option<SharedStoreCapacity>,
    pub(super) normalization_bytes: u64,
    /// Capacity according to other nodes' reports. Nodes that do not know it are left out.
    reported_capacities: BTreeMap<NodeId, u64>,
    /// Creation revisions of the nodes' reports.
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
    pub(super) elect_at: Time,
    /// Delay of elections after the store has lost its leader.
    candidacy: Candidacy,
    /// True once the identity of the store was checked. `wrong`: the reason why the store is not
    /// the cluster's.
    pub(super) is_known: bool,
    pub(super) mismatch: Option<Mismatch>,
    /// Time of the next check of the store's identity, and true while a check is in progress.
    pub(super) next_poll_at: Time,
    pub(super) is_looking: bool,
    /// Nodes seen on the store, time of the next heartbeat, and true while one is being written.
    pub(super) heartbeats: SeenNodes,
    pub(super) heartbeat_at: Time,
    pub(super) is_beating: bool,
    /// Progress of giving back what is reserved, if a change stops sharing the store.
    pub(super) release: Release,
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
    /// Pending actions of the member. A failed action is first; see [`SharedStore::put_back`].
    todo: VecDeque<StoreAction>,
    /// Pending actions of the allocator.
    leads: VecDeque<AllocatorAction>,
}

impl SharedStore {
    /// Creates a store from its durable state, before the host has joined the cluster. `sink`:
    /// recorder of inputs and decisions, if any.
    pub(super) fn new(
        now: Time,
        (name, id): (Name, StoreId),
        (durable, covered): (DurableState, Minimums),
        sink: Option<Arc<dyn Sink>>,
    ) -> Self {
        let terms = Parameters::default();
        let initial_state =
            MemberInitialState { terms, node: NodeId(0), incarnation: 0, durable: durable.clone() };
        let origin = (now, name.as_str());
        let (member, actions) = Recorded::member(sink.as_ref(), origin, initial_state);
        let allocator = Recorded::leader(sink.as_ref(), origin, terms);
        Self {
            name,
            id,
            terms,
            member,
            allocator,
            sink,
            durable,
            reservation_request: None,
            covered,
            policy_caps: Vec::new(),
            loads: Loads::default(),
            names: BTreeMap::new(),
            capacity: None,
            normalization_bytes: 0,
            reported_capacities: BTreeMap::new(),
            reports: BTreeMap::new(),
            capacity_in_effect: None,
            other_normalization: BTreeMap::new(),
            leader: None,
            is_candidate: false,
            elect_at: now,
            candidacy: Candidacy::default(),
            is_known: false,
            mismatch: None,
            next_poll_at: now,
            is_looking: false,
            heartbeats: SeenNodes::default(),
            heartbeat_at: now,
            is_beating: false,
            release: Release::default(),
            delivered_iops: 0,
            wants_more: false,
            is_lapse_reported: false,
            leaderless_since: None,
            is_at_floor: false,
            is_unmeasured_reported: false,
            todo: actions.into_iter().map(of_member).collect(),
            leads: VecDeque::new(),
        }
    }

    /// Begins a membership with this node number. Leases of a former number end; reservations
    /// remain.
    pub(super) fn begin(&mut self, now: Time, node: NodeId, incarnation: u64) {
        let (terms, durable) = (self.terms, self.durable.clone());
        let initial_state = MemberInitialState { terms, node, incarnation, durable };
        let (sink, origin) = (self.sink.as_ref(), (now, self.name.as_str()));
        let (member, actions) = Recorded::member(sink, origin, initial_state);
        self.allocator = Recorded::leader(sink, origin, terms);
        self.member = member;
        self.leads.clear();
        (self.leader, self.is_candidate, self.elect_at) = (None, false, now);
        self.reported_capacities.clear();
        self.reports.clear();
        self.todo = actions.into_iter().map(of_member).collect();
        (self.is_known, self.next_poll_at, self.heartbeat_at) = (false, now, now);
        (self.leaderless_since, self.is_at_floor) = (None, false);
        if self.release == Release::Withdraws {
            // The result of the former session is not received.
            self.release = Release::GivesBack;
        }
    }

    /// Returns the reason why this host does not take part in the store; `None` if it does.
    pub(super) fn unavailable_reason(&self) -> Option<String> {
        // A leader that knows the capacity grants leases to this host, too.
        let is_unmeasured = self.capacity.is_none() && self.leader.is_none();
        let unmeasured = || {
            let name = &self.name;
            format!(
                "the capacity of the store is unknown, so its disks get {} IOPS in all and no \
                 guarantees here; measure it with `suimon store measure {name}`",
                self.terms.floor_iops
            )
        };
        let mismatch = self.mismatch.as_ref().map(|mismatch| mismatch.reason.clone());
        mismatch.or_else(|| is_unmeasured.then(unmeasured))
    }

    /// Returns true if this host takes part in the store: the identity is right. Its reports need no
    /// capacity, which the leader knows.
    pub(super) fn takes_part(&self) -> bool {
        self.is_known && self.mismatch.is_none()
    }

    /// Updates whether the disks of the store get the floor of a node without a lease. Requests of a
    /// store whose capacity nobody knows would otherwise wait for ever, because the store can have
    /// no leader. More than the floor would take reserved rates from nodes that have lost their
    /// leader.
    pub(super) fn follow_leader(&mut self, now: Time) {
        let is_led = self.leader.is_some() || self.leads().is_some();
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
        let is_measured = self.capacity.is_some();
        if is_unmeasured && !self.is_unmeasured_reported {
            self.is_unmeasured_reported = true;
            return Some(true);
        }
        (is_measured && std::mem::take(&mut self.is_unmeasured_reported)).then_some(false)
    }

    /// Processes a change of the leader.
    pub(super) fn handle_leader(&mut self, now: Time, leader: Option<(String, Term)>) {
        if leader.is_none() && self.leader.is_some() {
            self.candidacy.handle_vacant(now);
        }
        self.leader = leader;
    }

    /// Returns true if this node may request its election.
    pub(super) fn may_be_candidate(&self, now: Time) -> bool {
        self.leads().is_none()
            && !self.is_candidate
            && self.elect_at <= now
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
        let mut cap = self.member.cap();
        if self.is_at_floor {
            cap.reserved_iops = cap.reserved_iops.max(self.terms.floor_iops);
        }
        cap
    }

    /// Returns the part of the reservation that minimums of disks may use. The floor is for disks
    /// without a minimum.
    pub(super) fn covers_iops(&self) -> u64 {
        self.cap().reserved_iops.saturating_sub(self.terms.floor_iops)
    }

    pub(super) fn leads(&self) -> Option<Term> {
        self.allocator.term()
    }

    /// Returns the total rate that the leader divides; `None` if this node is not the leader.
    pub(super) fn limit_iops(&self) -> Option<u64> {
        self.allocator.limit_iops()
    }

    /// Returns true if nothing is reserved for this host, and that is in effect.
    pub(super) fn is_given_back(&self) -> bool {
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
        self.todo.extend(actions.into_iter().map(of_member));
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
        let waits_for_grant = disks.iter().any(|disk| disk.waits_for_grant);
        self.wants_more = waits_for_grant || demanded > self.cap().reserved_iops;
        self.handle_member(now, MemberEvent::Loads { disks, latency_ns });
    }

    /// Returns true if a notice must be reported. The end of a lease without demand is not.
    pub(super) fn must_report(&mut self, notice: MemberNotice) -> bool {
        match notice {
            MemberNotice::Lapsed => {
                self.is_lapse_reported |= self.wants_more;
                self.wants_more
            }
            MemberNotice::Leased => std::mem::take(&mut self.is_lapse_reported),
            MemberNotice::ClockSlow | MemberNotice::OtherVersion(_) => true,
        }
    }

    pub(super) fn handle_allocator(&mut self, now: Time, event: AllocatorEvent) {
        let actions = self.allocator.handle(now, event);
        self.leads.extend(actions);
    }

    /// Makes this node the leader. Returns false if that is impossible.
    pub(super) fn lead(
        &mut self,
        now: Time,
        term: Term,
        records: Vec<(NodeId, NodeGrant)>,
        policies: Vec<(PolicyKey, PolicyLimits)>,
    ) -> bool {
        let Some(capability) = self.capacity else { return false };
        self.reported_capacities.clear();
        self.reports.clear();
        self.other_normalization.clear();
        self.capacity_in_effect = Some(capability);
        let event = AllocatorEvent::Elected { term, capacity: capability, records, policies };
        self.handle_allocator(now, event);
        self.allocator.term() == Some(term)
    }

    /// Ends the leadership of this node. Returns true if the node was the leader.
    pub(super) fn depose(&mut self, now: Time) -> bool {
        let led = self.allocator.term().is_some();
        self.handle_allocator(now, AllocatorEvent::Deposed);
        led
    }

    /// Processes a node's report as the leader. `created`: creation revision of its key. A report
    /// with another `normalization_bytes` is ignored; the value is returned if it has not been
    /// reported yet.
    pub(super) fn handle_report(
        &mut self,
        now: Time,
        node_report: NodeReport,
        created: u64,
    ) -> Option<(NodeId, u64)> {
        let node = node_report.report.node;
        if self.reports.get(&node).is_some_and(|before| *before != created) {
            // The node had withdrawn from the store, and shares it again.
            self.forget(now, node);
        }
        self.reports.insert(node, created);
        if node_report.normalization_bytes != self.normalization_bytes {
            let known_bytes =
                self.other_normalization.insert(node, node_report.normalization_bytes);
            let is_new = known_bytes != Some(node_report.normalization_bytes);
            return is_new.then_some((node, node_report.normalization_bytes));
        }
        self.other_normalization.remove(&node);
        match node_report.capacity_iops {
            Some(iops) => self.reported_capacities.insert(node, iops),
            None => self.reported_capacities.remove(&node),
        };
        self.follow_capacity(now);
        self.handle_allocator(now, AllocatorEvent::Reported { report: node_report.report });
        None
    }

    /// Updates the capacity that the leader uses: the lowest that any node knows.
    pub(super) fn follow_capacity(&mut self, now: Time) {
        let Some(own_capacity) = self.capacity.filter(|_| self.allocator.term().is_some()) else {
            return;
        };
        let lowest_iops =
            self.reported_capacities.values().copied().fold(own_capacity.iops(), u64::min);
        let capability = match own_capacity {
            SharedStoreCapacity::Declared(_) => SharedStoreCapacity::Declared(lowest_iops),
            SharedStoreCapacity::Measured(_) => SharedStoreCapacity::Measured(lowest_iops),
        };
        if self.capacity_in_effect != Some(capability) {
            self.capacity_in_effect = Some(capability);
            self.handle_allocator(now, AllocatorEvent::CapacitySet { capacity: capability });
        }
    }

    /// Processes the removal of a node from the cluster, or its withdrawal from the store.
    pub(super) fn forget(&mut self, now: Time, node: NodeId) {
        self.reported_capacities.remove(&node);
        self.reports.remove(&node);
        self.other_normalization.remove(&node);
        if self.allocator.term().is_some() {
            self.handle_allocator(now, AllocatorEvent::NodeGone { node });
        }
    }

    /// Returns the next deadline of member and allocator; `None` if neither has one.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let deadlines = [self.member.next_deadline(), self.allocator.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    pub(super) fn handle_deadlines(&mut self, now: Time) {
        if self.member.next_deadline().is_some_and(|deadline| deadline <= now) {
            let actions = self.member.handle_deadline(now);
            self.todo.extend(actions.into_iter().map(of_member));
        }
        if self.allocator.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.leads.extend(self.allocator.handle_deadline(now));
        }
    }

    /// Returns the next pending action of the member.
    pub(super) fn poll_member(&mut self) -> Option<StoreAction> {
        self.todo.pop_front()
    }

    /// Returns the next pending action of the allocator.
    pub(super) fn poll_leader(&mut self) -> Option<AllocatorAction> {
        self.leads.pop_front()
    }

    /// Flushes recorded inputs and decisions to the recorder.
    pub(super) fn flush_records(&mut self) {
        self.member.flush();
        self.allocator.flush();
    }

    /// Returns an action of the member that has failed. It is repeated before any other, unless a
    /// pending one supersedes it: of the actions that are pending, only the newest state is made
    /// durable, then applied, then reported, and of each kind of notice one is kept. Their number is
    /// therefore bounded however long an action fails.
    pub(super) fn put_back(&mut self, todo: StoreAction) {
        self.todo.push_front(todo);
        let (mut persist, mut apply, mut send) = (None, None, None);
        let mut notices: Vec<MemberNotice> = Vec::new();
        for action in self.todo.drain(..) {
            match action {
                // Earlier reports describe an earlier state. The member sends others.
                StoreAction::Keep(_) => (persist, send) = (Some(action), None),
                StoreAction::Apply(..) => (apply, send) = (Some(action), None),
                StoreAction::Send(_) => send = Some(action),
                StoreAction::TellMember(notice) => {
                    notices
                        .retain(|other_notice| discriminant(other_notice) != discriminant(&notice));
                    notices.push(notice);
                }
            }
        }
        let notices = notices.into_iter().map(StoreAction::TellMember);
        self.todo.extend(persist.into_iter().chain(notices).chain(apply).chain(send));
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
        is_busy: false,
    }
}

fn of_member(action: MemberAction) -> StoreAction {
    match action {
        MemberAction::Apply { store, policies } => StoreAction::Apply(store, policies),
        MemberAction::Persist { durable } => StoreAction::Keep(durable),
        MemberAction::Send { report } => StoreAction::Send(report),
        MemberAction::Notify { notice } => StoreAction::TellMember(notice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    fn durable_state(reserved_iops: u64) -> DurableState {
        let mut durable = DurableState::default();
        durable.store.reserved_iops = reserved_iops;
        durable
    }

    fn cap(reserved_iops: u64) -> StoreAction {
        StoreAction::Apply(
            TimedRateLimit { reserved_iops, ..TimedRateLimit::default() },
            Vec::new(),
        )
    }

    fn store() -> SharedStore {
        let durable = (DurableState::default(), Minimums::new());
        let mut store = SharedStore::new(Time::ZERO, (name("san"), StoreId(0)), durable, None);
        store.todo.clear();
        store
    }

    /// The state store refuses the reservation, for example because its file system is full.
    #[test]
    fn actions_of_a_member_whose_reservation_cannot_be_saved_do_not_accumulate() {
        let mut store = store();
        store.put_back(StoreAction::Keep(durable_state(1)));
        for round in 1..10_000 {
            let now = Time::ZERO + Duration::from_secs(10 * round);
            store.handle_loads(now, vec![pending_minimum_load(round)], 0);
            store.todo.push_back(StoreAction::TellMember(MemberNotice::Leased));
            store.todo.push_back(StoreAction::TellMember(MemberNotice::Lapsed));
            store.todo.push_back(cap(round));
            store.todo.push_back(StoreAction::Keep(durable_state(round)));
            let failed = std::iter::from_fn(|| store.todo.pop_front())
                .find(|action| matches!(action, StoreAction::Keep(_)));
            store.put_back(failed.unwrap());
            assert!(store.todo.len() <= 8, "{} after {round}", store.todo.len());
        }
    }

    /// Nobody knows the capacity of a store, so that it has no leader.
    #[test]
    fn disks_of_a_store_without_capacity_and_leader_get_the_floor_after_a_time() {
        let mut store = store();
        let time = |seconds| Time::ZERO + Duration::from_secs(seconds);
        assert_eq!(store.take_capacity_change(), None, "its identity is not known yet");
        let iops = |now, store: &mut SharedStore| {
            store.follow_leader(time(now));
            store.cap().iops_at(time(now))
        };
        assert_eq!(iops(100, &mut store), 0);
        store.is_known = true;
        assert_eq!(store.take_capacity_change(), Some(true));
        assert_eq!(store.take_capacity_change(), None);
        assert_eq!([101, 105, 106, 200].map(|now| iops(now, &mut store)), [0, 0, 64, 64]);
        // A node that knows the capacity is elected.
        store.handle_leader(time(214), Some(("n2".to_owned(), Term(1))));
        assert_eq!(iops(220, &mut store), 0);
        assert!(store.takes_part() && store.unavailable_reason().is_none());
        // It is lost.
        store.handle_leader(time(221), None);
        assert_eq!([221, 226].map(|now| iops(now, &mut store)), [0, 64]);
        // A reservation holds without a leader.
        store.durable = durable_state(64);
        assert_eq!(iops(227, &mut store), 0, "the member has the reservation");
        store.durable = DurableState::default();
        store.capacity = Some(SharedStoreCapacity::Measured(1000));
        assert_eq!(iops(300, &mut store), 0);
        assert_eq!(store.take_capacity_change(), Some(false));
        assert_eq!(store.take_capacity_change(), None);
    }

    /// No report is sent before the state that it describes is durable and in effect.
    #[test]
    fn the_newest_state_is_saved_then_applied_then_reported() {
        let mut store = store();
        store.handle_loads(Time::ZERO + Duration::from_secs(10), vec![pending_minimum_load(1)], 0);
        let report = store.todo.pop_back().unwrap();
        let StoreAction::Send(first) = report else { panic!("no report is due") };
        let report_number = |number| {
            let mut report = first.clone();
            report.id.number = number;
            StoreAction::Send(report)
        };
        store.todo.extend([
            cap(1),
            report_number(1),
            cap(2),
            StoreAction::Keep(durable_state(2)),
            report_number(2),
            report_number(3),
        ]);
        store.put_back(StoreAction::Keep(durable_state(1)));
        let mut order = Vec::new();
        while let Some(action) = store.todo.pop_front() {
            order.push(match action {
                StoreAction::Keep(durable) => format!("keep {}", durable.store.reserved_iops),
                StoreAction::Apply(cap, _) => format!("apply {}", cap.reserved_iops),
                StoreAction::Send(report) => format!("send {}", report.id.number),
                StoreAction::TellMember(_) => "notice".to_owned(),
            });
        }
        assert_eq!(order, ["keep 2", "apply 2", "send 3"]);
        // A report before the newest state is not sent at all; the next one follows soon.
        store.todo.extend([report_number(4), cap(3)]);
        store.put_back(StoreAction::Keep(durable_state(3)));
        assert!(!store.todo.iter().any(|action| matches!(action, StoreAction::Send(_))));
        assert_eq!(store.todo.len(), 2);
    }
}
