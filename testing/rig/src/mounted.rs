//! File systems mounted for a test.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::run;
use crate::wait::wait_until;

/// Time limit for unmounting.
const UNMOUNT_LIMIT: Duration = Duration::from_secs(60);

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

    /// Unmounts the file system as soon as it is not used any more. The kernel releases files of
    /// io_uring only after the process that used them has ended.
    ///
    /// # Errors
    /// The file system is still in use after a minute.
    pub fn unmount(self) -> Result<()> {
        let point = self.point.clone();
        wait_until("unmounting", UNMOUNT_LIMIT, || Ok(run(&["umount", &point]).is_ok()))?;
        std::mem::forget(self);
        Ok(())
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
