//! State of one shared store: the member, which limits this host, and the allocator, which divides
//! the store if this host is the leader.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, Candidacy, Cap, Capability, DiskKey, DiskLoad,
    Grant, Kept, Member, MemberAction, MemberEvent, MemberNotice, NodeId, Notice, PolicyCap,
    PolicyKey, PolicyLimits, Report, Term, Terms,
};
use suimon_contract::Name;
use suimon_quantity::{StoreId, Time};
use suimon_recording::{MemberBirth, Recorded, Sink};

use super::asking::Ask;
use super::beats::Seen;
use super::covered::Minimums;
use super::identity::Wrong;
use super::keys::Said;
use super::loads::Loads;
use super::releasing::Release;

/// Pending action for a store.
pub(super) enum Todo {
    /// Set the limit of the store's disks, and this node's parts of policies that span nodes.
    Apply(Cap, Vec<PolicyCap>),
    /// Make this state durable, for the next start of the daemon.
    Keep(Kept),
    /// Write the report for the store's leader.
    Send(Report),
    TellMember(MemberNotice),
    Write {
        term: Term,
        grants: Vec<(NodeId, Grant)>,
        forgotten: Vec<NodeId>,
    },
    Resign(Term),
    TellLeader(Notice),
}

/// Shared store.
pub(super) struct SharedStore {
    pub(super) name: Name,
    pub(super) id: StoreId,
    terms: Terms,
    member: Recorded<Member>,
    allocator: Recorded<Allocator>,
    sink: Option<Arc<dyn Sink>>,
    /// Durable rates that the host may use without a lease.
    pub(super) kept: Kept,
    /// Pending request to reserve minimums.
    pub(super) ask: Option<Ask>,
    /// Minimums in effect.
    pub(super) covered: Minimums,
    /// This node's parts of policies that span nodes.
    pub(super) policy_caps: Vec<PolicyCap>,
    pub(super) loads: Loads,
    pub(super) names: BTreeMap<DiskKey, String>,
    /// Capacity according to this host's configuration or measurement; `None`: unknown.
    pub(super) capability: Option<Capability>,
    pub(super) normalization_bytes: u64,
    /// Capacity according to other nodes' reports. Nodes that do not know it are left out.
    told_elsewhere: BTreeMap<NodeId, u64>,
    /// Creation revisions of the nodes' reports.
    reports: BTreeMap<NodeId, u64>,
    /// Capacity that the leader uses.
    capability_in_force: Option<Capability>,
    /// Nodes with another `normalization_bytes`, already reported by an event.
    odd: BTreeMap<NodeId, u64>,
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
    pub(super) wrong: Option<Wrong>,
    /// Time of the next check of the store's identity, and true while a check is in progress.
    pub(super) look_at: Time,
    pub(super) is_looking: bool,
    /// Nodes seen on the store, time of the next heartbeat, and true while one is being written.
    pub(super) beats: Seen,
    pub(super) beat_at: Time,
    pub(super) is_beating: bool,
    /// Progress of giving back what is reserved, if a change stops sharing the store.
    pub(super) release: Release,
    /// Delivered rate of the store's disks in the last sample.
    pub(super) delivered_iops: u64,
    /// True if the disks demand more than is reserved.
    wants_more: bool,
    /// True if an event has reported that the lease has expired.
    is_lapse_told: bool,
    /// Pending actions of the member. A failed action is first.
    todo: VecDeque<Todo>,
    /// Pending actions of the allocator.
    leads: VecDeque<AllocatorAction>,
}

impl SharedStore {
    /// Creates a store from its durable state, before the host has joined the cluster. `sink`:
    /// recorder of inputs and decisions, if any.
    pub(super) fn new(
        now: Time,
        (name, id): (Name, StoreId),
        (kept, covered): (Kept, Minimums),
        sink: Option<Arc<dyn Sink>>,
    ) -> Self {
        let terms = Terms::default();
        let birth = MemberBirth { terms, node: NodeId(0), incarnation: 0, kept: kept.clone() };
        let begins = (now, name.as_str());
        let (member, actions) = Recorded::member(sink.as_ref(), begins, birth);
        let allocator = Recorded::allocator(sink.as_ref(), begins, terms);
        Self {
            name,
            id,
            terms,
            member,
            allocator,
            sink,
            kept,
            ask: None,
            covered,
            policy_caps: Vec::new(),
            loads: Loads::default(),
            names: BTreeMap::new(),
            capability: None,
            normalization_bytes: 0,
            told_elsewhere: BTreeMap::new(),
            reports: BTreeMap::new(),
            capability_in_force: None,
            odd: BTreeMap::new(),
            leader: None,
            is_candidate: false,
            elect_at: now,
            candidacy: Candidacy::default(),
            is_known: false,
            wrong: None,
            look_at: now,
            is_looking: false,
            beats: Seen::default(),
            beat_at: now,
            is_beating: false,
            release: Release::default(),
            delivered_iops: 0,
            wants_more: false,
            is_lapse_told: false,
            todo: actions.into_iter().map(of_member).collect(),
            leads: VecDeque::new(),
        }
    }

    /// Begins a membership with this node number. Leases of a former number end; reservations
    /// remain.
    pub(super) fn begin(&mut self, now: Time, node: NodeId, incarnation: u64) {
        let (terms, kept) = (self.terms, self.kept.clone());
        let birth = MemberBirth { terms, node, incarnation, kept };
        let (sink, begins) = (self.sink.as_ref(), (now, self.name.as_str()));
        let (member, actions) = Recorded::member(sink, begins, birth);
        self.allocator = Recorded::allocator(sink, begins, terms);
        self.member = member;
        self.leads.clear();
        (self.leader, self.is_candidate, self.elect_at) = (None, false, now);
        self.told_elsewhere.clear();
        self.reports.clear();
        self.todo = actions.into_iter().map(of_member).collect();
        (self.is_known, self.look_at, self.beat_at) = (false, now, now);
        if self.release == Release::Withdraws {
            // The result of the former session is not received.
            self.release = Release::GivesBack;
        }
    }

    /// Returns the reason why this host does not take part in the store; `None` if it does.
    pub(super) fn why_not(&self) -> Option<String> {
        let is_unmeasured = self.capability.is_none();
        let unmeasured = || {
            let name = &self.name;
            format!(
                "the capacity of the store is unknown; measure it with `suimon store measure \
                 {name}`"
            )
        };
        let wrong = self.wrong.as_ref().map(|wrong| wrong.why.clone());
        wrong.or_else(|| is_unmeasured.then(unmeasured))
    }

    /// Returns true if this host takes part in the store: the identity is right, and the capacity
    /// known.
    pub(super) fn takes_part(&self) -> bool {
        self.is_known && self.wrong.is_none() && self.capability.is_some()
    }

    /// Processes a change of the leader.
    pub(super) fn hear_leader(&mut self, now: Time, leader: Option<(String, Term)>) {
        if leader.is_none() && self.leader.is_some() {
            self.candidacy.handle_vacant(now);
        }
        self.leader = leader;
    }

    /// Returns true if this node may request its election.
    pub(super) fn may_stand(&self, now: Time) -> bool {
        self.leads().is_none()
            && !self.is_candidate
            && self.elect_at <= now
            && (self.leader.is_some() || self.candidacy.stands_at() <= now)
    }

    /// Returns true if this node writes heartbeats: it takes part in the store, or another cluster
    /// uses the store.
    pub(super) fn is_written_on(&self) -> bool {
        self.takes_part() || self.wrong.as_ref().is_some_and(|wrong| wrong.is_anothers)
    }

    /// Returns the limit of the store's disks on this host.
    pub(super) fn cap(&self) -> Cap {
        self.member.cap()
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
        self.kept == Kept::default() && self.todo.is_empty()
    }

    pub(super) fn hear_grant(&mut self, now: Time, grant: Grant) {
        if self.ask.as_mut().is_some_and(|ask| ask.handle_grant(&grant)) {
            self.ask = None;
        }
        self.hear_member(now, MemberEvent::Granted { grant });
    }

    fn hear_member(&mut self, now: Time, event: MemberEvent) {
        let actions = self.member.handle(now, event);
        self.todo.extend(actions.into_iter().map(of_member));
    }

    /// Processes a sample of the disks' load.
    pub(super) fn hear_loads(&mut self, now: Time, mut disks: Vec<DiskLoad>, latency_ns: u64) {
        let minimums = disks.iter().fold(0_u64, |sum, disk| sum.saturating_add(disk.min_iops));
        self.ask.take_if(|ask| !ask.is_open(now, minimums));
        disks.extend(self.ask.as_ref().map(|ask| to_come(ask.iops - minimums)));
        self.delivered_iops =
            disks.iter().fold(0, |sum, disk| sum.saturating_add(disk.delivered_iops));
        let demanded = disks.iter().fold(0_u64, |sum, disk| sum.saturating_add(disk.demanded_iops));
        let waits = disks.iter().any(|disk| disk.waits_for_grant);
        self.wants_more = waits || demanded > self.cap().reserved_iops;
        self.hear_member(now, MemberEvent::Loads { disks, latency_ns });
    }

    /// Returns true if a notice must be reported. The end of a lease without demand is not.
    pub(super) fn is_news(&mut self, notice: MemberNotice) -> bool {
        match notice {
            MemberNotice::Lapsed => {
                self.is_lapse_told |= self.wants_more;
                self.wants_more
            }
            MemberNotice::Leased => std::mem::take(&mut self.is_lapse_told),
            MemberNotice::ClockSlow | MemberNotice::OtherVersion(_) => true,
        }
    }

    pub(super) fn hear_allocator(&mut self, now: Time, event: AllocatorEvent) {
        let actions = self.allocator.handle(now, event);
        self.leads.extend(actions);
    }

    /// Makes this node the leader. Returns false if that is impossible.
    pub(super) fn lead(
        &mut self,
        now: Time,
        term: Term,
        records: Vec<(NodeId, Grant)>,
        policies: Vec<(PolicyKey, PolicyLimits)>,
    ) -> bool {
        let Some(capability) = self.capability else { return false };
        self.told_elsewhere.clear();
        self.reports.clear();
        self.odd.clear();
        self.capability_in_force = Some(capability);
        let event = AllocatorEvent::Elected { term, capability, records, policies };
        self.hear_allocator(now, event);
        self.allocator.term() == Some(term)
    }

    /// Ends the leadership of this node. Returns true if the node was the leader.
    pub(super) fn depose(&mut self, now: Time) -> bool {
        let led = self.allocator.term().is_some();
        self.hear_allocator(now, AllocatorEvent::Deposed);
        led
    }

    /// Processes a node's report as the leader. `created`: creation revision of its key. A report
    /// with another `normalization_bytes` is ignored; the value is returned if it has not been
    /// reported yet.
    pub(super) fn hear_report(
        &mut self,
        now: Time,
        said: Said,
        created: u64,
    ) -> Option<(NodeId, u64)> {
        let node = said.report.node;
        if self.reports.get(&node).is_some_and(|before| *before != created) {
            // The node had withdrawn from the store, and shares it again.
            self.forget(now, node);
        }
        self.reports.insert(node, created);
        if said.normalization_bytes != self.normalization_bytes {
            let known = self.odd.insert(node, said.normalization_bytes);
            let is_new = known != Some(said.normalization_bytes);
            return is_new.then_some((node, said.normalization_bytes));
        }
        self.odd.remove(&node);
        match said.capability_iops {
            Some(iops) => self.told_elsewhere.insert(node, iops),
            None => self.told_elsewhere.remove(&node),
        };
        self.follow_capability(now);
        self.hear_allocator(now, AllocatorEvent::Reported { report: said.report });
        None
    }

    /// Updates the capacity that the leader uses: the lowest that any node knows.
    pub(super) fn follow_capability(&mut self, now: Time) {
        let Some(own) = self.capability.filter(|_| self.allocator.term().is_some()) else { return };
        let least = self.told_elsewhere.values().copied().fold(own.iops(), u64::min);
        let capability = match own {
            Capability::Declared(_) => Capability::Declared(least),
            Capability::Measured(_) => Capability::Measured(least),
        };
        if self.capability_in_force != Some(capability) {
            self.capability_in_force = Some(capability);
            self.hear_allocator(now, AllocatorEvent::CapabilitySet { capability });
        }
    }

    /// Processes the removal of a node from the cluster, or its withdrawal from the store.
    pub(super) fn forget(&mut self, now: Time, node: NodeId) {
        self.told_elsewhere.remove(&node);
        self.reports.remove(&node);
        self.odd.remove(&node);
        if self.allocator.term().is_some() {
            self.hear_allocator(now, AllocatorEvent::NodeGone { node });
        }
    }

    /// Returns the next deadline.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let both = [self.member.next_deadline(), self.allocator.next_deadline()];
        both.into_iter().flatten().min()
    }

    pub(super) fn handle_deadlines(&mut self, now: Time) {
        if self.member.next_deadline().is_some_and(|at| at <= now) {
            let actions = self.member.handle_deadline(now);
            self.todo.extend(actions.into_iter().map(of_member));
        }
        if self.allocator.next_deadline().is_some_and(|at| at <= now) {
            self.leads.extend(self.allocator.handle_deadline(now));
        }
    }

    /// Returns the next pending action.
    pub(super) fn poll(&mut self) -> Option<Todo> {
        if let Some(todo) = self.todo.pop_front() {
            return Some(todo);
        }
        Some(match self.leads.pop_front()? {
            AllocatorAction::Write { term, grants, forgotten } => {
                Todo::Write { term, grants, forgotten }
            }
            AllocatorAction::Resign { term } => Todo::Resign(term),
            AllocatorAction::Tell { notice } => Todo::TellLeader(notice),
        })
    }

    /// Flushes recorded inputs and decisions to the recorder.
    pub(super) fn flush_records(&mut self) {
        self.member.flush();
        self.allocator.flush();
    }

    /// Returns a failed action, which is repeated before any other.
    pub(super) fn put_back(&mut self, todo: Todo) {
        self.todo.push_front(todo);
    }
}

/// Returns the load of a fictitious disk with the additional minimums of a pending change.
const fn to_come(min_iops: u64) -> DiskLoad {
    DiskLoad {
        disk: DiskKey(0),
        policy: None,
        min_iops,
        max_iops: None,
        fallback_iops: Some(0),
        weight: 1,
        demanded_iops: 0,
        delivered_iops: 0,
        waits_for_grant: false,
        waits_for_store: false,
        is_busy: false,
    }
}

fn of_member(action: MemberAction) -> Todo {
    match action {
        MemberAction::Apply { store, policies } => Todo::Apply(store, policies),
        MemberAction::Keep { kept } => Todo::Keep(kept),
        MemberAction::Send { report } => Todo::Send(report),
        MemberAction::Tell { notice } => Todo::TellMember(notice),
    }
}
