//! A disk, as its processor sees it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use suimon_image::{ByteRange, Image, Step};
use suimon_ports::{DiskFile, DiskQueue, FileSlot};
use suimon_quantity::{DiskId, StoreId, Time};
use suimon_storage_qos::DiskSlot;

use crate::dirty::DirtyMap;
use crate::full::FullStore;
use crate::held::Held;
use crate::idle::Calm;
use crate::looking::Looking;
use crate::notices::FaultPace;
use crate::respite::Respite;
use crate::tally::DiskCounts;

/// One image of a disk, with its file.
pub struct DiskLayer {
    /// Says where bytes are.
    pub image: Box<dyn Image>,
    /// Where they are.
    pub file: Arc<dyn DiskFile>,
}

/// What a disk consists of.
pub struct DiskSpec {
    /// Its own image, then the parent's, and so on; parents are only read. Empty only of a disk
    /// that is suspended.
    pub layers: Vec<DiskLayer>,
}

/// A disk that was not taken.
pub struct NotAdded {
    /// Why.
    pub error: std::io::Error,
    /// The disk.
    pub spec: DiskSpec,
}

impl std::fmt::Debug for NotAdded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

/// Where a disk is in Storage QoS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskPlace {
    /// The store that it is on.
    pub store: StoreId,
    /// Its place in the store's scheduler.
    pub slot: DiskSlot,
}

/// The same, by the store's number on the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) store: usize,
    pub(crate) slot: DiskSlot,
}

/// What is asked of a disk for its being copied: in Storage QoS it is nobody's of the disk's
/// clients.
#[derive(Default)]
pub(crate) struct MirrorUse {
    /// Its place in Storage QoS.
    pub(crate) place: Option<Place>,
    /// Requests that wait for their store, in the order in which they came.
    pub(crate) held: Held,
    /// What changes is marked here, if it is copied from here.
    pub(crate) dirty: Option<Arc<DirtyMap>>,
}

/// Whether a disk is in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    On,
    /// Its files are given back when nothing of it is under way and all is durable.
    Suspending,
    /// It has no files, and its queues are not read.
    Suspended,
}

/// One image with its file in the processor's I/O.
pub(crate) struct Layer {
    pub(crate) image: Box<dyn Image>,
    /// What it was opened on; given back with the image.
    pub(crate) source: Arc<dyn DiskFile>,
    pub(crate) file: FileSlot,
    pub(crate) can_punch: bool,
}

/// A disk that lies in its file in one piece. Its image need not be asked where it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnePiece {
    pub(crate) file: FileSlot,
    start: u64,
    size: u64,
    /// Bits of an offset or a length that is not of whole sectors.
    within_sector: u64,
}

impl OnePiece {
    fn of(layers: &[Layer]) -> Option<Self> {
        let own = layers.first()?;
        let start = own.image.linear_offset()?;
        let shape = own.image.shape();
        let sector = u64::from(shape.logical_sector);
        let within_sector = sector.checked_sub(1).filter(|_| sector.is_power_of_two())?;
        Some(Self { file: own.file, start, size: shape.size, within_sector })
    }

    /// Where a range is in the file. `None` if it is no range of the disk: the image says
    /// what is wrong with it.
    #[inline]
    pub(crate) fn locate(&self, range: ByteRange) -> Option<u64> {
        let is_whole = (range.offset() | range.len()) & self.within_sector == 0;
        let is_sound = is_whole && !range.is_empty() && range.is_within(self.size);
        is_sound.then(|| self.start.saturating_add(range.offset()))
    }
}

/// Whose requests a queue brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// A VM's ring.
    Ring,
    /// A client's connection.
    Client,
    /// The connection by which a VM's QEMU has the disk, which stops the VM if the store is full.
    VmClient,
    /// The disk is copied by it.
    Mirror,
}

/// A queue of a disk.
pub(crate) struct Queue {
    pub(crate) queue: Box<dyn DiskQueue>,
    /// The disk's number.
    pub(crate) disk: usize,
    /// Identifier of the disk in the control plane, if it is known here.
    pub(crate) id: Option<DiskId>,
    /// Requests of it that are not answered.
    pub(crate) under_way: usize,
    /// Whether answers were given that were not made visible.
    pub(crate) has_answers: bool,
    /// Whether its descriptor is waited for instead of it being polled.
    pub(crate) is_waiting: bool,
    /// Polls in a row that brought nothing, while the processor did something for others.
    pub(crate) empty_polls: u32,
    /// Whether it is worth polling it for a moment before it is waited for.
    pub(crate) looking: Looking,
    /// Whether its client is the better off for its being left alone for a moment.
    pub(crate) respite: Respite,
    /// Who has it.
    pub(crate) kind: QueueKind,
    /// It is not looked at until then.
    pub(crate) left_alone: Option<Time>,
    /// Requests of it that wait for their store.
    pub(crate) held: u32,
    /// How many may.
    pub(crate) held_max: u32,
    /// Where its requests are in Storage QoS.
    pub(crate) place: Option<Place>,
    /// The disk is not in service.
    pub(crate) is_stopped: bool,
    /// It is not read for now, and its descriptor is not waited for.
    pub(crate) is_paused: bool,
    /// Its descriptor is not watched.
    pub(crate) is_unwatched: bool,
    /// It is to be given back, or is broken: nothing more is taken from it.
    pub(crate) is_closing: bool,
}

impl Queue {
    /// Whether the disk is copied by it.
    #[inline]
    pub(crate) fn is_mirror(&self) -> bool {
        self.kind == QueueKind::Mirror
    }

    /// A request was answered. Whether the queue, which is waited for, is polled from now on: its
    /// client has an answer, soon asks for more, and would have to wake the processor for that. A
    /// queue that costs a system call to look at is looked at when all it asked is answered.
    #[inline]
    pub(crate) fn is_polled_behind_answer(&mut self) -> bool {
        let is_polled = self.is_waiting
            && !self.is_closing
            && (self.under_way == 0 || !self.queue.is_polled_by_fd());
        if is_polled {
            self.is_waiting = false;
            self.empty_polls = 0;
            self.queue.park();
        }
        is_polled
    }

    /// It was looked at, and brought so many requests, which is all that was there or not.
    /// `is_busy`: others had something.
    pub(crate) fn handle_looked(
        &mut self,
        now: Time,
        (requests, is_all): (usize, bool),
        is_busy: bool,
    ) {
        let is_all_answered = self.under_way == 0;
        self.under_way += requests;
        if requests == 0 {
            self.empty_polls = self.empty_polls.saturating_add(u32::from(is_busy));
            self.respite.handle_nothing();
            return;
        }
        self.empty_polls = 0;
        self.looking.handle_found();
        if self.queue.is_polled_by_fd() && is_all_answered {
            let has_answers = || self.queue.has_untaken_answers();
            self.left_alone = self.respite.handle_found(now, requests, is_all, has_answers);
        }
    }
}

/// Whether somebody has the disk to himself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// Nobody wants to.
    No,
    /// This request waits until the others have ended.
    Waiting(usize),
    /// This request is being carried out.
    Request(usize),
}

/// What must happen before anything else of a disk is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// This range of this layer's file is read, for its image.
    Metadata(usize, ByteRange),
    /// A commit has to be begun, and to end.
    Commit,
    /// The commit that is under way has to end.
    CommitUnderWay,
}

/// A commit that is under way.
pub(crate) struct RunningCommit {
    /// Steps that were not begun; without any at the start, the file is flushed.
    pub(crate) steps: VecDeque<Step>,
    /// Whether the image was asked for it.
    pub(crate) is_of_image: bool,
    /// Requests that are answered when it is durable.
    pub(crate) waiters: Vec<usize>,
    /// Whether it repeats one that found no space.
    pub(crate) is_repeated: bool,
    /// Where in the file the step is that is under way.
    pub(crate) offset: Option<u64>,
}

/// A disk.
pub(crate) struct Disk {
    pub(crate) layers: Vec<Layer>,
    /// Where all of it is, if that is in one piece.
    pub(crate) one_piece: Option<OnePiece>,
    pub(crate) place: Option<Place>,
    /// Requests that wait for their store, in the order in which they came.
    pub(crate) held: Held,
    pub(crate) mirror: MirrorUse,
    pub(crate) service: Service,
    /// How many queues it has.
    pub(crate) queues: usize,
    /// Requests that move payload.
    pub(crate) moving: usize,
    /// Requests that wait to be translated, in the order in which they came.
    pub(crate) parked: VecDeque<usize>,
    pub(crate) alone: Alone,
    /// Pieces of the disk that are written for who has it to himself.
    pub(crate) pieces: Vec<ByteRange>,
    /// What must happen before anything else is translated.
    pub(crate) obstacle: Option<Obstacle>,
    pub(crate) commit: Option<RunningCommit>,
    /// Requests that are answered when the next commit is durable.
    pub(crate) waiters: Vec<usize>,
    /// Whether a commit has failed; who closes the disk does not wait for another.
    pub(crate) has_failed_commit: bool,
    /// It is to be given back when nothing of it is under way.
    pub(crate) is_closing: bool,
    pub(crate) tally: DiskCounts,
    /// Faults of it.
    pub(crate) told: FaultPace,
    /// Since when metadata is read, and since when a step of a commit is under way.
    pub(crate) metadata_asked: Option<Time>,
    pub(crate) step_asked: Option<Time>,
    /// For how long its store has not answered, if that is too long.
    pub(crate) stalled: Option<Duration>,
    pub(crate) calm: Calm,
    /// Requests that found the store full.
    pub(crate) full: FullStore,
}

impl Disk {
    pub(crate) fn new(layers: Vec<Layer>, place: Option<Place>) -> Self {
        Self {
            one_piece: OnePiece::of(&layers),
            layers,
            place,
            held: Held::default(),
            mirror: MirrorUse::default(),
            service: Service::On,
            queues: 0,
            moving: 0,
            parked: VecDeque::new(),
            alone: Alone::No,
            pieces: Vec::new(),
            obstacle: None,
            commit: None,
            waiters: Vec::new(),
            has_failed_commit: false,
            is_closing: false,
            tally: DiskCounts::default(),
            told: FaultPace::default(),
            metadata_asked: None,
            step_asked: None,
            stalled: None,
            calm: Calm::default(),
            full: FullStore::default(),
        }
    }

    /// Goes on with other images and files.
    pub(crate) fn set_layers(&mut self, layers: Vec<Layer>) {
        self.one_piece = OnePiece::of(&layers);
        self.layers = layers;
    }

    /// Its place in Storage QoS for a client's request, or for one of its being copied.
    #[inline]
    pub(crate) fn place_of(&self, is_mirror: bool) -> Option<Place> {
        if is_mirror { self.mirror.place } else { self.place }
    }

    /// Requests of either kind that wait for their store.
    pub(crate) fn held_of(&mut self, is_mirror: bool) -> &mut Held {
        if is_mirror { &mut self.mirror.held } else { &mut self.held }
    }

    /// The disk's own image.
    pub(crate) fn own(&mut self) -> &mut Layer {
        &mut self.layers[0]
    }

    /// Whether nothing changes where its bytes are.
    #[inline]
    pub(crate) fn is_linear(&self) -> bool {
        self.one_piece.is_some()
    }

    /// Whether nothing is taken from its queues.
    pub(crate) fn is_stopped(&self) -> bool {
        self.service != Service::On
    }

    /// Whether its requests are translated as they come.
    #[inline]
    pub(crate) fn is_in_turn(&self) -> bool {
        self.alone == Alone::No && self.parked.is_empty()
    }

    /// Whether something waits for what ends on it.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_in_turn() || self.is_closing || self.service != Service::On
    }

    /// Whether something of where its bytes are is not in its file yet.
    pub(crate) fn has_uncommitted(&self) -> bool {
        self.layers[0].image.uncommitted_bytes() > 0
            || self.commit.as_ref().is_some_and(|commit| commit.is_of_image)
    }

    /// Whether nothing of it is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.moving == 0
            && self.parked.is_empty()
            && self.alone == Alone::No
            && self.obstacle.is_none()
            && self.commit.is_none()
            && self.waiters.is_empty()
            && self.held.is_empty()
            && self.mirror.held.is_empty()
    }
}
