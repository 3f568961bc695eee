//! Parameters of the run that concern the device and this host.

use std::time::Duration;

use crate::probe::Probe;

/// Fast_Periodic_Time (802.1AX-2014, 6.4.4).
pub(crate) const FAST_PERIODIC: Duration = Duration::from_secs(1);
/// Slow_Periodic_Time.
pub(crate) const SLOW_PERIODIC: Duration = Duration::from_secs(30);
/// Short_Timeout_Time.
pub(crate) const SHORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Long_Timeout_Time.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(90);
/// Aggregate_Wait_Time.
pub(crate) const AGGREGATE_WAIT: Duration = Duration::from_secs(2);

/// Parameters of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Maximum deviation of a timer of the device. The standard allows 250 ms (802.1AX-2014,
    /// 6.4.10).
    pub(crate) tolerance: Duration,
    /// Maximum error of the times of received frames.
    pub(crate) jitter: Duration,
    /// Maximum time for a member to come into use.
    pub(crate) establish_limit: Duration,
    /// Whether cases that wait for the long timers run.
    pub(crate) long: bool,
    /// Whether each LACPDU is printed to standard error.
    pub(crate) trace: bool,
    /// Probe of a host behind the team.
    pub(crate) probe: Option<Probe>,
}

impl Setup {
    /// Returns the maximum time of an immediate response: one Fast_Periodic_Time, because the
    /// transmission limit may delay the response, plus tolerances.
    pub(crate) fn immediate_limit(&self) -> Duration {
        FAST_PERIODIC + self.tolerance + self.jitter
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            tolerance: Duration::from_millis(250),
            jitter: Duration::from_millis(50),
            establish_limit: Duration::from_secs(15),
            long: false,
            trace: false,
            probe: None,
        }
    }
}
