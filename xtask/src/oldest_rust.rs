//! Compiles the workspace with the oldest Rust that Cargo.toml promises (`rust-version`).

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::session::Session;
use crate::workspace;

/// Result of the check with the oldest compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All libraries and programs compile.
    Compiles,
    /// The compiler is not installed and cannot be installed, with the reason.
    NotInstalled(String),
}

/// Checks libraries and programs with the oldest supported compiler, in a target directory of its
/// own.
///
/// # Errors
/// Something does not compile.
pub(crate) fn check(session: &Session) -> Result<Outcome> {
    let root = session.root();
    let version = rust_version(&std::fs::read_to_string(root.join("Cargo.toml"))?)?;
    let output = workspace::cargo(root).arg("--version").output()?;
    if is_minor_release(&String::from_utf8_lossy(&output.stdout), &version) {
        // The other stages have compiled everything with this version.
        return Ok(Outcome::Compiles);
    }
    let toolchain = format!("{version}.0");
    if !is_installed(&toolchain) {
        return Ok(Outcome::NotInstalled(format!("rustup cannot install Rust {toolchain}")));
    }
    let mut command = Command::new("rustup");
    command
        .args(["run", &toolchain, "cargo", "check", "--workspace", "--bins", "--lib"])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target_directory(root));
    let status = session.run(&mut command)?;
    ensure!(status.success(), "Rust {toolchain} does not compile the workspace; see above");
    Ok(Outcome::Compiles)
}

fn target_directory(root: &Path) -> std::path::PathBuf {
    root.join("target/oldest")
}

/// Returns true if rustup has the toolchain, after trying to install it.
fn is_installed(toolchain: &str) -> bool {
    let arguments = ["toolchain", "install", toolchain, "--profile", "minimal", "--no-self-update"];
    let mut rustup = Command::new("rustup");
    let status = rustup.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Returns the value of `rust-version` in a manifest.
fn rust_version(manifest: &str) -> Result<String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = line.context("Cargo.toml names no rust-version")?;
    Ok(version.trim_matches('"').to_owned())
}

/// Returns true if the output of `cargo --version` is of this minor release.
fn is_minor_release(output: &str, version: &str) -> bool {
    let installed = output.split_whitespace().nth(1).unwrap_or_default();
    installed.strip_prefix(version).is_some_and(|patch| patch.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_distinguished() {
        assert_eq!(rust_version("[package]\nrust-version = \"1.85\"\n").unwrap(), "1.85");
        assert!(rust_version("[package]\n").is_err());
        assert!(is_minor_release("cargo 1.85.1 (d73d2caf9 2024-12-31)\n", "1.85"));
        for output in ["cargo 1.95.0 (f2d3ce0bd 2026-03-21)", "cargo 1.8.5", "cargo 1.850.0", ""] {
            assert!(!is_minor_release(output, "1.85"), "{output}");
        }
    }
}
