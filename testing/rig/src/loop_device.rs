//! A block device on a file.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::run;

/// Variable by which `scripts/isolated` names the folder of a test.
pub(crate) const TEST_FOLDER: &str = "SUIMON_TEST_FOLDER";
/// File in it that lists loop devices, each with its sequence number, for the case that the test
/// is killed.
const LIST: &str = "loop-devices";

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
        Self::attach_with(&["--direct-io=on", file])
    }

    /// Attaches a free device as `losetup` is told, whose last argument is the file.
    ///
    /// # Errors
    /// As [`LoopDevice::attach`].
    pub(crate) fn attach_with(words: &[&str]) -> Result<Self> {
        let said = run(&[&["losetup", "--find", "--show"], words].concat())?;
        let device = Self { path: said.trim().to_owned() };
        device.record()?;
        Ok(device)
    }

    fn record(&self) -> Result<()> {
        let Some(folder) = env::var_os(TEST_FOLDER) else { return Ok(()) };
        let name = self.path.trim_start_matches("/dev/");
        // Every attachment of a device has another number (sysfs-block(5)).
        let number = fs::read_to_string(format!("/sys/block/{name}/diskseq"))
            .with_context(|| format!("{} has no sequence number", self.path))?;
        let file = Path::new(&folder).join(LIST);
        let mut list = OpenOptions::new().create(true).append(true).open(file)?;
        Ok(writeln!(list, "{} {}", self.path, number.trim())?)
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
