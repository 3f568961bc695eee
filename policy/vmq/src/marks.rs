//! The figures that placement goes by.

use core::time::Duration;

use crate::Load;

/// A processor above this in two measurements one after the other is hot, and sheds.
pub const HIGH: Load = Load::percent(85);
/// Shedding ends, and a queue fits where queues are shed to, at this at most.
pub const SHED_TO: Load = Load::percent(75);
/// A queue fits where processors are emptied to at this at most, a good way below
/// [`HIGH`]: what was packed is not hot by chance.
pub const FIT: Load = Load::percent(60);
/// A processor whose queues take no more than this is under-used.
pub const LOW: Load = Load::percent(30);
/// A processor that was busy for so much of its time was not given more to do than it
/// could, or it was: nobody knows.
pub const SATURATED: Load = Load::percent(97);
/// Where nothing fits, the fullest processor must become emptier by this much, or a move
/// would only turn the hot spot round.
pub const GAIN_MIN: Load = Load::percent(10);
/// A queue that takes less than this is shed only if that alone solves it.
pub const SHED_MIN: Load = Load::percent(1);
/// A processor without queues parks if what else runs there takes no more than this.
pub const PARKED_MAX: Load = Load::percent(5);

/// Shorter measurements are added up until they are this long.
pub const PERIOD_MIN: Duration = Duration::from_millis(200);
/// A processor is emptied if that was possible for so long without a break and none was hot;
/// [`HOLD_BESIDE_HOT`] times as long if one was; longer after it turned out wrong. It turned out wrong if something had to be shed sooner after it
/// than after two [`MOVE_EVERY`] for each move, or [`REGRET_MIN`].
pub const HOLD_MIN: Duration = Duration::from_secs(4);
/// See [`HOLD_MIN`].
pub const REGRET_MIN: Duration = Duration::from_secs(60);
/// How much longer the hold is after each of the first [`HOLD_STEPS`] times. After that it
/// doubles at the least, and is longer than the load was low.
pub const HOLD_STEP: Duration = Duration::from_secs(2);
/// See [`HOLD_STEP`].
pub const HOLD_STEPS: u32 = 2;
/// See [`HOLD_MIN`]. Processors that are in want of CPUs seem to have little to do now and
/// then.
pub const HOLD_BESIDE_HOT: u32 = 15;
/// The hold never is longer.
pub const HOLD_MAX: Duration = Duration::from_secs(15 * 60);
/// After so long without a mistake the hold is halved. Rests are forgotten after so long
/// too.
pub const FORGET: Duration = Duration::from_secs(30 * 60);

/// One move is allowed for each of these spans, on average.
pub const MOVE_EVERY: Duration = Duration::from_secs(60);
/// Moves that may be saved up: so many for each queue.
pub const MOVES_PER_QUEUE: u32 = 6;
/// Moves that may be saved up at the least.
pub const MOVES_MIN: u32 = 16;
/// After a step of load, for so long from the first queue that is shed, two measurements
/// suffice to shed others: what spreading takes.
pub const ALERT: Duration = Duration::from_secs(2);
/// Otherwise one queue is shed at a time, so long after the last, other than back from where it
/// was packed.
pub const REST_MIN: Duration = Duration::from_secs(4);
/// The next one so long after that; after each further one twice as long, up to
/// [`REST_MAX`], until there is a step of load.
pub const REST_NEXT: Duration = MOVE_EVERY;
/// For so long after it others may follow from processors that usually are above [`FOLLOWS`],
/// to where there is room: steps are seen late where loads vary much.
pub const FOLLOWED: Duration = Duration::from_secs(10);
/// See [`FOLLOWED`].
pub const FOLLOWS: Load = Load::percent(90);
/// See [`REST_NEXT`].
pub const REST_MAX: Duration = Duration::from_secs(15 * 60);
/// A step of load is more than the most of late by this at the least, and by twice what that
/// was above the mean.
pub const STEP_MIN: Load = Load::percent(10);
/// There is no step before so many times [`MOVE_EVERY`] have passed since the last as moves
/// were made since, but for so many, whose way back was not paid for.
pub const UNPAID_FREE: u32 = 2;
/// The most of late fades to the mean: by one part in so many with each measurement, in some
/// two minutes.
pub const PEAK_FADES_IN: u32 = 512;
/// What is usual is the running mean of about so many measurements, of some four seconds.
pub const USUAL_OF: u32 = 16;
/// A processor that is usually busy for so much of its time is saturated: the time is never
/// spent to the last bit.
pub const SATURATED_USUALLY: Load = Load::percent(95);
/// A processor that was not hot for so long and is now has another load than before.
pub const COOL: Duration = Duration::from_secs(2 * 60);
/// A queue is not shed again before it was measured so many times where it is. The first time
/// it may have been there for a part of it only.
pub const MEASURED_MIN: u32 = 3;
/// A move that was not carried out is not tried again for so long.
pub const RETRY: Duration = Duration::from_secs(5);
/// The effect of a move is what was measured in so many measurements after it.
pub const EFFECT_MEASUREMENTS: u32 = 2;
