//! An array: mirrored pairs of drives, striped, behind a cache and a link.
//!
//! What a request goes through
//! - The link: bytes / link rate, one request after the other; then the controller's time.
//! - A write is acknowledged when the cache has room for it, in the order of arrival, and
//!   written to the drives afterwards. Without a cache it is acknowledged when it is on both
//!   drives of each pair that it touches.
//! - A read hits the cache with a fixed probability, and is acknowledged at once then; else it is
//!   read from the drive of each pair that has less to do.
//! - A request is cut at the stripe's borders; piece i of the volume is on pair i mod pairs. A
//!   volume's disks lie one after the other from the outermost track on.
//!
//! Saturation is not a parameter: it is where drives have something to do all the time. Neither is
//! latency: it is what waiting for the link, the cache and the drives comes to.
//!
//! Noise: each service of a drive takes longer or shorter by up to `noise_percent`, evenly
//! distributed. Faults: for a while nothing is answered, or all drives take so many times as long.
//!
//! Parameters: the number of pairs and the size of disks are the published testbed's; drives are
//! those of a product manual ([`drive`](super::drive)); stripe, cache, link and controller are not
//! published, and are assumed as each scenario says.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use suimon_quantity::Time;

use crate::kernel::Dice;
use crate::storage::drive::{Drive, DriveSpec, Part};

/// What an array is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArraySpec {
    /// Mirrored pairs of drives.
    pub(crate) pairs: u32,
    pub(crate) stripe_kb: u32,
    /// Writes that the cache holds until they are on drives; 0: none.
    pub(crate) write_cache_mb: u32,
    /// Reads that the cache has already, of a hundred.
    pub(crate) read_hit_percent: u32,
    /// What the link carries, in 10⁶ bytes a second.
    pub(crate) link_mb_s: u32,
    /// What the controller takes for a request.
    pub(crate) controller_us: u32,
    pub(crate) noise_percent: u32,
    pub(crate) drive: DriveSpec,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    /// Whoever sent it knows it by this.
    pub(crate) tag: u64,
    /// In the volume.
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) is_write: bool,
}

/// Something happens in the array.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArrayEvent {
    /// A request is past the link and the controller.
    Arrived(Io),
    /// A drive has served what it served.
    Served { drive: u32 },
}

/// A piece of a request on its pair.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// Drives that have yet to serve it.
    drives: u32,
    bytes: u32,
    /// The request that is answered when it is done; `None`: it was answered already, and its
    /// place in the cache is free then.
    of: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Array {
    spec: ArraySpec,
    drives: Vec<Drive>,
    jobs: Vec<Job>,
    free_jobs: Vec<u32>,
    /// Pieces of each request that are not done.
    pieces: BTreeMap<u64, u32>,
    /// Bytes in the cache that are on no drive yet.
    dirty: u64,
    /// Writes for which the cache has no room.
    waits: VecDeque<Io>,
    link_free: Time,
    stalled_until: Time,
    slow: Option<(Time, u32)>,
    dice: Dice,
    planned: Vec<(Time, ArrayEvent)>,
    answered: Vec<u64>,
}

impl Array {
    pub(crate) fn new(spec: ArraySpec, dice: Dice) -> Self {
        Self {
            drives: vec![Drive::default(); spec.pairs as usize * 2],
            spec,
            jobs: Vec::new(),
            free_jobs: Vec::new(),
            pieces: BTreeMap::new(),
            dirty: 0,
            waits: VecDeque::new(),
            link_free: Time::ZERO,
            stalled_until: Time::ZERO,
            slow: None,
            dice,
            planned: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// A request is sent to it.
    pub(crate) fn send(&mut self, now: Time, io: Io) {
        let on_link = u64::from(io.bytes) * 1000 / u64::from(self.spec.link_mb_s);
        self.link_free = Time::from_ns(self.link_free.max(now).as_ns() + on_link);
        let at = self.link_free.as_ns() + u64::from(self.spec.controller_us) * 1000;
        self.planned.push((Time::from_ns(at), ArrayEvent::Arrived(io)));
    }

    /// What it planned happens.
    pub(crate) fn handle(&mut self, now: Time, event: ArrayEvent) {
        if now < self.stalled_until {
            self.planned.push((self.stalled_until, event));
            return;
        }
        match event {
            ArrayEvent::Arrived(io) => self.arrive(now, io),
            ArrayEvent::Served { drive } => self.served(now, drive),
        }
    }

    /// It answers nothing and serves nothing until then.
    pub(crate) fn stall(&mut self, until: Time) {
        self.stalled_until = self.stalled_until.max(until);
    }

    /// Until then its drives take `percent` of what they take.
    pub(crate) fn slow_down(&mut self, until: Time, percent: u32) {
        self.slow = Some((until, percent));
    }

    /// What is to be handed to [`Array::handle`], and when.
    pub(crate) fn take_planned(&mut self) -> Vec<(Time, ArrayEvent)> {
        std::mem::take(&mut self.planned)
    }

    /// Requests that were answered, by their tags.
    pub(crate) fn take_answered(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.answered)
    }

    fn arrive(&mut self, now: Time, io: Io) {
        if !io.is_write {
            if self.dice.percent(self.spec.read_hit_percent) {
                return self.answered.push(io.tag);
            }
            return self.serve(now, io, Some(io.tag));
        }
        if self.spec.write_cache_mb == 0 {
            return self.serve(now, io, Some(io.tag));
        }
        self.waits.push_back(io);
        self.admit(now);
    }

    /// Takes writes into the cache, as far as there is room.
    fn admit(&mut self, now: Time) {
        let size = u64::from(self.spec.write_cache_mb) << 20;
        while let Some(io) = self.waits.front().copied() {
            // One that is larger than the cache goes when it is empty.
            if self.dirty > 0 && self.dirty + u64::from(io.bytes) > size {
                return;
            }
            self.waits.pop_front();
            self.dirty += u64::from(io.bytes);
            self.answered.push(io.tag);
            self.serve(now, io, None);
        }
    }

    /// Hands a request's pieces to the drives.
    fn serve(&mut self, now: Time, io: Io, of: Option<u64>) {
        let stripe = u64::from(self.spec.stripe_kb) << 10;
        let pairs = u64::from(self.spec.pairs);
        let (mut at, end) = (io.offset, io.offset + u64::from(io.bytes));
        let mut pieces = 0;
        while at < end {
            let until = ((at / stripe + 1) * stripe).min(end);
            let bytes = (until - at) as u32;
            let pair = (at / stripe % pairs) as usize * 2;
            let on_drive = at / stripe / pairs * stripe + at % stripe;
            let job = self.add_job(Job { drives: 1 + u32::from(io.is_write), bytes, of });
            let part = Part { job, at: on_drive, bytes };
            let idler =
                pair + usize::from(self.drives[pair].length() > self.drives[pair + 1].length());
            let drives = if io.is_write { pair..pair + 2 } else { idler..idler + 1 };
            for drive in drives {
                self.drives[drive].add(part, io.is_write);
                self.begin(now, drive);
            }
            pieces += 1;
            at = until;
        }
        if let Some(tag) = of {
            self.pieces.insert(tag, pieces);
        }
    }

    fn add_job(&mut self, job: Job) -> u32 {
        if let Some(free) = self.free_jobs.pop() {
            self.jobs[free as usize] = job;
            return free;
        }
        self.jobs.push(job);
        self.jobs.len() as u32 - 1
    }

    fn begin(&mut self, now: Time, drive: usize) {
        let Some(ns) = self.drives[drive].begin(&self.spec.drive, &mut self.dice) else { return };
        let spread = ns * u64::from(self.spec.noise_percent) / 100;
        let mut ns = ns - spread + self.dice.below(2 * spread + 1);
        if let Some((_, percent)) = self.slow.filter(|(until, _)| now < *until) {
            ns = ns * u64::from(percent) / 100;
        }
        let at = Time::from_ns(now.as_ns() + ns.max(1));
        self.planned.push((at, ArrayEvent::Served { drive: drive as u32 }));
    }

    fn served(&mut self, now: Time, drive: u32) {
        let served = self.drives[drive as usize].serves.take();
        if let Some(part) = served {
            let job = &mut self.jobs[part.job as usize];
            job.drives -= 1;
            if job.drives == 0 {
                let Job { bytes, of, .. } = *job;
                self.free_jobs.push(part.job);
                self.done(now, bytes, of);
            }
        }
        self.begin(now, drive as usize);
    }

    /// A piece is where it belongs.
    fn done(&mut self, now: Time, bytes: u32, of: Option<u64>) {
        let Some(tag) = of else {
            self.dirty -= u64::from(bytes);
            return self.admit(now);
        };
        let Some(left) = self.pieces.get_mut(&tag) else { return };
        *left -= 1;
        if *left == 0 {
            self.pieces.remove(&tag);
            self.answered.push(tag);
        }
    }
}
