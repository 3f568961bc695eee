//! Attribution of a worker's time to stages.
//!
//! Each nanosecond is attributed to exactly one stage. A worker reads the clock once per round
//! anyway, so the duration of every round is known. Sleep is idle, and a round without work is
//! [`Stage::Poll`]. A round that moved frames is divided by sampling, because reading the clock at
//! each stage of each batch would cost more than some stages take:
//!
//! - About every 64th of these rounds is timed, and the first one after a round of a duration that
//!   was not timed recently. In a timed round, the clock is read at the end of each stage; where
//!   software segments or completes a checksum, for each frame.
//! - Rounds are classified by duration, each class spanning a factor of two. The total duration of
//!   a class is divided in proportion to its timed rounds, with exponentially decreasing weights.
//!   Rare long rounds among many short ones are thus divided by their own proportions once one of
//!   them was timed.
//!
//! Gaps between timed rounds vary, so that no traffic pattern can synchronise with them. They
//! follow a fixed sequence: the same rounds give the same result.

use suimon_ports::WaitSet;
use suimon_quantity::Time;

use crate::published_stage_times::PublishedStageTimes;
use crate::stage::{Stage, StageNanoseconds};

/// Time of a timed round that was spent on its ingress and on its egress queues, in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IngressEgressTimes {
    pub ingress_ns: u64,
    pub egress_ns: u64,
}

/// Number of classes of rounds by duration: up to 127 ns, up to 255 ns, …, from one second on.
const CLASSES: usize = 24;

/// Bits of the longest duration in ns that belongs to the first class.
const FIRST_CLASS_BITS: u32 = 7;

/// Inverse weight of a timed round in the moving average of its class.
const MEMORY: u64 = 16;

/// Time after the last timed round of a duration class, in ns, after which its division into stages
/// is outdated: the load may have changed.
const MEMORY_NS: u64 = 100_000_000;

/// Longest gap between two timed rounds; the average is half of it.
const GAP_MAX: u64 = 127;

/// Accumulated times of rounds of similar duration.
#[derive(Clone, Copy, Default)]
struct Class {
    /// Duration of rounds in this class that is not yet attributed to stages, in ns.
    unsplit_ns: u64,
    /// Weighted durations of its timed rounds by stage, used as proportions.
    proportions: StageNanoseconds,
    /// End of the last timed round in ns.
    timed_until_ns: u64,
}

impl Class {
    fn is_timed(&self) -> bool {
        self.proportions.iter().any(|ns| *ns > 0)
    }

    /// Returns true if the proportions are outdated, so that a round of this class must be timed
    /// out of turn.
    fn is_forgotten(&self, now: Time) -> bool {
        now.as_ns().saturating_sub(self.timed_until_ns) > MEMORY_NS
    }

    fn learn(&mut self, spent: &StageNanoseconds, now: Time) {
        if self.is_forgotten(now) {
            self.proportions = StageNanoseconds::default();
        }
        self.timed_until_ns = now.as_ns();
        for (proportion, spent) in self.proportions.iter_mut().zip(spent) {
            // Scaled by MEMORY, as the decay of a short stage would otherwise be rounded to zero.
            *proportion =
                (*proportion - *proportion / MEMORY).saturating_add(spent.saturating_mul(MEMORY));
        }
    }
}

/// Time accounting of one worker, used by its own thread.
pub(crate) struct StageClock {
    /// Time in ns by stage since the worker started, without the `unsplit_ns` of the classes.
    totals: StageNanoseconds,
    classes: [Class; CLASSES],
    /// Index of the class of the last timed round, whose proportions are the best estimate for
    /// classes without proportions.
    latest: usize,
    round_began: Time,
    /// True if this round is timed; stays true until a round moves frames.
    is_timed: bool,
    /// In a timed round: time of the last mark.
    marked: Time,
    spent: StageNanoseconds,
    rounds_to_timed: u64,
    gaps: Gaps,
    /// Duration of one clock read in ns, which is attributed to no stage.
    clock_read_ns: u64,
}

impl StageClock {
    pub(crate) fn new(clock: &dyn WaitSet) -> Self {
        let look_ns = clock_read_ns(clock);
        let now = clock.now();
        Self {
            totals: StageNanoseconds::default(),
            classes: [Class::default(); CLASSES],
            latest: 0,
            round_began: now,
            is_timed: true,
            marked: now,
            spent: StageNanoseconds::default(),
            rounds_to_timed: 0,
            gaps: Gaps::default(),
            clock_read_ns: look_ns,
        }
    }

    /// Returns a probe for this round. Its marks have an effect only if the round is timed.
    #[inline]
    pub(crate) fn probe<'a>(&'a mut self, clock: &'a dyn WaitSet) -> StageProbe<'a> {
        StageProbe(if self.is_timed { Some((self, clock)) } else { None })
    }

    fn mark(&mut self, stage: Stage, now: Time) {
        let ns = ns_between(self.marked, now).saturating_sub(self.clock_read_ns);
        self.spent[stage.index()] += ns;
        self.marked = now;
    }

    /// Ends a round and begins the next one. `moved` is true if frames were moved. Returns the
    /// round's duration in ns.
    #[inline]
    pub(crate) fn end_round(&mut self, now: Time, moved: bool) -> u64 {
        let ns = ns_between(self.round_began, now);
        if moved {
            let class = class_index(ns);
            self.classes[class].unsplit_ns += ns;
            if self.is_timed {
                self.end_timed(class, now);
            } else {
                self.rounds_to_timed -= 1;
                // The next round is most likely of the same kind.
                let is_unknown = self.classes[class].is_forgotten(now);
                self.is_timed = self.rounds_to_timed == 0 || is_unknown;
            }
        } else {
            self.totals[Stage::Poll.index()] += ns;
            if self.is_timed {
                self.spent = StageNanoseconds::default();
            }
        }
        self.round_began = now;
        self.marked = now;
        ns
    }

    /// Returns the time of this round spent on ingress and egress queues up to the last mark;
    /// `None` if the round is not timed.
    #[inline]
    pub(crate) fn ingress_egress_times(&self) -> Option<IngressEgressTimes> {
        if !self.is_timed {
            return None;
        }
        let sum = |stages: &[Stage]| stages.iter().map(|stage| self.spent[stage.index()]).sum();
        Some(IngressEgressTimes {
            ingress_ns: sum(&[Stage::CopyIn, Stage::Classify, Stage::Coalesce]),
            egress_ns: sum(&[Stage::Segment, Stage::Checksum, Stage::CopyOut, Stage::Notify]),
        })
    }

    #[cold]
    fn end_timed(&mut self, class: usize, now: Time) {
        self.mark(Stage::Poll, now);
        let spent = std::mem::take(&mut self.spent);
        self.classes[class].learn(&spent, now);
        self.latest = class;
        self.rounds_to_timed = self.gaps.next_gap();
        self.is_timed = false;
    }

    /// Attributes the time since the end of the last round to [`Stage::Idle`].
    pub(crate) fn end_sleep(&mut self, now: Time) {
        self.totals[Stage::Idle.index()] += ns_between(self.round_began, now);
        self.round_began = now;
        self.marked = now;
    }

    /// Publishes the times up to the end of the last round for other threads.
    pub(crate) fn publish(&mut self, tally: &PublishedStageTimes, is_asleep: bool) {
        self.split();
        tally.publish(&self.totals, self.round_began, is_asleep);
    }

    /// Divides the duration of rounds that was not divided yet. Classes without recent proportions
    /// use those of the last timed class.
    fn split(&mut self) {
        let fallback = self.classes[self.latest].proportions;
        let now = self.round_began;
        for class in self.classes.iter_mut().filter(|class| class.unsplit_ns > 0) {
            let ns = std::mem::take(&mut class.unsplit_ns);
            let is_known = class.is_timed() && !class.is_forgotten(now);
            split_like(ns, if is_known { &class.proportions } else { &fallback }, &mut self.totals);
        }
    }
}

/// Adds `ns` to `totals` in these `proportions`. The sum is exact.
fn split_like(ns: u64, proportions: &StageNanoseconds, totals: &mut StageNanoseconds) {
    let sum: f64 = proportions.iter().map(|ns| *ns as f64).sum();
    let mut remaining = ns;
    if sum > 0.0 {
        let factor = ns as f64 / sum;
        for (proportion, total) in proportions.iter().zip(totals.iter_mut()) {
            let part = ((*proportion as f64 * factor) as u64).min(remaining);
            *total += part;
            remaining -= part;
        }
    }
    // The rounding error, or all of `ns` while no proportions are known.
    totals[Stage::Poll.index()] += remaining;
}

/// Marks the ends of stages in a round. Without effect in a round that is not timed.
pub(crate) struct StageProbe<'a>(Option<(&'a mut StageClock, &'a dyn WaitSet)>);

impl StageProbe<'_> {
    /// Creates a probe without effect.
    #[cfg(test)]
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Attributes the time since the last mark, or the beginning of the round, to a stage.
    #[inline]
    pub(crate) fn end_stage(&mut self, stage: Stage) {
        if let Some((stages, clock)) = &mut self.0 {
            stages.mark(stage, clock.now());
        }
    }
}

/// Pseudo-random generator of gaps of 1 to [`GAP_MAX`] rounds, uniformly distributed.
#[derive(Clone, Default)]
struct Gaps(u64);

impl Gaps {
    fn next_gap(&mut self) -> u64 {
        // Knuth's linear congruential generator (MMIX), of which the high bits are used.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + (self.0 >> 32) % GAP_MAX
    }
}

/// Returns the shortest duration of several clock reads in ns.
fn clock_read_ns(clock: &dyn WaitSet) -> u64 {
    let durations = (0..16).map(|_| ns_between(clock.now(), clock.now()));
    durations.min().unwrap_or(0)
}

fn class_index(ns: u64) -> usize {
    let bits = (u64::BITS - ns.leading_zeros()).saturating_sub(FIRST_CLASS_BITS);
    (bits as usize).min(CLASSES - 1)
}

fn ns_between(earlier: Time, later: Time) -> u64 {
    later.as_ns().saturating_sub(earlier.as_ns())
}

#[cfg(test)]
#[path = "stage_clock_tests.rs"]
mod tests;
