//! Block devices on files.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::run;

/// Variable with the folder of a test, set by `scripts/isolated`.
pub(crate) const TEST_FOLDER: &str = "SUIMON_TEST_FOLDER";
/// File in that folder that lists loop devices with their sequence numbers, in case the test is
/// killed.
const LIST: &str = "loop-devices";

/// Loop device; dropping it detaches the device.
#[derive(Debug)]
pub struct LoopDevice {
    path: String,
}

impl LoopDevice {
    /// Attaches a free device to a file, with direct I/O.
    ///
    /// # Errors
    /// There is no free device, or no such file.
    pub fn attach(file: &str) -> Result<Self> {
        Self::attach_with(&["--direct-io=on", file])
    }

    /// Attaches a free device with these arguments of `losetup`, of which the last is the file.
    ///
    /// # Errors
    /// As [`LoopDevice::attach`].
    pub(crate) fn attach_with(arguments: &[&str]) -> Result<Self> {
        let output = run(&[&["losetup", "--find", "--show"], arguments].concat())?;
        let device = Self { path: output.trim().to_owned() };
        device.record()?;
        Ok(device)
    }

    fn record(&self) -> Result<()> {
        let Some(folder) = env::var_os(TEST_FOLDER) else { return Ok(()) };
        let name = self.path.trim_start_matches("/dev/");
        // Every attachment of a device has a different number (sysfs-block(5)).
        let number = fs::read_to_string(format!("/sys/block/{name}/diskseq"))
            .with_context(|| format!("{} has no sequence number", self.path))?;
        let file = Path::new(&folder).join(LIST);
        let mut list = OpenOptions::new().create(true).append(true).open(file)?;
        Ok(writeln!(list, "{} {}", self.path, number.trim())?)
    }

    /// Returns the path of the device, like `/dev/loop0`.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = run(&["losetup", "--detach", &self.path]);
    }
}
