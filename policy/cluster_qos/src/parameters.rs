//! Timing parameters on which all nodes of a cluster must agree.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

const MILLION: u128 = 1_000_000;

/// Lease duration, report intervals and other parameters of the protocol between nodes and leader.
/// They must be equal on all nodes that share a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Duration of a lease, from the time at which the answered report was made, on the node's
    /// clock.
    pub lease: Duration,
    /// Maximum relative difference in speed between the clocks of two nodes, in parts per million.
    /// The setting of clocks is irrelevant: times of different clocks are not compared.
    pub drift_ppm: u32,
    /// Report interval of a node whose demand exceeds its reservation, which uses a lease beyond
    /// its reservation, or which has disks of shared policies.
    #[serde(rename = "report_every")]
    pub active_report_interval: Duration,
    /// Minimum interval between reports of a node.
    #[serde(rename = "report_pause")]
    pub report_interval_min: Duration,
    /// Report interval of a node whose demand is within its reservation and that has no disks of
    /// shared policies.
    #[serde(rename = "idle_every")]
    pub idle_report_interval: Duration,
    /// Minimum interval between two rounds of the leader, in which it writes grants.
    #[serde(rename = "round_pause")]
    pub round_interval_min: Duration,
    /// Time without a grant after which a node changes to the fallback rates of its disks, if
    /// configured.
    pub fallback_after: Duration,
    /// Reservation of each node with disks in addition to its minimums, in normalised operations
    /// per second, so that no disk stalls.
    #[serde(rename = "floor_iops")]
    pub base_reservation_iops: u64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(3),
            drift_ppm: 10_000,
            active_report_interval: Duration::from_secs(1),
            report_interval_min: Duration::from_millis(250),
            idle_report_interval: Duration::from_secs(10),
            round_interval_min: Duration::from_millis(250),
            fallback_after: Duration::from_secs(30),
            base_reservation_iops: 64,
        }
    }
}

/// Reason for which [`Parameters::check`] rejects parameters. The previous ones stay in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParametersError {
    /// A duration is not shorter than another that must be longer.
    #[error("{longer} must be longer than {shorter}; raise {longer} or lower {shorter}")]
    DurationOrder {
        /// Duration that must be shorter.
        shorter: &'static str,
        /// Duration that must be longer.
        longer: &'static str,
    },
    /// `drift_ppm` is outside 1 to 100 000.
    #[error("drift_ppm {0} is outside of 1 to 100000; quartz clocks are within 200")]
    DriftOutOfRange(u32),
}

impl Parameters {
    /// Validates the parameters.
    ///
    /// # Errors
    ///
    /// [`ParametersError::DurationOrder`] with two contradicting durations, or
    /// [`ParametersError::DriftOutOfRange`].
    pub fn check(&self) -> Result<(), ParametersError> {
        if self.drift_ppm == 0 || self.drift_ppm > 100_000 {
            return Err(ParametersError::DriftOutOfRange(self.drift_ppm));
        }
        let order = [
            ("zero", Duration::ZERO, "report_pause", self.report_interval_min),
            ("zero", Duration::ZERO, "round_pause", self.round_interval_min),
            ("twice report_every", self.active_report_interval * 2, "lease", self.lease),
            ("report_pause", self.report_interval_min, "report_every", self.active_report_interval),
            ("report_every", self.active_report_interval, "idle_every", self.idle_report_interval),
            // The leader receives the acknowledgement of a grant, which answers one report of an
            // idle node, with the next report.
            (
                "twice idle_every and three leases",
                self.idle_report_interval * 2 + self.lease * 3,
                "fallback_after",
                self.fallback_after,
            ),
        ];
        for (shorter, short, longer, long) in order {
            if short >= long {
                return Err(ParametersError::DurationOrder { shorter, longer });
            }
        }
        Ok(())
    }

    /// Returns the longest time that another clock can show for a `span` of one clock.
    pub(crate) fn max_elapsed(&self, span: Duration) -> Duration {
        let ns = (span.as_nanos() * (MILLION + u128::from(self.drift_ppm))).div_ceil(MILLION);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Returns the shortest time that another clock can show for a `span` of one clock.
    pub(crate) fn min_elapsed(&self, span: Duration) -> Duration {
        let ns = span.as_nanos() * MILLION / (MILLION + u128::from(self.drift_ppm));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}
