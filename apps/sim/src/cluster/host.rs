//! Node of the cluster: connection to etcd, requests, received changes, and its lease.
//!
//! The behaviour is that of `sys/etcd`: the node uses one member and switches to the next if that
//! one does not respond in time. A change without response may have been carried out. After a
//! switch, watched keys are read again.

use suimon_cluster_qos::{Kept, NodeId, Terms};
use suimon_quantity::Time;

use crate::cluster::clock::Clock;
use crate::cluster::control::{Control, ControlEvent, Plant, TICK_NS};
use crate::cluster::keyspace::{Answer, Entry, Key, Keys, Request};
use crate::cluster::machines::Machines;
use crate::cluster::network::BROKEN_NS;
use crate::cluster::seat::Seat;
use crate::kernel::SECOND;

/// Time without messages on a watch after which it is restarted at the next member: three
/// unanswered probes at 1 s intervals.
const UNHEARD_NS: u64 = BROKEN_NS + SECOND;

/// Purpose of a request to etcd.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Write a report of the node about a store.
    Report(u32),
    /// Write grants of a term.
    Write(u32, u64),
    Campaign(u32),
    /// Read the records that a new leader requires.
    TakeOffice(u32, u64),
    Leave(u32, u64),
    Session,
    KeepAlive,
    /// Read the current values of all watched keys.
    Sync,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    call: u64,
    purpose: Purpose,
    at: Time,
}

/// Lease with which a node leads stores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Session {
    pub(crate) lease: Option<u32>,
    /// Earliest expiry of the lease.
    until: Time,
    asked: Option<Time>,
}

pub(crate) struct Host {
    pub(crate) node: u32,
    pub(crate) clock: Clock,
    pub(crate) seats: Vec<Seat>,
    /// Number of the daemon's start.
    pub(crate) epoch: u32,
    pub(crate) still_until: Time,
    /// Member of etcd in use.
    pub(crate) member: u32,
    /// Number of the connection to etcd.
    pub(crate) stream: u32,
    /// True if changes were lost on this connection.
    pub(crate) has_missed: bool,
    pub(crate) needs_sync: bool,
    heard: Time,
    pub(crate) session: Session,
    asked: Vec<Asked>,
}

impl Host {
    pub(crate) fn new(
        machines: &dyn Machines,
        terms: Terms,
        node: u32,
        clock: Clock,
        stores: &[u32],
        member: u32,
    ) -> Self {
        let local = clock.at(Time::ZERO);
        let seat = |store: &u32| {
            let member = machines.member(terms, local, NodeId(node), 1, Kept::default());
            Seat::new(*store, member, machines.allocator(terms))
        };
        Self {
            node,
            clock,
            seats: stores.iter().map(seat).collect(),
            epoch: 0,
            still_until: Time::ZERO,
            member,
            stream: 0,
            has_missed: false,
            needs_sync: true,
            heard: Time::ZERO,
            session: Session::default(),
            asked: Vec::new(),
        }
    }

    /// Resets the state that a restarted daemon does not keep.
    fn forget(&mut self, machines: &dyn Machines, terms: Terms, now: Time) {
        let (local, node) = (self.clock.at(now), NodeId(self.node));
        let incarnation = u64::from(self.epoch) + 1;
        for seat in &mut self.seats {
            let kept = seat.kept.clone();
            let member = machines.member(terms, local, node, incarnation, kept.clone());
            *seat = Seat::new(seat.store, member, machines.allocator(terms));
            seat.kept = kept;
        }
        self.asked.clear();
        self.session = Session::default();
        (self.needs_sync, self.has_missed) = (true, false);
    }

    pub(crate) fn has_session(&self, now: Time) -> bool {
        self.session.lease.is_some() && now < self.session.until
    }

    pub(crate) fn seat_of(&self, store: u32) -> Option<u32> {
        (0..).zip(&self.seats).find(|(_, seat)| seat.store == store).map(|(at, _)| at)
    }
}

impl Control {
    pub(crate) fn host(&mut self, node: u32) -> &mut Host {
        &mut self.hosts[node as usize]
    }

    pub(crate) fn ask_for(&mut self, now: Time, node: u32, request: Request, purpose: Purpose) {
        let call = self.ask(now, node, request);
        self.host(node).asked.push(Asked { call, purpose, at: now });
    }

    /// Starts a node's daemon.
    pub(crate) fn begin(&mut self, now: Time, node: u32, epoch: u32, plant: &mut dyn Plant) {
        let host = &mut self.hosts[node as usize];
        if host.epoch != epoch {
            return;
        }
        if epoch > 0 {
            host.forget(&*self.machines, self.terms, now);
        }
        host.heard = now;
        host.stream += 1;
        self.network.connect(node);
        for seat in 0..self.hosts[node as usize].seats.len() as u32 {
            self.carry_out_member(now, (node, seat), None, plant);
        }
        self.tick(now, node, epoch, plant);
    }

    /// Performs a node's periodic work: connection, lease and samples of its disks.
    pub(crate) fn tick(&mut self, now: Time, node: u32, epoch: u32, plant: &mut dyn Plant) {
        if self.host(node).epoch != epoch {
            return;
        }
        let next = Time::from_ns(now.as_ns() + TICK_NS);
        self.plan(next, ControlEvent::Tick { node, epoch });
        self.look_for_unanswered(now, node, plant);
        self.listen(now, node);
        self.keep_session(now, node, plant);
        for seat in 0..self.host(node).seats.len() as u32 {
            self.sample(now, (node, seat), plant);
            self.look_after_office(now, (node, seat), plant);
        }
    }

    fn look_for_unanswered(&mut self, now: Time, node: u32, plant: &mut dyn Plant) {
        let patience = self.spec.etcd.patience_ms * 1_000_000;
        let is_late = |asked: &Asked| now.as_ns() > asked.at.as_ns() + patience;
        let host = self.host(node);
        if !host.asked.iter().any(is_late) {
            return;
        }
        let late: Vec<Asked> = host.asked.iter().copied().filter(is_late).collect();
        host.asked.retain(|asked| !is_late(asked));
        self.counts.unanswered += late.len() as u64;
        self.go_on(now, node);
        for asked in late {
            self.failed(now, node, asked.purpose, plant);
        }
    }

    /// Checks that the connection is alive.
    fn listen(&mut self, now: Time, node: u32) {
        let member = self.host(node).member;
        let is_heard = self.etcd.tells(member) && self.network.is_open(now, node, member);
        let is_up = self.etcd.is_up(member);
        let host = self.host(node);
        if is_heard {
            host.heard = now;
            host.needs_sync |= std::mem::take(&mut host.has_missed);
        } else if !is_up || now.as_ns() > host.heard.as_ns() + UNHEARD_NS {
            self.go_on(now, node);
        }
        let is_asked =
            |host: &Host| host.asked.iter().any(|asked| matches!(asked.purpose, Purpose::Sync));
        let host = self.host(node);
        if host.needs_sync && !is_asked(host) {
            host.needs_sync = false;
            let mut keys = Vec::new();
            for seat in &host.seats {
                keys.extend([Key::Leader(seat.store), Key::Grant(seat.store, node)]);
            }
            self.ask_for(now, node, Request::Read(Keys::These(keys)), Purpose::Sync);
        }
    }

    /// Switches to the next member of etcd.
    fn go_on(&mut self, now: Time, node: u32) {
        let members = self.spec.etcd.members;
        self.network.connect(node);
        let host = self.host(node);
        host.member = (host.member + 1) % members;
        host.stream += 1;
        (host.heard, host.has_missed, host.needs_sync) = (now, false, true);
    }

    fn keep_session(&mut self, now: Time, node: u32, plant: &mut dyn Plant) {
        let span_ns = self.spec.etcd.session_s * SECOND;
        let host = self.host(node);
        if host.session.lease.is_some() && now >= host.session.until {
            host.session.lease = None;
            self.lose_offices(now, node, plant);
        }
        let Session { lease, until, asked } = self.host(node).session;
        if asked.is_some() {
            return;
        }
        let (request, purpose) = match lease {
            None => (Request::Lease(span_ns), Purpose::Session),
            Some(lease) if now.as_ns() + span_ns * 2 / 3 >= until.as_ns() => {
                (Request::KeepAlive(lease), Purpose::KeepAlive)
            }
            Some(_) => return,
        };
        self.host(node).session.asked = Some(now);
        self.ask_for(now, node, request, purpose);
    }

    /// Processes a response of etcd.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        node: u32,
        call: u64,
        answer: Answer,
        plant: &mut dyn Plant,
    ) {
        let host = self.host(node);
        let Some(at) = host.asked.iter().position(|asked| asked.call == call) else { return };
        let purpose = host.asked.swap_remove(at).purpose;
        host.heard = now;
        match (purpose, answer) {
            (_, Answer::NotDone) => {
                self.go_on(now, node);
                self.failed(now, node, purpose, plant);
            }
            (Purpose::Session | Purpose::KeepAlive, answer) => {
                self.hear_of_session(now, node, &answer, plant);
            }
            (Purpose::Sync, Answer::View(entries)) => self.sync(now, node, entries, plant),
            (Purpose::TakeOffice(seat, term), Answer::View(entries)) => {
                self.take_office(now, (node, seat), term, entries, plant);
            }
            (Purpose::Report(seat), _) => self.report_next(now, (node, seat)),
            (Purpose::Write(seat, term), answer) => {
                let is_made = matches!(answer, Answer::Made(_));
                self.written(now, (node, seat), term, is_made, plant);
            }
            (Purpose::Campaign(seat), Answer::Made(term)) => {
                let incarnation = u64::from(self.host(node).epoch) + 1;
                self.note_leader(now, (node, seat), Some((node, incarnation, term)), plant);
            }
            (Purpose::Campaign(seat), _) => self.not_elected((node, seat)),
            (Purpose::Leave(seat, term), _) => self.left((node, seat), term),
            (Purpose::Sync | Purpose::TakeOffice(..), _) => {}
        }
    }

    /// Processes a missing response or a rejected request.
    fn failed(&mut self, now: Time, node: u32, purpose: Purpose, plant: &mut dyn Plant) {
        match purpose {
            Purpose::Report(seat) => self.report_next(now, (node, seat)),
            Purpose::Write(seat, term) => self.written(now, (node, seat), term, false, plant),
            Purpose::Campaign(seat) => self.not_elected((node, seat)),
            Purpose::TakeOffice(seat, term) => self.read_office(now, (node, seat), term),
            Purpose::Leave(seat, _) => self.leave_again((node, seat)),
            Purpose::Session | Purpose::KeepAlive => self.host(node).session.asked = None,
            Purpose::Sync => self.host(node).needs_sync = true,
        }
    }

    fn hear_of_session(&mut self, now: Time, node: u32, answer: &Answer, plant: &mut dyn Plant) {
        let span_ns = self.spec.etcd.session_s * SECOND;
        let session = &mut self.host(node).session;
        let asked = session.asked.take().unwrap_or(now);
        match answer {
            Answer::Leased(lease) => session.lease = Some(*lease),
            Answer::IsAlive(true) => {}
            _ => {
                session.lease = None;
                return self.lose_offices(now, node, plant);
            }
        }
        session.until = Time::from_ns(asked.as_ns() + span_ns);
    }

    fn sync(&mut self, now: Time, node: u32, entries: Vec<(Key, Entry)>, plant: &mut dyn Plant) {
        // The leader of each store is reported, including the absence of one.
        let stores: Vec<u32> = self.host(node).seats.iter().map(|seat| seat.store).collect();
        for store in stores {
            let found = entries.iter().find(|(key, _)| *key == Key::Leader(store));
            let entry = found.map(|(_, entry)| entry.clone());
            self.hear_of(now, node, Key::Leader(store), entry, plant);
        }
        for (key, entry) in entries {
            if matches!(key, Key::Grant(..)) {
                self.hear_of(now, node, key, Some(entry), plant);
            }
        }
        // Leaders read all reports again.
        self.read_offices(now, node);
    }
}
