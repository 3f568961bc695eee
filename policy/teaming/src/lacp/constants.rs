//! Constants of the protocol (IEEE 802.1AX-2014, 6.4.4).

use core::time::Duration;

/// Interval of LACPDUs to a Partner that uses Short Timeouts.
pub(crate) const FAST_PERIODIC_TIME: Duration = Duration::from_secs(1);
/// Interval of LACPDUs to a Partner that uses Long Timeouts.
pub(crate) const SLOW_PERIODIC_TIME: Duration = Duration::from_secs(30);
/// Time for which received information is valid with Short Timeouts.
pub(crate) const SHORT_TIMEOUT_TIME: Duration = Duration::from_secs(3);
/// Time for which received information is valid with Long Timeouts.
pub(crate) const LONG_TIMEOUT_TIME: Duration = Duration::from_secs(90);
/// Time after which an end that is out of sync counts as churning.
pub(crate) const CHURN_DETECTION_TIME: Duration = Duration::from_secs(60);
/// Delay before links attach to an Aggregator, so that several attach together.
pub(crate) const AGGREGATE_WAIT_TIME: Duration = Duration::from_secs(2);
/// Protocol version in transmitted PDUs.
pub(crate) const VERSION: u8 = 1;
/// `CollectorMaxDelay` in transmitted LACPDUs (6.4.2.3), in tens of microseconds: 50 ms, an upper
/// bound of the delay until a worker services the queue of a received frame.
pub(crate) const COLLECTOR_MAX_DELAY: u16 = 5_000;
/// Maximum number of LACPDUs of a member in any [`FAST_PERIODIC_TIME`] (6.4.16).
pub(crate) const LACPDUS_SENT_MAX: usize = 3;
/// Number of bits of an operational key that encode the speed.
pub(crate) const SPEED_BITS: u32 = 5;
/// Largest administrative key: the maximum value of the key bits that the speed code leaves.
pub(crate) const ADMIN_KEY_MAX: u16 = (1 << (16 - SPEED_BITS)) - 1;
