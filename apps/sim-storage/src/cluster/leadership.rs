//! Leadership of a store: elections, and the leader's allocator.
//!
//! Every node with the store campaigns when there is no leader. The first to create a key bound to
//! its lease is elected. After short terms all candidates wait before
//! ([`Candidacy`](suimon_cluster_qos::Candidacy)). The leader receives all reports. Its
//! transactions fail if the key is not the one of its election. A leader that is uncertain about
//! the outcome of a write resigns and removes the key. A node never resumes an earlier term,
//! including one from before a restart of its daemon.

use std::rc::Rc;

use suimon_cluster_qos::{
    AllocatorAction, AllocatorEvent, NodeGrant, NodeId, Notice, SharedStoreCapacity, Term,
};
use suimon_quantity::Time;

use crate::cluster::cluster_model::ClusterModel;
use crate::cluster::event::{DiskModel, MachineKind};
use crate::cluster::facts::{ClusterFact, StoreNotice};
use crate::cluster::keyspace::{Change, Condition, Entry, Key, Keys, Request, Value};
use crate::cluster::node_state::RequestPurpose;
use crate::cluster::participant::{Leadership, ParticipantId};

/// Largest number of changes in a transaction. etcd accepts 128 operations, of which one is the
/// condition.
const CHANGES_MAX: usize = 127;

impl ClusterModel {
    /// Resolves the case that the node's own key names it as leader although it does not lead: it
    /// takes the leadership, or removes the key if it led in this term before. Otherwise no other
    /// node could lead while the lease is kept alive. Then campaigns if the store has no leader.
    pub(crate) fn check_leadership(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        model: &mut dyn DiskModel,
    ) {
        let host = &self.node_states[participant_id.0 as usize];
        let own_start = (participant_id.0, u64::from(host.epoch) + 1);
        let has_session = host.has_session(now);
        let participant = self.participant(participant_id);
        let own_leader = participant.leader.filter(|(node, start, _)| (*node, *start) == own_start);
        let is_idle = participant.leadership == Leadership::None
            && participant.resignation.is_none()
            && has_session;
        if let Some((_, _, term)) = own_leader.filter(|_| is_idle) {
            if term > participant.last_led_term {
                self.record_leader(now, participant_id, own_leader, model);
            } else {
                participant.resignation = Some((term, false));
            }
        }
        self.pursue_leadership(now, participant_id);
    }

    /// Removes the key of a term that the node has ended, and campaigns for a store without a
    /// leader.
    pub(crate) fn pursue_leadership(&mut self, now: Time, participant_id: ParticipantId) {
        let node = participant_id.0;
        if let Some((term, false)) = self.participant(participant_id).resignation {
            let store = self.participant(participant_id).store;
            self.participant(participant_id).resignation = Some((term, true));
            let condition = Condition::CreatedAtRevision(Key::Leader(store), term);
            let request =
                Request::Commit(Some(condition), vec![Change::Remove(Key::Leader(store))]);
            self.send_request(now, node, request, RequestPurpose::Resign(participant_id.1, term));
        }
        let host = &self.node_states[node as usize];
        let (has_session, lease, epoch) = (host.has_session(now), host.session.lease, host.epoch);
        let participant = self.participant(participant_id);
        if participant.leader.is_some()
            || participant.candidacy.campaign_at() > now
            || participant.leadership != Leadership::None
            || !has_session
            || participant.resignation.is_some()
        {
            return;
        }
        participant.leadership = Leadership::Campaigning;
        let key = Key::Leader(participant.store);
        let put_leader = Change::Put(key, Value::Leader(node, u64::from(epoch) + 1), lease);
        let request = Request::Commit(Some(Condition::Absent(key)), vec![put_leader]);
        self.send_request(now, node, request, RequestPurpose::Campaign(participant_id.1));
    }

    pub(crate) fn handle_not_elected(&mut self, participant_id: ParticipantId) {
        let participant = self.participant(participant_id);
        if participant.leadership == Leadership::Campaigning {
            participant.leadership = Leadership::None;
        }
        // The node reads which node was elected. It may be this one, if the response was lost.
        self.node_state(participant_id.0).requires_sync = true;
    }

    pub(crate) fn retry_resignation(&mut self, participant_id: ParticipantId) {
        if let Some((_, is_requested)) = &mut self.participant(participant_id).resignation {
            *is_requested = false;
        }
    }

    pub(crate) fn handle_resigned(&mut self, participant_id: ParticipantId, term: u64) {
        let participant = self.participant(participant_id);
        participant.resignation =
            participant.resignation.filter(|(leaving_term, _)| *leaving_term != term);
    }

    /// Records the leader of a store: node, number of the start of its daemon, and revision of its
    /// key; `None` if the store has no leader.
    pub(crate) fn record_leader(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        leader: Option<(u32, u64, u64)>,
        model: &mut dyn DiskModel,
    ) {
        let host = &self.node_states[participant_id.0 as usize];
        let own_start = (participant_id.0, u64::from(host.epoch) + 1);
        let has_session = host.has_session(now);
        let participant = self.participant(participant_id);
        if leader.is_none() && participant.leader.is_some() {
            participant.candidacy.handle_leader_absent(now);
        }
        participant.leader = leader;
        let own_term =
            leader.filter(|(node, start, _)| (*node, *start) == own_start).map(|leader| leader.2);
        if let Leadership::ReadingRecords(term) | Leadership::Leading(term) = participant.leadership
        {
            if own_term != Some(term) {
                self.lose_leadership(now, participant_id, model);
            }
        } else if let Some(term) = own_term {
            if term > participant.last_led_term && has_session {
                participant.last_led_term = term;
                participant.leadership = Leadership::ReadingRecords(term);
                let store = participant.store as usize;
                self.report_receivers[store].push(participant_id.0);
                self.read_records(now, participant_id, term);
            }
        } else if leader.is_none() {
            self.pursue_leadership(now, participant_id);
        }
    }

    pub(crate) fn read_records(&mut self, now: Time, participant_id: ParticipantId, term: u64) {
        let participant = self.participant(participant_id);
        if participant.leadership != Leadership::ReadingRecords(term)
            && participant.leadership != Leadership::Leading(term)
        {
            return;
        }
        let request = Request::Read(Keys::Store(participant.store));
        self.send_request(
            now,
            participant_id.0,
            request,
            RequestPurpose::ReadRecords(participant_id.1, term),
        );
    }

    /// Reads all reports again for each store that the node leads, since it may have missed some.
    pub(crate) fn read_all_records(&mut self, now: Time, node: u32) {
        for participant in 0..self.node_state(node).participants.len() as u32 {
            if let Some(term) = self.participant((node, participant)).led_term() {
                self.read_records(now, (node, participant), term);
            }
        }
    }

    pub(crate) fn take_leadership(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        term: u64,
        entries: Vec<(Key, Entry)>,
        model: &mut dyn DiskModel,
    ) {
        let participant = self.participant(participant_id);
        let (store, is_new) =
            (participant.store, participant.leadership == Leadership::ReadingRecords(term));
        if !is_new && participant.leadership != Leadership::Leading(term) {
            return;
        }
        let (mut records, mut reports) = (Vec::new(), Vec::new());
        for (key, entry) in entries {
            match entry.value {
                Value::Grant(grant) => {
                    let (Key::Grant(_, node) | Key::Report(_, node) | Key::Leader(node)) = key;
                    records.push((NodeId(node), grant));
                }
                Value::Report(report) => reports.push(report),
                Value::Leader(..) => {}
            }
        }
        if is_new {
            participant.leadership = Leadership::Leading(term);
            self.counts.terms += 1;
            self.facts.push(ClusterFact::LeadershipBegan { node: participant_id.0, store, term });
            let grants = records.into_iter().map(|(node, grant)| (node, (*grant).clone()));
            let event = AllocatorEvent::Elected {
                term: Term(term),
                capacity: SharedStoreCapacity::Declared(self.capacities[store as usize]),
                records: grants.collect(),
                policies: Vec::new(),
            };
            self.pass_to_allocator(now, participant_id, &event, model);
        }
        for report in reports {
            let event = AllocatorEvent::Reported { report: (*report).clone() };
            self.pass_to_allocator(now, participant_id, &event, model);
        }
    }

    pub(crate) fn pass_to_allocator(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        event: &AllocatorEvent,
        model: &mut dyn DiskModel,
    ) {
        let local = self.local_time(now, participant_id);
        let participant = self.participant(participant_id);
        // Reports that arrive before the records are read are ignored, since the node does not lead
        // yet.
        if !matches!(participant.leadership, Leadership::Leading(_))
            && !matches!(event, AllocatorEvent::Deposed)
        {
            return;
        }
        participant.allocator.handle(local, event);
        self.execute_allocator_actions(now, participant_id, model);
    }

    pub(crate) fn execute_allocator_actions(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        model: &mut dyn DiskModel,
    ) {
        let store = self.participant(participant_id).store;
        while let Some(action) = self.participant(participant_id).allocator.poll_action() {
            match action {
                AllocatorAction::Write { term, grants, removed_nodes: forgotten_nodes } => {
                    let put_grant = |(NodeId(node), grant): (NodeId, NodeGrant)| {
                        Change::Put(Key::Grant(store, node), Value::Grant(Rc::new(grant)), None)
                    };
                    let remove_grant =
                        |NodeId(node): NodeId| Change::Remove(Key::Grant(store, node));
                    let mut changes: Vec<Change> = grants.into_iter().map(put_grant).collect();
                    changes.extend(forgotten_nodes.into_iter().map(remove_grant));
                    let participant = self.participant(participant_id);
                    while !changes.is_empty() {
                        let remaining = changes.split_off(changes.len().min(CHANGES_MAX));
                        participant
                            .pending_writes
                            .push_back(std::mem::replace(&mut changes, remaining));
                    }
                    self.write_next(now, participant_id, term.0);
                }
                AllocatorAction::Resign { term } => {
                    self.counts.resignations += 1;
                    self.participant(participant_id).resignation = Some((term.0, false));
                    self.lose_leadership(now, participant_id, model);
                    self.pursue_leadership(now, participant_id);
                }
                AllocatorAction::Notify { notice } => self.report_store_notice(store, &notice),
            }
        }
        self.schedule_deadline(participant_id, MachineKind::Allocator);
    }

    /// Sends the next queued transaction with grants. Returns false if none is queued.
    fn write_next(&mut self, now: Time, participant_id: ParticipantId, term: u64) -> bool {
        let participant = self.participant(participant_id);
        let condition = Condition::CreatedAtRevision(Key::Leader(participant.store), term);
        let Some(changes) = participant.pending_writes.pop_front() else { return false };
        let request = Request::Commit(Some(condition), changes);
        self.send_request(
            now,
            participant_id.0,
            request,
            RequestPurpose::WriteGrants(participant_id.1, term),
        );
        true
    }

    pub(crate) fn handle_grants_written(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        term: u64,
        is_written: bool,
        model: &mut dyn DiskModel,
    ) {
        if self.participant(participant_id).leadership != Leadership::Leading(term) {
            return;
        }
        if is_written && self.write_next(now, participant_id, term) {
            return;
        }
        self.participant(participant_id).pending_writes.clear();
        let event =
            if is_written { AllocatorEvent::GrantsWritten } else { AllocatorEvent::WriteFailed };
        self.pass_to_allocator(now, participant_id, &event, model);
    }

    /// Ends the node's leadership of, or its campaign for, the store.
    fn lose_leadership(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        model: &mut dyn DiskModel,
    ) {
        let participant = self.participant(participant_id);
        let (store, leadership) =
            (participant.store, std::mem::replace(&mut participant.leadership, Leadership::None));
        participant.pending_writes.clear();
        self.report_receivers[store as usize].retain(|node| *node != participant_id.0);
        if let Leadership::Leading(term) = leadership {
            self.facts.push(ClusterFact::LeadershipEnded { node: participant_id.0, store, term });
            self.pass_to_allocator(now, participant_id, &AllocatorEvent::Deposed, model);
        }
    }

    /// Ends the leadership of all stores of a node after its lease has expired.
    pub(crate) fn lose_leaderships(&mut self, now: Time, node: u32, model: &mut dyn DiskModel) {
        for participant in 0..self.node_state(node).participants.len() as u32 {
            self.lose_leadership(now, (node, participant), model);
        }
    }

    fn report_store_notice(&mut self, store: u32, notice: &Notice) {
        let (notice, node, iops) = match notice {
            Notice::ReservationRefused { node, admission } => {
                (StoreNotice::ReservationRefused, node.0, admission.requested_iops)
            }
            Notice::MinimumUnmet(unmet) => {
                (StoreNotice::MinimumUnmet, unmet.node.0, unmet.delivered_iops)
            }
            Notice::MinimumMet { node, .. } => (StoreNotice::MinimumMet, node.0, 0),
            Notice::ExternalLoad { delivered_iops, .. } => {
                (StoreNotice::ExternalLoad, 0, *delivered_iops)
            }
            Notice::ExternalLoadEnded => (StoreNotice::ExternalLoadEnded, 0, 0),
            Notice::NodeSilent { node, reserved_iops } => {
                (StoreNotice::NodeSilent, node.0, *reserved_iops)
            }
            Notice::Unaccounted { node, reserved_iops, .. } => {
                (StoreNotice::UnrecordedReservation, node.0, *reserved_iops)
            }
            _ => (StoreNotice::Other, 0, 0),
        };
        self.facts.push(ClusterFact::StoreNotified { store, what: notice, node, iops });
    }
}
