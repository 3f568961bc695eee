//! Control plane of a simulated cluster: nodes, network, etcd, and their messages.

use std::collections::BTreeMap;
use std::fmt;

use suimon_cluster_qos::{DiskLoad, Parameters};
use suimon_quantity::Time;
use suimon_sim_kernel::{RandomStream, SECOND_NS};

use crate::cluster::clock::Clock;
use crate::cluster::etcd::{Etcd, LogEntry};
use crate::cluster::event::{ControlEvent, DiskModel, TICK_NS};
use crate::cluster::facts::ClusterFact;
use crate::cluster::keyspace::{
    Change, Condition, Entry, Key, KeyChange, Keyspace, Request, Response,
};
use crate::cluster::machines::StateMachineFactory;
use crate::cluster::network::{Direction, Network};
use crate::cluster::node_state::NodeState;
use crate::cluster::spec::ClusterSpec;

/// Request of a node that is in flight.
#[derive(Clone, Debug)]
struct Call {
    node: u32,
    epoch: u32,
    request: Request,
}

/// Totals of messages and terms of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) reports: u64,
    pub(crate) grants: u64,
    /// Number of requests completed by etcd.
    pub(crate) requests: u64,
    pub(crate) terms: u64,
    /// Number of terms that a leader ended because the outcome of a write was unknown, or because
    /// another leader had been elected.
    pub(crate) resignations: u64,
    pub(crate) etcd_leaders: u64,
    pub(crate) timed_out_requests: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            reports,
            grants,
            requests,
            terms,
            resignations: resigned,
            etcd_leaders,
            timed_out_requests: unanswered,
        } = self;
        write!(
            f,
            "{reports} reports, {grants} grants, {requests} requests to etcd; {terms} terms of \
             leaders, {resigned} of them ended by resignation; {etcd_leaders} elections in etcd, \
             {unanswered} requests without reply"
        )
    }
}

/// Nodes and stores of a cluster: clock of each node, stores that it uses, and capacity of each
/// store.
pub(crate) struct Topology {
    pub(crate) clocks: Vec<Clock>,
    /// Stores that each node uses.
    pub(crate) stores: Vec<Vec<u32>>,
    /// Capacity of each store in normalised operations per second.
    pub(crate) capacities: Vec<u64>,
}

pub(crate) struct ClusterModel {
    pub(crate) parameters: Parameters,
    pub(crate) spec: ClusterSpec,
    pub(crate) machines: Box<dyn StateMachineFactory>,
    pub(crate) capacities: Vec<u64>,
    pub(crate) etcd: Etcd,
    pub(crate) keys: Keyspace,
    pub(crate) network: Network,
    pub(crate) node_states: Vec<NodeState>,
    /// Numbers of the nodes that use each store.
    on_store: Vec<Vec<u32>>,
    /// Numbers of the nodes that receive all reports about each store, because they lead it or have
    /// been elected.
    pub(crate) report_receivers: Vec<Vec<u32>>,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    pub(crate) counts: Counts,
    planned: Vec<(Time, ControlEvent)>,
    pub(crate) facts: Vec<ClusterFact>,
    changed: Vec<KeyChange>,
    pub(crate) loads: Vec<DiskLoad>,
}

impl ClusterModel {
    /// Returns the initial state. Nodes start within the first 500 ms.
    pub(crate) fn new(
        spec: &ClusterSpec,
        topology: Topology,
        seed: u64,
        machines: Box<dyn StateMachineFactory>,
    ) -> Self {
        let terms = Parameters::default();
        let mut on_store = vec![Vec::new(); topology.capacities.len()];
        for (node, stores) in (0..).zip(&topology.stores) {
            for store in stores {
                on_store[*store as usize].push(node);
            }
        }
        let hosts: Vec<NodeState> = (0..)
            .zip(topology.clocks.iter().zip(&topology.stores))
            .map(|(node, (clock, stores))| {
                NodeState::new(&*machines, terms, node, *clock, stores, node % spec.etcd.members)
            })
            .collect();
        let mut random = RandomStream::new(seed, "cluster");
        let start_event = |node| {
            let start = Time::from_ns(random.draw_below(TICK_NS));
            (start, ControlEvent::DaemonStarts { node, epoch: 0 })
        };
        let planned = (0..hosts.len() as u32).map(start_event).collect();
        Self {
            parameters: terms,
            machines,
            etcd: Etcd::new(spec.etcd, RandomStream::new(seed, "etcd")),
            keys: Keyspace::default(),
            network: Network::new(spec.network, hosts.len(), RandomStream::new(seed, "network")),
            spec: spec.clone(),
            node_states: hosts,
            report_receivers: vec![Vec::new(); topology.capacities.len()],
            capacities: topology.capacities,
            on_store,
            calls: BTreeMap::new(),
            last_call: 0,
            counts: Counts::default(),
            planned,
            facts: Vec::new(),
            changed: Vec::new(),
            loads: Vec::new(),
        }
    }

    /// Returns the state of a node.
    pub(crate) fn node_state(&mut self, node: u32) -> &mut NodeState {
        &mut self.node_states[node as usize]
    }

    /// Removes and returns the planned events with their times. The caller passes each to
    /// [`ClusterModel::handle`] at its time.
    pub(crate) fn drain_planned(&mut self) -> std::vec::Drain<'_, (Time, ControlEvent)> {
        self.planned.drain(..)
    }

    pub(crate) fn schedule(&mut self, time: Time, event: ControlEvent) {
        self.planned.push((time, event));
    }

    /// Processes an event at its planned time.
    pub(crate) fn handle(&mut self, now: Time, event: ControlEvent, model: &mut dyn DiskModel) {
        let node = match &event {
            ControlEvent::DaemonStarts { node, .. }
            | ControlEvent::Tick { node, .. }
            | ControlEvent::DeadlinePassed { node, .. }
            | ControlEvent::ResponseReceived { node, .. }
            | ControlEvent::KeyChanged { node, .. } => Some(*node),
            _ => None,
        };
        // A paused node processes events after its pause, in their order.
        let stopped_until = node.map(|node| self.node_states[node as usize].paused_until);
        if let Some(until) = stopped_until.filter(|until| now < *until) {
            return self.planned.push((until, event));
        }
        match event {
            ControlEvent::DaemonStarts { node, epoch } => {
                self.start_daemon(now, node, epoch, model);
            }
            ControlEvent::Tick { node, epoch } => self.tick(now, node, epoch, model),
            ControlEvent::DeadlinePassed { node, participant, machine, time: due } => {
                self.handle_deadline(now, (node, participant), machine, due, model);
            }
            ControlEvent::RequestArrives { member, call } => self.arrive(now, member, call),
            ControlEvent::RequestsComplete => self.do_requests(now),
            ControlEvent::ResponseReceived { node, epoch, call, answer } => {
                if self.node_states[node as usize].epoch == epoch {
                    self.handle_response(now, node, call, answer, model);
                }
            }
            ControlEvent::KeyChanged { node, stream, key, entry } => {
                if self.node_states[node as usize].connection_number == stream {
                    self.handle_key_change(now, node, key, entry, model);
                }
            }
            ControlEvent::LeaseExpires { lease } => self.end_lease(now, lease),
            ControlEvent::EtcdElects => self.elect_in_etcd(now),
            ControlEvent::EtcdRecovered { member } => self.heal_etcd(now, member),
            ControlEvent::EtcdSlowdownEnded => {
                for done_at in self.etcd.end_slowdown(now) {
                    self.planned.push((done_at, ControlEvent::RequestsComplete));
                }
            }
        }
    }

    /// Sends a request of a node to its member of etcd. Returns the number of the call, which the
    /// response has.
    pub(crate) fn send(&mut self, now: Time, node: u32, request: Request) -> u64 {
        self.last_call += 1;
        let call = self.last_call;
        let (epoch, member) =
            (self.node_states[node as usize].epoch, self.node_states[node as usize].member);
        self.calls.insert(call, Call { node, epoch, request });
        match self.network.send(now, node, member, Direction::ToEtcd) {
            Some(arrival) => {
                self.planned.push((arrival, ControlEvent::RequestArrives { member, call }));
            }
            None => {
                self.calls.remove(&call);
            }
        }
        call
    }

    fn arrive(&mut self, now: Time, member: u32, call: u64) {
        match self.etcd.receive_request(now, member, call) {
            Some(done_at) => self.planned.push((done_at, ControlEvent::RequestsComplete)),
            None => {
                if let Some(Call { node, epoch, .. }) = self.calls.remove(&call) {
                    self.respond(now, member, (node, epoch, call), Response::Rejected);
                }
            }
        }
    }

    fn respond(
        &mut self,
        now: Time,
        member: u32,
        (node, epoch, call): (u32, u32, u64),
        answer: Response,
    ) {
        // The node has switched to another member and no longer reads this connection.
        if self.node_states[node as usize].member != member {
            return;
        }
        if let Some(arrival) = self.network.send(now, node, member, Direction::ToNode) {
            self.planned
                .push((arrival, ControlEvent::ResponseReceived { node, epoch, call, answer }));
        }
    }

    fn do_requests(&mut self, now: Time) {
        while let Some(LogEntry { call, member, .. }) = self.etcd.pop_completed(now) {
            let Some(Call { node, epoch, request }) = self.calls.remove(&call) else { continue };
            self.counts.requests += 1;
            self.record_written(&request);
            let mut changed = std::mem::take(&mut self.changed);
            let answer = self.keys.execute(now, request, &mut changed);
            if let Response::LeaseGranted(lease) = answer {
                self.plan_lease(lease);
            }
            self.publish(now, &mut changed);
            self.changed = changed;
            if self.etcd.is_up(member) {
                self.respond(now, member, (node, epoch, call), answer);
            }
        }
    }

    /// Reports the fact that grants were written, if the transaction of the term is still valid.
    fn record_written(&mut self, request: &Request) {
        let Request::Commit(Some(Condition::CreatedAtRevision(Key::Leader(store), term)), changes) =
            request
        else {
            return;
        };
        let is_grant = |change: &&Change| matches!(change, Change::Put(Key::Grant(..), ..));
        let grants = changes.iter().filter(is_grant).count() as u32;
        let is_current_term =
            self.keys.get(Key::Leader(*store)).is_some_and(|entry| entry.create_revision == *term);
        if is_current_term && grants > 0 {
            self.counts.grants += u64::from(grants);
            self.facts.push(ClusterFact::GrantsWritten { store: *store, term: *term, grants });
        }
    }

    fn plan_lease(&mut self, lease: u32) {
        if let Some(ends) = self.keys.lease_expiry(lease) {
            self.planned.push((ends, ControlEvent::LeaseExpires { lease }));
        }
    }

    fn end_lease(&mut self, now: Time, lease: u32) {
        let Some(ends) = self.keys.lease_expiry(lease) else { return };
        // Leases end only while etcd has a working leader, since it revokes them through the log.
        if ends > now || !self.etcd.is_available() {
            let end = ends.max(Time::from_ns(now.as_ns() + SECOND_NS / 2));
            return self.planned.push((end, ControlEvent::LeaseExpires { lease }));
        }
        let mut changed = std::mem::take(&mut self.changed);
        self.keys.revoke_lease(lease, &mut changed);
        self.publish(now, &mut changed);
        self.changed = changed;
    }

    /// Sends changes of keys to the nodes that watch them, through the member that each is
    /// connected to.
    fn publish(&mut self, now: Time, changed: &mut Vec<KeyChange>) {
        for (key, entry) in changed.drain(..) {
            match key {
                Key::Leader(store) => {
                    for index in 0..self.on_store[store as usize].len() {
                        let node = self.on_store[store as usize][index];
                        self.deliver_change(now, node, key, entry.clone());
                    }
                }
                Key::Report(store, _) => {
                    for index in 0..self.report_receivers[store as usize].len() {
                        let node = self.report_receivers[store as usize][index];
                        self.deliver_change(now, node, key, entry.clone());
                    }
                }
                Key::Grant(_, node) => self.deliver_change(now, node, key, entry),
            }
        }
    }

    fn deliver_change(&mut self, now: Time, node: u32, key: Key, entry: Option<Entry>) {
        let NodeState { member, connection_number: stream, .. } = self.node_states[node as usize];
        let arrival = if self.etcd.delivers_changes(member) {
            let applied = Time::from_ns(now.as_ns() + self.spec.etcd.peer_us * 1000);
            self.network.send(applied, node, member, Direction::ToNode)
        } else {
            None
        };
        match arrival {
            Some(arrival) => {
                self.planned.push((arrival, ControlEvent::KeyChanged { node, stream, key, entry }));
            }
            None => self.node_states[node as usize].has_missed_changes = true,
        }
    }

    /// Plans the completion of requests that waited for a majority or, without a working leader, an
    /// election in etcd.
    pub(crate) fn schedule_etcd(&mut self, now: Time) {
        if self.etcd.is_available() {
            self.planned.push((now, ControlEvent::RequestsComplete));
        } else {
            let elected_at = Time::from_ns(now.as_ns() + self.etcd.draw_election_ns());
            self.planned.push((elected_at, ControlEvent::EtcdElects));
        }
    }

    fn elect_in_etcd(&mut self, now: Time) {
        let before = self.etcd.leader();
        let (is_new, lost_calls) = self.etcd.elect(now);
        for call in lost_calls {
            self.calls.remove(&call);
        }
        let member = self.etcd.leader();
        if member != before {
            self.facts.push(ClusterFact::EtcdLeaderChanged { member });
        }
        if is_new {
            self.counts.etcd_leaders += 1;
            for lease in self.keys.extend_leases(now) {
                self.plan_lease(lease);
            }
            self.planned.push((now, ControlEvent::RequestsComplete));
        }
    }

    fn heal_etcd(&mut self, now: Time, member: Option<u32>) {
        match member {
            Some(member) => self.etcd.set_member_up(now, member, true),
            None => self.etcd.set_partitions(now, |_| 0),
        }
        self.schedule_etcd(now);
    }
}
