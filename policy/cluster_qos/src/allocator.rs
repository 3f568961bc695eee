//! State machine of the leader of a shared store, which grants shares of the store to nodes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use crate::account::GrantAccount;
use crate::estimate::CapacityEstimator;
use crate::external_users::ExternalUsers;
use crate::grant::NodeGrant;
use crate::ledger::Ledger;
use crate::load::{LoadReport, POLICIES_MAX, PROTOCOL_VERSION, PolicyLoad};
use crate::node_state::NodeState;
use crate::notice::{ExternalUser, Notice};
use crate::unmet_minimums::UnmetMinimums;
use crate::{NodeId, Parameters, PolicyKey, SharedStoreCapacity, Term};

/// Maximum number of recorded unknown policies. When it is reached, unknown policies that no node
/// reports any more are removed.
const UNKNOWN_MAX: usize = 256;

/// Maximum number of policies that the leader records: those of the cluster, and as many deleted
/// ones that disks still use. Further ones are unknown policies.
const RECORDED_POLICIES_MAX: usize = 2 * POLICIES_MAX;

/// Limits that disks on several nodes share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyLimits {
    /// Guaranteed rate of all disks together, in normalised operations per second; 0: no guarantee.
    pub min_iops: u64,
    /// Maximum rate of all disks together, in normalised operations per second; `None`: unlimited.
    pub max_iops: Option<u64>,
}

/// Input of the [`Allocator`]: leadership change, node report, write result or configuration
/// change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AllocatorEvent {
    /// This node was elected. The caller reads `records` and `policies` after the election, when no
    /// earlier leader can write any more.
    Elected {
        /// Term of this leader, higher than all earlier terms.
        term: Term,
        /// Capacity of the store, declared or measured.
        #[serde(rename = "capability")]
        capacity: SharedStoreCapacity,
        /// Last recorded grant of each node.
        records: Vec<(NodeId, NodeGrant)>,
        /// Policies that exist, with their limits.
        policies: Vec<(PolicyKey, PolicyLimits)>,
    },
    /// This node is no longer the leader.
    Deposed,
    /// A report of a node was received.
    Reported {
        /// Report received from the node.
        report: LoadReport,
    },
    /// The records of the last [`AllocatorAction::Write`] were committed.
    #[serde(rename = "written")]
    GrantsWritten,
    /// The last [`AllocatorAction::Write`] failed, or its outcome is unknown. The leader resigns.
    WriteFailed,
    /// The capacity of the store changed.
    #[serde(rename = "capability_set")]
    CapacitySet {
        /// Capacity in effect from now on.
        #[serde(rename = "capability")]
        capacity: SharedStoreCapacity,
    },
    /// A policy was created or changed.
    PolicySet {
        /// Policy that was created or changed.
        policy: PolicyKey,
        /// Limits in effect from now on.
        limits: PolicyLimits,
    },
    /// A policy was deleted by the operator. It stays in effect until no disk uses it.
    PolicyRemoved {
        /// Policy that is to be removed.
        policy: PolicyKey,
    },
    /// A node has stopped using the store: it left the cluster, was fenced, or has withdrawn from
    /// the store. If the node shares the store again, it begins without a reservation. Reporting
    /// this for a node that continues breaks the guarantee.
    NodeGone {
        /// Node that has stopped using the store.
        node: NodeId,
    },
    /// An external user of the store, outside this cluster, was detected.
    #[serde(rename = "stranger_seen")]
    ExternalUserDetected {
        /// External user that was detected.
        #[serde(rename = "stranger")]
        external_user: ExternalUser,
    },
}

/// Action that the caller of [`Allocator::poll_action`] must carry out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum AllocatorAction {
    /// Write these records if this node is still the leader of the term, then report
    /// [`AllocatorEvent::GrantsWritten`] or [`AllocatorEvent::WriteFailed`]. The write may be split
    /// into several transactions, each of which must fail if the term is over. Nodes read their
    /// grants from these records. Later actions must not be written before this one.
    Write {
        /// Term in which the decision was made.
        term: Term,
        /// Grants, which replace the earlier grants of the nodes.
        grants: Vec<(NodeId, NodeGrant)>,
        /// Nodes that stopped using the store, whose grant records are to be deleted.
        #[serde(rename = "forgotten")]
        removed_nodes: Vec<NodeId>,
    },
    /// Resign as the leader of the store. The outcome of the last write is unknown; the next leader
    /// reads the records.
    Resign {
        /// Term that the leader gives up.
        term: Term,
    },
    /// Report a notice to the operators of the cluster.
    #[serde(rename = "tell")]
    Notify {
        /// Notice to report to the operator.
        notice: Notice,
    },
}

/// State of the leader during its term.
#[derive(Clone, Debug)]
pub(crate) struct LeaderState {
    pub(crate) term: Term,
    pub(crate) next_grant_number: u64,
    pub(crate) nodes: BTreeMap<NodeId, NodeState>,
    pub(crate) store_ledger: Ledger,
    pub(crate) policy_ledgers: BTreeMap<PolicyKey, Ledger>,
    pub(crate) policies: BTreeMap<PolicyKey, PolicyLimits>,
    /// Policies that the operator deleted and that disks still use.
    pub(crate) policies_in_removal: BTreeSet<PolicyKey>,
    /// Nodes whose last report has another protocol version, with that version. A notice reports it
    /// when it changes.
    pub(crate) other_versions: BTreeMap<NodeId, u16>,
    /// Policies that nodes report and that do not exist.
    pub(crate) unknown_policies: BTreeSet<PolicyKey>,
    pub(crate) removed_nodes: BTreeSet<NodeId>,
    pub(crate) estimate: CapacityEstimator,
    pub(crate) external_users: ExternalUsers,
    pub(crate) unmet_minimums: UnmetMinimums,
    pub(crate) elected_at: Time,
    pub(crate) is_writing: bool,
    /// True if grants are to be recalculated: a report or a periodic evaluation came since the last
    /// round.
    pub(crate) is_round_due: bool,
    /// True if the last round granted a node less than its target, because other nodes may still
    /// use the capacity.
    pub(crate) has_pending_demand: bool,
    pub(crate) last_round: Option<Time>,
}

/// State machine of the leader of a shared store; has no effect while this node is not the leader.
/// See the crate documentation.
#[derive(Clone, Debug)]
pub struct Allocator {
    pub(crate) parameters: Parameters,
    pub(crate) now: Time,
    pub(crate) highest_term: Term,
    pub(crate) leader_state: Option<LeaderState>,
    pub(crate) actions: VecDeque<AllocatorAction>,
}

impl Allocator {
    /// Creates an allocator of a node that is not the leader.
    pub const fn new(terms: Parameters) -> Self {
        Self {
            parameters: terms,
            now: Time::ZERO,
            highest_term: Term(0),
            leader_state: None,
            actions: VecDeque::new(),
        }
    }

    /// Processes an event that occurred at `now`.
    pub fn handle(&mut self, now: Time, event: &AllocatorEvent) {
        self.now = self.now.max(now);
        match event {
            AllocatorEvent::Elected { term, capacity: capability, records, policies } => {
                self.become_leader(*term, *capability, records, policies);
            }
            AllocatorEvent::Deposed => self.leader_state = None,
            AllocatorEvent::WriteFailed => self.resign(),
            AllocatorEvent::Reported { report } => self.process(report),
            other => {
                if let Some(leader_state) = &mut self.leader_state {
                    leader_state.change(self.now, other, &mut self.actions);
                }
            }
        }
        self.continue_term();
    }

    /// Processes the deadline returned by [`Allocator::next_deadline`].
    pub fn handle_deadline(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.continue_term();
    }

    /// Returns the next action, or `None` if none is pending.
    pub fn poll_action(&mut self) -> Option<AllocatorAction> {
        self.actions.pop_front()
    }

    /// Returns when to call [`Allocator::handle_deadline`] unless an event occurs before.
    pub fn next_deadline(&self) -> Option<Time> {
        let leader_state = self.leader_state.as_ref()?;
        let evaluation = leader_state.estimate.next_evaluation();
        if leader_state.is_writing {
            return Some(evaluation);
        }
        let round = leader_state
            .last_round
            .map_or(self.now, |last| last + self.parameters.round_interval_min);
        if leader_state.is_round_due {
            return Some(round.min(evaluation));
        }
        let expiry = leader_state.next_expiry(self.now);
        let expiry = expiry.filter(|_| leader_state.has_pending_demand).map(|time| time.max(round));
        Some(expiry.map_or(evaluation, |time| time.min(evaluation)))
    }

    /// Returns the current term, or `None` if this node is not the leader.
    pub fn term(&self) -> Option<Term> {
        self.leader_state.as_ref().map(|leader_state| leader_state.term)
    }

    fn become_leader(
        &mut self,
        term: Term,
        capability: SharedStoreCapacity,
        records: &[(NodeId, NodeGrant)],
        policies: &[(PolicyKey, PolicyLimits)],
    ) {
        if term <= self.highest_term {
            return;
        }
        self.highest_term = term;
        let expires = self.now + self.parameters.max_elapsed(self.parameters.lease);
        let (mut store, mut shared) = (Ledger::default(), BTreeMap::<_, Ledger>::new());
        let mut nodes = BTreeMap::new();
        for (node, grant) in records {
            store.accounts.insert(*node, GrantAccount::from_record(grant, &grant.store, expires));
            for share in &grant.policies {
                let Some(max) = &share.max else { continue };
                let account = GrantAccount::from_record(grant, max, expires);
                shared.entry(share.policy).or_default().accounts.insert(*node, account);
            }
            let (admitted, admitted_fallback) =
                (grant.store.reserved_iops, grant.store.fallback_iops);
            nodes.insert(*node, NodeState { admitted, admitted_fallback, ..NodeState::default() });
        }
        let proved =
            records.iter().map(|(_, grant)| grant.store_limit_iops).max().unwrap_or_default();
        self.leader_state = Some(LeaderState {
            term,
            next_grant_number: 1,
            nodes,
            store_ledger: store,
            policy_ledgers: shared,
            policies: policies.iter().copied().take(POLICIES_MAX).collect(),
            policies_in_removal: BTreeSet::new(),
            other_versions: BTreeMap::new(),
            unknown_policies: BTreeSet::new(),
            removed_nodes: BTreeSet::new(),
            estimate: CapacityEstimator::new(self.now, capability, proved),
            external_users: ExternalUsers::default(),
            unmet_minimums: UnmetMinimums::default(),
            elected_at: self.now,
            is_writing: false,
            is_round_due: false,
            has_pending_demand: false,
            last_round: None,
        });
    }

    fn resign(&mut self) {
        if let Some(leader_state) = self.leader_state.take() {
            self.actions.push_back(AllocatorAction::Resign { term: leader_state.term });
        }
    }

    fn process(&mut self, report: &LoadReport) {
        let now = self.now;
        let Some(leader_state) = &mut self.leader_state else { return };
        if report.acknowledged.is_some_and(|acknowledged| acknowledged.term > leader_state.term) {
            self.resign();
            return;
        }
        leader_state.process(now, report, &mut self.actions);
    }

    fn continue_term(&mut self) {
        let Some(leader_state) = &mut self.leader_state else { return };
        if self.now >= leader_state.estimate.next_evaluation() {
            leader_state.evaluate_reports(&self.parameters, self.now, &mut self.actions);
        }
        let last = leader_state.last_round;
        let is_pause =
            last.is_some_and(|last| self.now.since(last) < self.parameters.round_interval_min);
        if leader_state.is_writing || is_pause {
            return;
        }
        // A lease that ended since the last round has freed capacity.
        let ends = last
            .filter(|_| leader_state.has_pending_demand)
            .and_then(|last| leader_state.next_expiry(last));
        let has_ended = ends.is_some_and(|end| end <= self.now);
        if leader_state.is_round_due || has_ended {
            leader_state.run_round(&self.parameters, self.now, &mut self.actions);
        }
    }
}

impl LeaderState {
    fn change(
        &mut self,
        now: Time,
        event: &AllocatorEvent,
        actions: &mut VecDeque<AllocatorAction>,
    ) {
        match event {
            AllocatorEvent::GrantsWritten => self.is_writing = false,
            AllocatorEvent::CapacitySet { capacity: capability } => {
                self.estimate.set_capacity(*capability);
            }
            AllocatorEvent::PolicySet { policy, limits } => {
                let has_room = self.policies.len() < RECORDED_POLICIES_MAX;
                if !has_room && !self.policies.contains_key(policy) {
                    return;
                }
                self.policies.insert(*policy, *limits);
                self.policies_in_removal.remove(policy);
                self.unknown_policies.remove(policy);
            }
            AllocatorEvent::PolicyRemoved { policy } => self.remove_policy(*policy, actions),
            AllocatorEvent::NodeGone { node } => {
                self.nodes.remove(node);
                self.other_versions.remove(node);
                for ledger in self.policy_ledgers.values_mut().chain([&mut self.store_ledger]) {
                    ledger.accounts.remove(node);
                }
                self.unmet_minimums.forget(*node);
                self.removed_nodes.insert(*node);
            }
            AllocatorEvent::ExternalUserDetected { external_user: stranger } => {
                if self.external_users.insert(now, stranger) {
                    let notice = Notice::ExternalUserDetected(stranger.clone());
                    actions.push_back(AllocatorAction::Notify { notice });
                }
            }
            AllocatorEvent::Elected { .. }
            | AllocatorEvent::Deposed
            | AllocatorEvent::WriteFailed
            | AllocatorEvent::Reported { .. } => return,
        }
        self.is_round_due = true;
    }

    /// Returns the first lease expiry after `after` on any node, of the store or of a policy;
    /// `None` if there is none.
    fn next_expiry(&self, after: Time) -> Option<Time> {
        let ledgers = self.policy_ledgers.values().chain([&self.store_ledger]);
        let accounts = ledgers.flat_map(|ledger| ledger.accounts.values());
        accounts.filter_map(|account| account.next_expiry(after)).min()
    }

    /// Returns the nodes whose last report contains disks of `policy`, in ascending order.
    pub(crate) fn nodes_with_policy(&self, policy: PolicyKey) -> impl Iterator<Item = NodeId> + '_ {
        let predicate = move |state: &NodeState| {
            let report = state.report.as_ref();
            report.is_some_and(|(report, _)| report.policy_load(policy).is_some())
        };
        self.nodes.iter().filter(move |(_, state)| predicate(state)).map(|(node, _)| *node)
    }

    fn remove_policy(&mut self, policy: PolicyKey, actions: &mut VecDeque<AllocatorAction>) {
        let user = self.nodes_with_policy(policy).next();
        match user {
            Some(node) => {
                self.policies_in_removal.insert(policy);
                let notice = Notice::PolicyInUse { policy, node };
                actions.push_back(AllocatorAction::Notify { notice });
            }
            None => {
                self.policies.remove(&policy);
            }
        }
    }

    fn process(&mut self, now: Time, report: &LoadReport, actions: &mut VecDeque<AllocatorAction>) {
        let node = report.node;
        let mut notify = |notice| actions.push_back(AllocatorAction::Notify { notice });
        if report.version != PROTOCOL_VERSION {
            if self.other_versions.insert(node, report.version) != Some(report.version) {
                notify(Notice::OtherVersion { node, version: report.version });
            }
            return;
        }
        self.other_versions.remove(&node);
        // A node that had withdrawn uses the store again: its grant replaces the record.
        self.removed_nodes.remove(&node);
        let state = self.nodes.entry(node).or_default();
        let before = state.report.as_ref().map(|(report, _)| report.id);
        if before.is_some_and(|before| report.id <= before) {
            return;
        }
        let is_restart = before.is_some_and(|before| before.incarnation < report.id.incarnation);
        let account = self.store_ledger.accounts.entry(node).or_default();
        let known_iops = account.reserved_iops_max();
        if report.reserved_iops > known_iops {
            account.add_unrecorded_reservation(report.reserved_iops);
            let reserved_iops = report.reserved_iops;
            notify(Notice::Unaccounted { node, reserved_iops, known_iops });
        }
        let ledgers = self.policy_ledgers.values_mut().chain([&mut self.store_ledger]);
        for account in ledgers.filter_map(|ledger| ledger.accounts.get_mut(&node)) {
            if is_restart {
                account.handle_node_restart(report.id.incarnation);
            }
            if let Some(acknowledged) = report.acknowledged {
                account.acknowledge(acknowledged);
            }
        }
        if let Some(acknowledged) = report.acknowledged {
            state.acknowledge(acknowledged);
        }
        state.is_silent = false;
        let report = report.bounded();
        let notices = self.unmet_minimums.handle_report(now, &report);
        let loads = report.policies.clone();
        state.report = Some((report, now));
        self.is_round_due = true;
        for policy in self.record_unknown(&loads) {
            let notice = Notice::PolicyUnknown { policy, node };
            actions.push_back(AllocatorAction::Notify { notice });
        }
        for notice in notices {
            actions.push_back(AllocatorAction::Notify { notice });
        }
    }

    /// Records the policies of a report that do not exist. Returns those that were not recorded
    /// before.
    fn record_unknown(&mut self, loads: &[PolicyLoad]) -> Vec<PolicyKey> {
        if self.unknown_policies.len() >= UNKNOWN_MAX {
            let reports = self.nodes.values().filter_map(|state| state.report.as_ref());
            let used: BTreeSet<PolicyKey> =
                reports.flat_map(|(report, _)| &report.policies).map(|load| load.policy).collect();
            self.unknown_policies.retain(|policy| used.contains(policy));
        }
        let mut new = Vec::new();
        for PolicyLoad { policy, .. } in loads {
            let has_room = self.unknown_policies.len() < UNKNOWN_MAX;
            if has_room
                && !self.policies.contains_key(policy)
                && self.unknown_policies.insert(*policy)
            {
                new.push(*policy);
            }
        }
        new
    }
}
