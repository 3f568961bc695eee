//! Connection of nodes to etcd: requests, received changes, and leases.
//!
//! The behaviour is that of `sys/etcd`: the node uses one member and switches to the next if that
//! one does not respond in time. A change without response may have been carried out. After a
//! switch, watched keys are read again.

use suimon_quantity::Time;
use suimon_sim_kernel::SECOND_NS;

use crate::cluster::cluster_model::ClusterModel;
use crate::cluster::event::{ControlEvent, DiskModel, TICK_NS};
use crate::cluster::keyspace::{Entry, Key, Keys, Request, Response};
use crate::cluster::network::CONNECTION_TIMEOUT_NS;
use crate::cluster::node_state::{NodeState, PendingRequest, RequestPurpose, Session};

/// Time in ns without messages on a watch after which it is restarted at the next member: three
/// unanswered probes at intervals of 1 s.
const UNHEARD_NS: u64 = CONNECTION_TIMEOUT_NS + SECOND_NS;

impl ClusterModel {
    pub(crate) fn send_request(
        &mut self,
        now: Time,
        node: u32,
        request: Request,
        purpose: RequestPurpose,
    ) {
        let call = self.send(now, node, request);
        self.node_state(node).pending_requests.push(PendingRequest { call, purpose, sent_at: now });
    }

    /// Starts or restarts the daemon of a node. Has no effect if the node has been restarted again
    /// since (`epoch`).
    pub(crate) fn start_daemon(
        &mut self,
        now: Time,
        node: u32,
        epoch: u32,
        model: &mut dyn DiskModel,
    ) {
        let host = &mut self.node_states[node as usize];
        if host.epoch != epoch {
            return;
        }
        if epoch > 0 {
            host.reset_volatile_state(&*self.machines, self.parameters, now);
        }
        host.last_message_at = now;
        host.connection_number += 1;
        self.network.connect(node);
        for participant in 0..self.node_states[node as usize].participants.len() as u32 {
            self.execute_member_actions(now, (node, participant), None, model);
        }
        self.tick(now, node, epoch, model);
    }

    /// Performs a node's periodic work: checks of its connection, renewal of its lease, samples of
    /// its disks, and campaigns.
    pub(crate) fn tick(&mut self, now: Time, node: u32, epoch: u32, model: &mut dyn DiskModel) {
        if self.node_state(node).epoch != epoch {
            return;
        }
        let next = Time::from_ns(now.as_ns() + TICK_NS);
        self.schedule(next, ControlEvent::Tick { node, epoch });
        self.detect_timeouts(now, node, model);
        self.listen(now, node);
        self.renew_session(now, node, model);
        for participant in 0..self.node_state(node).participants.len() as u32 {
            self.sample_loads(now, (node, participant), model);
            self.check_leadership(now, (node, participant), model);
        }
    }

    fn detect_timeouts(&mut self, now: Time, node: u32, model: &mut dyn DiskModel) {
        let patience = self.spec.etcd.response_timeout_ms * 1_000_000;
        let is_late = |request: &PendingRequest| now.as_ns() > request.sent_at.as_ns() + patience;
        let host = self.node_state(node);
        if !host.pending_requests.iter().any(is_late) {
            return;
        }
        let late_requests: Vec<PendingRequest> =
            host.pending_requests.iter().copied().filter(is_late).collect();
        host.pending_requests.retain(|request| !is_late(request));
        self.counts.timed_out_requests += late_requests.len() as u64;
        self.go_on(now, node);
        for request in late_requests {
            self.handle_failure(now, node, request.purpose, model);
        }
    }

    /// Checks whether the node receives messages from its member of etcd. Switches to the next
    /// member if it does not, and requests missed changes.
    fn listen(&mut self, now: Time, node: u32) {
        let member = self.node_state(node).member;
        let is_heard =
            self.etcd.delivers_changes(member) && self.network.is_open(now, node, member);
        let is_up = self.etcd.is_up(member);
        let host = self.node_state(node);
        if is_heard {
            host.last_message_at = now;
            host.requires_sync |= std::mem::take(&mut host.has_missed_changes);
        } else if !is_up || now.as_ns() > host.last_message_at.as_ns() + UNHEARD_NS {
            self.go_on(now, node);
        }
        let has_sync = |host: &NodeState| {
            host.pending_requests
                .iter()
                .any(|request| matches!(request.purpose, RequestPurpose::Sync))
        };
        let host = self.node_state(node);
        if host.requires_sync && !has_sync(host) {
            host.requires_sync = false;
            let mut keys = Vec::new();
            for participant in &host.participants {
                keys.extend([Key::Leader(participant.store), Key::Grant(participant.store, node)]);
            }
            self.send_request(now, node, Request::Read(Keys::Listed(keys)), RequestPurpose::Sync);
        }
    }

    /// Switches the connection of a node to the next member of etcd.
    fn go_on(&mut self, now: Time, node: u32) {
        let members = self.spec.etcd.members;
        self.network.connect(node);
        let host = self.node_state(node);
        host.member = (host.member + 1) % members;
        host.connection_number += 1;
        (host.last_message_at, host.has_missed_changes, host.requires_sync) = (now, false, true);
    }

    fn renew_session(&mut self, now: Time, node: u32, model: &mut dyn DiskModel) {
        let span_ns = self.spec.etcd.session_s * SECOND_NS;
        let host = self.node_state(node);
        if host.session.lease.is_some() && now >= host.session.valid_until {
            host.session.lease = None;
            self.lose_leaderships(now, node, model);
        }
        let Session { lease, valid_until: until, requested_at } = self.node_state(node).session;
        if requested_at.is_some() {
            return;
        }
        let (request, purpose) = match lease {
            None => (Request::GrantLease(span_ns), RequestPurpose::CreateSession),
            Some(lease) if now.as_ns() + span_ns * 2 / 3 >= until.as_ns() => {
                (Request::KeepAlive(lease), RequestPurpose::KeepAlive)
            }
            Some(_) => return,
        };
        self.node_state(node).session.requested_at = Some(now);
        self.send_request(now, node, request, purpose);
    }

    /// Processes a response of etcd to the request with the number `call`.
    pub(crate) fn handle_response(
        &mut self,
        now: Time,
        node: u32,
        call: u64,
        answer: Response,
        model: &mut dyn DiskModel,
    ) {
        let host = self.node_state(node);
        let Some(index) = host.pending_requests.iter().position(|request| request.call == call)
        else {
            return;
        };
        let purpose = host.pending_requests.swap_remove(index).purpose;
        host.last_message_at = now;
        match (purpose, answer) {
            (_, Response::Rejected) => {
                self.go_on(now, node);
                self.handle_failure(now, node, purpose, model);
            }
            (RequestPurpose::CreateSession | RequestPurpose::KeepAlive, answer) => {
                self.handle_session_change(now, node, &answer, model);
            }
            (RequestPurpose::Sync, Response::Entries(entries)) => {
                self.sync(now, node, entries, model);
            }
            (RequestPurpose::ReadRecords(participant, term), Response::Entries(entries)) => {
                self.take_leadership(now, (node, participant), term, entries, model);
            }
            (RequestPurpose::Report(participant), _) => {
                self.send_next_report(now, (node, participant));
            }
            (RequestPurpose::WriteGrants(participant, term), answer) => {
                let is_written = matches!(answer, Response::Committed(_));
                self.handle_grants_written(now, (node, participant), term, is_written, model);
            }
            (RequestPurpose::Campaign(participant), Response::Committed(term)) => {
                let incarnation = u64::from(self.node_state(node).epoch) + 1;
                self.record_leader(
                    now,
                    (node, participant),
                    Some((node, incarnation, term)),
                    model,
                );
            }
            (RequestPurpose::Campaign(participant), _) => {
                self.handle_not_elected((node, participant));
            }
            (RequestPurpose::Resign(participant, term), _) => {
                self.handle_resigned((node, participant), term);
            }
            (RequestPurpose::Sync | RequestPurpose::ReadRecords(..), _) => {}
        }
    }

    /// Processes a request without response, or one that etcd rejected.
    fn handle_failure(
        &mut self,
        now: Time,
        node: u32,
        purpose: RequestPurpose,
        model: &mut dyn DiskModel,
    ) {
        match purpose {
            RequestPurpose::Report(participant) => self.send_next_report(now, (node, participant)),
            RequestPurpose::WriteGrants(participant, term) => {
                self.handle_grants_written(now, (node, participant), term, false, model);
            }
            RequestPurpose::Campaign(participant) => self.handle_not_elected((node, participant)),
            RequestPurpose::ReadRecords(participant, term) => {
                self.read_records(now, (node, participant), term);
            }
            RequestPurpose::Resign(participant, _) => self.retry_resignation((node, participant)),
            RequestPurpose::CreateSession | RequestPurpose::KeepAlive => {
                self.node_state(node).session.requested_at = None;
            }
            RequestPurpose::Sync => self.node_state(node).requires_sync = true,
        }
    }

    fn handle_session_change(
        &mut self,
        now: Time,
        node: u32,
        answer: &Response,
        model: &mut dyn DiskModel,
    ) {
        let span_ns = self.spec.etcd.session_s * SECOND_NS;
        let session = &mut self.node_state(node).session;
        let requested_at = session.requested_at.take().unwrap_or(now);
        match answer {
            Response::LeaseGranted(lease) => session.lease = Some(*lease),
            Response::IsAlive(true) => {}
            _ => {
                session.lease = None;
                return self.lose_leaderships(now, node, model);
            }
        }
        session.valid_until = Time::from_ns(requested_at.as_ns() + span_ns);
    }

    fn sync(
        &mut self,
        now: Time,
        node: u32,
        entries: Vec<(Key, Entry)>,
        model: &mut dyn DiskModel,
    ) {
        // Every store is reported, also one without a leader.
        let stores: Vec<u32> = self
            .node_state(node)
            .participants
            .iter()
            .map(|participant| participant.store)
            .collect();
        for store in stores {
            let leader_entry = entries.iter().find(|(key, _)| *key == Key::Leader(store));
            let entry = leader_entry.map(|(_, entry)| entry.clone());
            self.handle_key_change(now, node, Key::Leader(store), entry, model);
        }
        for (key, entry) in entries {
            if matches!(key, Key::Grant(..)) {
                self.handle_key_change(now, node, key, Some(entry), model);
            }
        }
        // A node that leads a store may have missed reports, and reads all of them again.
        self.read_all_records(now, node);
    }
}
