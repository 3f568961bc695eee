//! A temporary folder and unique names.

use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::leftovers;

/// What was named so far: all rigs of a process share the machine's names.
static NAMED: AtomicU32 = AtomicU32::new(0);

/// The root of everything a test makes. Keep it alive longest: it deletes the
/// folder in which logs, sockets and state live.
#[derive(Debug)]
pub struct Rig {
    folder: TempDir,
}

impl Rig {
    /// A new one.
    ///
    /// # Errors
    /// Not run as root, which namespaces and devices need.
    pub fn new() -> Result<Self> {
        // Short, because the path of a Unix socket holds 107 bytes at most.
        Self::new_in(Path::new("/tmp"))
    }

    /// The same with its folder in another directory, for files that are to lie in memory
    /// or on a disk.
    ///
    /// # Errors
    /// Not run as root; or there is no such directory.
    pub fn new_in(parent: &Path) -> Result<Self> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "the rig makes namespaces and network devices: run it as root"
        );
        leftovers::sweep(parent);
        let folder = tempfile::Builder::new()
            .prefix(&format!("{}{}-", leftovers::FOLDER_PREFIX, process::id()))
            .tempdir_in(parent)
            .with_context(|| format!("cannot make a temporary folder in {}", parent.display()))?;
        Ok(Self { folder })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// A file in it, as text.
    pub fn path(&self, name: &str) -> String {
        self.file(name).to_string_lossy().into_owned()
    }

    /// `name` with a number nothing else in this process has.
    pub fn unique(&self, name: &str) -> String {
        format!("{name}-{}", next())
    }

    /// A name for a network device that is free on this machine: at most 15
    /// bytes, so `tag` is cut.
    pub fn device(&self, tag: &str) -> String {
        let name = format!("s{:x}{}{tag}", process::id(), next());
        name.chars().take(15).collect()
    }
}

fn next() -> u32 {
    NAMED.fetch_add(1, Ordering::Relaxed) + 1
}
