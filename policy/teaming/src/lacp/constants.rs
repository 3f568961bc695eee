//! The protocol's constants (IEEE 802.1AX-2014, 6.4.4).

use core::time::Duration;

/// Between two periodic transmissions with Short Timeouts.
pub(crate) const FAST_PERIODIC_TIME: Duration = Duration::from_secs(1);
/// Between two periodic transmissions with Long Timeouts.
pub(crate) const SLOW_PERIODIC_TIME: Duration = Duration::from_secs(30);
/// Until received information is invalid with Short Timeouts.
pub(crate) const SHORT_TIMEOUT_TIME: Duration = Duration::from_secs(3);
/// Until received information is invalid with Long Timeouts.
pub(crate) const LONG_TIMEOUT_TIME: Duration = Duration::from_secs(90);
/// How long both sides may take to agree.
pub(crate) const CHURN_DETECTION_TIME: Duration = Duration::from_secs(60);
/// How long links are waited for, so that several attach at once.
pub(crate) const AGGREGATE_WAIT_TIME: Duration = Duration::from_secs(2);
/// The version that is sent.
pub(crate) const VERSION: u8 = 1;
/// What is said of the longest delay of a received frame, in tens of
/// microseconds (6.4.2.3, `CollectorMaxDelay`): 50 ms, which a processor that
/// sleeps or is busy with another queue stays below.
pub(crate) const COLLECTOR_MAX_DELAY: u16 = 5_000;
/// LACPDUs in any [`FAST_PERIODIC_TIME`] (6.4.16).
pub(crate) const SENT_MAX: usize = 3;
