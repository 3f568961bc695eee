//! Whether what settings say is possible.

use anyhow::{Result, ensure};

/// Each of these keys has a value from a least to a most.
pub(crate) fn check_bounds(keys: &[(&str, u64, u64, u64)]) -> Result<()> {
    for &(key, value, least, most) in keys {
        ensure!(
            (least..=most).contains(&value),
            "{key}: from {least} to {most} are possible, not {value}"
        );
    }
    Ok(())
}
