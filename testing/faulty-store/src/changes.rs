//! Changes of a file's attributes.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use fuser::{Errno, TimeOrNow};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};

/// Changes of file attributes other than the length; `None` keeps the attribute.
pub(crate) struct Changes {
    pub(crate) mode: Option<u32>,
    pub(crate) owner: (Option<u32>, Option<u32>),
    pub(crate) accessed: Option<TimeOrNow>,
    pub(crate) modified: Option<TimeOrNow>,
}

impl Changes {
    pub(crate) fn make(&self, path: &Path) -> Result<(), Errno> {
        if let Some(mode) = self.mode {
            fs::set_permissions(path, Permissions::from_mode(mode & 0o7777))?;
        }
        if self.owner != (None, None) {
            lchown(path, self.owner.0, self.owner.1)?;
        }
        if self.accessed.is_some() || self.modified.is_some() {
            let times = Timestamps {
                last_access: timespec(self.accessed),
                last_modification: timespec(self.modified),
            };
            rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(io::Error::from)?;
        }
        Ok(())
    }
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let time = match time {
        None => return Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => SystemTime::now(),
        Some(TimeOrNow::SpecificTime(time)) => time,
    };
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timespec {
        tv_sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: since.subsec_nanos().into(),
    }
}
