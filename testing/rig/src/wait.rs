//! Waiting for a condition, never for a time.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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
        thread::sleep(LOOK_EVERY);
    }
}

/// Waits until `look` says yes.
///
/// # Errors
/// After `limit`, with `what` was waited for.
pub fn until(what: &str, limit: Duration, mut look: impl FnMut() -> Result<bool>) -> Result<()> {
    until_some(what, limit, || Ok(look()?.then_some(())))
}
