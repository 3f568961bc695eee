//! Participation of nodes in stores: inputs and actions of the state machine
//! [`Member`](suimon_cluster_qos::Member).

use std::rc::Rc;

use suimon_cluster_qos::{
    AllocatorEvent, LoadReport, MemberAction, MemberEvent, MemberNotice, NodeGrant, ReportId,
};
use suimon_quantity::Time;

use crate::cluster::cluster_model::ClusterModel;
use crate::cluster::event::{ControlEvent, DiskModel, MachineKind};
use crate::cluster::facts::{ClusterFact, NodeLimit, NodeNotice};
use crate::cluster::keyspace::{Change, Entry, Key, Request, Value};
use crate::cluster::node_state::RequestPurpose;
use crate::cluster::participant::{Participant, ParticipantId};

impl ClusterModel {
    pub(crate) fn participant(&mut self, (node, participant): ParticipantId) -> &mut Participant {
        &mut self.node_states[node as usize].participants[participant as usize]
    }

    pub(crate) fn local_time(&self, now: Time, (node, _): ParticipantId) -> Time {
        self.node_states[node as usize].clock.local_time(now)
    }

    /// Processes a change of a watched key.
    pub(crate) fn handle_key_change(
        &mut self,
        now: Time,
        node: u32,
        key: Key,
        entry: Option<Entry>,
        model: &mut dyn DiskModel,
    ) {
        let (Key::Leader(store) | Key::Report(store, _) | Key::Grant(store, _)) = key;
        let Some(participant) = self.node_states[node as usize].participant_index(store) else {
            return;
        };
        let participant_id = (node, participant);
        match (key, entry.map(|entry| (entry.value, entry.create_revision))) {
            (Key::Leader(_), Some((Value::Leader(leader_node, incarnation), created))) => {
                self.record_leader(
                    now,
                    participant_id,
                    Some((leader_node, incarnation, created)),
                    model,
                );
            }
            (Key::Leader(_), None) => self.record_leader(now, participant_id, None, model),
            (_, Some((Value::Grant(grant), _))) => self.granted(now, participant_id, &grant, model),
            (_, Some((Value::Report(report), _))) => {
                let event = AllocatorEvent::Reported { report: (*report).clone() };
                self.pass_to_allocator(now, participant_id, &event, model);
            }
            _ => {}
        }
    }

    /// Processes a deadline that a state machine has set. Has no effect if the deadline was changed
    /// since.
    pub(crate) fn handle_deadline(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        machine: MachineKind,
        due: Time,
        model: &mut dyn DiskModel,
    ) {
        let local = self.local_time(now, participant_id);
        let participant = self.participant(participant_id);
        if participant.deadlines[machine as usize] != Some(due) {
            return;
        }
        participant.deadlines[machine as usize] = None;
        match machine {
            MachineKind::Member => {
                participant.member.handle_deadline(local);
                self.execute_member_actions(now, participant_id, None, model);
            }
            MachineKind::Allocator => {
                participant.allocator.handle_deadline(local);
                self.execute_allocator_actions(now, participant_id, model);
            }
        }
    }

    pub(crate) fn schedule_deadline(
        &mut self,
        participant_id: ParticipantId,
        machine: MachineKind,
    ) {
        let clock = self.node_states[participant_id.0 as usize].clock;
        let participant = self.participant(participant_id);
        let due = match machine {
            MachineKind::Member => participant.member.next_deadline(),
            MachineKind::Allocator => participant.allocator.next_deadline(),
        };
        if due == participant.deadlines[machine as usize] {
            return;
        }
        participant.deadlines[machine as usize] = due;
        if let Some(due) = due {
            let event = ControlEvent::DeadlinePassed {
                node: participant_id.0,
                participant: participant_id.1,
                machine,
                time: due,
            };
            self.schedule(clock.run_time(due), event);
        }
    }

    /// Passes the loads of a node's disks on a store to the state machines.
    pub(crate) fn sample_loads(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        model: &mut dyn DiskModel,
    ) {
        let (local, store) =
            (self.local_time(now, participant_id), self.participant(participant_id).store);
        let mut disks = std::mem::take(&mut self.loads);
        disks.clear();
        let latency_ns = model.append_loads(now, participant_id.0, store, &mut disks);
        let event = MemberEvent::Loads { disks, latency_ns };
        self.participant(participant_id).member.handle(local, &event);
        if let MemberEvent::Loads { disks, .. } = event {
            self.loads = disks;
        }
        self.execute_member_actions(now, participant_id, None, model);
    }

    fn granted(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        grant: &NodeGrant,
        model: &mut dyn DiskModel,
    ) {
        let local = self.local_time(now, participant_id);
        let event = MemberEvent::Granted { grant: grant.clone() };
        self.participant(participant_id).member.handle(local, &event);
        let id = (grant.id.term.0, grant.id.number);
        self.execute_member_actions(now, participant_id, Some((grant.answered_report, id)), model);
    }

    /// Carries out the actions of a node's member. `report_id` is the report on which the grant
    /// that caused them is based, with the term and number of the grant; `None` if no grant caused
    /// them.
    pub(crate) fn execute_member_actions(
        &mut self,
        now: Time,
        participant_id: ParticipantId,
        report_id: Option<(ReportId, (u64, u64))>,
        model: &mut dyn DiskModel,
    ) {
        let (node, store) = (participant_id.0, self.participant(participant_id).store);
        while let Some(action) = self.participant(participant_id).member.poll_action() {
            match action {
                MemberAction::Apply { store: cap, .. } => {
                    let clock = self.node_states[node as usize].clock;
                    let time_ns = |part: Option<(u64, Time)>| {
                        part.map_or((0, 0), |(iops, time)| (iops, clock.run_time(time).as_ns()))
                    };
                    let (leased, late) =
                        (time_ns(cap.leased_iops_until), time_ns(cap.next_iops_from));
                    let limit = NodeLimit {
                        leased_iops: leased.0,
                        leased_until_ns: leased.1,
                        reserved_iops: cap.reserved_iops,
                        fallback_iops: late.0,
                        fallback_from_ns: late.1,
                    };
                    model.set_limit(now, node, store, limit);
                    self.facts.push(ClusterFact::LimitSet { node, store, to: limit });
                    if let Some((ReportId { incarnation, number }, grant)) = report_id {
                        let until_ns = leased.1;
                        self.facts.push(ClusterFact::GrantReceived {
                            node,
                            store,
                            incarnation,
                            number,
                            grant,
                            until_ns,
                        });
                    }
                }
                MemberAction::Persist { durable } => {
                    self.participant(participant_id).durable_state = durable;
                }
                MemberAction::Send { report } => self.report(now, participant_id, report),
                MemberAction::Notify { notice } => {
                    let notice = match notice {
                        MemberNotice::LeaseObtained => NodeNotice::LeaseObtained,
                        MemberNotice::LeaseExpired => NodeNotice::LeaseExpired,
                        MemberNotice::ClockSlow => NodeNotice::ClockSlow,
                        MemberNotice::OtherVersion(_) => NodeNotice::OtherVersion,
                    };
                    self.facts.push(ClusterFact::NodeNotified { node, store, what: notice });
                }
            }
        }
        self.schedule_deadline(participant_id, MachineKind::Member);
    }

    /// Sends a report, or queues it while another one is in flight. Only the last of the queued
    /// reports is sent.
    fn report(&mut self, now: Time, participant_id: ParticipantId, report: LoadReport) {
        self.counts.reports += 1;
        let (node, store) = (participant_id.0, self.participant(participant_id).store);
        let ReportId { incarnation, number } = report.id;
        self.facts.push(ClusterFact::ReportCreated { node, store, incarnation, number });
        let participant = self.participant(participant_id);
        participant.queued_report = Some(Rc::new(report));
        if !std::mem::replace(&mut participant.is_reporting, true) {
            self.send_next_report(now, participant_id);
        }
    }

    pub(crate) fn send_next_report(&mut self, now: Time, participant_id: ParticipantId) {
        let participant = self.participant(participant_id);
        let store = participant.store;
        let Some(report) = participant.queued_report.take() else {
            participant.is_reporting = false;
            return;
        };
        let put_report =
            Change::Put(Key::Report(store, participant_id.0), Value::Report(report), None);
        self.send_request(
            now,
            participant_id.0,
            Request::Commit(None, vec![put_report]),
            RequestPurpose::Report(participant_id.1),
        );
    }
}
