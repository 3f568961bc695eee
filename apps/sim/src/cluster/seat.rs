//! Participation of a node in a store: inputs and actions of its member.

use std::collections::VecDeque;
use std::rc::Rc;

use suimon_cluster_qos::{
    AllocatorEvent, Candidacy, Grant, Kept, MemberAction, MemberEvent, MemberNotice, Report,
    ReportId,
};
use suimon_quantity::Time;

use crate::cluster::control::{Control, ControlEvent, Machine, Plant};
use crate::cluster::facts::{ClusterFact, HeldTo, MemberWord};
use crate::cluster::host::Purpose;
use crate::cluster::keyspace::{Change, Entry, Key, Request, Value};
use crate::cluster::machines::{AllocatorMachine, MemberMachine};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Office {
    None,
    /// Campaigning: the election was requested.
    Campaigns,
    /// Elected: the records are being read.
    Reads(u64),
    Leads(u64),
}

pub(crate) struct Seat {
    pub(crate) store: u32,
    pub(crate) member: Box<dyn MemberMachine>,
    pub(crate) allocator: Box<dyn AllocatorMachine>,
    pub(crate) kept: Kept,
    /// Next deadlines of member and allocator.
    due: [Option<Time>; 2],
    /// Last known leader: node, start of its daemon, and revision.
    pub(crate) leader: Option<(u32, u64, u64)>,
    pub(crate) candidacy: Candidacy,
    pub(crate) office: Office,
    /// Highest term in which the node was in office.
    pub(crate) served: u64,
    /// Term whose key is to be removed, and whether the removal was requested.
    pub(crate) leaves: Option<(u64, bool)>,
    pub(crate) writes: VecDeque<Vec<Change>>,
    is_reporting: bool,
    report: Option<Rc<Report>>,
}

/// Node and number of its participation in a store.
pub(crate) type At = (u32, u32);

impl Seat {
    pub(crate) fn new(
        store: u32,
        member: Box<dyn MemberMachine>,
        allocator: Box<dyn AllocatorMachine>,
    ) -> Self {
        Self {
            store,
            member,
            allocator,
            kept: Kept::default(),
            due: [None; 2],
            // Assumes a leader until the first read.
            leader: Some((u32::MAX, 0, 0)),
            candidacy: Candidacy::default(),
            office: Office::None,
            served: 0,
            leaves: None,
            writes: VecDeque::new(),
            is_reporting: false,
            report: None,
        }
    }

    /// Returns the term in which the node leads.
    pub(crate) fn leads(&self) -> Option<u64> {
        match self.office {
            Office::Leads(term) => Some(term),
            _ => None,
        }
    }
}

impl Control {
    pub(crate) fn seat(&mut self, (node, seat): At) -> &mut Seat {
        &mut self.hosts[node as usize].seats[seat as usize]
    }

    pub(crate) fn local(&self, now: Time, (node, _): At) -> Time {
        self.hosts[node as usize].clock.at(now)
    }

    /// Processes a change of a watched key.
    pub(crate) fn hear_of(
        &mut self,
        now: Time,
        node: u32,
        key: Key,
        entry: Option<Entry>,
        plant: &mut dyn Plant,
    ) {
        let (Key::Leader(store) | Key::Report(store, _) | Key::Grant(store, _)) = key;
        let Some(seat) = self.hosts[node as usize].seat_of(store) else { return };
        let at = (node, seat);
        match (key, entry.map(|entry| (entry.value, entry.created))) {
            (Key::Leader(_), Some((Value::Node(who, incarnation), created))) => {
                self.note_leader(now, at, Some((who, incarnation, created)), plant);
            }
            (Key::Leader(_), None) => self.note_leader(now, at, None, plant),
            (_, Some((Value::Grant(grant), _))) => self.granted(now, at, &grant, plant),
            (_, Some((Value::Report(report), _))) => {
                let event = AllocatorEvent::Reported { report: (*report).clone() };
                self.tell_allocator(now, at, &event, plant);
            }
            _ => {}
        }
    }

    /// Processes a deadline requested by a state machine.
    pub(crate) fn due(&mut self, now: Time, at: At, of: Machine, due: Time, plant: &mut dyn Plant) {
        let local = self.local(now, at);
        let seat = self.seat(at);
        if seat.due[of as usize] != Some(due) {
            return;
        }
        seat.due[of as usize] = None;
        match of {
            Machine::Member => {
                seat.member.handle_deadline(local);
                self.carry_out_member(now, at, None, plant);
            }
            Machine::Allocator => {
                seat.allocator.handle_deadline(local);
                self.carry_out_allocator(now, at, plant);
            }
        }
    }

    pub(crate) fn arm(&mut self, at: At, of: Machine) {
        let clock = self.hosts[at.0 as usize].clock;
        let seat = self.seat(at);
        let due = match of {
            Machine::Member => seat.member.next_deadline(),
            Machine::Allocator => seat.allocator.next_deadline(),
        };
        if due == seat.due[of as usize] {
            return;
        }
        seat.due[of as usize] = due;
        if let Some(due) = due {
            let event = ControlEvent::Due { node: at.0, seat: at.1, of, at: due };
            self.plan(clock.when(due), event);
        }
    }

    /// Samples a node's disks.
    pub(crate) fn sample(&mut self, now: Time, at: At, plant: &mut dyn Plant) {
        let (local, store) = (self.local(now, at), self.seat(at).store);
        let mut disks = std::mem::take(&mut self.loads);
        disks.clear();
        let latency_ns = plant.loads(now, at.0, store, &mut disks);
        let event = MemberEvent::Loads { disks, latency_ns };
        self.seat(at).member.handle(local, &event);
        if let MemberEvent::Loads { disks, .. } = event {
            self.loads = disks;
        }
        self.carry_out_member(now, at, None, plant);
    }

    fn granted(&mut self, now: Time, at: At, grant: &Grant, plant: &mut dyn Plant) {
        let local = self.local(now, at);
        let event = MemberEvent::Granted { grant: grant.clone() };
        self.seat(at).member.handle(local, &event);
        let id = (grant.id.term.0, grant.id.number);
        self.carry_out_member(now, at, Some((grant.answers, id)), plant);
    }

    /// Carries out actions of a node's member. `by` is the report answered by the grant that caused
    /// them.
    pub(crate) fn carry_out_member(
        &mut self,
        now: Time,
        at: At,
        by: Option<(ReportId, (u64, u64))>,
        plant: &mut dyn Plant,
    ) {
        let (node, store) = (at.0, self.seat(at).store);
        while let Some(action) = self.seat(at).member.poll_action() {
            match action {
                MemberAction::Apply { store: cap, .. } => {
                    let clock = self.hosts[node as usize].clock;
                    let when = |part: Option<(u64, Time)>| {
                        part.map_or((0, 0), |(iops, time)| (iops, clock.when(time).as_ns()))
                    };
                    let (leased, late) = (when(cap.leased), when(cap.late));
                    let to = HeldTo {
                        leased_iops: leased.0,
                        leased_until_ns: leased.1,
                        reserved_iops: cap.reserved_iops,
                        late_iops: late.0,
                        late_from_ns: late.1,
                    };
                    plant.hold(now, node, store, to);
                    self.facts.push(ClusterFact::Held { node, store, to });
                    if let Some((ReportId { incarnation, number }, grant)) = by {
                        let until_ns = leased.1;
                        self.facts.push(ClusterFact::Took {
                            node,
                            store,
                            incarnation,
                            number,
                            grant,
                            until_ns,
                        });
                    }
                }
                MemberAction::Keep { kept } => self.seat(at).kept = kept,
                MemberAction::Send { report } => self.report(now, at, report),
                MemberAction::Tell { notice } => {
                    let what = match notice {
                        MemberNotice::Leased => MemberWord::Leased,
                        MemberNotice::Lapsed => MemberWord::Lapsed,
                        MemberNotice::ClockSlow => MemberWord::ClockSlow,
                        MemberNotice::OtherVersion(_) => MemberWord::OtherVersion,
                    };
                    self.facts.push(ClusterFact::ToldOfNode { node, store, what });
                }
            }
        }
        self.arm(at, Machine::Member);
    }

    /// Sends a report. One report is in flight at a time; of those queued behind it, the last one
    /// is sent.
    fn report(&mut self, now: Time, at: At, report: Report) {
        self.counts.reports += 1;
        let (node, store) = (at.0, self.seat(at).store);
        let ReportId { incarnation, number } = report.id;
        self.facts.push(ClusterFact::Made { node, store, incarnation, number });
        let seat = self.seat(at);
        seat.report = Some(Rc::new(report));
        if !std::mem::replace(&mut seat.is_reporting, true) {
            self.report_next(now, at);
        }
    }

    pub(crate) fn report_next(&mut self, now: Time, at: At) {
        let seat = self.seat(at);
        let store = seat.store;
        let Some(report) = seat.report.take() else {
            seat.is_reporting = false;
            return;
        };
        let put = Change::Put(Key::Report(store, at.0), Value::Report(report), None);
        self.ask_for(now, at.0, Request::Commit(None, vec![put]), Purpose::Report(at.1));
    }
}
