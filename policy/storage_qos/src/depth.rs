//! How many requests a device gets at a time: enough that it never runs dry, and so few
//! that who is next is still decided here.
//!
//! The number grows while requests wait for it and the device answers fast, and shrinks
//! while it answers slowly: slower than [`SLOWDOWN_MAX`] times what it takes when it has
//! little to do. Latency is compared with that of requests of about the same size.
//!
//! Who has the store for itself is kept waiting for nobody's sake. It has a number of its
//! own, which may make the device slower, up to [`StoreSpec::alone_latency`]; as soon as somebody
//! else has a request the other number holds again.

use core::time::Duration;

use suimon_quantity::Time;

use crate::StoreSpec;
use crate::cost::{SIZE_CLASSES, size_class};

/// A busy device may take so many times as long as one with little to do.
const SLOWDOWN_MAX: u64 = 3;
/// A latency that is never too long: the engine's own part in it counts for more.
const SHORT_NS: u64 = 100_000;
/// Completions by which it is judged, at least.
const JUDGED_BY: u32 = 32;
const JUDGED_BY_MAX: u32 = 256;
/// Where few complete, it is judged after this time by at least [`FEW`].
const JUDGED_AFTER: Duration = Duration::from_millis(500);
const FEW: u32 = 4;
/// Ratios of latency to what is allowed are counted in this.
const ONE: u64 = 1024;
/// Below this there is much room, below the next there is some.
const FAST: u64 = 600;
const FAST_ENOUGH: u64 = 900;
/// How often it is found out what the device takes when it has little to do.
const PROBE_EVERY: Duration = Duration::from_secs(30);
const PROBE_MAX: Duration = Duration::from_millis(500);
const START: u32 = 4;
/// Who was not seen for so long has left the store.
const GONE_AFTER: Duration = Duration::from_secs(1);

/// Requests of about the same size.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// Of those that completed since the last judgement.
    sum_ns: u64,
    count: u32,
    /// What one takes when the device has little to do; 0: not known.
    least_ns: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Depth {
    min: u32,
    max: u32,
    /// How many the device may have while several disks use it.
    shared: u32,
    /// And while one does.
    alone: Option<u32>,
    /// And now, while it is probed or not: what follows from these is looked at for each request.
    limit: u32,
    /// Completions that are enough to judge by.
    enough: u32,
    alone_ns: u64,
    /// Until then several disks use it.
    shared_until: Time,
    pub(crate) in_flight: u32,
    was_full: bool,
    classes: [Class; SIZE_CLASSES],
    completed: u32,
    judged: Time,
    /// Mean of the last judgement.
    pub(crate) latency_ns: u64,
    probed: Time,
    probe: Option<Probe>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    limit: u32,
    began: Time,
    /// Completions of requests that were in the device before.
    skip: u32,
}

impl Depth {
    pub(crate) fn new(spec: &StoreSpec) -> Self {
        let max = spec.depth_max.max(1);
        let min = spec.depth_min.clamp(1, max);
        let start = START.clamp(min, max);
        let mut depth = Self {
            min,
            max,
            shared: start,
            alone: None,
            limit: start,
            enough: start,
            alone_ns: u64::try_from(spec.alone_latency.as_nanos()).unwrap_or(u64::MAX),
            shared_until: Time::ZERO,
            in_flight: 0,
            was_full: false,
            classes: [Class::default(); SIZE_CLASSES],
            completed: 0,
            judged: Time::ZERO,
            latency_ns: 0,
            probed: Time::ZERO,
            probe: None,
        };
        depth.settle();
        depth
    }

    /// How many requests the device may have.
    #[inline]
    pub(crate) const fn limit(&self) -> u32 {
        self.limit
    }

    fn tuned(&self) -> u32 {
        self.alone.unwrap_or(self.shared)
    }

    /// One of the numbers has changed.
    fn settle(&mut self) {
        let tuned = self.tuned();
        self.limit = self.probe.map_or(tuned, |probe| probe.limit);
        self.enough = tuned.clamp(JUDGED_BY, JUDGED_BY_MAX);
    }

    /// Whether all requests there are, in the device or waiting for it, are of one disk.
    #[inline]
    pub(crate) fn handle_use(&mut self, now: Time, is_alone: bool) {
        if !is_alone {
            self.shared_until = now + GONE_AFTER;
        }
        if is_alone == self.alone.is_some() {
            return;
        }
        if !is_alone {
            self.turn(None);
        } else if self.alone_ns > 0 && now >= self.shared_until && self.probe.is_none() {
            self.turn(Some(self.shared));
        }
    }

    /// The other number counts, and what has completed says nothing of it.
    #[cold]
    fn turn(&mut self, alone: Option<u32>) {
        self.alone = alone;
        self.settle();
        self.completed = 0;
        for class in &mut self.classes {
            (class.sum_ns, class.count) = (0, 0);
        }
    }

    /// Whether it is being found out what the device takes when it has little to do.
    #[inline]
    pub(crate) const fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight < self.limit()
    }

    /// Requests that the device may have in addition.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        self.limit().saturating_sub(self.in_flight)
    }

    /// A request waits because the device has enough.
    #[inline]
    pub(crate) fn handle_full(&mut self) {
        self.was_full = true;
    }

    /// Requests have left the device. By how many of them the device may be judged: not, while
    /// it is probed, by those that were there before.
    #[inline]
    pub(crate) fn handle_left(&mut self, requests: u32) -> u32 {
        self.in_flight = self.in_flight.saturating_sub(requests);
        let Some(probe) = &mut self.probe else { return requests };
        let skipped = requests.min(probe.skip);
        probe.skip -= skipped;
        requests - skipped
    }

    /// Requests that each count as `cost` have completed, after `latency_ns` all together.
    #[inline]
    pub(crate) fn handle_completed(
        &mut self,
        now: Time,
        cost: u32,
        requests: u32,
        latency_ns: u64,
    ) {
        let judged = self.handle_left(requests);
        if judged == 0 {
            return;
        }
        let latency_ns = if judged == requests {
            latency_ns
        } else {
            latency_ns / u64::from(requests) * u64::from(judged)
        };
        if let Some(class) = self.classes.get_mut(size_class(cost)) {
            class.sum_ns = class.sum_ns.saturating_add(latency_ns);
            class.count += judged;
        }
        let before = self.completed;
        self.completed += judged;
        if self.completed >= self.enough || before / FEW != self.completed / FEW {
            self.look(now);
        }
    }

    #[cold]
    fn look(&mut self, now: Time) {
        let enough = match self.probe {
            Some(probe) => now.since(probe.began) >= PROBE_MAX || self.completed >= JUDGED_BY / 2,
            None => self.completed >= self.enough || now.since(self.judged) >= JUDGED_AFTER,
        };
        if enough {
            self.judge(now);
        }
    }

    fn judge(&mut self, now: Time) {
        let is_probe = self.probe.take().is_some();
        let patience_ns = if self.alone.is_some() { self.alone_ns.max(SHORT_NS) } else { SHORT_NS };
        let tuned = self.tuned();
        let (mut ratios, mut sum, mut count) = (0u64, 0u64, 0u64);
        for class in &mut self.classes {
            let of = u64::from(class.count);
            if let Some(mean) = class.sum_ns.checked_div(of) {
                // With so few requests it has little to do, whatever it once took.
                let has_little = is_probe || tuned <= START;
                if class.count >= FEW
                    && (has_little || class.least_ns == 0 || mean < class.least_ns)
                {
                    class.least_ns = mean.max(1);
                }
                if class.least_ns == 0 {
                    // They are too few to say what is long for them, and go on being counted.
                    continue;
                }
                let allowed = patience_ns.max(class.least_ns.saturating_mul(SLOWDOWN_MAX));
                let ratio = mean.saturating_mul(ONE) / allowed;
                ratios = ratios.saturating_add(ratio.saturating_mul(of));
                sum = sum.saturating_add(class.sum_ns);
                count += of;
            }
            class.sum_ns = 0;
            class.count = 0;
        }
        let ratio = ratios / count.max(1);
        if is_probe {
            self.probed = now;
        } else {
            self.latency_ns = sum.checked_div(count).unwrap_or(self.latency_ns);
            self.adjust(ratio);
            if now.since(self.probed) >= PROBE_EVERY && self.was_full {
                let limit = (self.shared / 4).max(self.min);
                self.probe = Some(Probe { limit, began: now, skip: self.in_flight });
            }
        }
        self.settle();
        self.completed = 0;
        self.was_full = false;
        self.judged = now;
    }

    fn adjust(&mut self, ratio: u64) {
        let limit = u64::from(self.tuned());
        let wanted = if ratio > ONE {
            // Half the way to where latency would be as allowed, if it grows with depth.
            (limit + limit * ONE / ratio) / 2
        } else if self.was_full && ratio < FAST {
            limit + (limit / 2).max(1)
        } else if self.was_full && ratio < FAST_ENOUGH {
            limit + (limit / 8).max(1)
        } else {
            limit
        };
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).clamp(self.min, self.max);
        *self.alone.as_mut().unwrap_or(&mut self.shared) = wanted;
    }
}

#[cfg(test)]
#[path = "depth_tests.rs"]
mod tests;
