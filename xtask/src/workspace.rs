//! Where the workspace is and which cargo builds it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The directory of the root manifest.
pub(crate) fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .context("xtask is not inside a workspace")
}

/// The cargo that started us, in the workspace's directory.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}
