//! Control group (cgroup v2) of each VM, below the launcher's own group, for accounting and limits.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, open};

/// Name of the control group below the launcher's that contains the VMs' groups.
const FOLDER: &str = "suimon";

/// Returns the folder of the launcher's own control group; `None` without cgroup v2.
fn own_control_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        (kind.split(' ').next() == Some("cgroup2")).then(|| mount.split(' ').nth(4))?
    })?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(PathBuf::from(mount).join(path.trim_start_matches('/')))
}

/// Creates a VM's control group. Returns its file `cgroup.procs`: a process id written there moves
/// the process into the group.
pub(crate) fn make(vm: &str) -> io::Result<OwnedFd> {
    let own_group = own_control_group()
        .ok_or_else(|| io::Error::other("the host has no cgroup v2 hierarchy"))?;
    let folder = own_group.join(FOLDER).join(vm);
    fs::create_dir_all(&folder)?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(open(folder.join("cgroup.procs"), flags, Mode::empty())?)
}

/// Removes a VM's control group, if it has no process.
pub(crate) fn remove(vm: &str) {
    if let Some(own_group) = own_control_group() {
        let _ = fs::remove_dir(own_group.join(FOLDER).join(vm));
    }
}
