//! A process that has given up what a VM does not need, before it becomes QEMU.
#![allow(unsafe_code, reason = "between fork and exec there are only system calls")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::user::Rights;

/// Sockets of NICs and disks, memory, eventfds of queues and vectors.
const FILES_MAX: u64 = 65_536;
/// The kernel knows fewer capabilities.
const CAPABILITIES_MAX: u64 = 63;

/// What a QEMU is started as.
#[derive(Debug)]
pub(crate) struct ChildSpec<'a> {
    pub(crate) program: &'a Path,
    pub(crate) words: &'a [String],
    /// Its user and group.
    pub(crate) user: u32,
    pub(crate) rights: Rights,
    /// The group that may open `/dev/kvm`, if it is to be used.
    pub(crate) kvm_group: Option<u32>,
    /// Where it is.
    pub(crate) folder: BorrowedFd<'a>,
    /// Where its output goes.
    pub(crate) log: BorrowedFd<'a>,
    /// Its control group, opened to be written.
    pub(crate) control_group: Option<BorrowedFd<'a>>,
    /// Descriptors that it inherits.
    pub(crate) inherited: &'a [RawFd],
}

/// Starts it.
pub(crate) fn spawn(spec: &ChildSpec<'_>) -> io::Result<Child> {
    let mut command = Command::new(spec.program);
    command.args(spec.words).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command.stdin(Stdio::null());
    command.stdout(spec.log.try_clone_to_owned()?).stderr(spec.log.try_clone_to_owned()?);
    let (user, kvm_group) = (spec.user, spec.kvm_group);
    let is_root = spec.rights == Rights::Root;
    let folder = spec.folder.as_raw_fd();
    let control_group = spec.control_group.map(|group| group.as_raw_fd());
    let inherited = spec.inherited.to_vec();
    let give_up = move || -> io::Result<()> {
        if let Some(group) = control_group {
            // SAFETY: two bytes that are there are written to a descriptor that is open.
            // A VM that cannot have a group runs without.
            let _ = unsafe { libc::write(group, c"0".as_ptr().cast(), 1) };
        }
        // SAFETY: the calls take numbers and descriptors that are open.
        unsafe {
            checked(libc::setsid().into())?;
            libc::umask(0o077);
            checked(libc::fchdir(folder).into())?;
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
    // SAFETY: between fork and exec the closure makes system calls only: it takes no lock and
    // no memory, and what it reads was made before.
    unsafe { command.pre_exec(give_up) };
    command.spawn()
}

fn checked(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A limit, lowered to what the process may have.
fn limit(resource: u32, most: u64) -> io::Result<()> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one structure of this type, which is there.
    checked(unsafe { libc::prlimit64(0, resource, std::ptr::null(), &raw mut limit) }.into())?;
    let most = most.min(limit.rlim_max);
    let limit = libc::rlimit64 { rlim_cur: most, rlim_max: most };
    // SAFETY: the call reads one structure of this type, which is there.
    checked(unsafe { libc::prlimit64(0, resource, &raw const limit, std::ptr::null_mut()) }.into())
}

/// Takes the user on for good. With root's number go all capabilities; no file that is run gives
/// any back, because the bounding set is empty.
fn become_user(user: u32, kvm_group: Option<u32>) -> io::Result<()> {
    for capability in 0..=CAPABILITIES_MAX {
        // SAFETY: takes numbers only. Numbers that the kernel does not know are refused.
        let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    let groups = kvm_group.unwrap_or(0);
    let count = usize::from(kvm_group.is_some());
    // SAFETY: the kernel reads `count` groups, which are there; the rest are numbers. The C
    // library's functions would take locks, which nobody holds any more to give them back.
    unsafe {
        checked(libc::syscall(libc::SYS_setgroups, count, &raw const groups))?;
        checked(libc::syscall(libc::SYS_setresgid, user, user, user))?;
        checked(libc::syscall(libc::SYS_setresuid, user, user, user))
    }
}
