//! Range checks of settings.

use anyhow::{Result, ensure};

/// Checks that each key has a value within its range. Entries are (key, value, smallest value,
/// largest value).
///
/// # Errors
/// A value is out of range; the error names the key.
pub(crate) fn check_bounds(keys: &[(&str, u64, u64, u64)]) -> Result<()> {
    for &(key, value, min, max) in keys {
        ensure!((min..=max).contains(&value), "{key}: {value} is outside of {min} to {max}");
    }
    Ok(())
}
