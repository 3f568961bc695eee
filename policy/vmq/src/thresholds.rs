//! Thresholds and intervals of dynamic VMQ placement.

use core::time::Duration;

use crate::Load;

/// Default high mark: a worker above it in two consecutive measurements is hot and sheds queues.
pub const HIGH_MARK_DEFAULT: Load = Load::percent(85);
/// Load of a worker at which shedding ends, and up to which it accepts shed queues, with the
/// default high mark.
pub const SHED_TARGET_DEFAULT: Load = Load::percent(75);
/// Load up to which a worker accepts queues of emptied workers, with the default high mark. Far
/// below [`HIGH_MARK_DEFAULT`], so that normal variation does not make it hot.
pub const PACK_LIMIT_DEFAULT: Load = Load::percent(60);
/// Default low mark: a worker whose queues have at most this load is under-used, and its queues are
/// moved to others.
pub const LOW_MARK_DEFAULT: Load = Load::percent(30);
/// Load from which a worker counts as saturated, so that the demand of its queues is unknown.
pub const SATURATION_LOAD: Load = Load::percent(97);
/// Minimum reduction of the highest load by a move to a worker without room; a smaller one would
/// only move the hot spot.
pub const LOAD_REDUCTION_MIN: Load = Load::percent(10);
/// Load below which a queue is shed only if that alone solves the overload.
pub const SHED_QUEUE_LOAD_MIN: Load = Load::percent(1);
/// Load of other work up to which a worker without queues counts as parked.
pub const PARKED_LOAD_MAX: Load = Load::percent(5);

/// Largest weight of a NIC, as in Hyper-V.
pub(crate) const WEIGHT_MAX: u8 = 100;

/// Minimum length of a measurement; shorter ones are added up.
pub const MEASUREMENT_PERIOD_MIN: Duration = Duration::from_millis(200);
/// Initial delay before packing: time for which emptying a worker must have been possible
/// continuously, with no worker hot; [`PACK_DELAY_HOT_FACTOR`] times as long if one was hot. The
/// delay grows after a wrong decision: queues had to be shed within two [`MOVE_INTERVAL`] per move,
/// or [`WRONG_PACK_WINDOW_MIN`] if longer.
pub const PACK_DELAY_MIN: Duration = Duration::from_secs(4);
/// Minimum time after packing within which shedding makes it a wrong decision; see
/// [`PACK_DELAY_MIN`].
pub const WRONG_PACK_WINDOW_MIN: Duration = Duration::from_secs(60);
/// Increase of the delay before packing after each of the first [`PACK_DELAY_STEPS`] wrong
/// decisions. Later ones at least double it and make it longer than the period of low load.
pub const PACK_DELAY_STEP: Duration = Duration::from_secs(2);
/// Number of small increases; see [`PACK_DELAY_STEP`].
pub const PACK_DELAY_STEPS: u32 = 2;
/// Factor of the delay before packing while a worker is hot; see [`PACK_DELAY_MIN`]. Workers that
/// the kernel gives too little CPU time occasionally appear idle.
pub const PACK_DELAY_HOT_FACTOR: u32 = 15;
/// Maximum delay before packing, reached after repeated wrong decisions; see [`PACK_DELAY_MIN`].
pub const PACK_DELAY_MAX: Duration = Duration::from_secs(15 * 60);
/// Time without a wrong decision after which the delay before packing is halved. The interval
/// between single shed queues ([`SHED_INTERVAL_INITIAL`]) is reset after the same time.
pub const BACKOFF_RESET_AFTER: Duration = Duration::from_secs(30 * 60);

/// Average interval between moves because of load that the move budget permits.
pub const MOVE_INTERVAL: Duration = Duration::from_secs(60);
/// Number of moves per queue that the budget permits at once.
pub const MOVE_BURST_PER_QUEUE: u32 = 6;
/// Minimum number of moves that the budget permits at once.
pub const MOVE_BURST_MIN: u32 = 16;
/// Duration of an alert from the first shed queue after a load step, in which two measurements
/// suffice to shed: the time that spreading takes.
pub const ALERT_DURATION: Duration = Duration::from_secs(2);
/// Minimum interval between the last queue shed during an alert and the first shed after it.
pub const SHED_INTERVAL_MIN: Duration = Duration::from_secs(4);
/// Interval after the first queue shed outside of an alert. It doubles after each further one up to
/// [`SHED_INTERVAL_MAX`], until a load step.
pub const SHED_INTERVAL_INITIAL: Duration = MOVE_INTERVAL;
/// Time after a queue was shed outside of an alert in which others may follow, from workers whose
/// usual load is above [`FURTHER_SHED_LOAD_MIN`] to workers with room: steps are detected late if
/// loads vary strongly.
pub const FURTHER_SHED_WINDOW: Duration = Duration::from_secs(10);
/// Usual load above which a worker may shed a further queue within [`FURTHER_SHED_WINDOW`] of the
/// previous one.
pub const FURTHER_SHED_LOAD_MIN: Load = Load::percent(90);
/// Maximum interval between single shed queues; see [`SHED_INTERVAL_INITIAL`].
pub const SHED_INTERVAL_MAX: Duration = Duration::from_secs(15 * 60);
/// Minimum excess of a load step over the recent maximum. The excess must also be at least twice
/// the difference between that maximum and the mean.
pub const LOAD_STEP_MIN: Load = Load::percent(10);
/// Number of moves since the last load step, excluding prepaid returns, that do not delay the
/// detection of the next step. Each further one delays it by [`MOVE_INTERVAL`].
pub const MOVES_WITHOUT_STEP_DELAY: u32 = 2;
/// Divisor of the decay of the recent maximum: it moves to the mean by one part in this number per
/// measurement, within about two minutes.
pub const PEAK_DECAY_DIVISOR: u32 = 512;
/// Usual load from which a worker counts as saturated. It is below [`SATURATION_LOAD`], because
/// some time always remains unused on average.
pub const SATURATION_MEAN_LOAD: Load = Load::percent(95);
/// Time without being hot after which a worker that becomes hot counts as newly hot.
pub const NEWLY_HOT_AFTER: Duration = Duration::from_secs(2 * 60);
/// Number of measurements on a worker before its queue may be shed again. The first may cover only
/// part of the time.
pub const MEASUREMENTS_BEFORE_SHED_MIN: u32 = 3;
/// Time before a failed move is repeated.
pub const MOVE_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Number of measurements after a move that determine its effect.
pub const EFFECT_MEASUREMENTS: u32 = 2;
