//! Removal of what a killed harness left behind.
//!
//! The folder of a rig lists the processes that it started, each with its start time, because a
//! process id may have been reused since. A live rig holds the lock of its folder. The test runner
//! starts tests in separate namespaces (`scripts/isolated`), which the kernel removes; this module
//! serves `make run`, benchmarks and tests that are started by hand.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::command::run;
use crate::hugepages;

/// Prefix of the names of rigs' folders.
const FOLDER_PREFIX: &str = "suimon-rig-";
/// Prefix of the names of rigs' namespaces; the process id of the harness follows.
pub(crate) const NAMESPACE_PREFIX: &str = "smr-";

/// File of a folder that lists processes.
const LIST: &str = "processes";
/// File of a folder that its live rig has locked.
const OWNER: &str = "owner";

/// Creates the folder of a rig. It can be removed by [`sweep`] only once it is locked.
pub(crate) fn make_folder(parent: &Path) -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir_in(parent)?)
}

/// Locks a rig's folder. Returns `None` if another process holds its lock.
///
/// # Errors
/// The folder does not exist.
pub(crate) fn lock(folder: &Path) -> Result<Option<File>> {
    let path = folder.join(OWNER);
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
    }
}

/// Records that `pid` was started.
pub(crate) fn record(folder: &Path, pid: u32) -> Result<()> {
    let started = start_time(pid).unwrap_or_default();
    let mut list = OpenOptions::new().create(true).append(true).open(folder.join(LIST))?;
    writeln!(list, "{pid} {started}")?;
    Ok(())
}

/// Removes what ended harnesses left in the usual parent directories of rigs.
pub fn sweep_leftovers() {
    for parent in ["/tmp", "/var/tmp"] {
        sweep(Path::new(parent));
    }
    hugepages::sweep();
}

/// Removes the folders and namespaces of harnesses that have ended.
pub(crate) fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // A folder without the file was just created and is not locked yet.
        if !name.starts_with(FOLDER_PREFIX) || !entry.path().join(OWNER).exists() {
            continue;
        }
        if let Ok(Some(_owner)) = lock(&entry.path()) {
            end_listed(&entry.path());
            unmount_in(&entry.path());
            detach_in(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix(NAMESPACE_PREFIX).and_then(owner_in) else { continue };
        if is_gone(owner) {
            end_namespace(&name);
        }
    }
}

/// Unmounts file systems below a folder, the last one first, and detaches their loop devices.
fn unmount_in(folder: &Path) {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    for line in mounts.lines().rev() {
        let mut fields = line.split(' ');
        let (Some(source), Some(point)) = (fields.next(), fields.next()) else { continue };
        if Path::new(point).starts_with(folder) {
            // The process that serves it was killed, so nothing can be written back.
            let _ = run(&["umount", "--lazy", point]);
            if source.starts_with("/dev/loop") {
                let _ = run(&["losetup", "--detach", source]);
            }
        }
    }
}

/// Detaches loop devices on files of a folder.
fn detach_in(folder: &Path) {
    let list = ["losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"];
    for line in run(&list).unwrap_or_default().lines() {
        if let Some((device, file)) = line.split_once(' ') {
            if Path::new(file).starts_with(folder) {
                let _ = run(&["losetup", "--detach", device]);
            }
        }
    }
}

/// Kills the processes in a namespace and deletes it.
pub(crate) fn end_namespace(name: &str) {
    for pid in run(&["ip", "netns", "pids", name]).unwrap_or_default().split_whitespace() {
        kill(pid);
    }
    let _ = run(&["ip", "netns", "delete", name]);
}

fn owner_in(suffix: &str) -> Option<u32> {
    suffix.split('-').next()?.parse().ok()
}

fn is_gone(owner: u32) -> bool {
    owner != process::id() && !Path::new(&format!("/proc/{owner}")).exists()
}

fn end_listed(folder: &Path) {
    for line in fs::read_to_string(folder.join(LIST)).unwrap_or_default().lines() {
        if let Some((pid, started)) = line.split_once(' ') {
            let is_same = pid.parse().ok().and_then(start_time).is_some_and(|now| now == started);
            if is_same {
                kill(pid);
            }
        }
    }
}

fn kill(pid: &str) {
    if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Returns the start time of a process in clock ticks since boot (proc(5)). Together with the id it
/// identifies the process.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 22; the first one after the name in parentheses is field 3.
    Some(stat.rsplit_once(") ")?.1.split(' ').nth(19)?.to_owned())
}
