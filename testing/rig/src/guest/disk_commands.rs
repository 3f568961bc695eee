//! Disks as the guest's kernel sees them, and commands that a guest executes on them.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::machine::Guest;
use super::spec::{Boot, GuestSpec};
use crate::command::Output;
use crate::wait::wait_for_value;

/// Prefix of the files of a background verification in a guest.
const VERIFY: &str = "/tmp/verify";

/// Properties of a disk in the guest's kernel (`Documentation/ABI/stable/sysfs-block`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestDiskInfo {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Logical sector size in bytes.
    pub logical_sector: u32,
    /// Physical sector size in bytes.
    pub physical_sector: u32,
    /// Serial number that the guest reads.
    pub serial: String,
    /// True if the disk is read-only for the guest.
    pub is_read_only: bool,
    /// Maximum size of a discard in bytes; 0 if unsupported.
    pub discard_bytes_max: u64,
    /// Maximum size of a write-zeroes request in bytes; 0 if unsupported.
    pub zeroes_bytes_max: u64,
    /// Cache mode: `write back` or `write through`.
    pub cache: String,
    /// Number of hardware queues.
    pub queues: usize,
    /// Virtio features that its driver negotiated.
    pub features: u64,
}

impl Guest {
    /// Loads the modules for the guest's disks, unless it has booted from one.
    pub(crate) fn load_disk_drivers(&mut self, spec: &GuestSpec) -> Result<()> {
        let has_disk = |is_on_ide| spec.disks.iter().any(|disk| disk.is_on_ide() == is_on_ide);
        if has_disk(false) && spec.boot == Boot::Memory {
            self.load("virtio_blk", "")?;
        }
        if has_disk(true) {
            self.load("sd_mod", "")?;
            self.load("ata_piix", "")?;
        }
        Ok(())
    }

    /// Returns the properties that the guest's kernel reports for a virtio disk, like `vda`.
    ///
    /// # Errors
    /// There is no such disk.
    pub fn disk(&mut self, name: &str) -> Result<GuestDiskInfo> {
        let files = [
            "size",
            "queue/logical_block_size",
            "queue/physical_block_size",
            "ro",
            "queue/discard_max_bytes",
            "queue/write_zeroes_max_bytes",
            "cache_type",
            "device/features",
            "serial",
        ];
        let read = files.map(|file| format!("echo $(cat {file})")).join("; ");
        let output =
            self.run(&format!("cd /sys/block/{name} && ls mq | wc -l && {{ {read}; }}"))?;
        // The serial number is last, because it may be empty.
        let mut lines = output.lines();
        let mut next = || lines.next().with_context(|| format!("too little: {output}"));
        let queues = next()?.parse()?;
        Ok(GuestDiskInfo {
            queues,
            bytes: next()?.parse::<u64>()? * 512,
            logical_sector: next()?.parse()?,
            physical_sector: next()?.parse()?,
            is_read_only: next()? == "1",
            discard_bytes_max: next()?.parse()?,
            zeroes_bytes_max: next()?.parse()?,
            cache: next()?.to_owned(),
            // The first character is bit 0.
            features: next()?.chars().rev().fold(0, |bits, bit| bits << 1 | u64::from(bit == '1')),
            serial: next().unwrap_or_default().to_owned(),
        })
    }

    /// Fails if the kernel has logged an error of a disk.
    ///
    /// # Errors
    /// The logged errors.
    pub fn check_disks(&mut self) -> Result<()> {
        let pattern = "i/o error|not a head|blocked for more|reset|remount|ext4-fs error";
        let output =
            self.run_any(&format!("dmesg | grep -iE '{pattern}'"), Duration::from_secs(120))?;
        ensure!(output.stdout.is_empty(), "errors in the guest's kernel log: {}", output.stdout);
        Ok(())
    }

    /// Begins to write and verify a disk for `seconds`, with the program `verify-disk` in the
    /// guest. [`Guest::finish_verifying`] returns the result.
    ///
    /// # Errors
    /// The guest has ended.
    pub fn begin_verifying(&mut self, device: &str, seconds: u64, extra: &str) -> Result<()> {
        self.begin(&format!("verify-disk {device} {seconds} {extra}"))
    }

    /// Starts the program `verify-disk` in the background of the guest's shell. It writes and
    /// verifies until [`Guest::end_verifying`]; other commands can be run meanwhile.
    ///
    /// # Errors
    /// The guest has ended.
    pub fn start_verifying(&mut self, device: &str) -> Result<()> {
        self.run(&format!(
            "rm -f {VERIFY}-*; (verify-disk {device} 86400 1024 16 {VERIFY}-stop >{VERIFY}-said \
             2>&1; echo $? >{VERIFY}-code) </dev/null >/dev/null 2>&1 &"
        ))?;
        Ok(())
    }

    /// Ends the verification started by [`Guest::start_verifying`], after all blocks were read
    /// again. Returns the output of `verify-disk`.
    ///
    /// # Errors
    /// The disk has other contents than were written, or the verification has not ended after
    /// `limit`.
    pub fn end_verifying(&mut self, limit: Duration) -> Result<String> {
        self.run(&format!("touch {VERIFY}-stop"))?;
        let code = wait_for_value("end of verify-disk", limit, || {
            let read = self.run_any(&format!("cat {VERIFY}-code"), limit)?;
            Ok(read.stdout.trim().parse::<i32>().ok())
        })?;
        let output = self.run(&format!("cat {VERIFY}-said"))?;
        ensure!(code == 0, "the disk's contents differ from what was written: {output}");
        Ok(output)
    }

    /// Returns the output of the verification if it succeeded.
    ///
    /// # Errors
    /// The disk has other contents than were written, or the verification has not ended after
    /// `limit`.
    pub fn finish_verifying(&mut self, limit: Duration) -> Result<String> {
        let Output { code, stdout, .. } = self.finish(limit)?;
        if code != 0 {
            bail!("the disk's contents differ from what was written: {stdout}");
        }
        Ok(stdout)
    }
}
