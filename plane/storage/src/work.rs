//! Engine of one worker: its disks and queues, its turns, and its notices.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use suimon_image::ByteRange;
use suimon_ports::{
    ArmResult, DiskOutcome, DiskQueue, DiskRequest, ExpectedInput, FileCompletion, FileIo,
    ServedDevice, Serving,
};
use suimon_quantity::{DiskId, StoreId, Time, WorkerId};
use suimon_recording::Sink;
use suimon_storage_qos::Phase;

use crate::disk::{
    DiskIndex, DiskLocation, DiskSpec, DiskState, NotAdded, QueueKind, QueueState, Service,
};
use crate::idle::IdleLook;
use crate::looking::BusyPoll;
use crate::mail::{Outbox, StoreMessage};
use crate::notices::{Notices, StorageNotice};
use crate::request::{EngineRequest, FoundFull, Full, Part};
use crate::resolve::Scratch;
use crate::respite::PollPause;
use crate::rotation::Rotation;
use crate::slab::Slab;
use crate::spare::SpareLook;
use crate::store::WorkerStore;
use crate::tally::DiskCounterCells;
use crate::token::Purpose;
use crate::unscheduled::LostTime;

/// Largest number of requests in flight on a worker; further requests stay in their queues.
pub const REQUESTS_MAX: usize = 4096;

/// Largest number of requests taken from a queue per turn.
const REQUESTS_PER_TURN: usize = 32;

/// Consecutive empty polls of a queue, each after a turn in which the worker did other work, after
/// which the worker waits for the queue's descriptor. A worker without work polls up to its poll
/// budget, and then waits for the descriptors of all queues.
const EMPTY_POLLS_MAX: u32 = 1024;

/// Largest number of polled queues up to which a queue whose poll costs a system call is polled as
/// well.
const LOOKED_AT_MAX: usize = 4;

/// Storage engine of one worker. The caller polls it, and sleeps when [`StorageEngine::arm`] permits.
pub struct StorageEngine {
    pub(crate) io: Box<dyn FileIo>,
    pub(crate) disks: Slab<DiskState>,
    pub(crate) queues: Slab<QueueState>,
    pub(crate) requests: Slab<EngineRequest>,
    /// Queues that are polled.
    pub(crate) active: Rotation,
    /// Record of the disk that is served.
    pub(crate) serving: Option<Arc<Serving>>,
    /// Queues in a pause between polls ([`PollPause`]).
    pub(crate) left_alone: Vec<usize>,
    /// Queues with completions to publish.
    answered: Vec<usize>,
    /// Parts that the I/O has no room for yet.
    pub(crate) outgoing: VecDeque<Part>,
    /// Metadata reads that the I/O has no room for yet: disk, layer, range.
    pub(crate) metadata_to_read: Vec<(usize, usize, ByteRange)>,
    /// Disks with a commit whose next step the I/O has no room for.
    pub(crate) commits_to_run: Vec<usize>,
    /// Disks with freed space that the I/O had no room to zero.
    pub(crate) zeroing_to_begin: Vec<usize>,
    /// Disks on which an operation ended that parked requests may wait for.
    pub(crate) restless: Vec<usize>,
    pub(crate) scratch: Scratch,
    pub(crate) notices: Notices,
    /// Identifier of this engine's worker.
    pub(crate) worker: WorkerId,
    pub(crate) stores: Slab<WorkerStore>,
    /// Sink for the recording of scheduler decisions.
    pub(crate) recording: Option<Arc<dyn Sink>>,
    /// Number of requests that are queued for their store.
    pub(crate) queued: usize,
    /// Number of requests that are queued because their store is full.
    pub(crate) full_queued: usize,
    /// Disks in the full state.
    pub(crate) full_disks: Vec<usize>,
    /// Time of the next check of these disks; `None` until their state changes.
    pub(crate) full_due: Option<Time>,
    /// True if there is room in this turn for the requests of all queues.
    pub(crate) has_room: bool,
    /// Queues whose descriptors must be watched again.
    pub(crate) to_watch: Vec<usize>,
    pub(crate) outbox: Outbox,
    pub(crate) inbox: VecDeque<(WorkerId, StoreMessage)>,
    /// Holders of the budgets of stores that left this worker, to which late messages are forwarded.
    pub(crate) former_homes: VecDeque<(StoreId, WorkerId)>,
    pub(crate) now: Time,
    /// True if the worker did some work in its last turn.
    is_busy: bool,
    /// Time of the last check for stalled disks.
    pub(crate) stalls_looked: Time,
    pub(crate) idle_look: IdleLook,
    pub(crate) spare_look: SpareLook,
    pub(crate) lost_time: LostTime,
    taken: Vec<DiskRequest>,
    /// Requests that were received from a queue in one turn, and their sizes in bytes.
    pub(crate) arrived: Vec<usize>,
    pub(crate) sizes: Vec<u32>,
    done: Vec<FileCompletion>,
    closed_queues: Vec<(usize, Box<dyn DiskQueue>)>,
    /// Requests of closed queues for which the store had no space, by the queue's number.
    pub(crate) found_full: BTreeMap<usize, FoundFull>,
    pub(crate) closed_disks: Vec<(usize, DiskSpec)>,
    pub(crate) suspended_disks: VecDeque<(usize, Option<DiskSpec>)>,
}

/// Records that a queue of this disk is served.
fn note_serving(serving: Option<&Arc<Serving>>, disk: Option<DiskId>) {
    if let (Some(serving), Some(disk)) = (serving, disk) {
        serving.set(ServedDevice::Disk(disk));
    }
}

impl StorageEngine {
    /// Creates an engine without disks that uses `io`.
    #[must_use]
    pub fn new(io: Box<dyn FileIo>) -> Self {
        Self {
            io,
            disks: Slab::default(),
            queues: Slab::default(),
            requests: Slab::default(),
            active: Rotation::default(),
            serving: None,
            left_alone: Vec::new(),
            answered: Vec::new(),
            outgoing: VecDeque::new(),
            metadata_to_read: Vec::new(),
            commits_to_run: Vec::new(),
            zeroing_to_begin: Vec::new(),
            restless: Vec::new(),
            scratch: Scratch::default(),
            notices: Notices::default(),
            worker: WorkerId(0),
            stores: Slab::default(),
            recording: None,
            queued: 0,
            full_queued: 0,
            full_disks: Vec::new(),
            full_due: None,
            has_room: false,
            to_watch: Vec::new(),
            outbox: Outbox::default(),
            inbox: VecDeque::new(),
            former_homes: VecDeque::new(),
            now: Time::ZERO,
            is_busy: true,
            stalls_looked: Time::ZERO,
            idle_look: IdleLook::default(),
            spare_look: SpareLook::default(),
            lost_time: LostTime::default(),
            taken: Vec::with_capacity(REQUESTS_PER_TURN),
            arrived: Vec::with_capacity(REQUESTS_PER_TURN),
            sizes: Vec::with_capacity(REQUESTS_PER_TURN),
            done: Vec::new(),
            closed_queues: Vec::new(),
            found_full: BTreeMap::new(),
            closed_disks: Vec::new(),
            suspended_disks: VecDeque::new(),
        }
    }

    /// Adds a disk with a slot in a store of this worker, or without limits. Returns the disk's
    /// number. A disk without images is suspended: its queues wait for
    /// [`StorageEngine::resume_disk`].
    ///
    /// # Errors
    /// The files cannot be registered with the I/O, the store is not on this worker, or the store
    /// does not have the slot (apply the store's changes first). Nothing was added.
    pub fn add_disk(
        &mut self,
        spec: DiskSpec,
        place: Option<DiskLocation>,
    ) -> Result<usize, NotAdded> {
        let place = match place {
            None => None,
            Some(DiskLocation { store, slot }) => {
                let number = self.store_number(store);
                let of = number.and_then(|number| self.stores.get(number));
                if !of.is_some_and(|of| of.has(slot) && !of.is_leaving) {
                    return Err(NotAdded { error: std::io::ErrorKind::NotFound.into(), spec });
                }
                number.map(|store| DiskIndex { store, slot })
            }
        };
        // A disk without images waits for them.
        let is_waiting = spec.layers.is_empty();
        let layers = if is_waiting { Vec::new() } else { self.take_files(spec)? };
        if let Some(DiskIndex { store, slot }) = place {
            if let Some(of) = self.stores.get_mut(store) {
                of.disks += 1;
                of.expect(slot);
            }
        }
        let service = if is_waiting { Service::Suspended } else { Service::On };
        let number = self.disks.insert(DiskState { service, ..DiskState::new(layers, place) });
        // The disk's former worker may have left freed space.
        self.begin_zeroing(number);
        Ok(number)
    }

    /// Adds a VM's ring to a disk. Returns the queue's number; `None` if there is no such disk, or
    /// if the disk is being closed.
    pub fn add_queue(&mut self, disk: usize, queue: Box<dyn DiskQueue>) -> Option<usize> {
        self.insert_queue(disk, queue, QueueKind::Ring)
    }

    pub(crate) fn insert_queue(
        &mut self,
        disk: usize,
        queue: Box<dyn DiskQueue>,
        kind: QueueKind,
    ) -> Option<usize> {
        let is_mirror = kind == QueueKind::Mirror;
        let owner = self.disks.get_mut(disk).filter(|owner| !owner.is_closing)?;
        owner.queues += 1;
        let (place, is_stopped) = (owner.place_of(is_mirror), owner.is_stopped());
        if let Some(DiskIndex { store, .. }) = owner.index {
            self.add_queues(store, 1);
        }
        let store = place.and_then(|place| self.stores.get(place.store));
        let held_max = store.map_or(u32::MAX, |of| of.each);
        let number = self.queues.insert(QueueState {
            queue,
            disk,
            id: None,
            in_flight: 0,
            has_answers: false,
            is_waiting: false,
            empty_polls: 0,
            looking: BusyPoll::default(),
            respite: PollPause::default(),
            kind,
            left_alone: None,
            queued: 0,
            full_queued: 0,
            held_max,
            index: place,
            is_stopped,
            is_paused: false,
            is_unwatched: false,
            is_closing: false,
            is_moving: false,
            found_full: FoundFull::new(),
        });
        self.active.add(number);
        Some(number)
    }

    /// Sets the disk that a queue is recorded under while it is served.
    pub(crate) fn name_queue(&mut self, queue: usize, id: DiskId) {
        if let Some(of) = self.queues.get_mut(queue) {
            of.id = Some(id);
        }
    }

    /// Closes a queue: no further requests are taken. [`StorageEngine::poll_closed_queue`] returns
    /// the queue when its requests have ended. These requests, and earlier ones of the disk, do not
    /// wait for the disk's maximum. Requests queued because the store is full are left to the
    /// client's next queue if possible, and fail otherwise.
    pub fn close_queue(&mut self, queue: usize) {
        if let Some(of) = self.queues.get_mut(queue) {
            of.is_closing = true;
            if of.queued > 0 {
                let (disk, is_mirror) = (of.disk, of.is_mirror());
                self.bypass_scheduler(disk, is_mirror, true);
            }
        }
        self.release_full(queue);
        self.end_queue(queue);
    }

    /// Returns a closed queue with its number.
    pub fn poll_closed_queue(&mut self) -> Option<(usize, Box<dyn DiskQueue>)> {
        self.closed_queues.pop()
    }

    /// Closes a disk's queues and commits the disk. [`StorageEngine::poll_closed_disk`] returns the
    /// disk when this has ended.
    pub fn close_disk(&mut self, disk: usize) {
        let Some(of) = self.disks.get_mut(disk) else { return };
        of.is_closing = true;
        of.has_failed_commit = false;
        let of_it = |queue: &usize| self.queues.get(*queue).is_some_and(|of| of.disk == disk);
        let queues: Vec<usize> = self.queues.numbers().filter(of_it).collect();
        for queue in queues {
            // One that was requested back before is not handed on.
            if let Some(of) = self.queues.get_mut(queue).filter(|of| !of.is_closing) {
                of.is_moving = true;
            }
            self.close_queue(queue);
        }
        self.end_disk(disk);
    }

    /// Returns a closed disk with its number, which may be reused from now on. The caller must
    /// close its own image, the first one ([`Image::close`](suimon_image::Image::close)).
    pub fn poll_closed_disk(&mut self) -> Option<(usize, DiskSpec)> {
        self.closed_disks.pop()
    }

    /// Returns the next notice.
    pub fn poll_notice(&mut self) -> Option<StorageNotice> {
        self.notices.pop()
    }

    /// Returns the counters of a disk.
    #[must_use]
    pub fn tally(&self, disk: usize) -> Option<DiskCounterCells> {
        self.disks.get(disk).map(|disk| disk.tally.tally())
    }

    /// Returns the descriptor that signals requests of a queue.
    #[must_use]
    pub fn queue_fd(&self, queue: usize) -> Option<BorrowedFd<'_>> {
        self.queues.get(queue).map(|of| of.queue.wake_fd())
    }

    /// Returns the descriptor that signals completions of the I/O.
    #[must_use]
    pub fn io_fd(&self) -> BorrowedFd<'_> {
        self.io.wake_fd()
    }

    /// Returns which events polling could find shortly: completions of files and devices, or
    /// requests of polled queues.
    #[must_use]
    pub fn expects(&self) -> ExpectedInput {
        if self.io.in_flight() > 0 {
            ExpectedInput::Completions
        } else if self.active.is_empty() {
            ExpectedInput::None
        } else {
            ExpectedInput::Requests
        }
    }

    /// Returns true if queues wait for their descriptors, which a busy worker must check.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.queues.len() > self.active.len() + self.left_alone.len()
    }

    /// Handles a readable descriptor of a queue. Returns false if no requests may be taken from the
    /// queue now; the caller must not watch the descriptor until [`StorageEngine::poll_watch`]
    /// returns the queue.
    pub fn wake_queue(&mut self, queue: usize) -> bool {
        let Some(of) = self.queues.get_mut(queue) else { return true };
        of.is_unwatched = of.is_paused;
        if !of.is_waiting {
            return !of.is_paused;
        }
        of.is_waiting = false;
        of.empty_polls = 0;
        of.queue.disarm();
        self.active.add(queue);
        true
    }

    /// Returns a queue whose descriptor must be watched again.
    pub fn poll_watch(&mut self) -> Option<usize> {
        self.to_watch.pop()
    }

    /// Records whether the worker did some work in its last turn, including frames. Otherwise,
    /// queues are polled until [`StorageEngine::arm`]. True initially.
    pub fn note_busy(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// Performs one turn without blocking. Returns true if there was any work.
    pub fn poll(&mut self, now: Time) -> bool {
        self.now = now;
        self.begin_lost_time();
        let mut has_worked = self.read_mail();
        has_worked |= self.take_in();
        has_worked |= self.dispatch_ready();
        self.calm();
        // Completions are published before queues are read.
        self.show_answers();
        self.end_respites();
        has_worked |= self.look_at_queues();
        self.end_lost_time();
        has_worked |= self.dispatch_ready();
        self.calm();
        self.observe();
        self.look_for_stalls();
        self.commit_idle();
        self.release_spares();
        self.repeat_full();
        self.end_stores();
        self.send_parts();
        self.read_waiting_metadata();
        self.run_waiting_commits();
        self.begin_waiting_zeroing();
        self.report_completions();
        self.show_answers();
        if let Err(error) = self.io.submit_queued() {
            self.notices.push_io(now, &error);
        }
        has_worked
    }

    /// Returns true if I/O of this turn has completed already, because it needed no waiting. The
    /// caller then calls [`StorageEngine::answer_at_once`].
    #[must_use]
    pub fn has_ended_at_once(&self) -> bool {
        self.io.has_immediate_completions()
    }

    /// Completes requests whose I/O needed no waiting in the turn of their submission, instead of
    /// after the worker's turn. `now` is later than the turn's time by the duration of that I/O.
    pub fn answer_at_once(&mut self, now: Time) {
        self.now = now;
        self.take_in();
        self.calm();
        self.report_completions();
        self.show_answers();
    }

    /// Takes requests from the queues that are next. Returns true if there may be more: false only
    /// if each polled queue was read and was empty.
    fn look_at_queues(&mut self) -> bool {
        let mut any = false;
        let looks = self.active.per_round();
        self.has_room = self.has_room(looks * REQUESTS_PER_TURN);
        for _ in 0..looks {
            let Some(queue) = self.active.next() else { break };
            let has_brought = self.serve(queue);
            self.active.note(has_brought);
            any |= has_brought;
            let may_rest = if has_brought { self.has_respite(queue) } else { self.may_rest(queue) };
            if may_rest {
                self.active.rest(queue);
            }
        }
        any || self.active.may_have_more()
    }

    /// Requests wake-ups. Returns true if the worker may sleep until a queue's descriptor or
    /// [`StorageEngine::io_fd`] is readable, a message arrives, or [`StorageEngine::next_deadline`] has
    /// passed.
    pub fn arm(&mut self) -> bool {
        let queues = &mut self.queues;
        self.active.retain(|number| {
            let Some(of) = queues.get_mut(number) else { return false };
            of.is_waiting = of.is_closing || of.queue.arm() == ArmResult::Armed;
            of.looking.handle_end();
            !of.is_waiting
        });
        let is_quiet = self.active.is_empty()
            && self.outgoing.is_empty()
            && self.outbox.is_empty()
            && self.inbox.is_empty();
        is_quiet && self.io.arm() == ArmResult::Armed
    }

    /// Processes completions of the I/O. Returns true if there were any.
    pub(crate) fn take_in(&mut self) -> bool {
        let mut done = std::mem::take(&mut self.done);
        self.io.poll_done(&mut done);
        let any = !done.is_empty();
        for FileCompletion { token, result: outcome } in done.drain(..) {
            match Purpose::of(token) {
                Purpose::Part(request, page) => {
                    self.handle_part(request, page, outcome.map(|_| ()));
                }
                Purpose::Metadata(disk) => self.handle_metadata(disk, outcome),
                Purpose::Commit(disk, step) => {
                    self.handle_step(disk, step, outcome.map(|_| ()));
                }
                Purpose::Zeroing(disk) => self.handle_zeroing(disk, outcome.map(|_| ())),
            }
        }
        self.done = done;
        any
    }

    /// Takes requests from a queue. Returns true if there were any.
    fn serve(&mut self, number: usize) -> bool {
        let room = self.remaining(number);
        if room == 0 {
            self.pause_queue(number);
            return false;
        }
        let Some(of) = self.queues.get_mut(number).filter(|of| !of.is_closing) else {
            return false;
        };
        let (disk, is_mirror) = (of.disk, of.is_mirror());
        let mut taken = std::mem::take(&mut self.taken);
        let room = room.min(REQUESTS_PER_TURN);
        note_serving(self.serving.as_ref(), of.id);
        self.spare_look.handle_served(of.kind, self.now);
        let received = of.queue.receive(room, &mut taken);
        let has_found_full = !of.found_full.is_empty();
        of.handle_looked(self.now, (taken.len(), taken.len() < room), self.is_busy);
        // The queue may have completed some requests itself.
        self.mark_answered(number);
        let count = taken.len();
        for DiskRequest { tag, op, range } in taken.drain(..) {
            let request = self.requests.insert(EngineRequest {
                disk,
                queue: number,
                is_mirror,
                tag,
                op,
                range,
                taken: self.now,
                sent: self.now,
                moved: self.now,
                charged: None,
                phase: Phase::Data,
                bytes: 0,
                behind: 0,
                parts: 0,
                outcome: DiskOutcome::Done,
                full: Full::No,
            });
            if has_found_full {
                self.note_found_before(request);
            }
            if count == 1 {
                self.submit(request);
            } else {
                self.arrived.push(request);
            }
        }
        self.taken = taken;
        self.admit_arrived();
        if let Err(fault) = received {
            self.notices.push(StorageNotice::QueueFault { queue: number, fault });
            self.close_queue(number);
        }
        count > 0
    }

    /// Returns true if a queue that brought requests is not polled for a short time.
    fn has_respite(&mut self, number: usize) -> bool {
        let of = self.queues.get(number);
        let is_left = of.is_some_and(|of| of.left_alone.is_some() && !of.is_closing);
        if is_left {
            self.left_alone.push(number);
        }
        is_left
    }

    /// Polls queues again whose pause has ended.
    fn end_respites(&mut self) {
        let Self { left_alone, queues, active, now, .. } = self;
        left_alone.retain(|&number| {
            let Some(of) = queues.get_mut(number) else { return false };
            let is_over = of.left_alone.is_none_or(|until| until <= *now);
            if is_over {
                of.left_alone = None;
                active.add(number);
            }
            !is_over
        });
    }

    /// Returns the earliest end of a pause between two polls of a queue ([`Respite`]); `None` if no
    /// queue pauses.
    pub(crate) fn respites_deadline(&self) -> Option<Time> {
        self.left_alone.iter().filter_map(|&number| self.queues.get(number)?.left_alone).min()
    }

    /// Returns true if an empty queue is not polled any more; its descriptor signals the next
    /// request.
    fn may_rest(&mut self, number: usize) -> bool {
        let begun = self.handle_begun();
        let Some(of) = self.queues.get_mut(number) else { return true };
        let is_due = if of.queue.is_polled_by_fd() {
            let may_look = of.in_flight == 0 && self.active.len() <= LOOKED_AT_MAX;
            !(may_look && of.looking.is_worth(self.now))
        } else {
            of.empty_polls >= EMPTY_POLLS_MAX
        };
        // Without room the queue was not read.
        let has_room = begun < REQUESTS_MAX;
        if of.is_paused {
            return true;
        }
        of.is_waiting = of.is_closing || (is_due && has_room && of.queue.arm() == ArmResult::Armed);
        of.is_waiting
    }

    pub(crate) fn mark_answered(&mut self, number: usize) {
        let Some(of) = self.queues.get_mut(number).filter(|of| !of.has_answers) else { return };
        of.has_answers = true;
        self.answered.push(number);
    }

    fn show_answers(&mut self) {
        while let Some(number) = self.answered.pop() {
            let Some(of) = self.queues.get_mut(number) else { continue };
            of.has_answers = false;
            note_serving(self.serving.as_ref(), of.id);
            if let Err(fault) = of.queue.flush() {
                if !of.is_closing {
                    self.notices.push(StorageNotice::QueueFault { queue: number, fault });
                    self.close_queue(number);
                    continue;
                }
            }
            // The queue may have freed room for requests that it would otherwise not signal.
            if of.is_waiting && !of.is_closing && of.queue.arm() == ArmResult::Pending {
                of.is_waiting = false;
                of.empty_polls = 0;
                self.active.add(number);
            }
            self.end_queue(number);
        }
    }

    /// Returns a closing queue to the caller when none of its requests is in flight and all
    /// completions are published.
    fn end_queue(&mut self, number: usize) {
        let is_over = self
            .queues
            .get(number)
            .is_some_and(|of| of.is_closing && of.in_flight == 0 && !of.has_answers);
        if !is_over {
            return;
        }
        self.active.retain(|active| active != number);
        self.left_alone.retain(|left| *left != number);
        let Some(of) = self.queues.remove(number) else { return };
        if of.is_moving && !of.found_full.is_empty() {
            self.found_full.insert(number, of.found_full);
        }
        self.closed_queues.push((number, of.queue));
        if let Some(disk) = self.disks.get_mut(of.disk) {
            disk.queues -= 1;
            if let Some(DiskIndex { store, .. }) = disk.index {
                self.add_queues(store, -1);
            }
        }
        self.end_disk(of.disk);
    }
}
