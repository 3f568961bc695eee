//! What is known of the device and the machine before the run.

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

/// The run's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// By how much a timer of the device may be off. The standard allows 250 ms
    /// (802.1AX-2014, 6.4.10).
    pub(crate) tolerance: Duration,
    /// By how much the times at which frames are seen may be off.
    pub(crate) jitter: Duration,
    /// How long a member may take to come into use.
    pub(crate) establish_limit: Duration,
    /// Whether cases that wait for the long timers are run.
    pub(crate) long: bool,
    /// Whether every LACPDU is told on standard error.
    pub(crate) trace: bool,
    /// What is behind the team.
    pub(crate) probe: Option<Probe>,
}

impl Setup {
    /// How long an answer may take that the device need not delay: one
    /// Fast_Periodic_Time, because the limit of transmission may be in force.
    pub(crate) fn soon(&self) -> Duration {
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
