//! State of a node of the cluster: its connection to etcd, its lease, and its participants.

use suimon_cluster_qos::{DurableState, NodeId, Parameters};
use suimon_quantity::Time;

use crate::cluster::clock::Clock;
use crate::cluster::machines::StateMachineFactory;
use crate::cluster::participant::Participant;

/// Purpose of a request to etcd. The first number is the index of the store among the node's
/// stores; the second one is the term.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestPurpose {
    /// Write a report of the node about the store.
    Report(u32),
    /// Write grants of the term.
    WriteGrants(u32, u64),
    Campaign(u32),
    /// Read the reports and grants that the leader of a new term requires.
    ReadRecords(u32, u64),
    Resign(u32, u64),
    CreateSession,
    KeepAlive,
    /// Read the current values of all keys that the node watches.
    Sync,
}

/// Request to etcd that has no response yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest {
    pub(crate) call: u64,
    pub(crate) purpose: RequestPurpose,
    pub(crate) sent_at: Time,
}

/// Lease with which a node leads stores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Session {
    pub(crate) lease: Option<u32>,
    /// Earliest time at which the lease may expire.
    pub(crate) valid_until: Time,
    /// Time at which the pending request for the lease was sent; `None` if no request is pending.
    pub(crate) requested_at: Option<Time>,
}

/// Simulated state of a node.
pub(crate) struct NodeState {
    pub(crate) node: u32,
    pub(crate) clock: Clock,
    pub(crate) participants: Vec<Participant>,
    /// Number of starts of the daemon. Events of earlier starts are ignored.
    pub(crate) epoch: u32,
    pub(crate) paused_until: Time,
    /// Number of the etcd member that the node is connected to.
    pub(crate) member: u32,
    /// Number of the connection to etcd. Changes sent on earlier connections are ignored.
    pub(crate) connection_number: u32,
    /// True if changes of watched keys were lost on this connection.
    pub(crate) has_missed_changes: bool,
    pub(crate) requires_sync: bool,
    /// Time of the last message from etcd.
    pub(crate) last_message_at: Time,
    pub(crate) session: Session,
    pub(crate) pending_requests: Vec<PendingRequest>,
}

impl NodeState {
    pub(crate) fn new(
        machines: &dyn StateMachineFactory,
        terms: Parameters,
        node: u32,
        clock: Clock,
        stores: &[u32],
        member: u32,
    ) -> Self {
        let local = clock.local_time(Time::ZERO);
        let participant = |store: &u32| {
            let member =
                machines.create_member(terms, local, NodeId(node), 1, DurableState::default());
            Participant::new(*store, member, machines.create_allocator(terms))
        };
        Self {
            node,
            clock,
            participants: stores.iter().map(participant).collect(),
            epoch: 0,
            paused_until: Time::ZERO,
            member,
            connection_number: 0,
            has_missed_changes: false,
            requires_sync: true,
            last_message_at: Time::ZERO,
            session: Session::default(),
            pending_requests: Vec::new(),
        }
    }

    /// Resets the state that a daemon does not keep when it is restarted.
    pub(crate) fn reset_volatile_state(
        &mut self,
        machines: &dyn StateMachineFactory,
        terms: Parameters,
        now: Time,
    ) {
        let (local, node) = (self.clock.local_time(now), NodeId(self.node));
        let incarnation = u64::from(self.epoch) + 1;
        for participant in &mut self.participants {
            let durable = participant.durable_state.clone();
            let member = machines.create_member(terms, local, node, incarnation, durable.clone());
            *participant =
                Participant::new(participant.store, member, machines.create_allocator(terms));
            participant.durable_state = durable;
        }
        self.pending_requests.clear();
        self.session = Session::default();
        (self.requires_sync, self.has_missed_changes) = (true, false);
    }

    pub(crate) fn has_session(&self, now: Time) -> bool {
        self.session.lease.is_some() && now < self.session.valid_until
    }

    pub(crate) fn participant_index(&self, store: u32) -> Option<u32> {
        (0..)
            .zip(&self.participants)
            .find(|(_, participant)| participant.store == store)
            .map(|(participant_number, _)| participant_number)
    }
}
