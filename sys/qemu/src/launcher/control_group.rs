//! A control group for each VM, below the launcher's own, so that a VM can be seen and held apart.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, open};

/// Where the launcher may make groups.
const FOLDER: &str = "suimon";

/// The launcher's own group of version 2, as a folder.
fn own() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        (kind.split(' ').next() == Some("cgroup2")).then(|| place.split(' ').nth(4))?
    })?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(PathBuf::from(mount).join(path.trim_start_matches('/')))
}

/// A VM's group: who writes a number there puts that process into it.
pub(crate) fn make(vm: &str) -> io::Result<OwnedFd> {
    let own = own().ok_or_else(|| io::Error::other("there are no control groups of version 2"))?;
    let folder = own.join(FOLDER).join(vm);
    fs::create_dir_all(&folder)?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(open(folder.join("cgroup.procs"), flags, Mode::empty())?)
}

/// Removes a VM's group, in which nobody is any more.
pub(crate) fn remove(vm: &str) {
    if let Some(own) = own() {
        let _ = fs::remove_dir(own.join(FOLDER).join(vm));
    }
}
