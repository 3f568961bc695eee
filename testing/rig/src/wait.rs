//! Waiting for a condition, never for a time.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Shortest pause between two looks at a condition.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Pause between two looks, as a multiple of the time that a look takes. A look often starts a
/// program, and tests wait beside each other: most of the CPU time is for what they wait for.
const PAUSE_PER_LOOK: u32 = 4;

/// Waits until `look` gives a value.
///
/// # Errors
/// After `limit`, with `what` was waited for and the last error `look` had.
pub fn until_some<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        let began = Instant::now();
        let last = match look() {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        if Instant::now() >= deadline {
            match last {
                Some(error) => bail!("no {what} within {limit:?}: {error:#}"),
                None => bail!("no {what} within {limit:?}"),
            }
        }
        thread::sleep((began.elapsed() * PAUSE_PER_LOOK).clamp(PAUSE_MIN, PAUSE_MAX));
    }
}

/// Waits until `look` says yes.
///
/// # Errors
/// After `limit`, with `what` was waited for.
pub fn until(what: &str, limit: Duration, mut look: impl FnMut() -> Result<bool>) -> Result<()> {
    until_some(what, limit, || Ok(look()?.then_some(())))
}
