//! Return of free memory to the system while the daemon is idle.

use std::time::Duration;

/// Interval at which free pages are returned. An idle daemon wakes up for each call.
const EVERY: Duration = Duration::from_secs(5);

/// Returns free pages of the allocator to the system every 5 s. Never ends.
pub(crate) async fn return_free_pages_periodically() {
    loop {
        tokio::time::sleep(EVERY).await;
        suimon_allocator::return_free_pages();
    }
}
