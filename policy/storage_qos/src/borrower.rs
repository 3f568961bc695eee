//! A processor's side of a store that several processors use.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_quantity::Time;

use crate::phase::Phases;
use crate::records::{Fifo, Records, Units};
use crate::worker_time::{LocalRequests, REPORT_EVERY};
use crate::{
    Completion, DISKS_MAX, DiskSlot, Grant, Lent, Next, Normalization, Phase, Report, RequestTime,
    Return, SubmitError, Submitted, Unscheduled, Want,
};

/// What was borrowed ahead and is not used for so long is returned.
pub const HELD_MAX: Duration = Duration::from_millis(1);
/// Requests of one disk that are borrowed ahead at most.
const AHEAD_MAX: u32 = 16;

/// A disk's requests on this processor.
#[derive(Clone, Debug, Default)]
struct Queue {
    fifo: Fifo,
    waiting: u32,
    /// Of those that wait, those that may go.
    granted: u32,
    /// Requests that may come, of so many bytes each, and are paid for.
    ahead: u32,
    ahead_bytes: u32,
    /// Of what was borrowed ahead, what is not answered.
    asked: u32,
    ahead_since: Time,
    /// So many should be borrowed ahead: each request that found nothing is one more, and
    /// what was returned unused is less.
    level: u32,
    /// Whether a request came since something was borrowed ahead.
    is_used: bool,
    last_bytes: u32,
    is_listed: bool,
    local: LocalRequests,
}

impl Queue {
    /// Accounts for the time of its requests up to now; `timed` lists disks with unreported time.
    #[inline]
    fn account(&mut self, now: Time, disk: DiskSlot, timed: &mut Vec<u32>) {
        if self.local.account(now, self.waiting) {
            timed.push(disk.0);
        }
    }
}

/// The requests of one processor for a store, and what the store's budget lent it for them.
///
/// Whatever it dispatches it was lent; it never dispatches more. What is lent goes to the
/// device, or is held for [`HELD_MAX`] at most: over any window, what all processors
/// dispatch for a disk together exceeds what one scheduler would by no more than its
/// maximum carries in that time and in the time a message takes.
#[derive(Clone, Debug)]
pub struct Borrower {
    normalization: Normalization,
    queues: Vec<Queue>,
    records: Records,
    /// Disks with requests that may go.
    ready: VecDeque<u32>,
    /// Disks for which something is borrowed ahead, or should be.
    watched: Vec<u32>,
    /// Disks with requests or unreported time of them.
    timed: Vec<u32>,
    /// When time was last reported.
    times_reported: Time,
    report: Report,
    /// Nothing more is borrowed ahead.
    is_settling: bool,
}

impl Borrower {
    /// Room for `waiting_max` requests that wait on this processor.
    pub fn new(normalization: Normalization, waiting_max: u32) -> Self {
        Self {
            normalization,
            queues: Vec::new(),
            records: Records::new(waiting_max),
            ready: VecDeque::new(),
            watched: Vec::new(),
            timed: Vec::new(),
            times_reported: Time::ZERO,
            report: Report::default(),
            is_settling: false,
        }
    }

    /// Whether requests are borrowed ahead. A processor that is to have the store for
    /// itself, or not at all, returns what it has, and borrows nothing ahead.
    pub const fn set_settling(&mut self, is_settling: bool) {
        self.is_settling = is_settling;
    }

    /// Whether everything is reported, and nothing is lent but for what is in the device.
    pub fn is_settled(&self) -> bool {
        let is_free = |queue: &Queue| queue.granted == 0 && queue.ahead == 0 && queue.asked == 0;
        self.report.is_empty() && self.queues.iter().all(is_free)
    }

    /// A disk's requests that wait here.
    pub fn waiting(&self, disk: DiskSlot) -> u32 {
        self.queues.get(disk.0 as usize).map_or(0, |queue| queue.waiting)
    }

    /// A request that the budget knows to wait waits here.
    pub(crate) fn take_on(&mut self, disk: DiskSlot, tag: u32, units: Units) {
        let Some(queue) = self.queues.get_mut(disk.0 as usize) else { return };
        self.records.push(&mut queue.fifo, tag, units);
        queue.waiting += 1;
    }

    /// Requests of a disk that the budget's scheduler accounted for are in flight here.
    pub(crate) fn take_over(&mut self, now: Time, disk: DiskSlot, in_flight: u32, phases: Phases) {
        let Some(queue) = self.queues.get_mut(disk.0 as usize) else { return };
        queue.local.take_over(now, in_flight, phases);
        queue.account(now, disk, &mut self.timed);
    }

    /// Returns the phases of a disk's requests in flight and their unreported time.
    pub(crate) fn give_up(&self, now: Time, disk: DiskSlot) -> (Phases, RequestTime) {
        let queue = self.queues.get(disk.0 as usize).filter(|queue| queue.local.is_listed());
        queue.map(|queue| queue.local.give_up(now, queue.waiting)).unwrap_or_default()
    }

    /// Forgets a disk's oldest request, which waits elsewhere from now on; its tag.
    pub(crate) fn hand_over(&mut self, disk: DiskSlot) -> Option<u32> {
        let queue = self.queues.get_mut(disk.0 as usize)?;
        queue.waiting = queue.waiting.saturating_sub(1);
        self.records.pop(&mut queue.fifo).map(|record| record.tag)
    }

    /// A disk has a queue on this processor. Takes memory for it.
    pub fn add(&mut self, disk: DiskSlot) {
        let index = disk.0 as usize;
        if index < DISKS_MAX && self.queues.len() <= index {
            self.queues.resize_with(index + 1, Queue::default);
            self.ready.reserve(index + 1);
            self.watched.reserve(index + 1);
            self.timed.reserve(index + 1);
        }
    }

    /// A request came. It goes at once if it is paid for already.
    ///
    /// # Errors
    /// Why it was not taken.
    pub fn submit(
        &mut self,
        now: Time,
        disk: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<Submitted, SubmitError> {
        let queue = self.queues.get_mut(disk.0 as usize).ok_or(SubmitError::NoDisk(disk))?;
        let units = Units { cost: self.normalization.cost(bytes), bytes };
        queue.account(now, disk, &mut self.timed);
        queue.last_bytes = bytes;
        if queue.waiting == 0 && queue.ahead > 0 && bytes <= queue.ahead_bytes {
            queue.ahead -= 1;
            queue.ahead_since = now;
            let cost = self.normalization.cost(queue.ahead_bytes) - units.cost;
            let bytes = queue.ahead_bytes - bytes;
            if bytes > 0 {
                self.report.returns.push(Return { disk, requests: 0, cost, bytes });
            }
            queue.is_used = true;
            queue.local.in_flight += 1;
            return Ok(Submitted::Dispatch);
        }
        if !self.records.has_room() {
            return Err(SubmitError::Full);
        }
        self.records.push(&mut queue.fifo, tag, units);
        queue.waiting += 1;
        queue.is_used = true;
        queue.level = (queue.level + 1).min(AHEAD_MAX);
        if !queue.is_listed {
            queue.is_listed = true;
            self.watched.push(disk.0);
        }
        self.report.wants.push(Want { disk, bytes });
        Ok(Submitted::Waits)
    }

    /// Returns what is to be done next: never a time, which is [`Borrower::next_deadline`].
    pub fn poll(&mut self, now: Time) -> Next {
        while let Some(slot) = self.ready.front().copied() {
            let queue = self.queues.get_mut(slot as usize).filter(|queue| queue.granted > 0);
            let next = queue.and_then(|queue| {
                let record = self.records.pop(&mut queue.fifo)?;
                queue.account(now, DiskSlot(slot), &mut self.timed);
                queue.granted -= 1;
                queue.waiting -= 1;
                queue.local.in_flight += 1;
                Some(record)
            });
            match next {
                Some(record) => return Next::Dispatch { disk: DiskSlot(slot), tag: record.tag },
                None => self.ready.pop_front(),
            };
        }
        Next::Idle
    }

    /// A request that was dispatched completed.
    pub fn handle_completion(&mut self, now: Time, of: Completion) {
        if let Some(queue) = self.queues.get_mut(of.disk.0 as usize) {
            queue.account(now, of.disk, &mut self.timed);
            queue.local.complete();
        }
        self.report.completions.push(of);
    }

    /// See [`crate::StoreScheduler::handle_phase`].
    pub fn handle_phase(&mut self, now: Time, disk: DiskSlot, from: Phase, to: Phase) {
        let Some(queue) = self.queues.get_mut(disk.0 as usize) else { return };
        queue.account(now, disk, &mut self.timed);
        queue.local.change_phase(from, to);
    }

    /// The worker of a disk was runnable and not running.
    pub fn handle_unscheduled(&mut self, now: Time, of: Unscheduled) {
        let Some(queue) = self.queues.get_mut(of.disk.0 as usize) else { return };
        queue.account(now, of.disk, &mut self.timed);
        queue.local.add_unscheduled(of);
    }

    /// Hears what was lent to this processor.
    pub fn handle_grant(&mut self, now: Time, grant: Grant) {
        let Some(queue) = self.queues.get_mut(grant.disk.0 as usize) else { return };
        match grant.of {
            Lent::Waiting(requests) => {
                // More than wait are for requests that were withdrawn meanwhile.
                let used = requests.min(queue.waiting.saturating_sub(queue.granted));
                let requests = requests.saturating_sub(used);
                if requests > 0 {
                    let back = Return { disk: grant.disk, requests, cost: 0, bytes: 0 };
                    self.report.returns.push(back);
                }
                if queue.granted == 0 && used > 0 {
                    self.ready.push_back(grant.disk.0);
                }
                queue.granted += used;
            }
            Lent::Ahead(bytes) => {
                queue.asked = queue.asked.saturating_sub(1);
                if queue.ahead > 0 && queue.ahead_bytes != bytes {
                    give_back(&mut self.report, self.normalization, grant.disk, queue);
                }
                queue.ahead += 1;
                queue.ahead_bytes = bytes;
                queue.ahead_since = now;
            }
            Lent::Nothing => queue.asked = queue.asked.saturating_sub(1),
            Lent::Refused(bytes) if queue.waiting > queue.granted => {
                self.report.wants.push(Want { disk: grant.disk, bytes });
            }
            Lent::Refused(_) => {}
        }
    }

    /// Takes a disk's oldest request out that waits, because the disk is removed; its tag.
    /// To be called until there is none.
    pub fn withdraw(&mut self, disk: DiskSlot) -> Option<u32> {
        let queue = self.queues.get_mut(disk.0 as usize)?;
        self.report.wants.retain(|want| want.disk != disk);
        let record = self.records.pop(&mut queue.fifo)?;
        queue.waiting -= 1;
        if queue.granted > 0 {
            queue.granted -= 1;
            let Units { cost, bytes } = record.units;
            self.report.returns.push(Return { disk, requests: 1, cost, bytes });
        }
        Some(record.tag)
    }

    /// When there is something to report although nothing happens.
    pub fn next_deadline(&self) -> Option<Time> {
        let times = (!self.timed.is_empty()).then(|| self.times_reported + REPORT_EVERY);
        let queues = self.watched.iter().filter_map(|slot| self.queues.get(*slot as usize));
        let held = queues.filter(|queue| queue.ahead > 0);
        held.map(|queue| queue.ahead_since + HELD_MAX).chain(times).min()
    }

    /// Takes what is to be reported, in exchange for `spent`, a report whose memory can be
    /// used again.
    ///
    /// # Errors
    /// `spent`, if there is nothing to report.
    pub fn poll_report(&mut self, now: Time, mut spent: Report) -> Result<Report, Report> {
        let (queues, report, normalization) =
            (&mut self.queues, &mut self.report, self.normalization);
        let is_settling = self.is_settling;
        self.watched.retain(|slot| {
            let Some(queue) = queues.get_mut(*slot as usize) else { return false };
            let disk = DiskSlot(*slot);
            if queue.ahead > 0 && (is_settling || now >= queue.ahead_since + HELD_MAX) {
                queue.level = queue.level.saturating_sub(queue.ahead);
                give_back(report, normalization, disk, queue);
            }
            // While requests wait, one that came now would not be spared its turn.
            if queue.waiting == 0 && queue.is_used && !is_settling {
                let bytes = if queue.ahead > 0 { queue.ahead_bytes } else { queue.last_bytes };
                let more = queue.level.saturating_sub(queue.ahead + queue.asked);
                report.ahead.extend((0..more).map(|_| Want { disk, bytes }));
                queue.asked += more;
                queue.is_used = false;
            }
            queue.is_listed = queue.waiting > 0 || queue.ahead > 0 || queue.asked > 0;
            queue.is_listed
        });
        if !self.report.is_empty() || now >= self.times_reported + REPORT_EVERY {
            self.report_times(now);
        }
        if self.report.is_empty() {
            return Err(spent);
        }
        spent.clear();
        Ok(core::mem::replace(&mut self.report, spent))
    }

    /// Adds the time of requests that was not reported.
    fn report_times(&mut self, now: Time) {
        self.times_reported = now;
        let (queues, times) = (&mut self.queues, &mut self.report.times);
        self.timed.retain(|slot| {
            let Some(queue) = queues.get_mut(*slot as usize) else { return false };
            times.extend(queue.local.report(now, DiskSlot(*slot), queue.waiting));
            queue.local.is_listed()
        });
    }
}

/// Returns all that a disk has borrowed ahead.
fn give_back(report: &mut Report, normalization: Normalization, disk: DiskSlot, queue: &mut Queue) {
    let requests = core::mem::take(&mut queue.ahead);
    let cost = normalization.cost(queue.ahead_bytes).saturating_mul(requests);
    let bytes = queue.ahead_bytes.saturating_mul(requests);
    report.returns.push(Return { disk, requests, cost, bytes });
}
