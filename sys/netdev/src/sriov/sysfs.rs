//! Access to sysfs: short text files and links, whose contents are validated.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{Mode, OFlags};

/// Maximum size of a sysfs file in bytes: one page.
const TEXT_BYTES_MAX: u64 = 4096;
/// Maximum number of directory entries: twice the functions of a PCI domain.
const DEVICES_MAX: usize = 1 << 17;

/// sysfs tree at a root directory, which is `/sys` except in tests.
#[derive(Clone, Debug)]
pub(super) struct Sysfs {
    root: PathBuf,
}

impl Sysfs {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the directories of all PCI functions, by name; none on a machine without PCI.
    ///
    /// # Errors
    /// The tree cannot be read.
    pub(super) fn pci_devices(&self) -> io::Result<Vec<PathBuf>> {
        let folder = self.root.join("bus/pci/devices");
        let entries = match std::fs::read_dir(&folder) {
            // A machine without PCI.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut paths: Vec<_> =
            entries.take(DEVICES_MAX).flatten().map(|entry| entry.path()).collect();
        paths.sort_unstable();
        Ok(paths)
    }

    /// Returns the folder of a PCI function.
    pub(super) fn pci_device(&self, address: suimon_quantity::PciAddress) -> PathBuf {
        self.root.join("bus/pci/devices").join(address.to_string())
    }
}

/// Returns the first page of a file without surrounding white space; `None` if it cannot be read or
/// is not UTF-8.
pub(super) fn read_text(path: &Path) -> Option<String> {
    let bytes = read_bytes(path)?;
    Some(String::from_utf8(bytes).ok()?.trim().to_owned())
}

/// Returns the first page of a file.
pub(super) fn read_bytes(path: &Path) -> Option<Vec<u8>> {
    // Opening a file that is not of sysfs, such as a pipe, must not block.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    File::from(file).take(TEXT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the decimal number in a file; `None` if it cannot be read or is not a number.
pub(super) fn read_number<T: FromStr>(path: &Path) -> Option<T> {
    read_text(path)?.parse().ok()
}

/// Returns the hexadecimal number, with prefix `0x`, in a file; `None` if it cannot be read or is
/// not a number.
pub(super) fn read_hex(path: &Path) -> Option<u32> {
    u32::from_str_radix(read_text(path)?.strip_prefix("0x")?, 16).ok()
}

/// Returns the last component of a link's target; `None` if the file is no link.
pub(super) fn read_link_name(path: &Path) -> Option<String> {
    let target = std::fs::read_link(path).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

/// Returns the names of the entries of a directory; none if it does not exist.
pub(super) fn list_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(DEVICES_MAX).flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Writes to an existing file.
///
/// # Errors
/// The errno of the call.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    File::from(file).write_all(value.as_bytes())
}
