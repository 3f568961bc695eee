//! A block device whose medium can be made to stop, to answer again, and to fail: a loop
//! device on a file that nbdfuse shows, of which qemu-nbd has the bytes. Device-mapper's
//! targets for this are not in every kernel.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;

use crate::loop_device::LoopDevice;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{is_listening, until};

const START_LIMIT: Duration = Duration::from_secs(90);

/// See the module. Dropping it takes it away; the device has to be closed by then.
#[derive(Debug)]
pub struct BlockDevice {
    /// There until this is dropped.
    device: Option<LoopDevice>,
    path: String,
    shown: Process,
    medium: Process,
}

impl BlockDevice {
    /// A device of zeros with this many bytes.
    ///
    /// # Errors
    /// A program is not there, or the kernel has no loop devices or FUSE.
    pub fn new(rig: &Rig, bytes: u64) -> Result<Self> {
        let name = rig.unique("medium");
        let (file, socket, shown_at) = (
            rig.path(&name),
            rig.path(&format!("{name}.sock")),
            rig.path(&format!("{name}.shown")),
        );
        fs::File::create(&file)?.set_len(bytes)?;
        fs::File::create(&shown_at)?;
        let words = ["qemu-nbd", "-f", "raw", "-t", "--cache=none", "-k", &socket, &file];
        let medium = Process::start(rig, "qemu-nbd", &words)?;
        until("socket of qemu-nbd", START_LIMIT, || Ok(is_listening(&socket)))?;
        let shown = Process::start(rig, "nbdfuse", &["nbdfuse", &shown_at, "--unix", &socket])?;
        until("file of nbdfuse", START_LIMIT, || Ok(fs::metadata(&shown_at)?.len() == bytes))?;
        let device = LoopDevice::attach_with(&[&shown_at])?;
        let path = device.path().to_owned();
        Ok(Self { device: Some(device), path, shown, medium })
    }

    /// The device.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// From now on nothing is answered.
    pub fn stall(&mut self) {
        self.medium.signal(Signal::STOP);
    }

    /// What waits is answered, and what comes.
    pub fn go_on(&mut self) {
        self.medium.signal(Signal::CONT);
    }

    /// From now on everything fails.
    pub fn fail(&mut self) {
        self.medium.kill();
    }
}

impl Drop for BlockDevice {
    fn drop(&mut self) {
        // Nobody can let go of a device that does not answer.
        self.go_on();
        self.device = None;
        let _ = self.shown.stop();
        let _ = self.medium.stop();
    }
}
