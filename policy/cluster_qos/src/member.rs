//! State machine of a node that uses a shared store.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use suimon_quantity::{Time, TimedRateLimit};

use crate::clock::ClockCheck;
use crate::grant::{NodeGrant, NodeShare, PolicyShare};
use crate::load::{
    self, Demand, DiskLoad, LoadReport, NodeLoad, PROTOCOL_VERSION, PolicyLoad, ReportedDisk,
};
use crate::{GrantId, NodeId, Parameters, PolicyKey, ReportId};

/// Input of the [`Member`]: sampled loads or a received grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum MemberEvent {
    /// Loads of all disks of the store since the previous sample. Disks not listed no longer exist.
    Loads {
        /// Loads of the disks, each disk once.
        disks: Vec<DiskLoad>,
        /// Mean latency of a request at the store, in ns; 0 if none completed.
        latency_ns: u64,
    },
    /// A grant for this node was received.
    Granted {
        /// Grant received from the leader.
        grant: NodeGrant,
    },
}

/// Action that the caller of [`Member::poll_action`] must carry out. Actions are carried out in
/// order, and each is in effect before the next is started: a report describes the state in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum MemberAction {
    /// Enforce these caps on all disks of the store together and on those of each policy.
    Apply {
        /// Cap on all disks of the store together.
        store: TimedRateLimit,
        /// Caps of policies. Disks of a policy that is not listed must perform no I/O.
        policies: Vec<PolicyCap>,
    },
    /// Persist this state durably for the next start.
    #[serde(rename = "keep")]
    Persist {
        /// State to restore after a restart.
        #[serde(rename = "kept")]
        durable: DurableState,
    },
    /// Send a report to the leader.
    Send {
        /// Load of the node's disks and the newest grant it applied.
        report: LoadReport,
    },
    /// Report a notice to the operator of the node.
    #[serde(rename = "tell")]
    Notify {
        /// Notice to report to the operator.
        notice: MemberNotice,
    },
}

/// Limits of the disks of one policy on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyCap {
    /// Identifier of the policy, unique in the cluster.
    pub policy: PolicyKey,
    /// Guaranteed rate of these disks together, in normalised operations per second.
    pub min_iops: u64,
    /// Maximum rate of these disks together; `None`: the policy has no maximum.
    pub max: Option<TimedRateLimit>,
}

/// Shares of a node that it persists and applies after a restart until the first grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableState {
    /// Share of the store's capacity.
    pub store: DurableShare,
    /// Policies: identifier, minimum of its disks on this node in normalised operations per second,
    /// and share of its maximum; `None`: no maximum.
    pub policies: Vec<(PolicyKey, u64, Option<DurableShare>)>,
}

/// Rates of a [`NodeShare`] that apply without a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableShare {
    /// Reserved rate, as [`NodeShare::reserved_iops`].
    pub reserved_iops: u64,
    /// Fallback rate, as [`NodeShare::fallback_iops`].
    #[serde(rename = "late_iops")]
    pub fallback_iops: u64,
}

/// Notice about the lease or clock of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberNotice {
    /// The node received a grant with a lease and had none before.
    #[serde(rename = "leased")]
    LeaseObtained,
    /// The lease ended without a new one; the node is limited to its reservation.
    #[serde(rename = "lapsed")]
    LeaseExpired,
    /// The node's clock is slower than the leader's by more than [`Parameters::drift_ppm`]. The
    /// node uses no lease until the clocks agree.
    ClockSlow,
    /// A grant with this unsupported protocol version was received and ignored.
    OtherVersion(u16),
}

/// State machine of one node for one shared store. See the crate documentation.
#[derive(Clone, Debug)]
pub struct Member {
    terms: Parameters,
    node: NodeId,
    now: Time,
    reported_at: VecDeque<(ReportId, Time)>,
    next_report: ReportId,
    acknowledged: Option<GrantId>,
    leased_until: Option<Time>,
    fallback_from: Time,
    store: NodeShare,
    policies: Vec<PolicyShare>,
    durable: DurableState,
    clock: ClockCheck,
    load: Option<NodeLoad>,
    demand: Demand,
    by_policy: Vec<PolicyLoad>,
    largest: Vec<ReportedDisk>,
    unmet: Vec<ReportedDisk>,
    reported: Option<(Time, NodeLoad)>,
    is_urgent: bool,
    is_leased: bool,
    is_slow: bool,
    /// Protocol version of the last grant, if it was another one. A notice reports it when it
    /// changes.
    other_version: Option<u16>,
    actions: VecDeque<MemberAction>,
}

impl Member {
    /// Creates the state machine of a node started at `now` with the state it persisted last.
    /// `incarnation` must be higher than at each earlier start of the node.
    pub fn new(
        terms: Parameters,
        now: Time,
        node: NodeId,
        incarnation: u64,
        durable: DurableState,
    ) -> Self {
        let share = |durable_share: DurableShare| NodeShare {
            reserved_iops: durable_share.reserved_iops,
            fallback_iops: durable_share.fallback_iops,
            ..NodeShare::default()
        };
        let policies = durable.policies.iter().map(|(policy, min_iops, max)| PolicyShare {
            policy: *policy,
            min_iops: *min_iops,
            max: max.map(share),
        });
        let mut member = Self {
            terms,
            node,
            now,
            reported_at: VecDeque::new(),
            next_report: ReportId { incarnation, number: 1 },
            acknowledged: None,
            leased_until: None,
            fallback_from: now + terms.fallback_after,
            store: share(durable.store),
            policies: policies.collect(),
            durable,
            clock: ClockCheck::default(),
            load: None,
            demand: Demand::default(),
            by_policy: Vec::new(),
            largest: Vec::new(),
            unmet: Vec::new(),
            reported: None,
            is_urgent: true,
            is_leased: false,
            is_slow: false,
            other_version: None,
            actions: VecDeque::new(),
        };
        member.apply();
        member
    }

    /// Processes an event that occurred at `now`.
    pub fn handle(&mut self, now: Time, event: &MemberEvent) {
        self.handle_time(now);
        match event {
            MemberEvent::Loads { disks, latency_ns } => self.process_loads(disks, *latency_ns),
            MemberEvent::Granted { grant } => self.process_grant(grant),
        }
        self.report_if_due();
    }

    /// Processes the deadline returned by [`Member::next_deadline`].
    pub fn handle_deadline(&mut self, now: Time) {
        self.handle_time(now);
        self.report_if_due();
    }

    /// Returns the next action, or `None` if none is pending.
    pub fn poll_action(&mut self) -> Option<MemberAction> {
        self.actions.pop_front()
    }

    /// Returns when to call [`Member::handle_deadline`] unless an event occurs before.
    pub fn next_deadline(&self) -> Option<Time> {
        let lapses = self.leased_until.filter(|_| self.is_leased);
        let due = self.load.map(|_| self.due());
        lapses.into_iter().chain(due).min()
    }

    /// Returns the cap of the node as a function of time.
    pub fn cap(&self) -> TimedRateLimit {
        self.cap_of(&self.store)
    }

    fn cap_of(&self, share: &NodeShare) -> TimedRateLimit {
        TimedRateLimit {
            leased_iops_until: self.leased_until.map(|expiry| (share.leased_iops, expiry)),
            reserved_iops: share.reserved_iops,
            next_iops_from: (share.fallback_iops > 0)
                .then_some((share.fallback_iops, self.fallback_from)),
        }
    }

    fn apply(&mut self) {
        let policies = self.policies.iter().map(|share| PolicyCap {
            policy: share.policy,
            min_iops: share.min_iops,
            max: share.max.as_ref().map(|max| self.cap_of(max)),
        });
        let policies = policies.collect();
        self.actions.push_back(MemberAction::Apply { store: self.cap(), policies });
    }

    fn handle_time(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.is_leased && self.leased_until.is_none_or(|expiry| self.now >= expiry) {
            self.is_leased = false;
            self.notify(MemberNotice::LeaseExpired);
        }
    }

    fn notify(&mut self, notice: MemberNotice) {
        self.actions.push_back(MemberAction::Notify { notice });
    }

    fn process_loads(&mut self, disks: &[DiskLoad], latency_ns: u64) {
        let load = load::sum(disks, latency_ns);
        let by_policy = load::policy_loads(disks);
        let policies =
            |loads: &[PolicyLoad]| loads.iter().map(|load| load.policy).collect::<Vec<_>>();
        let is_other = self.load.is_none_or(|before| {
            before.minimums_iops != load.minimums_iops
                || before.fallback_iops != load.fallback_iops
                || (before.disks == 0) != (load.disks == 0)
        }) || policies(&by_policy) != policies(&self.by_policy);
        // The demand exceeds the cap and did not at the last report.
        let reported_iops = self.reported.map_or(0, |(_, load)| load.demand_iops);
        let is_more =
            load.demand_iops > self.cap().iops_at(self.now) && reported_iops < load.demand_iops;
        // The demand has dropped; other nodes can use the leased share after the next report.
        let leased = self.leased_until.map_or(0, |_| self.store.leased_iops);
        let is_spare = leased > self.store.reserved_iops && load.demand_iops < leased / 2;
        let is_less = is_spare && reported_iops >= leased;
        self.is_urgent |= is_other || is_more || is_less;
        (self.largest, self.unmet) = load::disks_to_report(disks);
        self.demand = load::demand(disks);
        self.by_policy = by_policy;
        self.load = Some(load);
    }

    fn process_grant(&mut self, grant: &NodeGrant) {
        if grant.version != PROTOCOL_VERSION {
            if self.other_version.replace(grant.version) != Some(grant.version) {
                self.notify(MemberNotice::OtherVersion(grant.version));
            }
            return;
        }
        self.other_version = None;
        let is_mine = grant.answered_report.incarnation == self.next_report.incarnation
            && grant.answered_report < self.next_report;
        if !is_mine || self.acknowledged.is_some_and(|acknowledged| grant.id <= acknowledged) {
            return;
        }
        let before = self.cap().iops_at(self.now);
        self.acknowledged = Some(grant.id);
        // A report that is not remembered is older than any lease lasts.
        let reported_at = self
            .reported_at
            .iter()
            .find(|(id, _)| *id == grant.answered_report)
            .map(|(_, reported_at)| *reported_at);
        let clock = reported_at.map(|reported_at| {
            self.clock.check_grant(
                &self.terms,
                self.now,
                (grant.id.term, grant.granted_at),
                reported_at,
            )
        });
        if clock == Some(false) && !self.is_slow {
            self.notify(MemberNotice::ClockSlow);
        }
        self.is_slow = clock.map_or(self.is_slow, |is_right| !is_right);
        let lease = grant.lease.min(self.terms.lease);
        let expiry = reported_at.filter(|_| !self.is_slow).map(|reported_at| reported_at + lease);
        self.leased_until = expiry.filter(|expiry| *expiry > self.now);
        self.fallback_from = self.now + self.terms.fallback_after;
        self.store = grant.store;
        self.policies.clone_from(&grant.policies);
        if self.leased_until.is_some() != self.is_leased {
            self.is_leased = self.leased_until.is_some();
            let notice = if self.is_leased {
                MemberNotice::LeaseObtained
            } else {
                MemberNotice::LeaseExpired
            };
            self.notify(notice);
        }
        // What is in effect and shown survives a crash of the daemon.
        let is_persisted = self.persist_if_changed();
        self.apply();
        // Other nodes may be waiting for the share that this node released.
        self.is_urgent |= is_persisted || self.cap().iops_at(self.now) < before;
    }

    /// Queues [`MemberAction::Persist`] if the reserved or fallback rates changed, and returns
    /// whether they did.
    fn persist_if_changed(&mut self) -> bool {
        let to_durable = |share: &NodeShare| DurableShare {
            reserved_iops: share.reserved_iops,
            fallback_iops: share.fallback_iops,
        };
        let policies = self.policies.iter();
        let policies = policies
            .map(|share| (share.policy, share.min_iops, share.max.as_ref().map(to_durable)));
        let now = DurableState { store: to_durable(&self.store), policies: policies.collect() };
        let is_other = now != self.durable;
        if is_other {
            self.durable = now.clone();
            self.actions.push_back(MemberAction::Persist { durable: now });
        }
        is_other
    }

    /// Returns when the next report must be sent.
    fn due(&self) -> Time {
        let Some(((last, _), load)) = self.reported.zip(self.load) else { return self.now };
        let is_leasing = self.is_leased && self.store.leased_iops > self.store.reserved_iops;
        let is_active = is_leasing
            || load.demand_iops > self.store.reserved_iops
            || load.minimums_iops > self.store.reserved_iops
            || !self.by_policy.is_empty();
        let after = if self.is_urgent {
            self.terms.report_interval_min
        } else if is_active {
            self.terms.active_report_interval
        } else {
            self.terms.idle_report_interval
        };
        last + after
    }

    fn report_if_due(&mut self) {
        let Some(load) = self.load.filter(|_| self.now >= self.due()) else { return };
        let id = self.next_report;
        self.next_report.number += 1;
        let lease = self.terms.lease;
        self.reported_at.retain(|(_, reported_at)| self.now.since(*reported_at) <= lease);
        self.reported_at.push_back((id, self.now));
        self.reported = Some((self.now, load));
        self.is_urgent = false;
        let report = LoadReport {
            version: PROTOCOL_VERSION,
            node: self.node,
            id,
            acknowledged: self.acknowledged,
            reserved_iops: self.store.reserved_iops,
            applies_leases: !self.is_slow,
            load,
            demand: self.demand.clone(),
            policies: self.by_policy.clone(),
            disks_over_guarantee: self.largest.clone(),
            disks_below_guarantee: self.unmet.clone(),
        };
        self.actions.push_back(MemberAction::Send { report });
    }
}
