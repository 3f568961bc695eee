//! A temporary folder and unique names.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::leftovers;

/// The root of everything a test makes. Keep it alive longest: it deletes the
/// folder in which logs, sockets and state live.
#[derive(Debug)]
pub struct Rig {
    folder: TempDir,
    count: Cell<u32>,
}

impl Rig {
    /// A new one.
    ///
    /// # Errors
    /// Not run as root, which namespaces and devices need.
    pub fn new() -> Result<Self> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "the rig makes namespaces and network devices: run it as root"
        );
        // Short, because the path of a Unix socket holds 107 bytes at most.
        let parent = Path::new("/tmp");
        leftovers::sweep(parent);
        let folder = tempfile::Builder::new()
            .prefix(&format!("{}{}-", leftovers::FOLDER_PREFIX, process::id()))
            .tempdir_in(parent)
            .context("cannot make a temporary folder")?;
        Ok(Self { folder, count: Cell::new(0) })
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

    /// `name` with a number nothing else in this rig has.
    pub fn unique(&self, name: &str) -> String {
        self.count.set(self.count.get() + 1);
        format!("{name}-{}", self.count.get())
    }

    /// A name for a network device that is free on this machine: at most 15
    /// bytes, so `tag` is cut.
    pub fn device(&self, tag: &str) -> String {
        self.count.set(self.count.get() + 1);
        let name = format!("s{:x}{}{tag}", process::id(), self.count.get());
        name.chars().take(15).collect()
    }
}
