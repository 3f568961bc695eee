//! Where a processor's time goes.
//!
//! All of it is accounted for, and each nanosecond once. A processor reads the clock
//! once in a round anyway, so the length of every round is known. Sleep is idle, and a
//! round that found nothing is [`Stage::Poll`]. A round that moved frames is split by
//! samples, because a look at the clock at each stage of each batch would cost more
//! than some stages take:
//!
//! - About every 64th of these rounds is timed, and the first after one of a length that
//!   was not timed lately: the clock is read at the end of each stage, for each frame
//!   where software segments or completes a checksum.
//! - Rounds are kept apart by length, each class from some length to twice that. The
//!   time that all rounds of a class took is split as the timed ones of that class
//!   were, later ones counting more and old ones nothing. So the time of rare long
//!   rounds among many short ones is not split as that of short ones is, once one of
//!   them was timed.
//!
//! Gaps between timed rounds vary, so that no pattern of the traffic falls into step
//! with them. They follow a fixed sequence: the same rounds give the same account.

use suimon_ports::Wait;
use suimon_quantity::Time;

use crate::stage_tally::StageTally;

/// What a processor does with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Frames are taken from an ingress queue: copied out of a ring or read from a
    /// device, checked, and captured if somebody wants that.
    CopyIn,
    /// Headers are read and a destination is decided.
    Classify,
    /// Segments of streams are looked for and joined.
    Coalesce,
    /// Large frames are cut for an egress that does not take them; without the
    /// checksums of the segments.
    Segment,
    /// Checksums of frames and segments are completed for an egress that lacks it.
    Checksum,
    /// Frames are handed to egress queues, or to the processors that own those.
    CopyOut,
    /// What was handed over is made visible, and the other sides are notified.
    Notify,
    /// Requests of disks are taken, translated, handed to the device and answered.
    Storage,
    /// Work is looked for: polls that bring nothing, descriptors, mail, commands of
    /// the control plane, arming of notifications.
    Poll,
    /// It sleeps.
    Idle,
}

impl Stage {
    /// How many there are.
    pub const COUNT: usize = 10;

    /// All of them, in the order of a frame's life.
    pub const ALL: [Self; Self::COUNT] = [
        Self::CopyIn,
        Self::Classify,
        Self::Coalesce,
        Self::Segment,
        Self::Checksum,
        Self::CopyOut,
        Self::Notify,
        Self::Storage,
        Self::Poll,
        Self::Idle,
    ];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// What a timed round took for its ingress and its egress queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides {
    pub ingress_ns: u64,
    pub egress_ns: u64,
}

/// Nanoseconds by stage.
pub(crate) type Nanoseconds = [u64; Stage::COUNT];

/// Classes of rounds by length: up to 127 ns, up to 255 ns, …, from a second on.
const CLASSES: usize = 24;

/// The length in bits of the longest time that is still of the first class.
const FIRST_CLASS_BITS: u32 = 7;

/// Each timed round displaces a part of what is known from earlier ones of its class:
/// one in so many.
const MEMORY: u64 = 16;

/// What is known from rounds so long before the next timed one of their class is
/// forgotten: it was another load.
const MEMORY_NS: u64 = 100_000_000;

/// The longest gap between two timed rounds; on average it is half of that.
const GAP_MAX: u64 = 127;

/// Rounds of about the same length.
#[derive(Clone, Copy, Default)]
struct Class {
    /// What its rounds took since it was last split.
    unsplit_ns: u64,
    /// What timed rounds of it took, to be taken as proportions; later ones count more.
    seen: Nanoseconds,
    /// When the last of them ended.
    seen_at_ns: u64,
}

impl Class {
    fn is_seen(&self) -> bool {
        self.seen.iter().any(|ns| *ns > 0)
    }

    /// Whether what is known is too old, so that a round is to be timed out of turn.
    fn is_forgotten(&self, now: Time) -> bool {
        now.as_ns().saturating_sub(self.seen_at_ns) > MEMORY_NS
    }

    fn learn(&mut self, spent: &Nanoseconds, now: Time) {
        if self.is_forgotten(now) {
            self.seen = Nanoseconds::default();
        }
        self.seen_at_ns = now.as_ns();
        for (seen, spent) in self.seen.iter_mut().zip(spent) {
            // Times so many, or a sixteenth of a short stage would be rounded to nothing.
            *seen = (*seen - *seen / MEMORY).saturating_add(spent.saturating_mul(MEMORY));
        }
    }
}

/// The account of one processor, as its own thread keeps it.
pub(crate) struct StageClock {
    /// Since the processor started, but for what is not split yet.
    totals: Nanoseconds,
    classes: [Class; CLASSES],
    /// The class of the last timed round: what is known best of others.
    latest: usize,
    round_began: Time,
    /// Whether this round is timed; it stays so until a round moves frames.
    is_timed: bool,
    /// In a timed round: until when time is attributed, and to what so far.
    marked: Time,
    spent: Nanoseconds,
    rounds_to_timed: u64,
    gaps: Gaps,
    /// What one look at the clock takes; no stage's work.
    look_ns: u64,
}

impl StageClock {
    pub(crate) fn new(clock: &dyn Wait) -> Self {
        let look_ns = look_ns(clock);
        let now = clock.now();
        Self {
            totals: Nanoseconds::default(),
            classes: [Class::default(); CLASSES],
            latest: 0,
            round_began: now,
            is_timed: true,
            marked: now,
            spent: Nanoseconds::default(),
            rounds_to_timed: 0,
            gaps: Gaps::default(),
            look_ns,
        }
    }

    /// Marks the ends of stages in this round, if it is timed.
    #[inline]
    pub(crate) fn probe<'a>(&'a mut self, clock: &'a dyn Wait) -> Probe<'a> {
        Probe(if self.is_timed { Some((self, clock)) } else { None })
    }

    fn mark(&mut self, stage: Stage, now: Time) {
        let ns = ns_between(self.marked, now).saturating_sub(self.look_ns);
        self.spent[stage.index()] += ns;
        self.marked = now;
    }

    /// A round ends and the next one begins. `moved`: it moved frames.
    /// Returns how long it took in ns.
    #[inline]
    pub(crate) fn end_round(&mut self, now: Time, moved: bool) -> u64 {
        let ns = ns_between(self.round_began, now);
        if moved {
            let class = class_of(ns);
            self.classes[class].unsplit_ns += ns;
            if self.is_timed {
                self.end_timed(class, now);
            } else {
                self.rounds_to_timed -= 1;
                // The next one is most likely of the same kind.
                let is_unknown = self.classes[class].is_forgotten(now);
                self.is_timed = self.rounds_to_timed == 0 || is_unknown;
            }
        } else {
            self.totals[Stage::Poll.index()] += ns;
            if self.is_timed {
                self.spent = Nanoseconds::default();
            }
        }
        self.round_began = now;
        self.marked = now;
        ns
    }

    /// What this round took so far for either side, until the last mark; `None` if it is
    /// not timed.
    #[inline]
    pub(crate) fn sides(&self) -> Option<Sides> {
        if !self.is_timed {
            return None;
        }
        let sum = |stages: &[Stage]| stages.iter().map(|stage| self.spent[stage.index()]).sum();
        Some(Sides {
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

    /// The processor slept since the last round ended.
    pub(crate) fn end_sleep(&mut self, now: Time) {
        self.totals[Stage::Idle.index()] += ns_between(self.round_began, now);
        self.round_began = now;
        self.marked = now;
    }

    /// Tells everybody, as of the end of the last round.
    pub(crate) fn publish(&mut self, tally: &StageTally, is_asleep: bool) {
        self.split();
        tally.publish(&self.totals, self.round_began, is_asleep);
    }

    /// Attributes what rounds took that was not attributed yet. Those of a class of
    /// which nothing is known, or only what is too old, are split as the last timed ones.
    fn split(&mut self) {
        let fallback = self.classes[self.latest].seen;
        let now = self.round_began;
        for class in self.classes.iter_mut().filter(|class| class.unsplit_ns > 0) {
            let ns = std::mem::take(&mut class.unsplit_ns);
            let is_known = class.is_seen() && !class.is_forgotten(now);
            split_like(ns, if is_known { &class.seen } else { &fallback }, &mut self.totals);
        }
    }
}

/// Adds `ns` to `totals` in the proportions of `seen`, to the last nanosecond.
fn split_like(ns: u64, seen: &Nanoseconds, totals: &mut Nanoseconds) {
    let whole: f64 = seen.iter().map(|ns| *ns as f64).sum();
    let mut left = ns;
    if whole > 0.0 {
        let factor = ns as f64 / whole;
        for (seen, total) in seen.iter().zip(totals.iter_mut()) {
            let part = ((*seen as f64 * factor) as u64).min(left);
            *total += part;
            left -= part;
        }
    }
    // What rounding left over, and all of it as long as nothing is known.
    totals[Stage::Poll.index()] += left;
}

/// The ends of stages in a round; nothing in a round that is not timed.
pub(crate) struct Probe<'a>(Option<(&'a mut StageClock, &'a dyn Wait)>);

impl Probe<'_> {
    /// Marks nothing.
    #[cfg(test)]
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// What was done since the last mark, or since the round began, was this.
    #[inline]
    pub(crate) fn mark(&mut self, stage: Stage) {
        if let Some((stages, clock)) = &mut self.0 {
            stages.mark(stage, clock.now());
        }
    }
}

/// Gaps of 1 to [`GAP_MAX`] rounds, all equally often in the long run.
#[derive(Clone, Default)]
struct Gaps(u64);

impl Gaps {
    fn next_gap(&mut self) -> u64 {
        // Knuth's linear congruential generator (MMIX); its high bits are good.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + (self.0 >> 32) % GAP_MAX
    }
}

/// The shortest of some looks at the clock.
fn look_ns(clock: &dyn Wait) -> u64 {
    let looks = (0..16).map(|_| ns_between(clock.now(), clock.now()));
    looks.min().unwrap_or(0)
}

fn class_of(ns: u64) -> usize {
    let bits = (u64::BITS - ns.leading_zeros()).saturating_sub(FIRST_CLASS_BITS);
    (bits as usize).min(CLASSES - 1)
}

fn ns_between(earlier: Time, later: Time) -> u64 {
    later.as_ns().saturating_sub(earlier.as_ns())
}

#[cfg(test)]
#[path = "stages_tests.rs"]
mod tests;
