//! Whether the oldest Rust that the workspace says it needs compiles it: a newer one takes
//! what that one does not know.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// It compiles all programs and what they are made of.
    Yes,
    /// It is not here and cannot be had: there is no rustup, or rustup reaches nobody.
    /// Which distribution brings it builds with it anyway.
    NotHere,
}

/// Compiles with it what users build, aside from everything else.
///
/// # Errors
/// Something does not compile.
pub(crate) fn check(root: &Path) -> Result<Checked> {
    let version = rust_version(&std::fs::read_to_string(root.join("Cargo.toml"))?)?;
    let output = workspace::cargo(root).arg("--version").output()?;
    if is_of(&String::from_utf8_lossy(&output.stdout), &version) {
        return Ok(Checked::Yes);
    }
    let toolchain = format!("{version}.0");
    if !is_installed(&toolchain) {
        return Ok(Checked::NotHere);
    }
    // Others are at work meanwhile.
    let status = Command::new("nice")
        .args([
            "rustup",
            "run",
            &toolchain,
            "cargo",
            "check",
            "--workspace",
            "--bins",
            "--lib",
            "--quiet",
        ])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", root.join("target/oldest"))
        .status()
        .context("cannot run rustup")?;
    ensure!(status.success(), "Rust {toolchain} does not compile this; see above");
    Ok(Checked::Yes)
}

/// Whether rustup has the toolchain, or had to fetch it and could.
fn is_installed(toolchain: &str) -> bool {
    let words = ["toolchain", "install", toolchain, "--profile", "minimal", "--no-self-update"];
    let mut rustup = Command::new("rustup");
    let status = rustup.args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// `rust-version` in a manifest.
fn rust_version(manifest: &str) -> Result<String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = line.context("Cargo.toml names no rust-version")?;
    Ok(version.trim_matches('"').to_owned())
}

/// Whether what a cargo says of its version is of this one.
fn is_of(said: &str, version: &str) -> bool {
    let own = said.split_whitespace().nth(1).unwrap_or_default();
    own.strip_prefix(version).is_some_and(|patch| patch.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        assert_eq!(rust_version("[package]\nrust-version = \"1.85\"\n").unwrap(), "1.85");
        assert!(rust_version("[package]\n").is_err());
        assert!(is_of("cargo 1.85.1 (d73d2caf9 2024-12-31)\n", "1.85"));
        for said in ["cargo 1.95.0 (f2d3ce0bd 2026-03-21)", "cargo 1.8.5", "cargo 1.850.0", ""] {
            assert!(!is_of(said, "1.85"), "{said}");
        }
    }
}
