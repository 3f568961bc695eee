//! Time limits of a migration's steps, on both nodes.

use std::time::Duration;

/// Interval between progress queries of the source, in units of `Driver::peer_request_interval` (1
/// s).
pub(super) const PROGRESS_QUERY_INTERVALS: u32 = 10;

const REST_LIMIT_S: u32 = 60;
const SWITCH_LIMIT_S: u32 = 60;

/// Limit on copying the last disk writes while the VM is stopped. Beyond it the VM continues on the
/// source.
pub(super) const FINAL_COPY_TIMEOUT: Duration = Duration::from_secs(REST_LIMIT_S as u64);
/// Limit on the transfer of the remaining state by QEMU, and on the cancellation of a migration.
pub(super) const SWITCHOVER_TIMEOUT: Duration = Duration::from_secs(SWITCH_LIMIT_S as u64);

/// Time in seconds for requests between the nodes and for closing disks, beyond the other limits of
/// a migration.
const MARGIN_S: u32 = 50;

/// Time without a request of the source after which the destination abandons a migration, in units
/// of `Driver::peer_request_interval` (1 s). The source sends no request from its last progress
/// query until it has copied the last disk writes and QEMU has transferred the remaining state;
/// then it requests the activation.
pub(super) const SILENCE_INTERVALS_MAX: u32 =
    PROGRESS_QUERY_INTERVALS + REST_LIMIT_S + SWITCH_LIMIT_S + MARGIN_S;
