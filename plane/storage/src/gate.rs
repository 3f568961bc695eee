//! Lets requests go when their store says so.
//!
//! What a request counts as
//! - A read or a write counts by its bytes.
//! - Zeros count as a write of as many bytes, because the device may have to write them;
//!   not if their space may be given back and the file can have holes.
//! - A flush, a discard and zeros that become a hole count as one operation: they move no
//!   payload, but each costs the device something, and none may be had without limit.
//!
//! What is closed does not wait for its maximum. Its requests are let through at once, and
//! stay in the store's queue as what the disk owes; until that is paid nothing more is
//! taken from the disk's queues. So a disk is ahead of its maximum by what its queues may
//! have waiting at most, however often they come and go, and what it does in sum is as if
//! it had waited.

use suimon_ports::DiskOp;
use suimon_quantity::Time;
use suimon_storage_qos::{Completed, Next, Submitted, Together};

use crate::disk::{Disk, Place};
use crate::notices::StorageNotice;
use crate::request::Request;
use crate::store::StoreUse;
use crate::work::{REQUESTS_MAX, StorageWork};

/// What tells a request of a disk's being copied from others of the disk, in the store's tag.
const MIRROR_TAG: u32 = 1 << 31;

/// By which a store knows a request: the number of its disk, and whether the disk is copied by
/// it.
#[inline]
fn tag_of(disk: usize, is_mirror: bool) -> u32 {
    let number = u32::try_from(disk).unwrap_or(u32::MAX) & !MIRROR_TAG;
    if is_mirror { number | MIRROR_TAG } else { number }
}

impl StorageWork {
    /// Requests were taken from a queue at once: they begin, or wait for their store.
    #[inline]
    pub(crate) fn admit_arrived(&mut self) {
        if self.arrived.is_empty() {
            return;
        }
        let mut numbers = core::mem::take(&mut self.arrived);
        match self.admit_together(&numbers) {
            Some(of) => {
                let begun = numbers.iter().take(of.dispatched);
                // There are no others: nothing is taken from a queue for which its store has no
                // room.
                let others = numbers.iter().skip(of.dispatched + of.waiting);
                begun.chain(others).for_each(|&number| self.begin(number));
            }
            None => numbers.iter().for_each(|&number| self.admit(number)),
        }
        numbers.clear();
        self.arrived = numbers;
    }

    /// Asks the store for all at once. `None`: each is to be asked for by itself.
    fn admit_together(&mut self, numbers: &[usize]) -> Option<Together> {
        let first = self.requests.get(*numbers.first()?)?;
        let (disk_number, queue, is_mirror) = (first.disk, first.queue, first.is_mirror);
        let disk = self.disks.get_mut(disk_number)?;
        let Place { store, slot } = disk.place_of(is_mirror)?;
        let of = self.stores.get_mut(store)?;
        self.sizes.clear();
        for &number in numbers {
            let request = self.requests.get_mut(number)?;
            request.bytes = counted_bytes(disk, request);
            // Most do not wait, and to look each up again costs more than this (decision 30).
            request.is_charged = true;
            self.sizes.push(request.bytes);
        }
        let tag = tag_of(disk_number, is_mirror);
        let of = of.submit_together(self.now, slot, &self.sizes, tag);
        let dispatched = of.map_or(0, |of| of.dispatched);
        for &number in numbers.iter().skip(dispatched) {
            if let Some(request) = self.requests.get_mut(number) {
                request.is_charged = false;
            }
        }
        let of = of?;
        for &number in numbers.iter().skip(of.dispatched).take(of.waiting) {
            disk.held_of(is_mirror).push(&mut self.requests, number);
        }
        self.held += of.waiting;
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.held += u32::try_from(of.waiting).unwrap_or(u32::MAX);
        }
        Some(of)
    }

    /// A request was taken: it begins, or waits for its store.
    #[inline]
    pub(crate) fn admit(&mut self, number: usize) {
        let Some(request) = self.requests.get_mut(number) else { return };
        let disk_number = request.disk;
        let Some(disk) = self.disks.get_mut(disk_number) else { return self.begin(number) };
        let is_mirror = request.is_mirror;
        let place = disk.place_of(is_mirror);
        let Some(Place { store, slot }) = place else { return self.begin(number) };
        let Some(of) = self.stores.get_mut(store) else { return self.begin(number) };
        let bytes = counted_bytes(disk, request);
        request.bytes = bytes;
        match of.submit(self.now, slot, bytes, tag_of(disk_number, is_mirror)) {
            Ok(Submitted::Dispatch) => request.is_charged = true,
            Ok(Submitted::Waits) => {
                if let Some(of) = self.queues.get_mut(request.queue) {
                    of.held += 1;
                }
                self.held += 1;
                return disk.held_of(is_mirror).push(&mut self.requests, number);
            }
            // The disk was removed from its store, which has no say in it any more. Full
            // it is not: nothing is taken from a queue for which there is no room.
            Err(_) => {}
        }
        self.begin(number);
    }

    /// Lets requests go, as far as their stores allow it now; whether there were any.
    pub(crate) fn let_go(&mut self) -> bool {
        let mut any = false;
        for store in self.stores.numbers() {
            any |= self.let_go_of(store);
        }
        any
    }

    fn let_go_of(&mut self, store: usize) -> bool {
        let (now, mut any) = (self.now, false);
        let Some(of) = self.stores.get_mut(store) else { return false };
        of.exchange(now, self.processor, &mut self.outbox);
        while self.begun() < REQUESTS_MAX {
            let Some(of) = self.stores.get_mut(store) else { break };
            // Also where nothing waits: else what a queue brings next would wait for what has ended.
            of.tell_ended(now);
            if of.waiting == 0 {
                break;
            }
            let Next::Dispatch { disk: slot, tag } = of.poll(now) else { break };
            any = true;
            if !of.handle_let_go(now, slot) {
                self.begin_first(tag);
            } else if !of.is_owed(slot) {
                self.resume_place(Place { store, slot });
            }
        }
        let Some(of) = self.stores.get_mut(store) else { return any };
        let room = of.spec.waiting_max.saturating_sub(of.waiting) as usize;
        let starved: Vec<usize> = of.starved.drain(..room.min(of.starved.len())).collect();
        if any {
            of.exchange(now, self.processor, &mut self.outbox);
        }
        starved.into_iter().for_each(|queue| self.resume_queue(queue));
        any
    }

    /// Begins the first request of a disk that waits for its store, by the store's tag.
    fn begin_first(&mut self, tag: u32) {
        let (disk, is_mirror) = ((tag & !MIRROR_TAG) as usize, tag & MIRROR_TAG != 0);
        let Some(disk) = self.disks.get_mut(disk) else { return };
        let Some(number) = disk.held_of(is_mirror).pop(&self.requests) else { return };
        self.held -= 1;
        let Some(request) = self.requests.get_mut(number) else { return };
        request.is_charged = true;
        let queue = request.queue;
        if let Some(of) = self.queues.get_mut(queue) {
            of.held -= 1;
        }
        self.resume_queue(queue);
        self.begin(number);
    }

    /// A disk's requests that wait, those of its clients or those of its being copied, do not
    /// wait for their store any more. If the store lets them go later, they are `owed` until
    /// then.
    pub(crate) fn let_through(&mut self, disk_number: usize, is_mirror: bool, is_owed: bool) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let mut held = core::mem::take(disk.held_of(is_mirror));
        let through: Vec<usize> = core::iter::from_fn(|| held.pop(&self.requests)).collect();
        if through.is_empty() {
            return;
        }
        self.held -= through.len();
        if let Some(Place { store, slot }) = disk.place_of(is_mirror) {
            if let Some(of) = self.stores.get_mut(store) {
                if is_owed {
                    self.has_room = false;
                    let bytes = |number: &usize| self.requests.get(*number).map(|of| of.bytes);
                    of.owed.entry(slot).or_default().extend(through.iter().filter_map(bytes));
                } else {
                    let count = u32::try_from(through.len()).unwrap_or(u32::MAX);
                    of.waiting = of.waiting.saturating_sub(count);
                }
            }
        }
        for number in through {
            let queue = self.requests.get(number).map(|request| request.queue);
            if let Some(of) = queue.and_then(|queue| self.queues.get_mut(queue)) {
                of.held -= 1;
            }
            self.begin(number);
        }
    }

    /// Requests that are under way and not queued for their store.
    pub(crate) fn begun(&self) -> usize {
        self.requests.len() - self.held - self.full_queued
    }

    /// Whether so many requests may come from whichever queues, as far as each may have them waiting.
    pub(crate) fn has_room(&self, requests: usize) -> bool {
        let mut stores = self.stores.numbers().filter_map(|store| self.stores.get(store));
        self.begun() + requests <= REQUESTS_MAX && stores.all(|of| of.has_room(requests))
    }

    /// How many requests may be taken from a queue. It is asked of each queue in each turn,
    /// so it looks at no disk, and at no store where [there is room](Self::has_room) in this turn.
    #[inline]
    pub(crate) fn room(&self, number: usize) -> usize {
        let Some(queue) = self.queues.get(number).filter(|of| !of.is_stopped) else { return 0 };
        if self.has_room {
            return queue.held_max.saturating_sub(queue.held) as usize;
        }
        let room = REQUESTS_MAX - self.begun().min(REQUESTS_MAX);
        let Some(Place { store, slot }) = queue.place else { return room };
        match self.stores.get(store) {
            Some(of) if of.is_owed(slot) => 0,
            Some(of) => room.min(of.room()).min(queue.held_max.saturating_sub(queue.held) as usize),
            None => room,
        }
    }

    /// Does not read a queue, nor wait for it, until there is room for what it may bring.
    pub(crate) fn pause_queue(&mut self, number: usize) {
        if self.begun() >= REQUESTS_MAX {
            return;
        }
        let Some(queue) = self.queues.get_mut(number) else { return };
        queue.is_paused = true;
        let store = queue.place.and_then(|place| self.stores.get_mut(place.store));
        if let Some(of) = store.filter(|of| queue.held == 0 && of.waiting >= of.spec.waiting_max) {
            of.starved.push_back(number);
        }
    }

    /// Reads a queue again that was paused.
    pub(crate) fn resume_queue(&mut self, number: usize) {
        let Some(of) = self.queues.get_mut(number).filter(|of| of.is_paused) else { return };
        of.is_paused = false;
        of.empty_polls = 0;
        if core::mem::take(&mut of.is_unwatched) {
            self.to_watch.push(number);
        }
        self.active.add(number);
    }

    /// Reads a disk's queues again that were paused.
    pub(crate) fn resume_queues(&mut self, disk: usize) {
        for number in self.queues.numbers() {
            if self.queues.get(number).is_some_and(|of| of.disk == disk) {
                self.resume_queue(number);
            }
        }
    }

    /// The same of a place's queues.
    pub(crate) fn resume_place(&mut self, place: Place) {
        for number in self.queues.numbers() {
            if self.queues.get(number).is_some_and(|of| of.place == Some(place)) {
                self.resume_queue(number);
            }
        }
    }

    /// So many queues of a store came, or went: what each may have waiting follows from that.
    pub(crate) fn add_queues(&mut self, store: usize, count: i32) {
        let Some(of) = self.stores.get_mut(store) else { return };
        let before = of.each;
        of.add_queues(count);
        let (each, has_changed) = (of.each, of.each != before);
        for number in self.queues.numbers().filter(|_| has_changed) {
            let queue = self.queues.get_mut(number);
            if let Some(queue) = queue.filter(|of| of.place.is_some_and(|of| of.store == store)) {
                queue.held_max = each;
            }
        }
    }

    /// When something is to be done although nothing comes and nothing ends.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let stores = self.stores.numbers().filter_map(|number| self.stores.get(number));
        let own = self.stalls_deadline().into_iter().chain(self.idle_deadline());
        let own = own.chain(self.respites_deadline()).chain(self.full_deadline());
        stores.filter_map(|of| of.next_deadline()).chain(own).min()
    }

    /// Stores hear of what else ended in this turn. Where requests wait that may go for that, the
    /// next turn does it, at once.
    pub(crate) fn tell_ended(&mut self) {
        for number in self.stores.numbers() {
            if let Some(of) = self.stores.get_mut(number).filter(|of| of.waiting == 0) {
                of.tell_ended(self.now);
            }
        }
    }

    /// Looks at what was delivered, where it is time to.
    pub(crate) fn observe(&mut self) {
        for number in self.stores.numbers() {
            let Some(of) = self.stores.get_mut(number) else { continue };
            let store = of.id;
            for event in of.observe(self.now) {
                self.notices.push(StorageNotice::Qos { store, event });
            }
        }
    }
}

/// A request that its store let go was answered; the store hears of it. `is_alone`: as in
/// [`StoreUse::handle_answered`].
#[inline]
pub(crate) fn tell_store(
    of: &mut StoreUse,
    now: Time,
    place: Place,
    request: &Request,
    is_alone: bool,
) {
    let latency_ns = request.moved.ns_since(request.sent);
    let latency_ns = Some(latency_ns).filter(|ns| *ns > 0);
    let (operation, bytes) = (request.operation(), request.bytes);
    let ended = Completed { operation, bytes, requests: 1, latency_ns };
    of.handle_answered(now, place.slot, ended, is_alone);
}

/// The bytes by which a request counts; 0: as one operation.
#[inline]
fn counted_bytes(disk: &Disk, request: &Request) -> u32 {
    let counts = match request.op {
        DiskOp::Read | DiskOp::Write { .. } => true,
        DiskOp::WriteZeroes { may_unmap: true, .. } => {
            !disk.layers.first().is_some_and(|own| own.can_punch)
        }
        DiskOp::WriteZeroes { .. } => true,
        DiskOp::Flush | DiskOp::Discard | DiskOp::Status { .. } => false,
    };
    if counts { u32::try_from(request.range.len()).unwrap_or(u32::MAX) } else { 0 }
}
