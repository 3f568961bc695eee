//! One processor's disks: what it is given, when it works, and what it tells.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use suimon_image::ByteRange;
use suimon_ports::{
    DiskOutcome, DiskQueue, DiskRequest, Expects, FileDone, FileIo, ServedDevice, Serving, Wakeup,
};
use suimon_quantity::{DiskId, ProcessorId, Time};
use suimon_recording::Sink;
use suimon_storage_qos::Phase;

use crate::disk::{Disk, DiskPlace, DiskSpec, NotAdded, Place, Queue, QueueKind, Service};
use crate::idle::IdleLook;
use crate::looking::Looking;
use crate::mail::{Outbox, StorageMail};
use crate::notices::{Notices, StorageNotice};
use crate::request::{Full, Part, Request};
use crate::resolve::Scratch;
use crate::respite::Respite;
use crate::rotation::Rotation;
use crate::slab::Slab;
use crate::store::StoreUse;
use crate::tally::DiskTally;
use crate::token::Purpose;
use crate::unscheduled::LostTime;

/// Requests that a processor has under way at most; what comes more stays in its queue.
pub const REQUESTS_MAX: usize = 4096;

/// Requests taken from a queue before the next queue has its turn.
const REQUESTS_PER_TURN: usize = 32;

/// Empty polls in a row, each behind a round that moved something for others, after which a
/// queue is waited for. A processor without work polls for as long as its patience lasts, and
/// then lets all of its queues wait.
const EMPTY_POLLS_MAX: u32 = 1024;

/// Queues that are polled at most while one is looked at that costs a system call for it.
const LOOKED_AT_MAX: usize = 4;

/// One processor's disks. Whoever drives it polls, and sleeps when
/// [`StorageWork::arm`] allows it.
pub struct StorageWork {
    pub(crate) io: Box<dyn FileIo>,
    pub(crate) disks: Slab<Disk>,
    pub(crate) queues: Slab<Queue>,
    pub(crate) requests: Slab<Request>,
    /// Queues that are polled.
    pub(crate) active: Rotation,
    /// Record of the disk that is served.
    pub(crate) serving: Option<Arc<Serving>>,
    /// Queues that are left alone for a moment, and not looked at.
    pub(crate) left_alone: Vec<usize>,
    /// Queues that have answers to make visible.
    answered: Vec<usize>,
    /// Parts that have no place in the I/O yet.
    pub(crate) outgoing: VecDeque<Part>,
    /// Metadata for whose reading the I/O has no room yet: disk, layer, range.
    pub(crate) metadata_to_read: Vec<(usize, usize, ByteRange)>,
    /// Disks whose commit has no room for its next step.
    pub(crate) commits_to_run: Vec<usize>,
    /// Disks on which something has ended that others may wait for.
    pub(crate) restless: Vec<usize>,
    pub(crate) scratch: Scratch,
    pub(crate) notices: Notices,
    /// Which processor this is.
    pub(crate) processor: ProcessorId,
    pub(crate) stores: Slab<StoreUse>,
    /// Where what their schedulers decide is recorded.
    pub(crate) recording: Option<Arc<dyn Sink>>,
    /// Requests that wait for their store.
    pub(crate) held: usize,
    /// Requests that are queued because their store is full.
    pub(crate) full_queued: usize,
    /// Disks whose store is or was full, until that has ended.
    pub(crate) full_disks: Vec<usize>,
    /// Time at which these disks are to be looked at; `None`: not until something changes.
    pub(crate) full_due: Option<Time>,
    /// Whether there is room in this turn for whatever queues bring.
    pub(crate) has_room: bool,
    /// Queues whose descriptors are to be watched again.
    pub(crate) to_watch: Vec<usize>,
    pub(crate) outbox: Outbox,
    pub(crate) inbox: VecDeque<(ProcessorId, StorageMail)>,
    pub(crate) now: Time,
    /// Whether the processor's last round moved something.
    is_busy: bool,
    /// When it was looked last which disks stall.
    pub(crate) stalls_looked: Time,
    pub(crate) idle_look: IdleLook,
    pub(crate) lost_time: LostTime,
    taken: Vec<DiskRequest>,
    /// Numbers of the requests that a queue brought at once, and their sizes.
    pub(crate) arrived: Vec<usize>,
    pub(crate) sizes: Vec<u32>,
    done: Vec<FileDone>,
    closed_queues: Vec<(usize, Box<dyn DiskQueue>)>,
    pub(crate) closed_disks: Vec<(usize, DiskSpec)>,
    pub(crate) suspended_disks: VecDeque<(usize, Option<DiskSpec>)>,
}

/// Records that a queue of this disk is served.
fn note_serving(serving: Option<&Arc<Serving>>, disk: Option<DiskId>) {
    if let (Some(serving), Some(disk)) = (serving, disk) {
        serving.set(ServedDevice::Disk(disk));
    }
}

impl StorageWork {
    /// No disks yet, on this I/O.
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
            restless: Vec::new(),
            scratch: Scratch::default(),
            notices: Notices::default(),
            processor: ProcessorId(0),
            stores: Slab::default(),
            recording: None,
            held: 0,
            full_queued: 0,
            full_disks: Vec::new(),
            full_due: None,
            has_room: false,
            to_watch: Vec::new(),
            outbox: Outbox::default(),
            inbox: VecDeque::new(),
            now: Time::ZERO,
            is_busy: true,
            stalls_looked: Time::ZERO,
            idle_look: IdleLook::default(),
            lost_time: LostTime::default(),
            taken: Vec::with_capacity(REQUESTS_PER_TURN),
            arrived: Vec::with_capacity(REQUESTS_PER_TURN),
            sizes: Vec::with_capacity(REQUESTS_PER_TURN),
            done: Vec::new(),
            closed_queues: Vec::new(),
            closed_disks: Vec::new(),
            suspended_disks: VecDeque::new(),
        }
    }

    /// Takes a disk, which has a place in a store of this processor, or no limits. Returns
    /// its number. One without images is suspended: its queues wait for
    /// [`StorageWork::resume_disk`].
    ///
    /// # Errors
    /// Its files cannot be used here, the store is not here, or does not know the disk
    /// (carry out the store's changes first); nothing was taken.
    pub fn add_disk(
        &mut self,
        spec: DiskSpec,
        place: Option<DiskPlace>,
    ) -> Result<usize, NotAdded> {
        let place = match place {
            None => None,
            Some(DiskPlace { store, slot }) => {
                let number = self.store_number(store);
                let of = number.and_then(|number| self.stores.get(number));
                if !of.is_some_and(|of| of.has(slot) && !of.is_leaving) {
                    return Err(NotAdded { error: std::io::ErrorKind::NotFound.into(), spec });
                }
                number.map(|store| Place { store, slot })
            }
        };
        // One that comes without images waits for them.
        let is_waiting = spec.layers.is_empty();
        let layers = if is_waiting { Vec::new() } else { self.take_files(spec)? };
        if let Some(Place { store, slot }) = place {
            if let Some(of) = self.stores.get_mut(store) {
                of.disks += 1;
                of.expect(slot);
            }
        }
        let service = if is_waiting { Service::Suspended } else { Service::On };
        Ok(self.disks.insert(Disk { service, ..Disk::new(layers, place) }))
    }

    /// Gives a disk a VM's ring. Returns the queue's number; `None` if there is no such disk,
    /// or it is being given back.
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
        if let Some(Place { store, .. }) = owner.place {
            self.add_queues(store, 1);
        }
        let store = place.and_then(|place| self.stores.get(place.store));
        let held_max = store.map_or(u32::MAX, |of| of.each);
        let number = self.queues.insert(Queue {
            queue,
            disk,
            id: None,
            under_way: 0,
            has_answers: false,
            is_waiting: false,
            empty_polls: 0,
            looking: Looking::default(),
            respite: Respite::default(),
            kind,
            left_alone: None,
            held: 0,
            held_max,
            place,
            is_stopped,
            is_paused: false,
            is_unwatched: false,
            is_closing: false,
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

    /// Takes nothing more from a queue; [`StorageWork::poll_closed_queue`] has it when its
    /// requests have ended. They do not wait for the disk's maximum, and what of the disk
    /// came before them does not either. Those that are queued because the store is full are
    /// left to the client's next queue if they can be, and fail otherwise.
    pub fn close_queue(&mut self, queue: usize) {
        if let Some(of) = self.queues.get_mut(queue) {
            of.is_closing = true;
            if of.held > 0 {
                let (disk, is_mirror) = (of.disk, of.is_mirror());
                self.let_through(disk, is_mirror, true);
            }
        }
        self.release_full(queue);
        self.end_queue(queue);
    }

    /// A queue that is given back, by its number.
    pub fn poll_closed_queue(&mut self) -> Option<(usize, Box<dyn DiskQueue>)> {
        self.closed_queues.pop()
    }

    /// Closes a disk's queues and makes durable what is not;
    /// [`StorageWork::poll_closed_disk`] has it when that has ended.
    pub fn close_disk(&mut self, disk: usize) {
        let Some(of) = self.disks.get_mut(disk) else { return };
        of.is_closing = true;
        of.has_failed_commit = false;
        let of_it = |queue: &usize| self.queues.get(*queue).is_some_and(|of| of.disk == disk);
        let queues: Vec<usize> = self.queues.numbers().filter(of_it).collect();
        for queue in queues {
            self.close_queue(queue);
        }
        self.end_disk(disk);
    }

    /// A disk that is given back, by its number, which may be given to another one now. Its
    /// own image, the first, is to be closed ([`Image::close`](suimon_image::Image::close)).
    pub fn poll_closed_disk(&mut self) -> Option<(usize, DiskSpec)> {
        self.closed_disks.pop()
    }

    /// Something to tell.
    pub fn poll_notice(&mut self) -> Option<StorageNotice> {
        self.notices.pop()
    }

    /// What a disk has done.
    #[must_use]
    pub fn tally(&self, disk: usize) -> Option<DiskTally> {
        self.disks.get(disk).map(|disk| disk.tally.tally())
    }

    /// The descriptor that a queue waits on.
    #[must_use]
    pub fn queue_fd(&self, queue: usize) -> Option<BorrowedFd<'_>> {
        self.queues.get(queue).map(|of| of.queue.wake_fd())
    }

    /// The descriptor that the I/O waits on.
    #[must_use]
    pub fn io_fd(&self) -> BorrowedFd<'_> {
        self.io.wake_fd()
    }

    /// What may come in a moment that polling finds at once: answers of files and devices, or
    /// requests of queues that are polled.
    #[must_use]
    pub fn expects(&self) -> Expects {
        if self.io.under_way() > 0 {
            Expects::Answers
        } else if self.active.is_empty() {
            Expects::Nothing
        } else {
            Expects::More
        }
    }

    /// Whether queues wait for their descriptors, which a busy processor has to look at.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.queues.len() > self.active.len() + self.left_alone.len()
    }

    /// A queue's descriptor is readable. `false`: nothing may be taken from the queue now;
    /// its descriptor is not to be watched until [`StorageWork::poll_watch`] names the
    /// queue.
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

    /// A queue whose descriptor is to be watched again.
    pub fn poll_watch(&mut self) -> Option<usize> {
        self.to_watch.pop()
    }

    /// Whether the processor's last round moved something, frames included: while it does not,
    /// queues are polled until [`StorageWork::arm`]. True until it is told.
    pub fn note_busy(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// Does what can be done without waiting; whether that was anything.
    pub fn poll(&mut self, now: Time) -> bool {
        self.now = now;
        self.begin_lost_time();
        let mut has_worked = self.read_mail();
        has_worked |= self.take_in();
        has_worked |= self.let_go();
        self.calm();
        // Clients see their answers before others are asked for more.
        self.show_answers();
        self.end_respites();
        has_worked |= self.look_at_queues();
        self.end_lost_time();
        has_worked |= self.let_go();
        self.calm();
        self.observe();
        self.look_for_stalls();
        self.commit_idle();
        self.repeat_full();
        self.end_stores();
        self.send_parts();
        self.read_waiting_metadata();
        self.run_waiting_commits();
        self.tell_ended();
        self.show_answers();
        if let Err(error) = self.io.kick() {
            self.notices.push_io(now, &error);
        }
        has_worked
    }

    /// Whether something that this turn began has ended by now, because it needed no waiting:
    /// [`StorageWork::answer_at_once`] is to be called.
    #[must_use]
    pub fn has_ended_at_once(&self) -> bool {
        self.io.has_ended_at_once()
    }

    /// Answers what needed no waiting in the turn in which it came, instead of after a round of
    /// the processor's. `now` is later than the turn's time, by what carrying it out took.
    pub fn answer_at_once(&mut self, now: Time) {
        self.now = now;
        self.take_in();
        self.calm();
        self.tell_ended();
        self.show_answers();
    }

    /// Takes requests from the queues whose turn it is. Whether there may be more:
    /// `false` only when each that is polled was looked at and had none.
    fn look_at_queues(&mut self) -> bool {
        let mut any = false;
        let looks = self.active.per_turn();
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

    /// Asks for wake-ups. `true`: everything waits, and the processor may sleep until a
    /// queue's descriptor or [`StorageWork::io_fd`] is readable, mail comes, or
    /// [`StorageWork::next_deadline`] has passed.
    pub fn arm(&mut self) -> bool {
        let queues = &mut self.queues;
        self.active.retain(|number| {
            let Some(of) = queues.get_mut(number) else { return false };
            of.is_waiting = of.is_closing || of.queue.arm() == Wakeup::Armed;
            of.looking.handle_end();
            !of.is_waiting
        });
        let is_quiet = self.active.is_empty()
            && self.outgoing.is_empty()
            && self.outbox.is_empty()
            && self.inbox.is_empty();
        is_quiet && self.io.arm() == Wakeup::Armed
    }

    /// What ended since the last time.
    pub(crate) fn take_in(&mut self) -> bool {
        let mut done = std::mem::take(&mut self.done);
        self.io.poll_done(&mut done);
        let any = !done.is_empty();
        for FileDone { token, outcome } in done.drain(..) {
            match Purpose::of(token) {
                Purpose::Part(request, page) => {
                    self.handle_part(request, page, outcome.map(|_| ()));
                }
                Purpose::Metadata(disk) => self.handle_metadata(disk, outcome),
                Purpose::Commit(disk) => self.handle_step(disk, outcome.map(|_| ())),
            }
        }
        self.done = done;
        any
    }

    /// Takes requests from a queue; whether there were any.
    fn serve(&mut self, number: usize) -> bool {
        let room = self.room(number);
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
        let received = of.queue.receive(room, &mut taken);
        of.handle_looked(self.now, (taken.len(), taken.len() < room), self.is_busy);
        // The queue answers some requests itself.
        self.mark_answered(number);
        let count = taken.len();
        for DiskRequest { tag, op, range } in taken.drain(..) {
            let request = self.requests.insert(Request {
                disk,
                queue: number,
                is_mirror,
                tag,
                op,
                range,
                taken: self.now,
                sent: self.now,
                moved: self.now,
                is_charged: false,
                phase: Phase::Data,
                bytes: 0,
                behind: 0,
                parts: 0,
                outcome: DiskOutcome::Done,
                full: Full::No,
            });
            if count == 1 {
                self.admit(request);
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

    /// Whether a queue that brought something is left alone for a moment.
    fn has_respite(&mut self, number: usize) -> bool {
        let of = self.queues.get(number);
        let is_left = of.is_some_and(|of| of.left_alone.is_some() && !of.is_closing);
        if is_left {
            self.left_alone.push(number);
        }
        is_left
    }

    /// Queues that were left alone long enough are looked at again.
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

    /// When a queue that is left alone is looked at again.
    pub(crate) fn respites_deadline(&self) -> Option<Time> {
        self.left_alone.iter().filter_map(|&number| self.queues.get(number)?.left_alone).min()
    }

    /// Whether a queue that brought nothing is polled no more; its descriptor tells when
    /// it has something.
    fn may_rest(&mut self, number: usize) -> bool {
        let begun = self.begun();
        let Some(of) = self.queues.get_mut(number) else { return true };
        let is_due = if of.queue.is_polled_by_fd() {
            let may_look = of.under_way == 0 && self.active.len() <= LOOKED_AT_MAX;
            !(may_look && of.looking.is_worth(self.now))
        } else {
            of.empty_polls >= EMPTY_POLLS_MAX
        };
        // While there is no room nothing was asked of it.
        let has_room = begun < REQUESTS_MAX;
        if of.is_paused {
            return true;
        }
        of.is_waiting = of.is_closing || (is_due && has_room && of.queue.arm() == Wakeup::Armed);
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
            // It may take again what it had no room for, and would wait for in vain.
            if of.is_waiting && !of.is_closing && of.queue.arm() == Wakeup::Pending {
                of.is_waiting = false;
                of.empty_polls = 0;
                self.active.add(number);
            }
            self.end_queue(number);
        }
    }

    /// Gives a queue back if it is closing and nothing of it is under way or unseen.
    fn end_queue(&mut self, number: usize) {
        let is_over = self
            .queues
            .get(number)
            .is_some_and(|of| of.is_closing && of.under_way == 0 && !of.has_answers);
        if !is_over {
            return;
        }
        self.active.retain(|active| active != number);
        self.left_alone.retain(|left| *left != number);
        let Some(of) = self.queues.remove(number) else { return };
        self.closed_queues.push((number, of.queue));
        if let Some(disk) = self.disks.get_mut(of.disk) {
            disk.queues -= 1;
            if let Some(Place { store, .. }) = disk.place {
                self.add_queues(store, -1);
            }
        }
        self.end_disk(of.disk);
    }
}
