//! Temporary folder of a test, and unique names.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::leftovers;

/// Variable with the folder of the test, set by `scripts/isolated`.
const TEST_FOLDER: &str = "SUIMON_TEST_FOLDER";

/// Number of names assigned by this process, shared by its rigs.
static NAMED: AtomicU32 = AtomicU32::new(0);

/// Root of everything that a test creates. It must outlive the rest: dropping it deletes the folder
/// with logs, sockets and state.
#[derive(Debug)]
pub struct Rig {
    folder: TempDir,
    /// Locked as long as the rig exists, so that another process can distinguish a live folder from
    /// a leftover.
    _owner: File,
}

impl Rig {
    /// Creates a rig in the folder for temporary files (`TMPDIR`, by default `/tmp`).
    ///
    /// # Errors
    /// The process is not root, as namespaces and devices require.
    pub fn new() -> Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    /// Creates a rig in another directory, for files that must be in memory or on a disk. Its path
    /// should be short: that of a Unix socket has at most 107 bytes.
    ///
    /// # Errors
    /// The process is not root, or the directory does not exist.
    pub fn new_in(parent: &Path) -> Result<Self> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "the rig creates namespaces and network devices; run it as root"
        );
        leftovers::sweep(parent);
        let folder = leftovers::make_folder(parent)
            .with_context(|| format!("cannot create a folder in {}", parent.display()))?;
        let owner = leftovers::lock(folder.path())?.context("the new folder is locked")?;
        Ok(Self { folder, _owner: owner })
    }

    /// Runs a test with a separate rig. The test may use `?`: its error becomes a panic before the
    /// rig is dropped, so that the folder with the logs is kept.
    ///
    /// # Panics
    /// The test returns an error, or no rig can be created.
    pub fn run(test: impl FnOnce(&Self) -> Result<()>) {
        let rig = Self::new().unwrap();
        test(&rig).unwrap();
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Returns the path of a file in the folder, as text.
    pub fn path(&self, name: &str) -> String {
        self.file(name).to_string_lossy().into_owned()
    }

    /// Returns `name` with a number that is unique in this process.
    pub fn unique(&self, name: &str) -> String {
        format!("{name}-{}", next())
    }

    /// Returns an unused name for a network device: at most 15 bytes, so `tag` may be truncated.
    pub fn device(&self, tag: &str) -> String {
        let name = format!("s{:x}{}{tag}", process::id(), next());
        name.chars().take(15).collect()
    }
}

impl Drop for Rig {
    /// Keeps the folder of a test that panics, for the test runner, which shows it.
    fn drop(&mut self) {
        let is_run_by_runner = std::env::var_os(TEST_FOLDER).is_some();
        self.folder.disable_cleanup(is_run_by_runner && std::thread::panicking());
    }
}

fn next() -> u32 {
    NAMED.fetch_add(1, Ordering::Relaxed) + 1
}
