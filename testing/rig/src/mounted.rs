//! File systems mounted for a test.

use anyhow::{Context, Result};

use crate::command::run;

/// Mount point, unmounted on drop. Processes with open files on it must have ended before.
#[derive(Debug)]
pub struct Mounted {
    point: String,
}

impl Mounted {
    /// Mounts a block device at a folder that is created for it.
    ///
    /// # Errors
    /// The folder exists already, or the kernel does not support the file system.
    pub fn device(device: &str, point: &str) -> Result<Self> {
        std::fs::create_dir(point).with_context(|| point.to_owned())?;
        run(&["mount", "-o", "noatime", device, point])?;
        Ok(Self::taken_over(point))
    }

    /// Mounts a tmpfs of limited size, such as `24m`, at a folder that is created for it.
    ///
    /// # Errors
    /// The folder exists already, or the size is invalid.
    pub fn tmpfs(size: &str, point: &str) -> Result<Self> {
        std::fs::create_dir(point).with_context(|| point.to_owned())?;
        run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", point])?;
        Ok(Self::taken_over(point))
    }

    /// Takes ownership of an existing mount.
    #[must_use]
    pub fn taken_over(point: &str) -> Self {
        Self { point: point.to_owned() }
    }

    /// Returns the path of the mount point.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.point
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run(&["umount", &self.point]);
    }
}
