//! Detection of support for punching holes (`fallocate(2)`), and modification times, which the
//! detection preserves.
//!
//! The kernel accepts the punching of a hole in a block device that does not support it, and
//! reports the error only on execution. For devices, support is therefore read from the limits of
//! the device (`Documentation/ABI/stable/sysfs-block`).

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FallocateFlags, FileType, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use suimon_ports::FileTime;

use crate::file_system::{BTRFS, TMPFS, XFS};

/// Returns true if holes can be punched into a file or block device. `opened` is its status,
/// `system` the magic number of its file system, `len` its length in bytes. Preserves the
/// modification time, because differencing VHDs identify their parent by it.
pub(crate) fn can_punch_holes(fd: &OwnedFd, opened: &Stat, system: u64, len: u64) -> bool {
    if FileType::from_raw_mode(opened.st_mode) == FileType::RegularFile {
        if [TMPFS, XFS, BTRFS].contains(&system) {
            return true;
        }
        // A probe changes the modification time. If the time cannot be restored, support is
        // assumed: zeros are written if punching a hole fails.
        let modified = modification_time(opened);
        if set_modification_time(fd, modified).is_err() {
            return true;
        }
        let can_punch = probe_punch(fd, len);
        // This cannot fail: the same call succeeded before.
        let _ = set_modification_time(fd, modified);
        return can_punch;
    }
    let device = opened.st_rdev;
    can_zero_device(Path::new(DEVICES), rustix::fs::major(device), rustix::fs::minor(device))
}

/// Folder with a link to each block device, named by its numbers (`8:1`).
const DEVICES: &str = "/sys/dev/block";

/// Returns true if a device zeroes ranges without a transfer of zeros, which is how the kernel
/// punches a hole (`blkdev_fallocate`). A device with discard only does not support this, because
/// discarded sectors may keep their contents. `devices`: [`DEVICES`].
fn can_zero_device(devices: &Path, major: u32, minor: u32) -> bool {
    let device = devices.join(format!("{major}:{minor}"));
    // A partition uses the queue of its device.
    let limits =
        ["queue", "../queue"].map(|queue| device.join(queue).join("write_zeroes_max_bytes"));
    let limit = limits.iter().find_map(|limit| std::fs::read_to_string(limit).ok());
    limit.and_then(|bytes| bytes.trim().parse::<u64>().ok()).is_some_and(|bytes| bytes > 0)
}

/// Tries to punch a hole beyond the end of a file of `len` bytes. Returns true if the file system
/// supports it.
fn probe_punch(fd: &OwnedFd, len: u64) -> bool {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let beyond_end = len.div_ceil(4096).saturating_mul(4096);
    !matches!(
        rustix::fs::fallocate(fd, flags, beyond_end, 4096),
        Err(Errno::OPNOTSUPP | Errno::NOSYS)
    )
}

/// Returns a file's modification time.
pub(crate) fn modification_time(status: &Stat) -> FileTime {
    let ns = u32::try_from(status.st_mtime_nsec).unwrap_or(0);
    FileTime { unix_s: status.st_mtime, ns }
}

/// Sets a file's modification time and leaves its access time unchanged.
pub(crate) fn set_modification_time(fd: &OwnedFd, time: FileTime) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: time.unix_s, tv_nsec: time.ns.into() },
    };
    Ok(rustix::fs::futimens(fd, &times)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Writes a queue limit of a device or partition to a file in the format of sysfs.
    #[test]
    fn a_device_punches_holes_if_it_zeroes_ranges() {
        let root = tempfile::tempdir().unwrap();
        let numbers = root.path().join("dev");
        fs::create_dir(&numbers).unwrap();
        for (minor, limit) in [(0, "0\n"), (16, "2147450880\n"), (32, "none\n")] {
            let device = root.path().join(format!("sd{minor}"));
            let partition = device.join("partition");
            fs::create_dir_all(device.join("queue")).unwrap();
            fs::create_dir_all(&partition).unwrap();
            fs::write(device.join("queue/write_zeroes_max_bytes"), limit).unwrap();
            fs::write(device.join("queue/discard_max_bytes"), "4096\n").unwrap();
            symlink(&device, numbers.join(format!("8:{minor}"))).unwrap();
            symlink(&partition, numbers.join(format!("8:{}", minor + 1))).unwrap();
        }
        let can_zero = |minor| can_zero_device(&numbers, 8, minor);
        assert_eq!([0, 1, 16, 17, 32, 33].map(can_zero), [false, false, true, true, false, false]);
        assert!(!can_zero(48), "a device without limits");
    }
}
