//! Removes what a harness that was killed left behind.
//!
//! A rig's folder and namespaces carry the process id of the harness, and the
//! folder lists the processes that were started, each with its start time, so
//! that an id that was given to another process since is not mistaken.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process;

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};

use crate::command::run;

/// Names of the folders of rigs.
pub(crate) const FOLDER_PREFIX: &str = "suimon-rig-";
/// Names of their namespaces.
pub(crate) const NAMESPACE_PREFIX: &str = "smr-";

const LIST: &str = "processes";

/// Writes down that `pid` was started.
pub(crate) fn record(folder: &Path, pid: u32) -> Result<()> {
    let started = start_time(pid).unwrap_or_default();
    let mut list = OpenOptions::new().create(true).append(true).open(folder.join(LIST))?;
    writeln!(list, "{pid} {started}")?;
    Ok(())
}

/// Removes what harnesses that no longer run left in the folders that rigs are usually in.
pub fn sweep_leftovers() {
    for parent in ["/tmp", "/var/tmp"] {
        sweep(Path::new(parent));
    }
}

/// Removes everything whose harness no longer runs.
pub(crate) fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix(FOLDER_PREFIX).and_then(owner_in) else { continue };
        if is_gone(owner) {
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

/// Takes away what is mounted in a folder, the last first, and the loop devices of that.
fn unmount_in(folder: &Path) {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    for line in mounts.lines().rev() {
        let mut fields = line.split(' ');
        let (Some(source), Some(point)) = (fields.next(), fields.next()) else { continue };
        if Path::new(point).starts_with(folder) {
            // What serves it was killed, so nothing can be written back.
            let _ = run(&["umount", "--lazy", point]);
            if source.starts_with("/dev/loop") {
                let _ = run(&["losetup", "--detach", source]);
            }
        }
    }
}

/// Takes away loop devices on files of a folder.
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

/// Ends the processes in a namespace and deletes it.
pub(crate) fn end_namespace(name: &str) {
    for pid in run(&["ip", "netns", "pids", name]).unwrap_or_default().split_whitespace() {
        kill(pid);
    }
    let _ = run(&["ip", "netns", "delete", name]);
}

fn owner_in(rest: &str) -> Option<u32> {
    rest.split('-').next()?.parse().ok()
}

fn is_gone(owner: u32) -> bool {
    owner != process::id() && !Path::new(&format!("/proc/{owner}")).exists()
}

fn end_listed(folder: &Path) {
    for line in fs::read_to_string(folder.join(LIST)).unwrap_or_default().lines() {
        if let Some((pid, started)) = line.split_once(' ') {
            let same = pid.parse().ok().and_then(start_time).is_some_and(|now| now == started);
            if same {
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

/// When a process started, in the kernel's ticks: with its id, its identity.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 22; the first after the name in parentheses is field 3.
    Some(stat.rsplit_once(") ")?.1.split(' ').nth(19)?.to_owned())
}
