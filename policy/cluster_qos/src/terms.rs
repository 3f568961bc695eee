//! What all nodes of a cluster agree on.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

const MILLION: u128 = 1_000_000;

/// How long grants last and how often who says what. All nodes of a store have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// For how long a grant is in force, from the moment at which the report that it answers
    /// was made, on the node's own clock.
    pub lease: Duration,
    /// By how many millionths the clocks of two nodes may differ in rate. How they are set does
    /// not matter: no time is compared with that of another clock.
    pub drift_ppm: u32,
    /// A node that asks for more than is reserved for it reports so often.
    pub report_every: Duration,
    /// No node reports more often, whatever happens.
    pub report_pause: Duration,
    /// A node that asks for no more than is reserved for it reports so often.
    pub idle_every: Duration,
    /// The leader gives grants no more often.
    pub round_pause: Duration,
    /// A node that has heard nothing for so long goes over to what its disks may fall back on, if
    /// that was configured.
    pub fallback_after: Duration,
    /// So much is reserved for each node with disks beside its minimums, in normalised operations
    /// per second, so that no disk stands still.
    pub floor_iops: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(3),
            drift_ppm: 10_000,
            report_every: Duration::from_secs(1),
            report_pause: Duration::from_millis(250),
            idle_every: Duration::from_secs(10),
            round_pause: Duration::from_millis(250),
            fallback_after: Duration::from_secs(30),
            floor_iops: 64,
        }
    }
}

/// Terms that cannot be kept. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TermsError {
    /// One time is not below another.
    #[error("{shorter} must be less than {longer}; lower the one or raise the other")]
    Order {
        /// What has to be shorter.
        shorter: &'static str,
        /// What has to be longer.
        longer: &'static str,
    },
    /// Clocks are not that bad.
    #[error("drift_ppm {0} is not from 1 to 100000; quartz is within 200")]
    Drift(u32),
}

impl Terms {
    /// Whether they can be kept.
    ///
    /// # Errors
    /// What contradicts what.
    pub fn check(&self) -> Result<(), TermsError> {
        if self.drift_ppm == 0 || self.drift_ppm > 100_000 {
            return Err(TermsError::Drift(self.drift_ppm));
        }
        let order = [
            ("zero", Duration::ZERO, "report_pause", self.report_pause),
            ("zero", Duration::ZERO, "round_pause", self.round_pause),
            ("twice report_every", self.report_every * 2, "lease", self.lease),
            ("report_pause", self.report_pause, "report_every", self.report_every),
            ("report_every", self.report_every, "idle_every", self.idle_every),
            // A leader hears of a grant of an idle node's one report by the next.
            (
                "twice idle_every and three leases",
                self.idle_every * 2 + self.lease * 3,
                "fallback_after",
                self.fallback_after,
            ),
        ];
        for (shorter, short, longer, long) in order {
            if short >= long {
                return Err(TermsError::Order { shorter, longer });
            }
        }
        Ok(())
    }

    /// How long a span of one clock may take on another, at most.
    pub(crate) fn at_most(&self, span: Duration) -> Duration {
        let ns = (span.as_nanos() * (MILLION + u128::from(self.drift_ppm))).div_ceil(MILLION);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// How long a span of one clock takes on another, at least.
    pub(crate) fn at_least(&self, span: Duration) -> Duration {
        let ns = span.as_nanos() * MILLION / (MILLION + u128::from(self.drift_ppm));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}
