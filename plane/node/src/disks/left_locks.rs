//! Image files that somebody else has locked and is about to release.

use std::time::{Duration, Instant};

/// How long locks are waited for. The kernel releases the files of a killed process's io_uring some
/// time after the process is gone, and their locks with them. An attempt to open a failed disk has its
/// locks for less.
pub(super) const LEFT_LOCKS_MAX: Duration = Duration::from_secs(3);
const AGAIN_EVERY: Duration = Duration::from_millis(20);

/// Repeats `attempt` while it fails with an error that `is_busy` finds to be that of a locked image,
/// until `deadline`. Returns the last result.
pub(super) fn until_unlocked<T, E>(
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
