//! Creation of a child process that drops all privileges that QEMU does not need, and executes
//! QEMU.
#![allow(unsafe_code, reason = "between fork and exec there are only system calls")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::launcher_user::LauncherUser;

/// Limit of open files of a QEMU process: sockets of NICs and disks, memory, and eventfds of queues
/// and interrupt vectors.
const FILES_MAX: u64 = 65_536;
/// Largest capability number that is dropped; the kernel defines fewer.
const CAPABILITIES_MAX: u64 = 63;

/// Parameters of a QEMU process.
#[derive(Debug)]
pub(crate) struct ChildSpec<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [String],
    /// User id, also used as the group id.
    pub(crate) user: u32,
    pub(crate) launcher_user: LauncherUser,
    /// Group that may open `/dev/kvm`; `None` if the VM does not use KVM.
    pub(crate) kvm_group: Option<u32>,
    /// Folder of the VM, which becomes the working directory.
    pub(crate) folder: BorrowedFd<'a>,
    /// File to which stdout and stderr are written.
    pub(crate) log: BorrowedFd<'a>,
    /// File `cgroup.procs` of the VM's control group, opened for writing; `None` if there is no
    /// group.
    pub(crate) control_group: Option<BorrowedFd<'a>>,
    /// Descriptors that QEMU inherits.
    pub(crate) inherited: &'a [RawFd],
}

/// Starts a child process that executes QEMU as specified.
///
/// # Errors
/// A system call failed, in this process or in the child before it executed QEMU.
pub(crate) fn spawn(spec: &ChildSpec<'_>) -> io::Result<Child> {
    let mut command = Command::new(spec.program);
    command.args(spec.arguments).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command.stdin(Stdio::null());
    command.stdout(spec.log.try_clone_to_owned()?).stderr(spec.log.try_clone_to_owned()?);
    let (user, kvm_group) = (spec.user, spec.kvm_group);
    let is_root = spec.launcher_user == LauncherUser::Root;
    let folder = spec.folder.as_raw_fd();
    let control_group = spec.control_group.map(|group| group.as_raw_fd());
    let inherited = spec.inherited.to_vec();
    let give_up = move || -> io::Result<()> {
        if let Some(group) = control_group {
            // SAFETY: writes one byte of a static string of two bytes to an open descriptor. A VM
            // that cannot join the group runs without it.
            let _ = unsafe { libc::write(group, c"0".as_ptr().cast(), 1) };
        }
        // SAFETY: the calls take numbers and open descriptors only.
        unsafe {
            checked(libc::setsid().into())?;
            libc::umask(0o077);
            checked(libc::fchdir(folder).into())?;
        }
        // A write beyond the limit of `logs::limit` then fails instead of killing the process.
        // SAFETY: takes numbers only.
        if unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
        limit(libc::RLIMIT_CORE, 0)?;
        limit(libc::RLIMIT_NOFILE, FILES_MAX)?;
        for descriptor in &inherited {
            // SAFETY: changes a flag of a descriptor of this process.
            checked(unsafe { libc::fcntl(*descriptor, libc::F_SETFD, 0) }.into())?;
        }
        if is_root {
            become_user(user, kvm_group)?;
        }
        // SAFETY: takes numbers only.
        let given_up = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        checked(given_up.into())
    };
    // SAFETY: between fork and exec, the closure makes system calls only. It takes no lock and
    // allocates no memory, and all data that it reads was created before the fork.
    unsafe { command.pre_exec(give_up) };
    command.spawn()
}

fn checked(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lowers a resource limit of the process to at most `max`.
fn limit(resource: u32, max: u64) -> io::Result<()> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one valid structure of this type.
    checked(unsafe { libc::prlimit64(0, resource, std::ptr::null(), &raw mut limit) }.into())?;
    let max = max.min(limit.rlim_max);
    let limit = libc::rlimit64 { rlim_cur: max, rlim_max: max };
    // SAFETY: the call reads one valid structure of this type.
    checked(unsafe { libc::prlimit64(0, resource, &raw const limit, std::ptr::null_mut()) }.into())
}

/// Changes user and groups of the calling process irrevocably. The change from root drops all
/// capabilities. Executing a file restores none, because the bounding set is empty.
fn become_user(user: u32, kvm_group: Option<u32>) -> io::Result<()> {
    for capability in 0..=CAPABILITIES_MAX {
        // SAFETY: takes numbers only. The kernel rejects unknown capability numbers.
        let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    let groups = kvm_group.unwrap_or(0);
    let count = usize::from(kvm_group.is_some());
    // SAFETY: the kernel reads `count` groups, 0 or 1, from a valid variable; the other arguments
    // are numbers. The functions of the C library are not used, because they would take locks that
    // no thread releases after a fork.
    unsafe {
        checked(libc::syscall(libc::SYS_setgroups, count, &raw const groups))?;
        checked(libc::syscall(libc::SYS_setresgid, user, user, user))?;
        checked(libc::syscall(libc::SYS_setresuid, user, user, user))
    }
}
