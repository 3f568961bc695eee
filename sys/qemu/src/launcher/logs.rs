//! Logs of VMs with bounded size. A guest can write to its console, and cause messages of QEMU,
//! without limit.
//!
//! The launcher truncates logs once a second ([`truncate_log`]). While no launcher runs, the kernel
//! bounds them ([`limit`]); QEMU then discards further output.

use std::io::{self, Read, Seek, SeekFrom};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::folder::VmFolder;
use crate::process_facts::{address_space_bytes, ignores_signals};

/// Name of the file with messages of QEMU, in the VM's folder.
pub(crate) const QEMU_LOG: &str = "qemu.log";
/// Name of the file with the output of the guest's serial console, in the VM's folder.
pub(crate) const CONSOLE_LOG: &str = "console.log";
/// Size in bytes above which a log is truncated.
const BYTES_MAX: u64 = 1 << 20;
/// Number of bytes at the end of a log that a truncation keeps.
const KEPT: u64 = 128 << 10;
/// Size in bytes that QEMU's files can reach while no launcher runs, without that of a dirty log.
const FILE_BYTES_MAX: u64 = 128 << 20;
/// Number of bytes of the address space for each byte of [`FILE_BYTES_MAX`] that is added for the
/// dirty log of a migration. The log is a file in memory with one bit per page of the guest's
/// memory.
const ADDRESS_BYTES_PER_FILE_BYTE: u64 = 16 << 10;
/// Mask of SIGXFSZ, the signal that the kernel sends at the limit of the file size.
const SIZE_SIGNAL: u64 = 1_u64 << (libc::SIGXFSZ - 1);
/// Maximum number of bytes of a log that are quoted in an error.
const TAIL_BYTES: u64 = 2048;
/// Maximum number of lines of a log that are quoted in an error.
const TAIL_LINES: usize = 10;

/// If a log exceeds the limit, removes all but its end. Data written at the same time may be lost.
pub(crate) fn truncate_log(folder: &VmFolder, name: &str) -> io::Result<()> {
    let mut file = folder.open_file(name)?;
    if file.metadata()?.len() <= BYTES_MAX {
        return Ok(());
    }
    let end = read_end(&mut file, KEPT)?;
    // Writers use `O_APPEND`, so they continue at the new end of the file.
    file.set_len(0)?;
    file.rewind()?;
    io::Write::write_all(&mut file, &end)
}

/// Limits the size of the files that a QEMU process can extend. Must be called after the process
/// has allocated the VM's memory, which is a file too.
///
/// A process that does not ignore SIGXFSZ would be killed at the limit. QEMU processes of launchers
/// before this limit existed do not ignore the signal, and are not limited.
///
/// # Errors
/// The process's files in `/proc` cannot be read, or the system refuses the limit.
pub(crate) fn limit(process: u32) -> io::Result<()> {
    let unreadable = |file: &str| io::Error::other(format!("cannot read /proc/{process}/{file}"));
    let bytes = address_space_bytes(process).ok_or_else(|| unreadable("statm"))?;
    let is_ignored = ignores_signals(process, SIZE_SIGNAL).ok_or_else(|| unreadable("status"))?;
    if !is_ignored {
        return Ok(());
    }
    set_limit(process, FILE_BYTES_MAX + bytes / ADDRESS_BYTES_PER_FILE_BYTE)
}

fn set_limit(process: u32, bytes: u64) -> io::Result<()> {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    match process {
        Some(process) => Ok(prlimit(Some(process), Resource::Fsize, limit).map(drop)?),
        None => Ok(()),
    }
}

/// Returns the last lines of QEMU's log, without control characters, for an error.
pub(crate) fn tail(folder: &VmFolder) -> String {
    let read = || read_end(&mut folder.open_file(QEMU_LOG)?, TAIL_BYTES);
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let first = lines.len().saturating_sub(TAIL_LINES);
    let lines = lines.get(first..).unwrap_or_default().join("; ");
    lines.chars().filter(|character| !character.is_control()).collect()
}

fn read_end(file: &mut std::fs::File, bytes: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut end = Vec::new();
    file.by_ref().take(bytes).read_to_end(&mut end)?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::launcher::child::{ChildSpec, spawn};
    use crate::launcher::folder::VmFolderRoot;
    use crate::launcher::launcher_user::LauncherUser;

    #[test]
    fn a_log_is_bounded_without_a_launcher_and_its_writer_continues() {
        const LIMIT: u64 = 100_000;
        let root_folder = tempfile::tempdir().unwrap();
        let root = VmFolderRoot::open(root_folder.path(), LauncherUser::Unprivileged).unwrap();
        let path = root_folder.path().join("vm");
        root.prepare(&path, 0).unwrap();
        let folder = root.find(&path).unwrap();
        let log = folder.open_log(CONSOLE_LOG).unwrap();
        let script = "while [ ! -e begin ]; do sleep 0.01; done; head -c 1000000 /dev/zero; \
                      echo $? >status; mv status end; exec sleep 100";
        let mut child = spawn(&ChildSpec {
            program: "/bin/sh".as_ref(),
            arguments: &["-c".to_owned(), script.to_owned()],
            user: rustix::process::geteuid().as_raw(),
            launcher_user: LauncherUser::Unprivileged,
            kvm_group: None,
            folder: folder.as_fd(),
            log: std::os::fd::AsFd::as_fd(&log),
            control_group: None,
            inherited: &[],
        })
        .unwrap();
        assert_eq!(ignores_signals(child.id(), SIZE_SIGNAL), Some(true));
        set_limit(child.id(), LIMIT).unwrap();
        std::fs::write(path.join("begin"), "").unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !path.join("end").exists() {
            assert!(Instant::now() < deadline, "the writer has not ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        let status = std::fs::read_to_string(path.join("end")).unwrap();
        let length = std::fs::metadata(path.join(CONSOLE_LOG)).unwrap().len();
        let is_running = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_running);
        assert_eq!(status.trim(), "1", "an error of the write, not a signal");
        assert_eq!(length, LIMIT);
    }

    #[test]
    fn a_process_without_readable_properties_is_not_taken_as_limited() {
        // This exceeds the kernel's largest process id, 4194304.
        let error = limit(5_000_000).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /proc/5000000/statm");
    }

    #[test]
    fn a_truncated_log_keeps_its_end_and_writers_continue() {
        let root_folder = tempfile::tempdir().unwrap();
        let root = VmFolderRoot::open(root_folder.path(), LauncherUser::Unprivileged).unwrap();
        let path = root_folder.path().join("vm");
        root.prepare(&path, 0).unwrap();
        let folder = root.find(&path).unwrap();
        let log = std::fs::File::from(folder.open_log(QEMU_LOG).unwrap());
        let write = |text: &str| std::io::Write::write_all(&mut &log, text.as_bytes()).unwrap();
        write(&"x\n".repeat(BYTES_MAX as usize / 2));
        truncate_log(&folder, QEMU_LOG).unwrap();
        assert_eq!(log.metadata().unwrap().len(), BYTES_MAX);
        write("an \u{1b}[31mend\n");
        truncate_log(&folder, QEMU_LOG).unwrap();
        assert_eq!(log.metadata().unwrap().len(), KEPT);
        write("the end\n");
        assert_eq!(log.metadata().unwrap().len(), KEPT + 8);
        assert!(tail(&folder).ends_with("x; x; an [31mend; the end"), "{}", tail(&folder));
    }
}
