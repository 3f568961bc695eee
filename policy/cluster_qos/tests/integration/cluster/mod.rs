//! Cluster in virtual time: nodes with individual clocks, a cluster store that delays, loses,
//! duplicates and reorders messages, changing leaders, and checks that are independent of the
//! decision logic.
#![allow(dead_code, reason = "each test uses a part")]

mod checks;
mod node;

use std::collections::BTreeMap;

pub(crate) use checks::Checks;
pub(crate) use node::{Clock, Node};
use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, DiskKey, DiskLoad, DurableState, LoadReport,
    MemberAction, MemberEvent, NodeGrant, NodeId, Notice, Parameters, PolicyKey, PolicyLimits,
    SharedStoreCapacity, Term,
};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Interval, in ns, at which nodes are processed.
const STEP: u64 = 10 * MS;
/// Interval, in ns, at which nodes sample their loads.
const SAMPLE: u64 = 500 * MS;

/// Deterministic pseudo-random generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Message that the simulated network transmits.
#[derive(Clone, Debug)]
enum Message {
    Report {
        report: LoadReport,
    },
    Grant {
        to: u32,
        grant: NodeGrant,
    },
    /// Transaction of a leader, on the way to the store.
    Write {
        from: u32,
        term: Term,
        grants: Vec<(NodeId, NodeGrant)>,
        forgotten: Vec<NodeId>,
    },
    /// Result of a transaction, on the way to the leader.
    Answer {
        to: u32,
        term: Term,
        is_written: bool,
    },
}

/// Fault rates of the simulated network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub(crate) delay_max: u64,
    pub(crate) lost_percent: u64,
    pub(crate) repeated_percent: u64,
    /// Maximum delay of occasional late messages, which other messages overtake.
    pub(crate) straggles: u64,
}

impl Network {
    pub(crate) const GOOD: Self =
        Self { delay_max: 5 * MS, lost_percent: 0, repeated_percent: 0, straggles: 0 };
    pub(crate) const BAD: Self = Self {
        delay_max: 200 * MS,
        lost_percent: 10,
        repeated_percent: 20,
        straggles: 20 * SECOND,
    };
}

pub(crate) struct Cluster {
    pub(crate) terms: Parameters,
    pub(crate) now: u64,
    pub(crate) nodes: BTreeMap<u32, Node>,
    pub(crate) capability: SharedStoreCapacity,
    pub(crate) policies: BTreeMap<PolicyKey, PolicyLimits>,
    pub(crate) network: Network,
    pub(crate) dice: Dice,
    pub(crate) notices: Vec<(u64, Notice)>,
    pub(crate) checks: Checks,
    pub(crate) reports: u64,
    pub(crate) writes: u64,
    pub(crate) granted: u64,
    /// State of the cluster store: current term, leader and records.
    pub(crate) term: Term,
    pub(crate) leader: u32,
    pub(crate) records: BTreeMap<NodeId, NodeGrant>,
    last_reports: BTreeMap<NodeId, LoadReport>,
    in_flight: BTreeMap<(u64, u64), Message>,
    posted: u64,
}

impl Cluster {
    pub(crate) fn new(terms: Parameters, capability: SharedStoreCapacity, seed: u64) -> Self {
        terms.check().unwrap();
        Self {
            terms,
            now: 0,
            nodes: BTreeMap::new(),
            capability,
            policies: BTreeMap::new(),
            network: Network::GOOD,
            dice: Dice(seed),
            notices: Vec::new(),
            checks: Checks::new(capability.iops()),
            reports: 0,
            writes: 0,
            granted: 0,
            term: Term(0),
            leader: 0,
            records: BTreeMap::new(),
            last_reports: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            posted: 0,
        }
    }

    pub(crate) fn add_node(&mut self, id: u32, clock: Clock, falls_back: bool) {
        let node = Node::new(self.terms, self.now, id, clock, falls_back);
        self.nodes.insert(id, node);
    }

    /// Sets the load of a disk; if `demand_iops` is 0, the disk is idle.
    pub(crate) fn set_disk(&mut self, node: u32, load: DiskLoad, demand_iops: u64) {
        let node = self.nodes.get_mut(&node).unwrap();
        node.disks.insert(load.disk, (load, demand_iops));
    }

    pub(crate) fn remove_disk(&mut self, node: u32, disk: DiskKey) {
        self.nodes.get_mut(&node).unwrap().disks.remove(&disk);
    }

    /// Elects node `id` as the leader. The previous leader is informed by its next write, if at
    /// all.
    pub(crate) fn elect(&mut self, id: u32) {
        self.term = Term(self.term.0 + 1);
        self.leader = id;
        let event = AllocatorEvent::Elected {
            term: self.term,
            capacity: self.capability,
            records: self.records.iter().map(|(node, grant)| (*node, grant.clone())).collect(),
            policies: self.policies.iter().map(|(policy, limits)| (*policy, *limits)).collect(),
        };
        self.send_to_allocator(id, &event);
        let reports: Vec<LoadReport> = self.last_reports.values().cloned().collect();
        for report in reports {
            self.send_to_allocator(id, &AllocatorEvent::Reported { report });
        }
    }

    pub(crate) fn send_to_leader(&mut self, event: &AllocatorEvent) {
        self.send_to_allocator(self.leader, event);
    }

    pub(crate) fn allocator(&self) -> &Allocator {
        &self.nodes[&self.leader].allocator
    }

    fn send_to_allocator(&mut self, id: u32, event: &AllocatorEvent) {
        let now = self.now;
        if let Some(node) = self.nodes.get_mut(&id) {
            let local = node.clock.at(now);
            node.handle_allocator_event(local, Some(event));
            self.carry_out(id);
        }
    }

    fn send(&mut self, message: &Message) {
        let network = self.network;
        if self.dice.percent(network.lost_percent) {
            return;
        }
        let copies = 1 + u32::from(self.dice.percent(network.repeated_percent));
        for _ in 0..copies {
            let extra_delay = if network.straggles > 0 && self.dice.percent(5) {
                self.dice.below(network.straggles)
            } else {
                0
            };
            let slow = match message {
                Message::Grant { to, .. } => self.nodes.get(to).map_or(0, |node| node.grants_late),
                _ => 0,
            };
            let arrival = self.now + 1 + self.dice.below(network.delay_max) + extra_delay + slow;
            self.posted += 1;
            self.in_flight.insert((arrival, self.posted), message.clone());
        }
    }

    /// Sends a message that is delivered at most once.
    fn send_once(&mut self, message: &Message) {
        let repeated = core::mem::take(&mut self.network.repeated_percent);
        self.send(message);
        self.network.repeated_percent = repeated;
    }

    fn carry_out(&mut self, id: u32) {
        while let Some(action) =
            self.nodes.get_mut(&id).and_then(|node| node.allocator.poll_action())
        {
            match action {
                AllocatorAction::Write { term, grants, removed_nodes: forgotten } => {
                    self.writes += 1;
                    self.granted += grants.len() as u64;
                    if self.nodes[&id].is_cut_off {
                        continue;
                    }
                    self.send_once(&Message::Write { from: id, term, grants, forgotten });
                    let node = self.nodes.get_mut(&id).unwrap();
                    node.write_until = Some(self.now + 2 * SECOND);
                }
                AllocatorAction::Resign { .. } => {}
                AllocatorAction::Notify { notice } => self.notices.push((self.now, notice)),
            }
        }
        while let Some(action) = self.nodes.get_mut(&id).and_then(|node| node.member.poll_action())
        {
            let node = self.nodes.get_mut(&id).unwrap();
            match action {
                MemberAction::Apply { store, policies } => {
                    let persisted = node.durable.store.reserved_iops;
                    assert_eq!(store.reserved_iops, persisted, "applied before it was persisted");
                    (node.cap, node.policy_caps) = (store, policies);
                }
                MemberAction::Persist { durable } => node.durable = durable,
                MemberAction::Send { report } => {
                    self.reports += 1;
                    node.reports += 1;
                    if !node.is_cut_off {
                        self.send(&Message::Report { report });
                    }
                }
                MemberAction::Notify { notice } => node.notices.push((self.now, notice)),
            }
        }
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Report { report } => {
                let last = self.last_reports.entry(report.node).or_insert_with(|| report.clone());
                *last = report.clone();
                let leaders: Vec<u32> = self.nodes.keys().copied().collect();
                // Each node that considers itself the leader receives the report, unless it is
                // disconnected or stopped.
                for id in leaders {
                    let node = &self.nodes[&id];
                    if node.allocator.term().is_some() && node.is_reachable(self.now) {
                        let event = AllocatorEvent::Reported { report: report.clone() };
                        self.send_to_allocator(id, &event);
                    }
                }
            }
            Message::Write { from, term, grants, forgotten } => {
                let is_written = term == self.term;
                if is_written {
                    for (node, grant) in grants {
                        self.records.insert(node, grant.clone());
                        self.send(&Message::Grant { to: node.0, grant });
                    }
                    for node in forgotten {
                        self.records.remove(&node);
                    }
                }
                self.send_once(&Message::Answer { to: from, term, is_written });
            }
            Message::Grant { to, grant } => {
                let now = self.now;
                let Some(node) = self.nodes.get_mut(&to).filter(|node| node.is_reachable(now))
                else {
                    return;
                };
                let local = node.clock.at(now);
                node.handle_member_event(local, Some(&MemberEvent::Granted { grant }));
                self.carry_out(to);
            }
            Message::Answer { to, term, is_written } => {
                let node = self.nodes.get_mut(&to);
                let Some(node) = node.filter(|node| node.is_reachable(self.now)) else { return };
                if node.allocator.term() != Some(term) || node.write_until.take().is_none() {
                    return;
                }
                let event = if is_written {
                    AllocatorEvent::GrantsWritten
                } else {
                    AllocatorEvent::WriteFailed
                };
                self.send_to_allocator(to, &event);
            }
        }
    }

    fn deadlines(&mut self, id: u32) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.runs(now) {
            return;
        }
        let local = node.clock.at(now);
        if node.write_until.is_some_and(|deadline| deadline <= now) {
            node.write_until = None;
            node.handle_allocator_event(local, Some(&AllocatorEvent::WriteFailed));
        }
        if node.next_sample <= now {
            node.next_sample = now + SAMPLE;
            let event = node.sample(local);
            node.handle_member_event(local, Some(&event));
        }
        if node.member.next_deadline().is_some_and(|deadline| deadline <= local) {
            node.handle_member_event(local, None);
        }
        if node.allocator.next_deadline().is_some_and(|deadline| deadline <= local) {
            node.handle_allocator_event(local, None);
        }
        self.carry_out(id);
    }

    pub(crate) fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.now < end {
            let step = self.now + STEP;
            while let Some(((time, _), message)) = self
                .in_flight
                .first_key_value()
                .filter(|((time, _), _)| *time <= step)
                .map(|(k, m)| (*k, m.clone()))
            {
                self.in_flight.pop_first();
                self.now = self.now.max(time);
                self.deliver(message);
                self.checks.look(self.now, &self.nodes);
            }
            self.now = step;
            let ids: Vec<u32> = self.nodes.keys().copied().collect();
            for id in ids {
                self.deadlines(id);
            }
            self.checks.look(self.now, &self.nodes);
        }
    }

    /// Kills and restarts the daemon of a node.
    pub(crate) fn restart(&mut self, id: u32) {
        let (terms, now) = (self.terms, self.now);
        self.nodes.get_mut(&id).unwrap().restart(terms, now);
        self.carry_out(id);
    }

    /// Returns the current cap of a node in normalised operations per second.
    pub(crate) fn cap(&self, id: u32) -> u64 {
        self.nodes[&id].cap_at(self.now)
    }

    pub(crate) fn durable_state(&self, id: u32) -> &DurableState {
        &self.nodes[&id].durable
    }
}

/// Returns a disk with its own minimum and maximum; a value of 0 means none.
pub(crate) fn disk(id: u64, min_iops: u64, max_iops: u64, weight: u32) -> DiskLoad {
    DiskLoad {
        disk: DiskKey(id),
        policy: None,
        min_iops,
        max_iops: (max_iops > 0).then_some(max_iops),
        fallback_iops: None,
        weight,
        demand_iops: 0,
        delivered_iops: 0,
        waits_for_grant: false,
        waits_for_store: false,
        is_fully_utilised: false,
    }
}
