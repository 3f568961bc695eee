//! File systems that are mounted for a test.

use anyhow::{Context, Result};

use crate::command::run;

/// Something mounted, until this is dropped. Whoever has files on it must have ended before.
#[derive(Debug)]
pub struct Mounted {
    point: String,
}

impl Mounted {
    /// Mounts what is on a block device at a folder that is made for it.
    ///
    /// # Errors
    /// The folder is there, or the kernel does not know what is on the device.
    pub fn device(device: &str, point: &str) -> Result<Self> {
        std::fs::create_dir(point).with_context(|| point.to_owned())?;
        run(&["mount", "-o", "noatime", device, point])?;
        Ok(Self::taken_over(point))
    }

    /// Mounts a tmpfs of limited size, such as `24m`, at a folder that is made for it.
    ///
    /// # Errors
    /// The folder is there, or the size is none.
    pub fn tmpfs(size: &str, point: &str) -> Result<Self> {
        std::fs::create_dir(point).with_context(|| point.to_owned())?;
        run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", point])?;
        Ok(Self::taken_over(point))
    }

    /// What somebody has mounted there.
    #[must_use]
    pub fn taken_over(point: &str) -> Self {
        Self { point: point.to_owned() }
    }

    /// Where it is.
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
