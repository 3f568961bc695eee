//! Rates of workers.

use serde::{Serialize, Serializer};
use suimon_contract::{WorkerStages, WorkerStatus};

use crate::top::interval::{Interval, counter_increase, share_permille};

/// Rates and time shares of one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename = "ProcessorRates")]
pub(crate) struct WorkerRates {
    pub(crate) id: u16,
    pub(crate) cpu: Option<u16>,
    pub(crate) queues: usize,
    /// CPU time in thousandths of one CPU.
    pub(crate) cpu_permille: u64,
    /// Time not sleeping in thousandths of the interval.
    pub(crate) busy_permille: u64,
    pub(crate) frames_per_s: u64,
    pub(crate) batches_per_s: u64,
    pub(crate) sleeps_per_s: u64,
    pub(crate) asleep: bool,
    pub(crate) yields_per_s: u64,
    #[serde(rename = "yielding")]
    pub(crate) is_yielding: bool,
    /// Time by stage in thousandths of the worker's time.
    pub(crate) stages_permille: StageShares,
}

/// Name of each stage and its share of a worker's time, in thousandths. The sum is 1000 except for
/// rounding, or 0 if the worker reported no new time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StageShares(pub(crate) [(&'static str, u64); WorkerStages::COUNT]);

impl StageShares {
    /// Returns the increase of each stage divided by the increase of all stages. The snapshots'
    /// interval is not the divisor, since a worker publishes its times with a delay.
    pub(crate) fn between(before: &WorkerStages, after: &WorkerStages) -> Self {
        let mut shares = after.named_durations();
        for ((_, ns), (_, before)) in shares.iter_mut().zip(before.named_durations()) {
            *ns = counter_increase(before, *ns);
        }
        let total = shares.iter().fold(0_u64, |sum, (_, ns)| sum.saturating_add(*ns));
        for (_, share) in &mut shares {
            *share = self::share_permille(*share, total);
        }
        Self(shares)
    }

    /// Returns the share of the stage with this name.
    pub(crate) fn share_permille(&self, stage: &str) -> u64 {
        self.0.iter().find(|(name, _)| *name == stage).map_or(0, |(_, share)| *share)
    }
}

impl Serialize for StageShares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0)
    }
}

pub(crate) fn worker_rates(
    interval: Interval,
    before: &WorkerStatus,
    after: &WorkerStatus,
) -> WorkerRates {
    WorkerRates {
        id: after.id,
        cpu: after.cpu,
        queues: after.queues,
        cpu_permille: interval.permille(before.cpu_time_ns, after.cpu_time_ns),
        busy_permille: interval.permille(before.busy_ns, after.busy_ns),
        frames_per_s: interval.per_second(before.frames, after.frames),
        batches_per_s: interval.per_second(before.batches, after.batches),
        sleeps_per_s: interval.per_second(before.sleeps, after.sleeps),
        asleep: after.asleep,
        yields_per_s: interval.per_second(before.yields, after.yields),
        is_yielding: after.is_yielding,
        stages_permille: StageShares::between(&before.stages, &after.stages),
    }
}
