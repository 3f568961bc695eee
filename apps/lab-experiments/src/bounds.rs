//! Range checks of settings.

use anyhow::{Result, ensure};

/// Checks that each key has a value within its range. Entries consist of key, value, smallest and
/// largest value.
pub(crate) fn check_bounds(keys: &[(&str, u64, u64, u64)]) -> Result<()> {
    for &(key, value, min, max) in keys {
        ensure!((min..=max).contains(&value), "{key}: {value} is outside of {min} to {max}");
    }
    Ok(())
}
