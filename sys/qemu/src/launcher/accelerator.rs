//! Detection whether KVM works.
//!
//! The existence of `/dev/kvm` is not sufficient: on machines with a CPU that cannot run guests, a
//! guest may hang. The detection therefore runs a guest of seven bytes that writes a byte to a
//! device which ends QEMU.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use suimon_ports::{VmAccelerator, VmError, VmErrorKind};

use super::child::{ChildSpec, spawn};
use super::launcher_user::LauncherUser;

/// Time limit for the test guest, which normally ends within milliseconds. The start of QEMU may
/// take seconds on a busy or emulated host. The limit is shorter than the time for which clients of
/// the launcher wait for a reply.
const LIMIT: Duration = Duration::from_secs(20);
/// Minimum time before the test guest is run again after it has exceeded [`LIMIT`].
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Maximum number of runs of the test guest. KVM counts as unusable if all of them exceed the
/// limit.
const ATTEMPTS_MAX: u32 = 2;
/// Size of the test guest's firmware in bytes. It ends at 4 GiB, and a CPU starts 16 bytes before
/// its end.
const FIRMWARE_BYTES: usize = 64 << 10;
const START_AT: usize = FIRMWARE_BYTES - 16;
/// Instructions of the test guest: `mov al, WORD; out PORT, al; hlt; jmp` to `hlt`.
const PROGRAM: [u8; 7] = [0xb0, WORD, 0xe6, PORT, 0xf4, 0xeb, 0xfd];
const WORD: u8 = 0x2a;
const PORT: u8 = 0xf4;
/// Exit status of QEMU if the test guest works: `isa-debug-exit` ends QEMU with twice the written
/// value plus one.
const STATUS: i32 = 2 * WORD as i32 + 1;
/// Id of the user that runs the test guest: it has no privileges and owns no files.
const NOBODY: u32 = 65534;

/// Selection of the accelerator of VMs. The detection of KVM is performed once. If the test guest
/// exceeds its time limit, for example because the host is busy, the detection is performed again
/// at a later start of a VM.
#[derive(Debug, Default)]
pub(crate) struct AcceleratorSelector {
    kvm: Mutex<Detection>,
}

#[derive(Debug, Default)]
struct Detection {
    /// Result and time of the last run of the test guest; `None` before the first.
    last: Option<(Result<(), TestGuestError>, Instant)>,
    attempts: u32,
}

/// Reason why the test guest did not end as expected.
#[derive(Clone, Debug)]
pub(crate) enum TestGuestError {
    /// The guest did not end within this time limit. The host may be busy.
    TimedOut(Duration),
    /// The guest cannot run, for this reason.
    Failed(String),
}

impl fmt::Display for TestGuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(limit) => {
                write!(f, "a test guest executed nothing within {} s", limit.as_secs())
            }
            Self::Failed(text) => f.write_str(text),
        }
    }
}

impl Detection {
    /// Returns the result of the detection. Calls `detect` the first time, and again if the guest
    /// has exceeded its limit and may be run once more.
    fn result(
        &mut self,
        detect: impl FnOnce() -> Result<(), TestGuestError>,
    ) -> Result<(), TestGuestError> {
        match &self.last {
            Some((Err(TestGuestError::TimedOut(_)), at))
                if self.attempts < ATTEMPTS_MAX && at.elapsed() >= AGAIN_AFTER => {}
            Some((result, _)) => return result.clone(),
            None => {}
        }
        let result = detect();
        self.attempts += 1;
        self.last = Some((result.clone(), Instant::now()));
        result
    }
}

impl AcceleratorSelector {
    /// Returns the accelerator for a VM that requests `requested`; `None` requests KVM if it works,
    /// otherwise TCG.
    ///
    /// # Errors
    /// KVM was requested and does not work.
    pub(crate) fn choose(
        &self,
        requested: Option<VmAccelerator>,
        qemu: &Path,
        rights: LauncherUser,
    ) -> Result<VmAccelerator, VmError> {
        if requested == Some(VmAccelerator::Tcg) {
            return Ok(VmAccelerator::Tcg);
        }
        let mut kvm = self.kvm.lock().unwrap_or_else(PoisonError::into_inner);
        match (kvm.result(|| kvm_runs(qemu, rights)), requested) {
            (Ok(()), _) => Ok(VmAccelerator::Kvm),
            (Err(_), None) => Ok(VmAccelerator::Tcg),
            (Err(reason), Some(_)) => {
                let text = format!(
                    "KVM cannot run guests on this host: {reason}; without `kvm`, QEMU emulates the \
                     CPU"
                );
                Err(VmError::new(VmErrorKind::Host, text))
            }
        }
    }
}

/// Returns the id of the group that may open `/dev/kvm`; `None` if there is none, or it is root's.
pub(crate) fn kvm_group() -> Option<u32> {
    fs::metadata("/dev/kvm").ok().map(|metadata| metadata.gid()).filter(|group| *group != 0)
}

fn kvm_runs(qemu: &Path, rights: LauncherUser) -> Result<(), TestGuestError> {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut flags = cpu.lines().filter(|line| line.starts_with("flags"));
    let has_virtualization =
        |line: &str| line.split_whitespace().any(|flag| matches!(flag, "vmx" | "svm"));
    if !flags.next().is_some_and(has_virtualization) {
        return Err(TestGuestError::Failed("the CPU has neither vmx nor svm".to_owned()));
    }
    if !Path::new("/dev/kvm").exists() {
        let text = "/dev/kvm does not exist; load the kernel module kvm_intel or kvm_amd";
        return Err(TestGuestError::Failed(text.to_owned()));
    }
    guest_runs(VmAccelerator::Kvm, qemu, rights, LIMIT)
}

/// Runs the guest of seven bytes, for at most `limit`.
///
/// # Errors
/// The reason why it could not be started or did not end as expected.
fn guest_runs(
    kind: VmAccelerator,
    qemu: &Path,
    rights: LauncherUser,
    limit: Duration,
) -> Result<(), TestGuestError> {
    let failed = |error: std::io::Error| {
        TestGuestError::Failed(format!("a test guest cannot be started: {error}"))
    };
    let firmware = firmware().map_err(failed)?;
    let log = File::from(memfd_create("log", MemfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?);
    let folder = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let folder = folder.map_err(|errno| failed(errno.into()))?;
    let accelerator = if kind == VmAccelerator::Kvm { "kvm" } else { "tcg" };
    let number = firmware.as_raw_fd();
    let bios = format!("/proc/self/fd/{number}");
    let exit = format!("isa-debug-exit,iobase=0x{PORT:x},iosize=1");
    let arguments = [
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-machine",
        "q35",
        "-m",
        "16M",
        "-accel",
        accelerator,
        "-bios",
        &bios,
        "-device",
        &exit,
    ]
    .map(str::to_owned);
    let spec = ChildSpec {
        program: qemu,
        arguments: &arguments,
        user: NOBODY,
        launcher_user: rights,
        kvm_group: if kind == VmAccelerator::Kvm { kvm_group() } else { None },
        folder: folder.as_fd(),
        log: log.as_fd(),
        control_group: None,
        inherited: &[number],
    };
    let mut child = spawn(&spec).map_err(failed)?;
    let deadline = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            Ok(status) => break status,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(error));
            }
        }
    };
    match status.map(|status| (status, status.code())) {
        Some((_, Some(STATUS))) => Ok(()),
        Some((status, _)) => {
            Err(TestGuestError::Failed(format!("a test guest ended with {status}")))
        }
        None => {
            let _ = child.kill();
            let _ = child.wait();
            Err(TestGuestError::TimedOut(limit))
        }
    }
}

fn firmware() -> std::io::Result<File> {
    let mut bytes = vec![0; FIRMWARE_BYTES];
    if let Some(target) = bytes.get_mut(START_AT..START_AT + PROGRAM.len()) {
        target.copy_from_slice(&PROGRAM);
    }
    let mut file = File::from(memfd_create("firmware", MemfdFlags::CLOEXEC)?);
    file.write_all(&bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::qemu::QemuProgram;

    /// Time limit for the test guest in tests, generous because the machine may be loaded.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// Runs the test guest under TCG. If the guest were faulty, every detection of KVM would fail.
    #[test]
    fn the_guest_writes_its_message() {
        let qemu = QemuProgram::new(None);
        let (path, _) = qemu.find().unwrap();
        guest_runs(VmAccelerator::Tcg, path, LauncherUser::current(), PATIENCE).unwrap();
    }

    #[test]
    fn a_process_without_the_message_is_not_a_guest() {
        let program = Path::new("/bin/true");
        let ended = guest_runs(VmAccelerator::Tcg, program, LauncherUser::current(), PATIENCE);
        assert!(ended.unwrap_err().to_string().contains("exit status: 0"));
    }

    #[test]
    fn a_guest_that_exceeds_the_limit_is_run_once_more_and_other_results_are_kept() {
        let mut kvm = Detection::default();
        let late = || Err(TestGuestError::TimedOut(LIMIT));
        assert!(kvm.result(late).is_err());
        assert!(kvm.result(|| panic!("run again too early")).is_err());
        kvm.last = Instant::now().checked_sub(AGAIN_AFTER).map(|at| (late(), at));
        kvm.result(|| Ok(())).unwrap();
        kvm.result(|| panic!("run again after a success")).unwrap();
        // The last attempt.
        let mut kvm = Detection { last: None, attempts: ATTEMPTS_MAX - 1 };
        assert!(kvm.result(late).is_err());
        kvm.last = Instant::now().checked_sub(AGAIN_AFTER).map(|at| (late(), at));
        assert!(kvm.result(|| panic!("run again after the last attempt")).is_err());
    }
}
