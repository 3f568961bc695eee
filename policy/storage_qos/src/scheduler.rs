//! The hot side: which request goes to the device next, and when.

use core::time::Duration;
use std::collections::BTreeMap;

use suimon_quantity::{DiskId, Time};

use crate::accounting::AtWorkers;
use crate::clocks::Clocks;
use crate::depth::Depth;
use crate::disk::Disk;
use crate::estimate::Estimate;
use crate::flow::Flow;
use crate::gate::Gate;
use crate::heap::Places;
use crate::history::{FlowTotals, History, Turns};
use crate::members;
use crate::own_latency::OwnLatency;
use crate::pace::{Fine, fine_ns, not_after, not_before};
use crate::ranking::{LAST, Ranking};
use crate::records::{Records, Units};
use crate::shares::Shares;
use crate::shortage::Shortage;
use crate::spare::Spare;
use crate::watch::Watch;
use crate::{
    CapabilityEstimate, Completed, DiskSlot, Holder, Next, Operation, PolicyId, PolicyPart,
    StoreSpec, SubmitError, Submitted, WaitCause,
};

/// After so long it has not helped a minimum that others are held back for it.
const TRIED: Duration = Duration::from_secs(1);

/// What is in the way of a request.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) of: u32,
    /// None of its flow's requests waits.
    pub(crate) is_first: bool,
    /// Its flow's minimum is due.
    pub(crate) is_due: bool,
    /// Nothing is.
    pub(crate) is_free: bool,
}

/// The one logical queue of a store.
#[derive(Clone, Debug)]
pub struct StoreScheduler {
    pub(crate) spec: StoreSpec,
    pub(crate) disks: Vec<Disk>,
    /// Of the disks in the same order, apart from what each request touches.
    pub(crate) histories: Vec<History>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) records: Records,
    /// Flows with requests that wait for one of their maximums, by when it lets them go.
    pub(crate) held: Ranking,
    /// Flows by when their minimum is due: those with requests that may go, and others that
    /// had some. A key may be lower than what it stands for, which only grows while a flow is
    /// in. It is put right when it comes first, and who has nothing that may go is taken out
    /// then, so that what is done by weight costs nothing here.
    pub(crate) due: Ranking,
    /// Flows with requests that may go, by what they were served for their weight.
    pub(crate) shares: Shares,
    /// Of disks within their flow.
    pub(crate) member_places: Places,
    pub(crate) clocks: Clocks,
    pub(crate) depth: Depth,
    pub(crate) own_latency: OwnLatency,
    /// Requests at workers that borrow; `None`: this scheduler accounts for all requests.
    pub(crate) at_workers: Option<AtWorkers>,
    pub(crate) spare: Spare,
    pub(crate) gate: Gate,
    /// What flows wait for that no maximum holds.
    pub(crate) contention: WaitCause,
    /// Requests that had been queued and were dispatched, and those of them that were for a minimum,
    /// before a flow whose turn it was. They wrap.
    pub(crate) turns: u64,
    pub(crate) minimum_turns: u64,
    pub(crate) capability: Option<u64>,
    pub(crate) estimate: Estimate,
    pub(crate) shortage: Shortage,
    /// What this node has of policies that span nodes.
    pub(crate) parts: BTreeMap<PolicyId, PolicyPart>,
}

impl StoreScheduler {
    /// Without disks. All memory that requests need is taken now; what disks need, when
    /// they come.
    pub fn new(spec: StoreSpec) -> Self {
        Self {
            records: Records::new(spec.waiting_max),
            depth: Depth::new(&spec),
            own_latency: OwnLatency::default(),
            at_workers: None,
            spec,
            disks: Vec::new(),
            histories: Vec::new(),
            flows: Vec::new(),
            watches: Vec::new(),
            held: Ranking::default(),
            due: Ranking::default(),
            shares: Shares::default(),
            member_places: Places::default(),
            clocks: Clocks::default(),
            spare: Spare::new(),
            gate: Gate::default(),
            contention: WaitCause::DeviceDepth,
            turns: 0,
            minimum_turns: 0,
            capability: None,
            estimate: Estimate::default(),
            shortage: Shortage::default(),
            parts: BTreeMap::new(),
        }
    }

    /// Requests that the device has.
    pub const fn in_flight(&self) -> u32 {
        self.depth.in_flight
    }

    /// Requests that the device may have.
    pub fn depth(&self) -> u32 {
        self.depth.limit()
    }

    /// What the device takes for a request, in nanoseconds: the mean of those that
    /// completed lately; 0 while that is not known.
    pub const fn latency_ns(&self) -> u64 {
        self.depth.latency_ns
    }

    /// What the store did when requests last waited for it, if they did since it is used.
    pub const fn estimate(&self) -> Option<CapabilityEstimate> {
        self.estimate.found()
    }

    /// Whether requests wait that could go if all disks here together might do more.
    pub fn waits_for_cap(&self) -> bool {
        self.gate.holds() && !self.shares.is_empty()
    }

    /// The reservation clock.
    #[inline]
    pub(crate) fn clock(&self, now: Time) -> Fine {
        self.clocks.reservation(now)
    }

    /// A disk's request of `bytes` came. It goes to the device at once if nothing is
    /// against it; else it waits behind the disk's earlier ones.
    ///
    /// # Errors
    /// Why it was not taken. The disk's later requests must not be submitted before it.
    #[inline]
    pub fn submit(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<Submitted, SubmitError> {
        let units = Units { cost: self.spec.normalization.cost(bytes), bytes };
        let way = self.way(now, slot)?;
        if way.is_free {
            self.demand_and_start(now, slot, way, units);
            return Ok(Submitted::Dispatch);
        }
        if !self.records.has_room() {
            return Err(SubmitError::Full);
        }
        self.queue(now, slot, way, units, tag);
        Ok(Submitted::Waits)
    }

    /// Like [`StoreScheduler::submit`], of something that need not be done: it goes now or
    /// not at all. Whether it goes.
    pub(crate) fn submit_if_free(&mut self, now: Time, slot: DiskSlot, bytes: u32) -> bool {
        let units = Units { cost: self.spec.normalization.cost(bytes), bytes };
        let Some(way) = self.way(now, slot).ok().filter(|way| way.is_free) else { return false };
        self.demand_and_start(now, slot, way, units);
        true
    }

    /// Whether a request would go at once.
    #[inline]
    pub(crate) fn way(&mut self, now: Time, slot: DiskSlot) -> Result<Way, SubmitError> {
        let clock = self.clock(now);
        let disk = self.disks.get(slot.0 as usize).filter(|disk| disk.id.is_some());
        let of = disk.ok_or(SubmitError::NoDisk(slot))?.flow;
        let flow = self.flows.get_mut(of as usize).ok_or(SubmitError::NoDisk(slot))?;
        let is_first = flow.waiting == 0;
        let is_due = is_first && wake(flow, &mut self.spare, now, clock);
        let is_free = is_first
            && self.shares.is_empty()
            && self.depth.has_room()
            && (is_due || self.spare.has_room(self.depth.in_flight))
            && self.held.first_until(now.as_ns()).is_none()
            && flow.opens(now) <= now
            && self.gate.is_open(now);
        Ok(Way { of, is_first, is_due, is_free })
    }

    #[inline]
    pub(crate) fn demand_and_start(&mut self, now: Time, slot: DiskSlot, way: Way, units: Units) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let Some(flow) = self.flows.get_mut(way.of as usize) else { return };
        demand(disk, flow, units.cost);
        // None of its requests is queued.
        disk.account(now, WaitCause::DeviceDepth);
        self.clocks.start_now(now, disk, flow, units, way.is_due);
        self.gate.charge(units.cost);
        self.depth.in_flight += 1;
        if self.clocks.is_long() {
            self.start_virtual_time_again(now);
        }
    }

    #[inline]
    pub(crate) fn queue(&mut self, now: Time, slot: DiskSlot, way: Way, units: Units, tag: u32) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let Some(flow) = self.flows.get_mut(way.of as usize) else { return };
        demand(disk, flow, units.cost);
        disk.account(now, flow.held_by.unwrap_or(self.contention));
        self.records.push(&mut disk.fifo, tag, units);
        disk.waiting += 1;
        flow.waiting += 1;
        if disk.waiting == 1 {
            members::enter(flow, disk, slot.0, &mut self.member_places);
        }
        if way.is_first {
            self.place_waiting(now, way.of);
        }
    }

    /// What is to be done next.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Next {
        self.release(now);
        if !self.depth.has_room() {
            if self.shares.is_empty() {
                return Next::Idle;
            }
            self.depth.handle_full();
            self.gate.set_holds(false);
            return Next::Idle;
        }
        if !self.gate.is_open(now) {
            if !self.shares.is_empty() {
                self.gate.set_holds(true);
                self.contention = WaitCause::StoreCap;
            }
            return self.next_deadline().map_or(Next::Idle, Next::WaitUntil);
        }
        let clock = self.clock(now);
        if let Some(first) = self.first_due(not_after(clock)) {
            if self.shares.first().is_some_and(|next| next.id != first.id) {
                self.note_minimum(first.id);
                self.contention = WaitCause::OthersMinimums;
            }
            return self.dispatch_due(now, clock, first.id);
        }
        if let Some(first) = self.shares.first() {
            if self.spare.has_room(self.depth.in_flight) {
                self.contention = self.gate.contention();
                return self.dispatch(now, clock, first.id, false);
            }
            self.contention = WaitCause::OthersMinimums;
            // The deadline is that of the first minimum, as it is now.
            self.first_due(Time::NEVER);
        }
        self.next_deadline().map_or(Next::Idle, Next::WaitUntil)
    }

    /// When something may go although nothing is submitted and nothing completes; may be
    /// too early after requests were submitted, until the next poll.
    pub fn next_deadline(&self) -> Option<Time> {
        if !self.depth.has_room() {
            return None;
        }
        // What a policy lets never go waits until it is told otherwise.
        let held = self.held.first().filter(|first| first.key < LAST);
        let held = held.map(|first| Time::from_ns(first.key));
        if let Some(opens) = self.gate.closed_until() {
            let next = if self.shares.is_empty() { held?.max(opens) } else { opens };
            return (next != Time::NEVER).then_some(next);
        }
        let due = self.due.first().filter(|_| !self.shares.is_empty());
        let lost_ns = not_before(self.clocks.lost).as_ns();
        let due = due.map(|first| Time::from_ns(first.key.saturating_add(lost_ns)));
        held.into_iter().chain(due).min()
    }

    /// A read or write of `bytes` that went to the device completed, `latency` after it went.
    #[inline]
    pub fn handle_complete(
        &mut self,
        now: Time,
        slot: DiskSlot,
        (operation, bytes): (Operation, u32),
        latency: Duration,
    ) {
        let latency_ns = Some(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        self.handle_completed(now, slot, Completed { operation, bytes, requests: 1, latency_ns });
    }

    /// Something that was dispatched was not done: `requests` of them, that were to count
    /// as so much; requests that were done but counted as less are 0.
    pub(crate) fn take_back(&mut self, now: Time, slot: DiskSlot, requests: u32, units: Units) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let of = disk.flow;
        let Some(flow) = self.flows.get_mut(of as usize) else { return };
        let cost = u64::from(units.cost);
        let requests = requests.min(disk.in_flight);
        disk.account(now, flow.held_by.unwrap_or(self.contention));
        disk.totals.demanded = disk.totals.demanded.wrapping_sub(cost);
        flow.demanded = flow.demanded.wrapping_sub(cost);
        flow.take_back(units);
        self.gate.refund(units.cost);
        disk.in_flight -= requests;
        if requests > 0 && flow.in_flight <= requests && flow.waiting == 0 {
            flow.account_busy(now);
            flow.since = now;
        }
        flow.in_flight = flow.in_flight.saturating_sub(requests);
        self.depth.in_flight = self.depth.in_flight.saturating_sub(requests);
        self.displace(of);
        self.place(now, of);
    }

    /// A flow's request goes for its minimum, before a flow whose turn it is.
    fn note_minimum(&mut self, of: u32) {
        self.minimum_turns = self.minimum_turns.wrapping_add(1);
        if let Some(flow) = self.flows.get_mut(of as usize) {
            flow.minimum_turns = flow.minimum_turns.wrapping_add(1);
        }
    }

    /// Returns what a flow did, and whose turns there were.
    pub(crate) fn totals_of(&self, flow: &Flow) -> FlowTotals {
        let others_minimums = self.minimum_turns.wrapping_sub(flow.minimum_turns);
        FlowTotals { turns: Turns { all: self.turns, others_minimums }, ..flow.totals() }
    }

    /// [`StoreScheduler::dispatch`] of a flow whose minimum is due. The other way is in line where
    /// it is called, which is what all others take.
    #[inline(never)]
    fn dispatch_due(&mut self, now: Time, clock: Fine, of: u32) -> Next {
        self.dispatch(now, clock, of, true)
    }

    #[inline(always)]
    fn dispatch(&mut self, now: Time, clock: Fine, of: u32, is_due: bool) -> Next {
        let Some(flow) = self.flows.get_mut(of as usize) else { return Next::Idle };
        let Some(member) = flow.members.first() else { return Next::Idle };
        let Some(disk) = self.disks.get_mut(member.id as usize) else { return Next::Idle };
        disk.account(now, flow.held_by.unwrap_or(self.contention));
        let Some(record) = self.records.pop(&mut disk.fifo) else { return Next::Idle };
        let cost = record.units.cost;
        self.turns = self.turns.wrapping_add(1);
        disk.waiting -= 1;
        flow.waiting -= 1;
        members::serve(flow, disk, member.id, cost, &mut self.member_places);
        self.clocks.start((now, clock), disk, flow, record.units, is_due);
        self.gate.charge(cost);
        self.depth.in_flight += 1;
        if flow.waiting == 0 {
            // Nothing holds who is let go: he is in no other order but that of minimums, and stays there.
            flow.listed.shares = false;
            self.shares.remove(of);
        } else {
            self.place_waiting(now, of);
        }
        if self.clocks.is_long() {
            self.start_virtual_time_again(now);
        }
        Next::Dispatch { disk: DiskSlot(member.id), tag: record.tag }
    }

    /// Who a flow is of, and which disks it has.
    pub(crate) fn holder(&self, of: usize) -> Option<Holder> {
        self.flows.get(of).and_then(|flow| flow.holder)
    }

    /// Which disk is in a slot.
    pub fn disk(&self, slot: DiskSlot) -> Option<DiskId> {
        self.disks.get(slot.0 as usize).and_then(|disk| disk.id)
    }
}

/// A request came.
#[inline]
fn demand(disk: &mut Disk, flow: &mut Flow, cost: u32) {
    disk.totals.demanded = disk.totals.demanded.wrapping_add(cost.into());
    flow.demanded = flow.demanded.wrapping_add(cost.into());
}

/// A flow has a request again, after none waited. Whether its minimum is due.
#[inline]
fn wake(flow: &mut Flow, spare: &mut Spare, now: Time, clock: Fine) -> bool {
    let mut idle_ns = 0;
    if flow.in_flight == 0 {
        idle_ns = now.as_ns().saturating_sub(flow.since.as_ns());
        flow.since = now;
    }
    let Some(minimum) = &mut flow.minimum else { return false };
    if minimum.due > clock {
        flow.handle_in_time();
        return false;
    }
    minimum.resume(clock, fine_ns(idle_ns));
    let (is_behind, is_due) = (minimum.is_behind(clock), minimum.due <= clock);
    if !is_behind {
        flow.handle_in_time();
        return is_due;
    }
    if now < flow.futile_until {
        flow.behind_since = None;
        return is_due;
    }
    spare.handle_behind();
    if spare.is_least() {
        if now.since(flow.handle_late(now)) >= TRIED {
            flow.handle_futile(now);
        }
    } else {
        flow.behind_since = None;
    }
    true
}
