//! Location of the workspace and the cargo commands that build it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Arguments that build all programs, examples and tests. Later commands of a run that build a
/// part of the workspace use the same features and find everything built.
pub(crate) const BUILD_ALL: [&str; 3] = ["build", "--workspace", "--all-targets"];

/// Returns the directory of the root manifest.
pub(crate) fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .context("xtask is not inside a workspace")
}

/// Returns the cargo that started this program, with the workspace's directory as its working
/// directory.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Returns a cargo that compiles the workspace's own crates with clippy-driver, which is rustc with
/// clippy's lints. Lints and machine code then come from one compilation; `cargo clippy` would
/// check every crate a second time.
///
/// With the pinned compiler, warnings are errors. Other releases have other lints, which must not
/// break a build.
///
/// # Errors
/// rust-toolchain.toml cannot be read.
pub(crate) fn build(root: &Path) -> Result<Command> {
    let mut command = cargo(root);
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    if is_pinned_compiler(root)? {
        // The separator of arguments in this variable is clippy's own.
        command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    }
    Ok(command)
}

/// Returns the program of a command, for messages.
pub(crate) fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn is_pinned_compiler(root: &Path) -> Result<bool> {
    let toolchain = std::fs::read_to_string(root.join("rust-toolchain.toml"))
        .context("cannot read rust-toolchain.toml")?;
    let pinned = toolchain.split('"').nth(1).context("rust-toolchain.toml names no channel")?;
    let output = cargo(root).arg("--version").output().context("cannot run cargo")?;
    Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().nth(1) == Some(pinned))
}
