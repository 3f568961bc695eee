//! One store used by several processors.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_quantity::{DiskId, ProcessorId, Time};

use crate::accounting::at_least_zero;
use crate::disk::Disk;
use crate::records::Units;
use crate::{
    Borrower, CapabilityEstimate, Change, Completed, Completion, DiskFlow, DiskSlot, Event, Grant,
    Lent, Next, Report, StoreScheduler, StoreSpec, Submitted,
};

/// The one budget of a store: the scheduler of all its requests, whichever processor has
/// them. Processors report what waits and what completed, and it lends them what they may
/// dispatch. A limit is never split: each request is charged once, here.
///
/// Its queue should have room for all that may wait on all processors.
#[derive(Clone, Debug)]
pub struct StoreBudget {
    scheduler: StoreScheduler,
    /// Grants that were decided and not fetched; consecutive ones to the same processor
    /// and disk are one.
    granted: VecDeque<Grant>,
}

impl StoreBudget {
    /// Without disks.
    pub fn new(spec: StoreSpec) -> Self {
        let room = spec.depth_max as usize;
        let mut scheduler = StoreScheduler::new(spec);
        scheduler.begin_lending(Time::ZERO);
        Self { scheduler, granted: VecDeque::with_capacity(room) }
    }

    /// Goes on with what one processor's scheduler knows, whose requests that wait are the
    /// borrower's from now on; the borrower is new. Nothing that was charged is forgotten.
    pub fn share(
        mut scheduler: StoreScheduler,
        now: Time,
        with: ProcessorId,
        borrower: &mut Borrower,
    ) -> Self {
        let room = scheduler.spec.depth_max as usize;
        scheduler.begin_lending(now);
        for (slot, disk) in (0..).map(DiskSlot).zip(&mut scheduler.disks) {
            if disk.id.is_none() && disk.in_flight == 0 {
                continue;
            }
            borrower.add(slot);
            borrower.take_over(now, slot, disk.in_flight, disk.take_phases());
            scheduler.records.retag(&disk.fifo, |record| {
                borrower.take_on(slot, record.tag, record.units);
                Some(with.0.into())
            });
        }
        Self { scheduler, granted: VecDeque::with_capacity(room) }
    }

    /// Whether no other processor uses the store any more: everything lent was returned but
    /// the `in_flight` requests that the borrower's processor has in the device, and nobody
    /// else has a request waiting.
    pub fn is_settled(&self, borrower: &Borrower, in_flight: u32) -> bool {
        let is_same = |(slot, disk): (DiskSlot, &Disk)| borrower.waiting(slot) == disk.waiting;
        self.granted.is_empty()
            && borrower.is_settled()
            && self.scheduler.in_flight() == in_flight
            && (0..).map(DiskSlot).zip(&self.scheduler.disks).all(is_same)
    }

    /// The opposite of [`StoreBudget::share`], when it [is settled](Self::is_settled) with
    /// the one borrower that is left.
    pub fn unshare(mut self, now: Time, mut borrower: Borrower) -> StoreScheduler {
        self.scheduler.end_lending(now);
        for (slot, disk) in (0..).map(DiskSlot).zip(&mut self.scheduler.disks) {
            let (phases, time) = borrower.give_up(now, slot);
            disk.set_phases(phases);
            disk.totals.time.merge(&time);
            self.scheduler.records.retag(&disk.fifo, |_| borrower.hand_over(slot));
        }
        self.scheduler
    }

    /// Carries out a step of a change. Processors take requests of a removed disk out
    /// themselves, before or after: [`crate::Borrower::withdraw`].
    pub fn apply(&mut self, now: Time, change: Change) {
        self.scheduler.apply(now, change);
    }

    /// Hears what a processor reports.
    pub fn handle_report(&mut self, now: Time, from: ProcessorId, report: &Report) {
        self.scheduler.handle_worker_times(now, &report.times, report.completions.len());
        for &Completion { disk, operation, bytes, latency } in &report.completions {
            let ns = |latency: Duration| u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
            let latency_ns = latency.map(ns);
            let of = Completed { operation, bytes, requests: 1, latency_ns };
            self.scheduler.handle_completed(now, disk, of);
        }
        for back in &report.returns {
            let units = Units { cost: back.cost, bytes: back.bytes };
            self.scheduler.take_back(now, back.disk, back.requests, units);
        }
        for want in &report.wants {
            match self.scheduler.submit(now, want.disk, want.bytes, from.0.into()) {
                Ok(Submitted::Dispatch) => self.grant(from, want.disk),
                Ok(Submitted::Waits) => {}
                Err(_) => {
                    let of = Lent::Refused(want.bytes);
                    self.granted.push_back(Grant { processor: from, disk: want.disk, of });
                }
            }
        }
        for want in &report.ahead {
            let is_lent = self.scheduler.submit_if_free(now, want.disk, want.bytes);
            let of = if is_lent { Lent::Ahead(want.bytes) } else { Lent::Nothing };
            self.granted.push_back(Grant { processor: from, disk: want.disk, of });
        }
    }

    /// What is lent next; `None`: nothing now.
    pub fn poll_grant(&mut self, now: Time) -> Option<Grant> {
        while let Next::Dispatch { disk, tag } = self.scheduler.poll(now) {
            self.grant(ProcessorId(u16::try_from(tag).unwrap_or(u16::MAX)), disk);
        }
        self.granted.pop_front()
    }

    /// When something may be lent although nothing is reported.
    pub fn next_deadline(&self) -> Option<Time> {
        self.scheduler.next_deadline()
    }

    /// See [`StoreScheduler::observe`]. Requests that wait on processors count from when
    /// they were reported.
    pub fn observe(&mut self, now: Time) -> Vec<Event> {
        self.scheduler.observe(now)
    }

    /// See [`StoreScheduler::view`]. Requests in flight are those that workers have reported.
    pub fn view(&self, now: Time, slot: DiskSlot) -> Option<DiskFlow> {
        self.scheduler.view(now, slot)
    }

    /// Requests in the device, as far as workers have reported them.
    pub fn in_device(&self) -> u32 {
        self.scheduler.at_workers.map_or(0, |of| at_least_zero(of.in_flight))
    }

    /// Which disk is in a slot.
    pub fn disk(&self, slot: DiskSlot) -> Option<DiskId> {
        self.scheduler.disk(slot)
    }

    /// See [`StoreScheduler::latency_ns`].
    pub const fn latency_ns(&self) -> u64 {
        self.scheduler.latency_ns()
    }

    /// See [`StoreScheduler::estimate`].
    pub const fn estimate(&self) -> Option<CapabilityEstimate> {
        self.scheduler.estimate()
    }

    /// See [`StoreScheduler::depth`].
    pub fn depth(&self) -> u32 {
        self.scheduler.depth()
    }

    /// Requests that are in the device or lent.
    pub const fn in_flight(&self) -> u32 {
        self.scheduler.in_flight()
    }

    fn grant(&mut self, processor: ProcessorId, disk: DiskSlot) {
        if let Some(last) = self.granted.back_mut() {
            if let Lent::Waiting(requests) = &mut last.of {
                if last.processor == processor && last.disk == disk {
                    *requests += 1;
                    return;
                }
            }
        }
        self.granted.push_back(Grant { processor, disk, of: Lent::Waiting(1) });
    }
}
