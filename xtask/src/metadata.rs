//! The part of `cargo metadata` that the checks read.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::workspace;

/// Workspace as cargo reports it.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// Crates of the workspace.
    pub(crate) packages: Vec<Package>,
    /// Root directory of the workspace.
    pub(crate) workspace_root: PathBuf,
    /// Directory of everything that cargo builds.
    pub(crate) target_directory: PathBuf,
}

/// Package of the workspace, as `cargo metadata` reports it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    /// Identifier in the output of cargo and nextest.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// Dependency of a crate; `path` is set only for one inside the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, otherwise `dev` or `build`.
    pub(crate) kind: Option<String>,
    pub(crate) path: Option<PathBuf>,
}

/// Library, program or test that cargo builds.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl Package {
    /// Returns the folder of the crate.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    /// Returns true if the crate's tests start the workspace's programs: the rig and crates that
    /// depend on it.
    pub(crate) fn starts_programs(&self) -> bool {
        const RIG: &str = "suimon-rig";
        self.name == RIG || self.dependencies.iter().any(|edge| edge.name == RIG)
    }
}

impl Target {
    /// Returns true if this is a program, except tests, examples and benchmarks.
    pub(crate) fn is_program(&self) -> bool {
        self.kind.iter().any(|kind| kind == "bin")
    }
}

/// Reads the workspace in `root`. Needs neither network nor lock file.
pub(crate) fn read(root: &Path) -> Result<Metadata> {
    let output = workspace::cargo(root)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    serde_json::from_slice(&output.stdout).context("cargo metadata gave something else than JSON")
}
