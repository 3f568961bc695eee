//! Retries on image files whose locks are about to be released.

use std::time::{Duration, Instant};

/// Time for which locks are waited for. The kernel releases the files of a killed process's
/// io_uring, and their locks, some time after the process has ended. An attempt to open a failed
/// disk holds its locks for less time.
pub(crate) const LOCK_RELEASE_TIMEOUT: Duration = Duration::from_secs(3);
const AGAIN_EVERY: Duration = Duration::from_millis(20);

/// Repeats `attempt` until it succeeds, fails with an error for which `is_busy` returns false, or
/// `deadline` has passed. Returns the last result. Sleeps between attempts.
pub(crate) fn retry_until_unlocked<T, E>(
    deadline: Instant,
    is_busy: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                std::thread::sleep(AGAIN_EVERY);
            }
            result => return result,
        }
    }
}
