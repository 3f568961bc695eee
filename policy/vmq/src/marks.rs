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
/// A processor is emptied if that was possible for so long without a break; longer after
/// it turned out wrong. It turned out wrong if something had to be shed sooner after it
/// than after two [`MOVE_EVERY`] for each move, or [`REGRET_MIN`].
pub const HOLD_MIN: Duration = Duration::from_secs(4);
/// See [`HOLD_MIN`].
pub const REGRET_MIN: Duration = Duration::from_secs(60);
/// How much longer the hold is after each of the first [`HOLD_STEPS`] times. After that it
/// doubles at the least, and is longer than the load was low.
pub const HOLD_STEP: Duration = Duration::from_secs(2);
/// See [`HOLD_STEP`].
pub const HOLD_STEPS: u32 = 2;
/// The hold never is longer.
pub const HOLD_MAX: Duration = Duration::from_secs(15 * 60);
/// After so long without a mistake the hold is halved. A rest is forgotten after so long
/// too.
pub const FORGET: Duration = Duration::from_secs(30 * 60);

/// One move is allowed for each of these spans, on average.
pub const MOVE_EVERY: Duration = Duration::from_secs(60);
/// Moves that may be saved up: so many for each queue.
pub const MOVES_PER_QUEUE: u32 = 6;
/// Moves that may be saved up at the least.
pub const MOVES_MIN: u32 = 16;
/// After it was shed other than back from where it was packed, a queue stays so long; each
/// time it is shed again, four times as long as before, up to [`REST_MAX`].
pub const REST_MIN: Duration = Duration::from_secs(1);
/// See [`REST_MIN`].
pub const REST_MAX: Duration = Duration::from_secs(30 * 60);
/// A move that was not carried out is not tried again for so long.
pub const RETRY: Duration = Duration::from_secs(5);
/// The effect of a move is what was measured in so many measurements after it.
pub const EFFECT_MEASUREMENTS: u32 = 2;
