//! QEMU process that this or an earlier launcher has started.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use suimon_ports::VmIdentity;

use super::folder::VmFolder;
use super::logs::{self, tail};
use crate::messages::wait_readable;
use crate::process_facts::{elapsed_since_start, start_ticks};
use crate::wire::ProcessEnd;

/// Name of the file in the VM's folder with the identity of its process.
pub(crate) const IDENTITY_FILE: &str = "launched.json";

/// Age from which the files of a process are limited. The daemon kills a process that has not
/// allocated the VM's memory and opened its monitor earlier.
const LIMITED_AFTER: Duration = Duration::from_secs(60);

/// QEMU process of a VM. It may have ended.
#[derive(Debug)]
pub(crate) struct VmProcess {
    pub(crate) identity: VmIdentity,
    pub(crate) folder: VmFolder,
    process: OwnedFd,
    is_child: bool,
    /// True if the size of the process's files is limited, or the process does not permit it.
    is_limited: AtomicBool,
    /// True if an error of [`Self::limit_files`] was reported.
    pub(crate) is_limit_error_reported: AtomicBool,
    end: Mutex<Option<ProcessEnd>>,
}

impl VmProcess {
    /// Opens the process with this id and start time; `None` if it has ended. `is_child` is true if
    /// this launcher has started it.
    pub(crate) fn open(identity: VmIdentity, folder: VmFolder, is_child: bool) -> Option<Self> {
        let number = Pid::from_raw(i32::try_from(identity.pid).ok()?)?;
        let process = pidfd_open(number, PidfdFlags::empty()).ok()?;
        // The start time is checked after the descriptor was opened. If the id was reused
        // meanwhile, it differs.
        if !is_child && start_ticks(identity.pid) != Some(identity.started_ticks) {
            return None;
        }
        Some(Self {
            identity,
            folder,
            process,
            is_child,
            is_limited: AtomicBool::new(false),
            is_limit_error_reported: AtomicBool::new(false),
            end: Mutex::new(None),
        })
    }

    /// Returns a descriptor that is readable when the process has ended.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    fn lock(&self) -> MutexGuard<'_, Option<ProcessEnd>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how the process ended; `None` while it runs.
    pub(crate) fn poll_end(&self) -> Option<ProcessEnd> {
        let mut end = self.lock();
        if end.is_none() {
            *end = self.poll();
        }
        end.clone()
    }

    fn poll(&self) -> Option<ProcessEnd> {
        let is_over = wait_readable([self.descriptor()], Some(Duration::ZERO));
        if !matches!(is_over, Ok([true])) {
            return None;
        }
        let log = tail(&self.folder);
        if !self.is_child {
            let status =
                "QEMU ended, with an unknown status because an earlier launcher had started it"
                    .to_owned();
            return Some(ProcessEnd { is_success: None, status, log });
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let (is_success, status) = match waitid(WaitId::PidFd(self.descriptor()), options) {
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(0), _) => (Some(true), "QEMU ended with status 0".to_owned()),
                (Some(code), _) => (Some(false), format!("QEMU ended with status {code}")),
                (None, Some(signal)) => (Some(false), format!("QEMU was ended by signal {signal}")),
                (None, None) => (Some(false), "QEMU ended".to_owned()),
            },
            Ok(None) => return None,
            Err(errno) => (None, format!("QEMU ended, with an unknown status ({errno})")),
        };
        Some(ProcessEnd { is_success, status, log })
    }

    /// Limits the size of the process's files once, if the process runs and is old enough. Must be
    /// called again after an error.
    ///
    /// # Errors
    /// The process's properties cannot be read, or the system refuses the limit.
    pub(crate) fn limit_files(&self) -> io::Result<()> {
        self.limit_files_by(LIMITED_AFTER, logs::limit)
    }

    /// As [`Self::limit_files`], from this age and by this function, which receives the process id.
    fn limit_files_by(
        &self,
        min_age: Duration,
        limit: impl FnOnce(u32) -> io::Result<()>,
    ) -> io::Result<()> {
        let VmIdentity { pid: process, started_ticks: start, .. } = self.identity;
        if self.is_limited.load(Relaxed)
            || self.poll_end().is_some()
            || start_ticks(process) != Some(start)
            || elapsed_since_start(start) < min_age
        {
            return Ok(());
        }
        match limit(process) {
            Ok(()) => self.is_limited.store(true, Relaxed),
            // The process may have ended meanwhile.
            Err(error) if self.poll_end().is_none() => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }

    /// Kills the process. Blocks until it has ended, for at most `limit`.
    pub(crate) fn kill(&self, limit: Duration) -> io::Result<()> {
        match pidfd_send_signal(&self.process, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(errno) => return Err(errno.into()),
        }
        match wait_readable([self.descriptor()], Some(limit))? {
            [true] => Ok(()),
            [false] => Err(io::Error::other(
                "the kernel blocks it in I/O of a device that does not respond",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::launcher::folder::VmFolderRoot;
    use crate::launcher::launcher_user::LauncherUser;

    #[test]
    fn files_are_limited_once_and_again_after_an_error() {
        let root_folder = tempfile::tempdir().unwrap();
        let root = VmFolderRoot::open(root_folder.path(), LauncherUser::Unprivileged).unwrap();
        let folder = root.path_of("vm");
        root.prepare(&folder, 0).unwrap();
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let identity = VmIdentity {
            name: "vm".to_owned(),
            folder: folder.clone(),
            pid: child.id(),
            started_ticks: start_ticks(child.id()).unwrap(),
        };
        let vm = VmProcess::open(identity, root.find(&folder).unwrap(), false).unwrap();
        let unexpected = |_: u32| -> io::Result<()> { panic!("a limit was set") };
        vm.limit_files_by(Duration::from_secs(3600), unexpected).unwrap();
        let refuse = |_: u32| Err(io::Error::other("refused"));
        for _ in 0..2 {
            vm.limit_files_by(Duration::ZERO, refuse).unwrap_err();
        }
        let mut limited = None;
        let limit = |process| {
            limited = Some(process);
            Ok(())
        };
        vm.limit_files_by(Duration::ZERO, limit).unwrap();
        assert_eq!(limited, Some(child.id()));
        vm.limit_files_by(Duration::ZERO, unexpected).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
