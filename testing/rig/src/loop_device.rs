//! A block device on a file.

use anyhow::Result;

use crate::command::run;

/// The device; detached when this is dropped.
#[derive(Debug)]
pub struct LoopDevice {
    path: String,
}

impl LoopDevice {
    /// Attaches a free device to a file, past the page cache.
    ///
    /// # Errors
    /// There is none, or no such file.
    pub fn attach(file: &str) -> Result<Self> {
        let said = run(&["losetup", "--find", "--show", "--direct-io=on", file])?;
        Ok(Self { path: said.trim().to_owned() })
    }

    /// The device, like `/dev/loop0`.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = run(&["losetup", "--detach", &self.path]);
    }
}
