//! Model of an array: striped mirrored pairs of drives, with a cache and a link.
//!
//! Path of a request
//! - Link: bytes / link rate, sequentially; then the controller's time.
//! - A write is acknowledged when the cache has room for it, in order of arrival, and written to
//!   the drives later. Without a cache it is acknowledged when it is on both drives of each pair
//!   that it touches.
//! - A read hits the cache with a fixed probability and is then acknowledged immediately. Otherwise
//!   it is read from the drive of each pair with the shorter queue.
//! - A request is split at stripe boundaries; stripe i of the volume is on pair i mod pairs. The
//!   disks of a volume are adjacent, starting at the outermost track.
//!
//! Saturation and latency are not parameters. They result from the utilisation of the drives, and
//! from queueing at link, cache and drives.
//!
//! Noise: service times of drives vary by up to `noise_percent`, uniformly distributed. Faults: for
//! some time no request completes, or all drives are slower by a factor.
//!
//! Parameters: the number of pairs and the size of disks are those of the published testbed; drives
//! are those of a product manual ([`drive`](super::drive)). Stripe, cache, link and controller are
//! unpublished and assumed in each scenario.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use suimon_quantity::Time;
use suimon_sim_kernel::RandomStream;

use crate::storage::drive::{Drive, DriveRequest, DriveSpec};

/// Parameters of an array of drives.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArraySpec {
    /// Number of mirrored pairs of drives.
    pub(crate) pairs: u32,
    pub(crate) stripe_kb: u32,
    /// Size of the write cache in MiB; 0 for none.
    pub(crate) write_cache_mb: u32,
    /// Hit rate of reads in percent.
    pub(crate) read_hit_percent: u32,
    /// Rate of the link in 10⁶ bytes per second.
    pub(crate) link_mb_s: u32,
    /// Time in µs that the controller takes for a request.
    pub(crate) controller_us: u32,
    pub(crate) noise_percent: u32,
    pub(crate) drive: DriveSpec,
}

/// Request of a node or external client to the array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    /// Identifier chosen by the sender.
    pub(crate) tag: u64,
    /// Offset in the volume in bytes.
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) is_write: bool,
}

/// Planned event in the array.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArrayEvent {
    /// A request has passed link and controller.
    Arrived(Io),
    /// A drive has completed its current part.
    DriveCompleted { drive: u32 },
}

/// Part of a request that one pair of drives processes.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// Number of drives of the pair that have not completed the part yet.
    drives: u32,
    bytes: u32,
    /// Tag of the request to acknowledge when the part is complete; `None` for a write that is
    /// already acknowledged and whose space in the cache becomes free.
    request_tag: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Array {
    spec: ArraySpec,
    drives: Vec<Drive>,
    jobs: Vec<Job>,
    free_jobs: Vec<u32>,
    /// Number of incomplete parts of each request, by its tag.
    incomplete_parts: BTreeMap<u64, u32>,
    /// Bytes in the cache that are not on drives yet.
    dirty: u64,
    /// Writes that wait for space in the cache, in order of arrival.
    waits: VecDeque<Io>,
    link_free: Time,
    stalled_until: Time,
    slow: Option<(Time, u32)>,
    random: RandomStream,
    planned: Vec<(Time, ArrayEvent)>,
    completed: Vec<u64>,
}

impl Array {
    pub(crate) fn new(spec: ArraySpec, random: RandomStream) -> Self {
        Self {
            drives: vec![Drive::default(); spec.pairs as usize * 2],
            spec,
            jobs: Vec::new(),
            free_jobs: Vec::new(),
            incomplete_parts: BTreeMap::new(),
            dirty: 0,
            waits: VecDeque::new(),
            link_free: Time::ZERO,
            stalled_until: Time::ZERO,
            slow: None,
            random,
            planned: Vec::new(),
            completed: Vec::new(),
        }
    }

    /// Accepts a request from a node.
    pub(crate) fn send(&mut self, now: Time, io: Io) {
        let on_link = u64::from(io.bytes) * 1000 / u64::from(self.spec.link_mb_s);
        self.link_free = Time::from_ns(self.link_free.max(now).as_ns() + on_link);
        let arrives_ns = self.link_free.as_ns() + u64::from(self.spec.controller_us) * 1000;
        self.planned.push((Time::from_ns(arrives_ns), ArrayEvent::Arrived(io)));
    }

    /// Processes an event at its planned time.
    pub(crate) fn handle(&mut self, now: Time, event: ArrayEvent) {
        if now < self.stalled_until {
            self.planned.push((self.stalled_until, event));
            return;
        }
        match event {
            ArrayEvent::Arrived(io) => self.arrive(now, io),
            ArrayEvent::DriveCompleted { drive } => self.handle_served(now, drive),
        }
    }

    /// Stops all processing until a time.
    pub(crate) fn stall(&mut self, until: Time) {
        self.stalled_until = self.stalled_until.max(until);
    }

    /// Slows the drives until a time, to `percent` of their usual service times.
    pub(crate) fn slow_down(&mut self, until: Time, percent: u32) {
        self.slow = Some((until, percent));
    }

    /// Removes and returns the planned events with their times. The caller passes each to
    /// [`Array::handle`] at its time.
    pub(crate) fn take_planned(&mut self) -> Vec<(Time, ArrayEvent)> {
        std::mem::take(&mut self.planned)
    }

    /// Removes and returns the tags of the requests that were completed since the last call.
    pub(crate) fn take_completed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.completed)
    }

    fn arrive(&mut self, now: Time, io: Io) {
        if !io.is_write {
            if self.random.draw_chance(self.spec.read_hit_percent) {
                return self.completed.push(io.tag);
            }
            return self.serve(now, io, Some(io.tag));
        }
        if self.spec.write_cache_mb == 0 {
            return self.serve(now, io, Some(io.tag));
        }
        self.waits.push_back(io);
        self.admit(now);
    }

    /// Moves waiting writes into the cache while it has space, and acknowledges them.
    fn admit(&mut self, now: Time) {
        let size = u64::from(self.spec.write_cache_mb) << 20;
        while let Some(io) = self.waits.front().copied() {
            // A write that is larger than the cache is admitted when the cache is empty.
            if self.dirty > 0 && self.dirty + u64::from(io.bytes) > size {
                return;
            }
            self.waits.pop_front();
            self.dirty += u64::from(io.bytes);
            self.completed.push(io.tag);
            self.serve(now, io, None);
        }
    }

    /// Splits a request into parts and passes each to the drives of its pair.
    fn serve(&mut self, now: Time, io: Io, request_tag: Option<u64>) {
        let stripe = u64::from(self.spec.stripe_kb) << 10;
        let pairs = u64::from(self.spec.pairs);
        let (mut offset, end) = (io.offset, io.offset + u64::from(io.bytes));
        let mut pieces = 0;
        while offset < end {
            let until = ((offset / stripe + 1) * stripe).min(end);
            let bytes = (until - offset) as u32;
            let pair = (offset / stripe % pairs) as usize * 2;
            let on_drive = offset / stripe / pairs * stripe + offset % stripe;
            let job = self.add_job(Job { drives: 1 + u32::from(io.is_write), bytes, request_tag });
            let part = DriveRequest { job, offset: on_drive, bytes };
            let idler =
                pair + usize::from(self.drives[pair].length() > self.drives[pair + 1].length());
            let drives = if io.is_write { pair..pair + 2 } else { idler..idler + 1 };
            for drive in drives {
                self.drives[drive].add(part, io.is_write);
                self.begin(now, drive);
            }
            pieces += 1;
            offset = until;
        }
        if let Some(tag) = request_tag {
            self.incomplete_parts.insert(tag, pieces);
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
        let Some(ns) = self.drives[drive].begin(&self.spec.drive, &mut self.random) else { return };
        let spread = ns * u64::from(self.spec.noise_percent) / 100;
        let mut ns = ns - spread + self.random.draw_below(2 * spread + 1);
        if let Some((_, percent)) = self.slow.filter(|(until, _)| now < *until) {
            ns = ns * u64::from(percent) / 100;
        }
        let end = Time::from_ns(now.as_ns() + ns.max(1));
        self.planned.push((end, ArrayEvent::DriveCompleted { drive: drive as u32 }));
    }

    fn handle_served(&mut self, now: Time, drive: u32) {
        let served_part = self.drives[drive as usize].in_service.take();
        if let Some(part) = served_part {
            let job = &mut self.jobs[part.job as usize];
            job.drives -= 1;
            if job.drives == 0 {
                let Job { bytes, request_tag, .. } = *job;
                self.free_jobs.push(part.job);
                self.complete_part(now, bytes, request_tag);
            }
        }
        self.begin(now, drive as usize);
    }

    /// Processes the completion of a part: completes its request if it was the last part, or frees
    /// its space in the cache.
    fn complete_part(&mut self, now: Time, bytes: u32, request_tag: Option<u64>) {
        let Some(tag) = request_tag else {
            self.dirty -= u64::from(bytes);
            return self.admit(now);
        };
        let Some(remaining) = self.incomplete_parts.get_mut(&tag) else { return };
        *remaining -= 1;
        if *remaining == 0 {
            self.incomplete_parts.remove(&tag);
            self.completed.push(tag);
        }
    }
}
