//! Whether what plans say is possible.

use anyhow::{Result, bail, ensure};

/// A plan's name names a file.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_plain) {
        bail!("name: letters, digits and hyphens make it up, and it names a file");
    }
    Ok(())
}

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

/// A folder for a store has an absolute path, because the daemon wants one.
pub(crate) fn check_folder(folder: &str) -> Result<()> {
    ensure!(folder.starts_with('/'), "folder: write an absolute path, not `{folder}`");
    Ok(())
}
