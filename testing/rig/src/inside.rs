//! Execution of functions in a named network namespace.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::namespace::Namespace;

/// Folder of the namespaces of `ip netns`.
const FOLDER: &str = "/run/netns";

/// Moves the calling thread to a namespace permanently.
///
/// # Errors
/// There is no such namespace.
pub fn enter_namespace(name: &str) -> Result<()> {
    let path = Path::new(FOLDER).join(name);
    let file = File::open(&path).with_context(|| path.display().to_string())?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

impl Namespace {
    /// Runs `work` on a separate thread in the namespace.
    ///
    /// # Errors
    /// The namespace no longer exists, or `work` panics.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let entered = || enter_namespace(self.name()).map(|()| work());
        thread::scope(|scope| scope.spawn(entered).join())
            .map_err(|_| anyhow!("the thread in namespace {} panicked", self.name()))?
    }
}
