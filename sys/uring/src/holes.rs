//! Detection of support for holes, and modification times, which the detection preserves.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FallocateFlags, FileType, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use suimon_ports::FileTime;

use crate::host_file::TMPFS;

/// Magic numbers of further file systems that always support holes (`statfs(2)`).
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683e;

/// Returns true if holes can be punched into a file with the status `opened`. The modification time
/// is preserved: differencing VHDs identify their parent by it.
pub(crate) fn can_punch(fd: &OwnedFd, opened: &Stat, system: u64, len: u64) -> bool {
    if FileType::from_raw_mode(opened.st_mode) == FileType::RegularFile {
        if [TMPFS, XFS, BTRFS].contains(&system) {
            return true;
        }
        // A probe changes the modification time. If it cannot be restored, support is assumed:
        // zeros are written if a hole fails.
        let modified = modified_of(opened);
        if set_modified(fd, modified).is_err() {
            return true;
        }
        let can_punch = probe_punch(fd, len);
        // Cannot fail: it succeeded just now.
        let _ = set_modified(fd, modified);
        return can_punch;
    }
    probe_punch(fd, len)
}

/// Tries to punch a hole beyond the file's end.
fn probe_punch(fd: &OwnedFd, len: u64) -> bool {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let behind = len.div_ceil(4096).saturating_mul(4096);
    !matches!(rustix::fs::fallocate(fd, flags, behind, 4096), Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

/// Returns a file's modification time.
pub(crate) fn modified_of(status: &Stat) -> FileTime {
    let ns = u32::try_from(status.st_mtime_nsec).unwrap_or(0);
    FileTime { unix_s: status.st_mtime, ns }
}

/// Sets a file's modification time and leaves its access time unchanged.
pub(crate) fn set_modified(fd: &OwnedFd, time: FileTime) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: time.unix_s, tv_nsec: time.ns.into() },
    };
    Ok(rustix::fs::futimens(fd, &times)?)
}
