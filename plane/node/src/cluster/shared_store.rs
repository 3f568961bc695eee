//! One store that nodes share: what this host may do of it, and, where it leads, who may do what.

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

/// What is to be done for a store.
pub(super) enum Todo {
    /// Hold its disks to this, and those of policies that span nodes to that.
    Apply(Cap, Vec<PolicyCap>),
    /// Have it be there after a restart.
    Keep(Kept),
    /// Tell its leader.
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

/// See the module.
pub(super) struct SharedStore {
    pub(super) name: Name,
    pub(super) id: StoreId,
    terms: Terms,
    member: Recorded<Member>,
    allocator: Recorded<Allocator>,
    sink: Option<Arc<dyn Sink>>,
    /// What the host does without a lease, as it is kept.
    pub(super) kept: Kept,
    /// What its disks are to have and is asked for.
    pub(super) ask: Option<Ask>,
    /// Minimums that are in effect.
    pub(super) covered: Minimums,
    /// What is here of policies that span nodes.
    pub(super) policy_caps: Vec<PolicyCap>,
    pub(super) loads: Loads,
    pub(super) names: BTreeMap<DiskKey, String>,
    /// What this host was told that the store can do; `None`: nobody knows.
    pub(super) capability: Option<Capability>,
    pub(super) normalization_bytes: u64,
    /// What others were told, by node.
    told_elsewhere: BTreeMap<NodeId, u64>,
    /// Of the leader's terms.
    capability_in_force: Option<Capability>,
    /// Nodes that count otherwise, and were told of.
    odd: BTreeMap<NodeId, u64>,
    /// Who divides it, as far as is known: its name, and its term. `None`: nobody.
    pub(super) leader: Option<(String, Term)>,
    /// Somebody was asked to elect this node.
    pub(super) is_candidate: bool,
    /// When it is tried again.
    pub(super) elect_at: Time,
    /// When it may be tried where nobody leads any more.
    candidacy: Candidacy,
    /// Whether it is known what it is, and why it is not taken part in.
    pub(super) is_known: bool,
    pub(super) wrong: Option<Wrong>,
    /// When it is looked at again whether it is the cluster's; `None`: somebody looks.
    pub(super) look_at: Option<Time>,
    /// Who was seen on it, and when this node writes there again; `None`: it is writing.
    pub(super) beats: Seen,
    pub(super) beat_at: Option<Time>,
    /// What its disks did lately.
    pub(super) delivered_iops: u64,
    /// Its disks want more than what is reserved.
    wants_more: bool,
    /// Somebody was told that no lease came.
    is_lapse_told: bool,
    /// What the member asks for. What could not be done yet comes before the rest.
    todo: VecDeque<Todo>,
    /// What the leader asks for.
    leads: VecDeque<AllocatorAction>,
}

impl SharedStore {
    /// A store of which this was kept, and these minimums were in effect. Nothing is known of the
    /// cluster yet. Recorded where there is somewhere to.
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
            capability_in_force: None,
            odd: BTreeMap::new(),
            leader: None,
            is_candidate: false,
            elect_at: now,
            candidacy: Candidacy::default(),
            is_known: false,
            wrong: None,
            look_at: Some(now),
            beats: Seen::default(),
            beat_at: Some(now),
            delivered_iops: 0,
            wants_more: false,
            is_lapse_told: false,
            todo: actions.into_iter().map(of_member).collect(),
            leads: VecDeque::new(),
        }
    }

    /// The host is a node of this number from now on. What was lent to it as another is not its any
    /// more, what is reserved is.
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
        self.todo = actions.into_iter().map(of_member).collect();
        (self.is_known, self.look_at, self.beat_at) = (false, Some(now), Some(now));
    }

    /// Why this host does not take part in it.
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

    /// Whether this host takes part in it.
    pub(super) fn takes_part(&self) -> bool {
        self.is_known && self.wrong.is_none() && self.capability.is_some()
    }

    /// Somebody leads it, in that term, or nobody.
    pub(super) fn hear_leader(&mut self, now: Time, leader: Option<(String, Term)>) {
        if leader.is_none() && self.leader.is_some() {
            self.candidacy.handle_vacant(now);
        }
        self.leader = leader;
    }

    /// Whether this node may try to lead it.
    pub(super) fn may_stand(&self, now: Time) -> bool {
        self.leads().is_none()
            && !self.is_candidate
            && self.elect_at <= now
            && (self.leader.is_some() || self.candidacy.stands_at() <= now)
    }

    /// Whether this node is to be seen on it: where it takes part, and where others have it.
    pub(super) fn is_written_on(&self) -> bool {
        self.takes_part() || self.wrong.as_ref().is_some_and(|wrong| wrong.is_anothers)
    }

    /// What all its disks here may do.
    pub(super) fn cap(&self) -> Cap {
        self.member.cap()
    }

    /// What disks' minimums may come to, of what is reserved: a floor is for those that have none.
    pub(super) fn covers_iops(&self) -> u64 {
        self.cap().reserved_iops.saturating_sub(self.terms.floor_iops)
    }

    pub(super) fn leads(&self) -> Option<Term> {
        self.allocator.term()
    }

    /// What all nodes together may do, if this one leads.
    pub(super) fn limit_iops(&self) -> Option<u64> {
        self.allocator.limit_iops()
    }

    /// Whether nothing is reserved for this host any more, and its disks keep to that.
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

    /// What its disks did lately.
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

    /// Whether something is to be told. A lease that ends while nobody wants it is no news.
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

    /// This node was elected.
    pub(super) fn lead(
        &mut self,
        now: Time,
        term: Term,
        records: Vec<(NodeId, Grant)>,
        policies: Vec<(PolicyKey, PolicyLimits)>,
    ) -> bool {
        let Some(capability) = self.capability else { return false };
        self.told_elsewhere.clear();
        self.odd.clear();
        self.capability_in_force = Some(capability);
        let event = AllocatorEvent::Elected { term, capability, records, policies };
        self.hear_allocator(now, event);
        self.allocator.term() == Some(term)
    }

    /// This node does not divide the store any more; whether it did.
    pub(super) fn depose(&mut self, now: Time) -> bool {
        let led = self.allocator.term().is_some();
        self.hear_allocator(now, AllocatorEvent::Deposed);
        led
    }

    /// A node's report came to the leader. One that counts operations otherwise is not heard: what it
    /// counts as, if that is new.
    pub(super) fn hear_report(&mut self, now: Time, said: Said) -> Option<(NodeId, u64)> {
        let node = said.report.node;
        if said.normalization_bytes != self.normalization_bytes {
            let known = self.odd.insert(node, said.normalization_bytes);
            let is_new = known != Some(said.normalization_bytes);
            return is_new.then_some((node, said.normalization_bytes));
        }
        self.odd.remove(&node);
        self.told_elsewhere.insert(node, said.capability_iops);
        self.follow_capability(now);
        self.hear_allocator(now, AllocatorEvent::Reported { report: said.report });
        None
    }

    /// The least that any node was told counts.
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

    /// A node is not one any more.
    pub(super) fn forget(&mut self, now: Time, node: NodeId) {
        self.told_elsewhere.remove(&node);
        self.odd.remove(&node);
        if self.allocator.term().is_some() {
            self.hear_allocator(now, AllocatorEvent::NodeGone { node });
        }
    }

    /// When something is to be done although nothing is heard.
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

    /// The next that is to be done.
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

    /// What was recorded is handed on.
    pub(super) fn flush_records(&mut self) {
        self.member.flush();
        self.allocator.flush();
    }

    /// It could not be done: it is tried again before what comes after it.
    pub(super) fn put_back(&mut self, todo: Todo) {
        self.todo.push_front(todo);
    }
}

/// What disks are to have, as if another disk had it.
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
