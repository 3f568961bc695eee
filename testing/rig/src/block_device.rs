//! Block device whose medium can be stalled, resumed, and made to fail: a loop device on a file
//! that nbdfuse provides, whose data qemu-nbd serves. Device-mapper's targets for this purpose are
//! not available in every kernel.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;

use crate::loop_device::LoopDevice;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{is_listening, wait_until};

const START_LIMIT: Duration = Duration::from_secs(90);

/// Block device for fault injection. Dropping it removes the device, which must be closed by then.
#[derive(Debug)]
pub struct BlockDevice {
    /// `None` only during the drop.
    device: Option<LoopDevice>,
    path: String,
    shown: Process,
    medium: Process,
}

impl BlockDevice {
    /// Creates a device with `bytes` zeros.
    ///
    /// # Errors
    /// A program is missing, or the kernel lacks loop devices or FUSE.
    pub fn new(rig: &Rig, bytes: u64) -> Result<Self> {
        let name = rig.unique("medium");
        let (file, socket, shown_at) = (
            rig.path(&name),
            rig.path(&format!("{name}.sock")),
            rig.path(&format!("{name}.shown")),
        );
        fs::File::create(&file)?.set_len(bytes)?;
        fs::File::create(&shown_at)?;
        let arguments = ["qemu-nbd", "-f", "raw", "-t", "--cache=none", "-k", &socket, &file];
        let medium = Process::start(rig, "qemu-nbd", &arguments)?;
        wait_until("socket of qemu-nbd", START_LIMIT, || Ok(is_listening(&socket)))?;
        let nbdfuse = Process::start(rig, "nbdfuse", &["nbdfuse", &shown_at, "--unix", &socket])?;
        wait_until("file of nbdfuse", START_LIMIT, || Ok(fs::metadata(&shown_at)?.len() == bytes))?;
        let device = LoopDevice::attach_with(&[&shown_at])?;
        let path = device.path().to_owned();
        Ok(Self { device: Some(device), path, shown: nbdfuse, medium })
    }

    /// Returns the path of the device.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Stalls the medium: no request completes from now on.
    pub fn stall(&mut self) {
        self.medium.signal(Signal::STOP);
    }

    /// Resumes the medium: pending and later requests complete.
    pub fn resume(&mut self) {
        self.medium.signal(Signal::CONT);
    }

    /// Makes all requests fail from now on.
    pub fn fail(&mut self) {
        self.medium.kill();
    }
}

impl Drop for BlockDevice {
    fn drop(&mut self) {
        // A stalled device cannot be closed.
        self.resume();
        self.device = None;
        let _ = self.shown.stop();
        let _ = self.medium.stop();
    }
}
