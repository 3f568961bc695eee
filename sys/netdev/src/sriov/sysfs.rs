//! The files of sysfs: short texts and links, read without trust.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{Mode, OFlags};

/// A file of sysfs has one page at most.
const TEXT_BYTES_MAX: u64 = 4096;
/// Functions that a PCI domain has, twice; more is not sysfs.
const DEVICES_MAX: usize = 1 << 17;

/// A tree like `/sys`.
#[derive(Clone, Debug)]
pub(super) struct Sysfs {
    root: PathBuf,
}

impl Sysfs {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folders of all PCI functions, by name.
    ///
    /// # Errors
    /// The tree has none, or may not be read.
    pub(super) fn pci_devices(&self) -> io::Result<Vec<PathBuf>> {
        let folder = self.root.join("bus/pci/devices");
        let found = match std::fs::read_dir(&folder) {
            // A machine without PCI.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?,
        };
        let mut paths: Vec<_> =
            found.take(DEVICES_MAX).flatten().map(|entry| entry.path()).collect();
        paths.sort_unstable();
        Ok(paths)
    }

    /// The folder of a PCI function.
    pub(super) fn pci_device(&self, address: suimon_quantity::PciAddress) -> PathBuf {
        self.root.join("bus/pci/devices").join(address.to_string())
    }
}

/// The first page of a file, without the space around it; `None` if it cannot be read or is
/// no text.
pub(super) fn text(path: &Path) -> Option<String> {
    let bytes = bytes(path)?;
    Some(String::from_utf8(bytes).ok()?.trim().to_owned())
}

/// The first page of a file.
pub(super) fn bytes(path: &Path) -> Option<Vec<u8>> {
    // What is no file of sysfs, like a pipe, must not hold anybody up.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    File::from(file).take(TEXT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The number that a file holds.
pub(super) fn number<T: FromStr>(path: &Path) -> Option<T> {
    text(path)?.parse().ok()
}

/// The number that a file holds in hexadecimal, with `0x`.
pub(super) fn hex(path: &Path) -> Option<u32> {
    u32::from_str_radix(text(path)?.strip_prefix("0x")?, 16).ok()
}

/// The last part of where a link leads.
pub(super) fn link_name(path: &Path) -> Option<String> {
    let target = std::fs::read_link(path).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

/// Names in a folder; none if there is no such folder.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let found = std::fs::read_dir(folder).into_iter().flatten().take(DEVICES_MAX).flatten();
    let mut names: Vec<_> =
        found.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Writes to a file that exists.
///
/// # Errors
/// What the kernel says of it.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    File::from(file).write_all(value.as_bytes())
}
